"""Timed comparisons of calibayes with other packages, run by `benchmarks/speed.py`."""
