"""Array functions without state: arrays in, arrays out. Sizes: n rows, d columns, k classes.

The NumPy version of each function is the reference. Some have a native (C++) twin (see `calibayes.kernels.dispatch`);
those written with `namespace` also take arrays of other libraries that follow the array API standard.
"""
