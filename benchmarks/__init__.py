"""Ocn side by side with numpy, PyTorch and JAX: `python -m benchmarks`. `README.md` says what is measured, and how.

| file | what it does |
|---|---|
| `cases.py`, `values.py` | what is computed; the initial parameters and batches |
| `peers/`, `programs/` | how each peer computes it; the Ocn programs |
| `worker.py`, `processes.py` | the process of a peer; starting, asking and ending it |
| `runner.py` | the cases, with the peers taking turns |
| `fresh.py` | compiling, starting, checking, and steps beside a busy process |
| `machine.py`, `ceilings.py` | the processors; what they can do at most |
| `results.py`, `goals.py`, `table.py` | what was measured, what was to be reached, both as text |
"""
