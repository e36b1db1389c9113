"""Exact arithmetic of data: models trained apart are added, rows are taken away again."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibayes.core.abilities import Movable
from calibayes.core.protocols import Array, Trees
from calibayes.core.tree import add, map_leaves, subtract
from calibayes.estimators.generating import Generating
from calibayes.estimators.training import regrouped
from calibayes.families.product import PRIOR
from calibayes.learn import Data, start_statistics
from calibayes.rules import rule_named

ROUNDING = 1e-12
"""What is left of a sum from which all was taken away, as a share of it."""


@dataclass(eq=False, repr=False, kw_only=True)
class Arithmetic(Generating):
    """Models as sums of rows."""

    def merge(self, other: Self) -> Self:
        """A model of the rows of both, as if it had been trained on all of them: for ML and MAP.

        Both must have the same parameters, classes and columns; bins of numbers must be the same too. Levels are
        united, and moments moved to one centre.
        """
        self._check_learned_in_closed_form()
        other._check_learned_in_closed_form()
        self._check_mergeable(other)
        merged = copy.copy(self)
        merged._unite(other)
        return merged

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """A model without these rows, exactly as if they had never been there: for ML and MAP.

        The rows must have been part of the training, with the same weights. Levels and bins stay as they are.
        """
        self._check_learned_in_closed_form()
        forgetful = copy.copy(self)
        rule = rule_named(self.rule)
        _, rows = forgetful._training_rows(
            (X, y, sample_weight), self.class_weight, unlabelled=False, classes=self.classes_, reset=False
        )
        source = forgetful._source(rows)
        gone = start_statistics(self._model, source, self._engine(), Data(), len(self.classes_))
        forgetful.data_statistics_ = _without(self.data_statistics_, gone)
        forgetful._model = forgetful._model.prepare(forgetful.data_statistics_)
        forgetful._step(rule, source, self._engine())
        return forgetful

    def _check_learned_in_closed_form(self) -> None:
        self._check_learned()
        if not rule_named(self.rule).closed_form:
            raise ValueError(
                f"rule {self.rule!r} has no closed form: only ML and MAP models are sums of their rows"
            )

    def _check_mergeable(self, other: Self) -> None:
        ours, theirs = self.get_params(), other.get_params()
        differ = [name for name in ours if repr(ours[name]) != repr(theirs.get(name))]
        if type(self) is not type(other) or differ:
            raise ValueError(
                f"models with different parameters cannot be merged: {', '.join(differ) or type(other)}"
            )
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError(f"different classes: {self.classes_.tolist()} and {other.classes_.tolist()}")
        if self._bound.names != other._bound.names or self._bound.chosen != other._bound.chosen:
            raise ValueError("different columns, or columns of different kinds")

    def _unite(self, other: Self) -> None:
        """Add the other model's rows, in terms of encoders that suit both."""
        bound, moved, others = self._bound.unite(other._bound)
        names = tuple(str(name) for name in self.classes_)
        layouts = bound.layouts(names)
        ours = regrouped(self._model.families, self.data_statistics_, moved, layouts)
        theirs = regrouped(other._model.families, other._centred(bound), others, layouts)
        self._bound = bound
        self._model = self._model.bind(layouts, names)
        self.data_statistics_ = add(ours, theirs)
        self._model = self._model.prepare(self.data_statistics_)
        self.statistics_ = self._state = self.data_statistics_
        self.parameters_ = self._model.parameters(self.data_statistics_)
        self.n_iter_ = self.n_iter_ + other.n_iter_

    def _centred(self, bound: Any) -> Trees:
        """Statistics about the centres of other encoders."""
        layouts = bound.layouts(tuple(str(name) for name in self.classes_))
        moved = {
            name: family.move(self.data_statistics_[name], layouts[name].centre)
            for name, family in self._model.families.items()
            if isinstance(family, Movable)
        }
        return {**self.data_statistics_, **moved}


def _without(whole: Trees, gone: Trees) -> Trees:
    """Statistics without some rows; a sentence where those cannot have been among them."""
    count = whole[PRIOR]["count"]
    if (gone[PRIOR]["count"] > count * (1 + ROUNDING)).any():
        raise ValueError("there are more rows to forget than were learned in some class")
    left = subtract(whole, gone)
    cleaned: Trees = map_leaves(_cleaned, left, whole)
    return cleaned


def _cleaned(now: Array, before: Array) -> Array:
    return np.where(np.abs(now) <= ROUNDING * np.abs(before), 0.0, now)
