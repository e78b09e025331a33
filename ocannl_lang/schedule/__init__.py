"""From assignments to kernels: loop trees with kinds of loops, transforms on them, and the memory plan."""
