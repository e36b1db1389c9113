"""Zero-concentrated differential privacy (zCDP) and the (epsilon, delta) that it implies."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar

MOST_ORDER = 1e9
"""Largest Renyi order that is tried."""


def delta_of(rho: float, epsilon: float) -> float:
    """The least delta of rho-zCDP at an epsilon (Canonne, Kamath and Steinke 2020).

    It is the minimum over orders a > 1 of exp((a - 1) (a rho - epsilon)) (1 - 1/a)^a / (a - 1); the bound holds at every
    order, so a minimum that is missed costs accuracy, not privacy.
    """
    if rho == 0:
        return 0.0

    def log_bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1.0 + excess
        return excess * (order * rho - epsilon) + order * math.log1p(-1.0 / order) - math.log(excess)

    limits = (math.log(1e-9), math.log(MOST_ORDER))
    best = minimize_scalar(log_bound, bounds=limits, method="bounded", options={"xatol": 1e-9})
    return float(min(math.exp(min(best.fun, 0.0)), 1.0))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho, up to a share of 1e-9, whose zCDP implies (epsilon, delta)."""
    low, high = 0.0, epsilon + 1.0
    while delta_of(high, epsilon) <= delta:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low
