"""Kernel densities on bins and grids."""
