"""Gaussian families: shapes of covariance, priors, mixtures."""
