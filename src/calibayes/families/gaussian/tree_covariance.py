"""A Gaussian in which each column hangs on one other: a covariance in the shape of a tree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.gaussian.shapes import Full
from calibayes.families.tree.structures import Candidates, OneTree, Parents, Search, from_parents_on
from calibayes.kernels.levels.pairs import PairInformation
from calibayes.kernels.numbers import gaussian, missing
from calibayes.kernels.numbers.gaussian import LOG_TWO_PI

LEAST_LEFT = 1e-15
"""Least share of a variance that another column leaves unexplained, so that its logarithm is finite."""


@dataclass(frozen=True)
class TreeCovariance(Full):
    """One covariance a class, of the most likely tree: each column is linear in its parent, with noise of its own.

    The tree is found in the correlations of the data and then stays. Its covariance has the variances of the data and
    the covariances along edges; all others follow (covariance selection on a tree has a closed form). A regularizer
    acts on what comes of it.

    Parameters
    ----------
    search : Search
        `OneTree` or `PerClass`, with the edges that are worth it.
    """

    search: Search = field(default_factory=OneTree)
    found: tuple[Parents, ...] = field(default=(), repr=False, compare=False)
    """The parent of each column, class by class; none before `prepare`."""

    def freedom(self, d: int) -> int:
        """A variance for each column and a covariance for each edge, of which there are at most d - 1."""
        return 2 * d - 1

    def prepare(self, start: Arrays) -> TreeCovariance:
        """Mutual information of two columns is -1/2 log(1 - correlation^2)."""
        count = np.where(start["count"] > 0, start["count"], 1.0)[:, None]
        mean = start["first"] / count
        covariance = start["second"] / count[:, :, None] - self.square(mean)
        left, right = np.triu_indices(mean.shape[1], 1)
        variances = np.maximum(self.variances(covariance), 0.0)
        apart = variances[:, left] * variances[:, right]
        share = np.where(apart > 0, covariance[:, left, right] ** 2 / np.where(apart > 0, apart, 1.0), 0.0)
        gain = -0.5 * count * np.log(np.maximum(1.0 - share, LEAST_LEFT))
        told = PairInformation(gain, np.broadcast_to(count, gain.shape), np.ones(gain.shape))
        return replace(self, found=self.search.parents(Candidates(mean.shape[1], left, right, told)))

    def settle(self, covariance: Array, size: Array) -> Array:
        # Before trees are found, and for a prior that all classes share, it stays as it is.
        if len(self.found) != len(covariance):
            return covariance
        return np.stack([along_edges(*pair) for pair in zip(covariance, self.found, strict=True)])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """Only entries of the precision that belong to columns and edges can move."""
        free = np.stack([_mask(parents) for parents in self.found])
        return self.settle(super().gradient_step(covariance, gradient * free, floor), np.ones((len(free), 1)))

    def groups(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(self.found)) != 1:
            return columns
        pairs = zip(columns, self.found[0], strict=True)
        return tuple(name if parent < 0 else f"{name} | {columns[parent]}" for name, parent in pairs)

    def terms(self, x: Array, parameters: Arrays) -> Array:
        """The log density of each known cell given the known ones before it in the tree's order."""
        terms = np.zeros((len(x), len(self.found), x.shape[1]))
        for known, rows in missing.patterns(x):
            if not known.any():
                continue
            for c, parents in enumerate(self.found):
                order = [j for j in from_parents_on(parents) if known[j]]
                away = x[np.ix_(rows, order)] - parameters["mean"][c, order]
                whitener, _ = gaussian.whiteners(parameters["covariance"][c][np.ix_(order, order)][None])
                log_scale = np.log(np.diag(whitener[0]))
                squares = (away @ whitener[0].T) ** 2
                terms[np.ix_(rows, [c], order)] = (log_scale - 0.5 * (squares + LOG_TWO_PI))[:, None, :]
        return terms


def along_edges(covariance: Array, parents: Parents) -> Array:
    """The covariance of a tree: variances and covariances of edges as they are, all others by way of the edges."""
    whole = np.zeros_like(covariance)
    for column in from_parents_on(parents):
        parent = parents[column]
        if parent >= 0 and covariance[parent, parent] > 0:
            slope = covariance[column, parent] / covariance[parent, parent]
            whole[column] = whole[:, column] = slope * whole[parent]
        whole[column, column] = covariance[column, column]
    return whole


def _mask(parents: Parents) -> Array:
    """1 for the entries of a matrix that belong to columns and edges, (d, d)."""
    mask = np.eye(len(parents))
    children = np.flatnonzero(np.array(parents) >= 0)
    above = np.array(parents)[children]
    mask[children, above] = mask[above, children] = 1.0
    return mask
