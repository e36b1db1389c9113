"""A kernel classifier over all columns jointly."""
