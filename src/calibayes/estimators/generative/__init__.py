"""Generative models: the fitted value, the functions of it (fit, predict, explain, sample, merge, ...), the estimator."""
