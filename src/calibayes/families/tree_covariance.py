"""Tree-structured covariance: each column depends linearly on one other column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.covariances import Full
from calibayes.families.tree_structures import (
    Candidates,
    OneTree,
    Parents,
    Search,
    topological_order,
    verify_parents,
)
from calibayes.kernels.level_pairs import PairInformation

LEAST_UNEXPLAINED = 1e-15
"""Smallest value of 1 - correlation^2, so that its logarithm is finite."""


@dataclass(frozen=True)
class TreeCovariance(Full):
    """One covariance per class, of a Gaussian Markov tree: each column is linear in its parent, plus independent noise.

    `prepare` learns the tree of maximum likelihood from the correlations of the data (Chow and Liu 1968); training does
    not change it. The covariance has the sample variances and the sample covariances along edges; all other entries
    follow from these (covariance selection on a tree has a closed form). A regularizer is applied afterwards.

    Parameters
    ----------
    search : Search
        `OneTree` or `PerClass`, with a criterion for edges.

    Examples
    --------
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureDiscriminantAnalysis(n_components=1, covariance="tree", rule="ml")  # its shape is TreeCovariance
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    search: Search = field(default_factory=OneTree)
    parents: tuple[Parents, ...] = field(default=(), repr=False, compare=False)
    """The parent of each column, class by class, set by `prepare`."""

    def freedom(self, d: int) -> int:
        """A variance for each column and a covariance for each of at most d - 1 edges."""
        return 2 * d - 1

    def prepare(self, start: Arrays) -> TreeCovariance:
        """This shape with the tree of maximal mutual information, -1/2 log(1 - correlation^2) for two columns."""
        count = np.where(start["count"] > 0, start["count"], 1.0)[:, None]
        mean = start["first"] / count
        covariance = self._scaled(start["second"] / count[:, :, None] - self.square(mean))
        left, right = np.triu_indices(mean.shape[1], 1)
        variances = np.maximum(self.variances(covariance), 0.0)
        product = variances[:, left] * variances[:, right]
        squares = covariance[:, left, right] ** 2
        squared_correlation = np.where(product > 0, squares / np.where(product > 0, product, 1.0), 0.0)
        gain = -0.5 * count * np.log(np.maximum(1.0 - squared_correlation, LEAST_UNEXPLAINED))
        information = PairInformation(gain, np.broadcast_to(count, gain.shape), np.ones(gain.shape))
        candidates = Candidates(mean.shape[1], left, right, information)
        return replace(self, parents=self.search.parents(candidates))

    def verify_size(self, k: int, d: int) -> None:
        verify_parents(self.parents, k if self.parents else 0, d)

    def _scaled(self, covariance: Array) -> Array:
        """The covariance in units, powers of 2, in which variances are near 1: products of variances do not overflow."""
        exponent = np.frexp(np.sqrt(np.maximum(self.variances(covariance), 0.0)))[1]
        return np.ldexp(covariance, -(exponent[:, :, None] + exponent[:, None, :]))

    def constrain(self, covariance: Array, size: Array) -> Array:
        # Unchanged before the trees are learned, and for a prior covariance that all classes share.
        if len(self.parents) != len(covariance):
            return covariance
        return np.stack([tree_covariance(*pair) for pair in zip(covariance, self.parents, strict=True)])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """Only entries of the precision on the diagonal and on edges are free."""
        free = np.stack([_free_entries(parents) for parents in self.parents])
        moved = super().gradient_step(covariance, gradient * free, floor)
        return self.constrain(moved, np.ones((len(free), 1)))


def tree_covariance(covariance: Array, parents: Parents) -> Array:
    """The covariance (d, d) of a tree with given variances and edge covariances: products of slopes along paths."""
    result = np.zeros_like(covariance)
    for column in topological_order(parents):
        parent = parents[column]
        if parent >= 0 and covariance[parent, parent] > 0:
            slope = covariance[column, parent] / covariance[parent, parent]
            result[column] = result[:, column] = slope * result[parent]
        result[column, column] = covariance[column, column]
    return result


def _free_entries(parents: Parents) -> Array:
    """1 on the diagonal and on edges, else 0, (d, d)."""
    mask = np.eye(len(parents))
    children = np.flatnonzero(np.array(parents) >= 0)
    child_parents = np.array(parents)[children]
    mask[children, child_parents] = mask[child_parents, children] = 1.0
    return mask
