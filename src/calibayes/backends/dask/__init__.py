"""Dask collections as input, and a Dask cluster as engine."""
