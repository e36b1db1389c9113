"""Bias-corrected temperature scaling: one factor for all log posteriors and one constant for each class.

Alexandari, Kundaje and Shrikumar (2020, ICML) recommend it for the estimation of class frequencies: after it, the mean
posterior of the held-out rows is their class frequencies, so that these frequencies are the maximum-likelihood ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from calibayes.core.protocols import Array
from calibayes.kernels.posterior.logspace import indicators, log_normalize

LOWEST = -700.0
"""Lowest log posterior that is used: exp of less is zero."""
MOST_FACTOR = 20.0
FACTOR_RIDGE, BIAS_RIDGE = 1.0, 1e-3
"""Weights of the squared distances of factor and constants from no change: errors of few rows do not make them infinite."""


@dataclass(frozen=True)
class BiasedTemperature:
    """log p(class | x) becomes ``factor * log p(class | x) + bias``, normalized."""

    factor: float
    bias: Array

    def log_posterior(self, log_posterior: Array) -> Array:
        """Calibrated log posteriors, (n, k)."""
        return log_normalize(self.factor * floored(log_posterior) + self.bias)[0]

    @property
    def coefficients(self) -> Array:
        """Factor and constants, (1 + k,)."""
        return np.concatenate([[self.factor], self.bias])

    def moved(self, change: Array) -> BiasedTemperature:
        """With other coefficients; the factor stays at zero or above."""
        coefficients = self.coefficients + change
        return BiasedTemperature(float(np.clip(coefficients[0], 0.0, MOST_FACTOR)), coefficients[1:])


def floored(log_posterior: Array) -> Array:
    """Log posteriors without infinities."""
    return np.maximum(log_posterior, LOWEST)


def fitted_calibration(log_posterior: Array, codes: Array, weight: Array) -> BiasedTemperature:
    """The calibration with the lowest penalized log loss on labeled rows."""
    k = log_posterior.shape[1]
    bounds = [(0.0, MOST_FACTOR), *[(None, None)] * k]

    def objective(coefficients: Array) -> tuple[float, Array]:
        calibration = BiasedTemperature(coefficients[0], coefficients[1:])
        loss, gradients = _losses(calibration, log_posterior, codes)
        away = coefficients - _unchanged(k)
        penalty = _ridge(k) * away
        return float(weight @ loss + penalty @ away / 2), weight @ gradients + penalty

    found = minimize(objective, _unchanged(k), jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-10)
    return BiasedTemperature(float(found.x[0]), found.x[1:])


def resampled_changes(
    calibration: BiasedTemperature, log_posterior: Array, codes: Array, weights: Array
) -> Array:
    """Changes of the coefficients if rows had other weights, (draws, 1 + k), from weights (draws, n): one Newton step each."""
    k = log_posterior.shape[1]
    _, gradients = _losses(calibration, log_posterior, codes)
    penalty = _ridge(k) * (calibration.coefficients - _unchanged(k))
    hessian = _hessian(calibration, log_posterior, weights.mean(axis=0))
    return -np.linalg.solve(hessian, (weights @ gradients + penalty).T).T


def _unchanged(k: int) -> Array:
    return np.concatenate([[1.0], np.zeros(k)])


def _ridge(k: int) -> Array:
    return np.concatenate([[FACTOR_RIDGE], np.full(k, BIAS_RIDGE)])


def _losses(calibration: BiasedTemperature, log_posterior: Array, codes: Array) -> tuple[Array, Array]:
    """Log loss of each row, (n,), and its gradient, (n, 1 + k)."""
    calibrated = calibration.log_posterior(log_posterior)
    residual = np.exp(calibrated) - indicators(codes, calibrated.shape[1])
    by_factor = np.sum(residual * floored(log_posterior), axis=1)
    return -calibrated[np.arange(len(codes)), codes], np.column_stack([by_factor, residual])


def _hessian(calibration: BiasedTemperature, log_posterior: Array, weight: Array) -> Array:
    """Second derivatives of the penalized log loss, (1 + k, 1 + k)."""
    posterior, values = np.exp(calibration.log_posterior(log_posterior)), floored(log_posterior)
    centered = values - np.sum(posterior * values, axis=1, keepdims=True)
    k = posterior.shape[1]
    hessian = np.diag(_ridge(k))
    hessian[0, 0] += weight @ np.sum(posterior * centered**2, axis=1)
    hessian[0, 1:] = hessian[1:, 0] = weight @ (posterior * centered)
    hessian[1:, 1:] += np.diag(weight @ posterior) - (posterior * weight[:, None]).T @ posterior
    return hessian
