"""Where rows lie and sums run beyond this process: Dask clusters (`dask`) and accelerators (`device`)."""
