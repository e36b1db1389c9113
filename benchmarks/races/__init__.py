"""Ours beside the peers, timed in one process on the same data: what `benchmarks/speed.py` runs."""
