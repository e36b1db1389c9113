"""Kernels over columns of numbers, dense or sparse."""
