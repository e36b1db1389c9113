"""Benchmarks of what a fitted classifier says about rows that it was not trained on."""
