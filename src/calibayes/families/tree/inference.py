"""Exact inference in trees over columns of levels: log density, terms, samples, missing values."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.families.tree.tables import ClassTree
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.trees import beliefs, draw_missing, upward_pass


class TreeInference(ABC):
    """Rows of codes, negative where missing, under one tree for all classes or one for each class."""

    layout: Layout

    @property
    @abstractmethod
    def class_trees(self) -> tuple[ClassTree, ...]:
        """The distinct trees and the classes of each."""

    def has_hidden(self, columns: Array) -> bool:
        # A pair with a missing value is not counted, so the statistics do not depend on the parameters.
        return False

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        if np.min(columns, initial=0) < 0:
            return self._of_any_rows(columns, parameters) - self._log_volume(columns)
        return self._of_complete_rows(columns, parameters) - self._log_volume(columns)

    def _of_complete_rows(self, columns: Array, parameters: Arrays) -> Array:
        """Log probability of the cells of rows without missing values, (n, k)."""
        log_probability = np.empty((len(columns), len(self.layout.classes)))
        for tree in self.class_trees:
            table, codes = tree.select(parameters["log_probability"]), tree.tables.cell_codes(columns)
            log_probability[:, tree.classes] = counts.look_up(codes, table, tree.tables.first)
        return log_probability

    def _of_any_rows(self, columns: Array, parameters: Arrays) -> Array:
        """Log probability of the known cells of each row, (n, k): missing values are summed out."""
        log_probability = np.empty((len(columns), len(self.layout.classes)))
        complete = (columns >= 0).all(axis=1)
        log_probability[complete] = self._of_complete_rows(columns[complete], parameters)
        for tree in self.class_trees:
            marginal = upward_pass(columns[~complete], tree.with_probabilities(parameters)).total.T
            log_probability[np.ix_(~complete, tree.classes)] = marginal
        return log_probability

    def _log_volume(self, columns: Array) -> Array:
        """Log of the volume of the known cells of each row, (n, 1)."""
        if not np.any(self.layout.log_volume):
            return np.zeros((len(columns), 1))
        return counts.look_up(columns, self.layout.log_volume[None], counts.offsets(self.layout.levels))

    @property
    def groups(self) -> tuple[str, ...]:
        """``column | parent`` for each column; the column's name alone for roots and where trees differ by class."""
        names = self.layout.columns
        if len(self.class_trees) > 1:
            return names
        parents = self.class_trees[0].tables.parents
        return tuple(
            name if parent < 0 else f"{name} | {names[parent]}"
            for name, parent in zip(names, parents, strict=True)
        )

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        terms = np.empty((len(columns), len(self.layout.classes), len(self.layout.columns)))
        complete = (columns >= 0).all(axis=1)
        for tree in self.class_trees:
            table = tree.select(parameters["log_probability"])
            tree_terms = np.empty((len(columns), len(tree.classes), columns.shape[1]))
            codes = tree.tables.cell_codes(columns[complete])
            tree_terms[complete] = counts.look_up_each(codes, table, tree.tables.first)
            tree_terms[~complete] = _sequential_terms(columns[~complete], tree, parameters)
            terms[:, tree.classes] = tree_terms
        return terms

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given.copy()
        for tree in self.class_trees:
            in_tree = np.isin(classes, tree.classes)
            positions = np.searchsorted(tree.classes, classes[in_tree])
            rows[in_tree] = draw_missing(rows[in_tree], positions, tree.with_probabilities(parameters), rng)
        return rows

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the most probable level given the known cells, averaged over the posterior."""
        filled, incomplete = columns.copy(), np.flatnonzero((columns < 0).any(axis=1))
        rows, probabilities = columns[incomplete], [np.zeros((1, 1))] * columns.shape[1]
        for tree in self.class_trees:
            missing, belief = beliefs(rows, tree.with_probabilities(parameters))
            for j, (missing_rows, levels) in enumerate(zip(missing, belief, strict=True)):
                weight = posterior[np.ix_(incomplete[missing_rows], tree.classes)].T[:, :, None]
                probabilities[j] = probabilities[j] + (weight * levels).sum(axis=0)
        for j, levels in enumerate(probabilities):
            filled[columns[:, j] < 0, j] = np.argmax(levels, axis=1)
        return filled


def _sequential_terms(columns: Array, tree: ClassTree, parameters: Arrays) -> Array:
    """Log probability of each known cell given the known cells of earlier columns in the tree's order, (n, k, d)."""
    filled_tree = tree.with_probabilities(parameters)
    terms = np.zeros((len(columns), len(tree.classes), columns.shape[1]))
    revealed, before = np.full_like(columns, -1), np.zeros(terms.shape[:2])
    for j in filled_tree.order if len(columns) else ():
        revealed[:, j] = columns[:, j]
        total = upward_pass(revealed, filled_tree).total.T
        terms[:, :, j], before = total - before, total
    return terms
