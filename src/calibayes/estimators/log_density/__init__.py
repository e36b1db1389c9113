"""Linear classifiers on log kernel densities of columns and pairs of columns (slb-2020)."""
