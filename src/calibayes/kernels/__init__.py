"""Array functions: arrays in, arrays out. The NumPy reference; other array namespaces where the API allows."""
