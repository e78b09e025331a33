"""Ocn side by side with numpy and PyTorch: `python -m benchmarks [NAMES]`.

Each peer runs in a process of its own; they take turns, so that a change of the machine's speed meets all alike. Before anything is
timed all peers must give the same number. One table of medians is printed.
"""
