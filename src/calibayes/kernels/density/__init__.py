"""Kernels for kernel densities and Gram matrices."""
