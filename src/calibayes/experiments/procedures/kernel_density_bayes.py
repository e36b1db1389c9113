"""Naive Bayes and tree-augmented naive Bayes with the kernel densities of SLB (slb-2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.base import BaseEstimator, ClassifierMixin

from calibayes.core.protocols import Array
from calibayes.dependence import Dependence, TopFraction
from calibayes.estimators.log_density.features import LogDensityFeatures


@dataclass(frozen=True)
class SpanningTrees:
    """Selects the edges of the maximum spanning tree of dependence of each class (Chow and Liu 1968)."""

    def candidates(self, table: Dependence) -> list[Array]:
        d, pairs = len(table.names), table.pairs
        pair_number = np.zeros((d, d), dtype=np.int64)
        pair_number[pairs[0], pairs[1]] = np.arange(pairs.shape[1])
        selected = []
        for label, statistics in enumerate(table.statistics):
            gain = np.triu(np.maximum(statistics, 1e-12), 1)
            tree = minimum_spanning_tree(np.where(gain > 0, 1.0 + gain.max() - gain, 0.0)).tocoo()
            edges = np.sort(np.stack([tree.row, tree.col]), axis=0)
            selected.append(label * pairs.shape[1] + pair_number[edges[0], edges[1]])
        return [np.concatenate(selected).astype(np.int64)]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDensityBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Bayes' rule with kernel densities: independent columns, or a tree by mutual information for each class."""

    trees: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the densities and the class probabilities."""
        selection = SpanningTrees() if self.trees else TopFraction(0.0)
        self.features_ = LogDensityFeatures(
            measure="mutual_information", selection=selection, floor=1e-10
        ).fit(X, y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / counts.sum())
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        logs, densities = self.features_.transform(X), self.features_.densities_
        d, k = len(densities.varying), len(self.classes_)
        joint = np.empty((len(logs), k))
        for c in range(k):
            class_pairs = np.flatnonzero(densities.pair_codes == c)
            degree = np.bincount(densities.pairs[:, class_pairs].ravel(), minlength=d)  # Lemma 1 of the paper
            joint[:, c] = logs[:, c * d : (c + 1) * d] @ (1.0 - degree)
            joint[:, c] += logs[:, densities.n_univariate + class_pairs].sum(axis=1) + self.log_prior_[c]
        return self.classes_[joint.argmax(axis=1)]
