"""A trained generative model as one value, and the functions that train it and predict with it."""
