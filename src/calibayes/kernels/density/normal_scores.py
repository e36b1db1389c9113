"""Columns made normal by their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.quantiles import quantiles

KNOTS = 200


@dataclass(frozen=True)
class NormalScores:
    """A rising map for each column, straight between some quantiles, that makes its rows about standard normal.

    Equal values have one score, the mean of those of their ranks. Values beyond those of training have the scores of
    the outermost.
    """

    knots: tuple[tuple[Array, Array], ...]
    """Values and scores, a pair for each column."""

    def apply(self, columns: Array) -> Array:
        """Scores of rows, (n, d)."""
        return np.stack(
            [np.interp(c, *knots) for c, knots in zip(columns.T, self.knots, strict=True)], axis=1
        )


def learn_normal_scores(columns: Array, weights: Array) -> NormalScores:
    """From training rows; a weight counts as that many copies of its row."""
    n = max(float(weights.sum()), 2.0)
    count = int(min(n, KNOTS))
    shares = (np.arange(count) + 0.5) / count
    ends = np.array([0.5 / n, 1 - 0.5 / n])
    inner = quantiles(columns, weights, shares)
    values = np.concatenate([columns.min(axis=0)[None], inner, columns.max(axis=0)[None]])
    scores = ndtri(np.concatenate([ends[:1], shares, ends[1:]]))
    return NormalScores(tuple(_merged(column, scores) for column in values.T))


def _merged(values: Array, scores: Array) -> tuple[Array, Array]:
    """Equal values once, with the mean of their scores."""
    found, group = np.unique(values, return_inverse=True)
    return found, np.bincount(group, scores) / np.bincount(group)
