"""Kernels over columns of levels (categories, bins, grid cells)."""
