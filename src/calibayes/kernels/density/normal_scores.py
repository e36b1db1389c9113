"""Transformation of columns to normal scores by their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_ascending, require_finite
from calibayes.kernels.numbers.quantiles import quantiles

KNOTS = 200
"""Largest number of quantiles between which the map is linear."""


@dataclass(frozen=True)
class NormalScores:
    """An increasing piecewise linear map of each column to approximately standard normal scores.

    Equal values have one score, the mean of those of their ranks. Values outside the range of the training rows have the
    score of the nearest training value.
    """

    knots: tuple[tuple[Array, Array], ...]
    """For each column, values and their scores, ascending."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        for values, scores in self.knots:
            require(len(require_finite("knots", values, (None,))) > 0, "a column has no knots")
            require_ascending("knots", values)
            require_finite("scores", scores, values.shape)

    def apply(self, columns: Array) -> Array:
        """Scores of columns (n, d), (n, d)."""
        return np.stack(
            [np.interp(c, *knots) for c, knots in zip(columns.T, self.knots, strict=True)], axis=1
        )


def learn_normal_scores(columns: Array, weights: Array) -> NormalScores:
    """Normal scores of training columns (n, d); a weight (n,) counts as that many copies of its row."""
    n = max(float(weights.sum()), 2.0)
    count = int(min(n, KNOTS))
    shares = (np.arange(count) + 0.5) / count
    outer_shares = np.array([0.5 / n, 1 - 0.5 / n])
    inner = quantiles(columns, weights, shares)
    values = np.concatenate([columns.min(axis=0)[None], inner, columns.max(axis=0)[None]])
    scores = ndtri(np.concatenate([outer_shares[:1], shares, outer_shares[1:]]))
    return NormalScores(tuple(_merge_equal(column, scores) for column in values.T))


def _merge_equal(values: Array, scores: Array) -> tuple[Array, Array]:
    """Distinct values, each with the mean of its scores."""
    distinct, group = np.unique(values, return_inverse=True)
    return distinct, np.bincount(group, scores) / np.bincount(group)
