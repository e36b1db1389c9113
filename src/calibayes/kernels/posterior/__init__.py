"""Kernels over posterior probabilities."""
