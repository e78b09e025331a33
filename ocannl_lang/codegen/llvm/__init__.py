"""LLVM IR as text for CPUs: target facts, a writer of functions, expressions, kernels, objects and linking."""
