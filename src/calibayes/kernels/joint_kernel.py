"""Gaussian kernels over all columns together: how much of each class lies about a row."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.threads import by_stretch

STEPS = 15
"""Bandwidths from the widest on, each narrower by the root of two: squares of kernels are kernels of the next."""


def votes(rows: Array, kept: Array, shares: Array, square: float, own: Array | None = None) -> Array:
    """Sums of kernels by class, in units of the nearest row's, for `STEPS` bandwidths, (STEPS, n, k).

    Parameters
    ----------
    rows : (n, d) array
    kept : (m, d) array
        Where kernels stand.
    shares : (m, k) array
        The weight of each in each class.
    square : float
        The square of the widest bandwidth.
    own : (n,) array, optional
        The position of each row among those kept: it is left out.
    """
    found = np.empty((STEPS, len(rows), shares.shape[1]))

    def some(part: slice) -> None:
        kernels = _kernels(rows[part], kept, square, None if own is None else own[part])
        for step in range(STEPS):
            found[step, part] = kernels @ shares
            np.square(kernels, out=kernels)

    by_stretch(some, len(rows), kept[:, 0].nbytes)
    return found


def votes_at(rows: Array, kept: Array, shares: Array, square: float) -> Array:
    """The same for one bandwidth, (n, k)."""
    parts = by_stretch(lambda part: _kernels(rows[part], kept, square) @ shares, len(rows), kept[:, 0].nbytes)
    return np.concatenate(parts)


def votes_by_columns(
    rows: Array, kept: Array, shares: Array, square: float, groups: list[list[int]]
) -> Array:
    """The same as groups of columns come in one after the other, (groups, n, k)."""

    def some(part: slice) -> Array:
        away, found = 0.0, []
        for group in groups:
            away = away + _squares(rows[part][:, group], kept[:, group])
            found.append(_relative(away.copy(), square) @ shares)
        return np.stack(found)

    return np.concatenate(by_stretch(some, len(rows), kept[:, 0].nbytes), axis=1)


def log_densities(rows: Array, kept: Array, weight: Array, square: float) -> Array:
    """Log density of a sum of normalised kernels, (n,), weights (m,) adding up to one."""

    def some(part: slice) -> Array:
        logs = _squares(rows[part], kept) * (-0.5 / square)
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]) @ weight))

    parts = np.concatenate(by_stretch(some, len(rows), kept[:, 0].nbytes))
    return np.asarray(parts - 0.5 * kept.shape[1] * np.log(2.0 * np.pi * square))


def _kernels(rows: Array, kept: Array, square: float, own: Array | None = None) -> Array:
    away = _squares(rows, kept)
    if own is not None:
        away[np.arange(len(rows)), own] = np.inf
    return _relative(away, square)


def _squares(rows: Array, kept: Array) -> Array:
    """Squared distances, (n, m)."""
    away = rows @ (-2.0 * kept.T)
    away += np.sum(rows * rows, axis=1)[:, None]
    away += np.sum(kept * kept, axis=1)
    return np.asarray(np.maximum(away, 0.0, out=away))


def _relative(away: Array, square: float) -> Array:
    """Kernels of squared distances in units of the nearest one's, in the same memory."""
    away -= away.min(axis=1, keepdims=True)
    away *= -0.5 / square
    return np.asarray(np.exp(away, out=away))
