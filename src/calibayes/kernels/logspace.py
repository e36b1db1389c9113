"""Normalising in log space."""

from __future__ import annotations

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array


def log_normalise(log_joint: Array) -> tuple[Array, Array]:
    """Split log p(x, class) into log p(class | x), (n, k), and log p(x), (n,)."""
    xp = namespace(log_joint)
    top = xp.max(log_joint, axis=1, keepdims=True)
    # A row that no class can explain (all -inf) is left as evidence -inf with a flat posterior.
    shifted = xp.where(xp.isfinite(top), log_joint - xp.where(xp.isfinite(top), top, 0.0), 0.0)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]
