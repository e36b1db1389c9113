"""Exact arithmetic of data: models trained apart are added, rows are taken away again."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import CountStatistics, Movable
from calibayes.core.named_arrays import add, map_leaves, subtract
from calibayes.core.protocols import Array, Trees
from calibayes.estimators.generating import Generating
from calibayes.estimators.training import recoded
from calibayes.families.model import PRIOR, Product
from calibayes.learn import Data, survey
from calibayes.rules import rule_named

WITHOUT_EFFECT = frozenset(
    (
        "random_state",
        "engine",
        "n_jobs",
        "verbose",
        "callbacks",
        "max_iter",
        "stop",
        "start",
        "batch_size",
        "costs",
    )
)
"""Parameters that leave no trace in a closed form."""
ROUNDING = 1e-12
"""What is left of a sum from which all was taken away, as a share of it."""


@dataclass(eq=False, repr=False, kw_only=True)
class Arithmetic(Generating):
    """Models as sums of rows."""

    def merge(self, other: Self) -> Self:
        """A model of the rows of both, as if it had been trained on all of them: for ML and MAP.

        Both must have the same parameters, classes and columns; bins of numbers must be the same too. Levels are
        united, and moments moved to one center.
        """
        self._check_mergeable(other)
        for model in (self, other):
            model._check_added_up()
        merged = copy.copy(self)
        merged._unite(other)
        return merged

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """A model without these rows, exactly as if they had never been there: for ML and MAP.

        The rows must have been part of the training, with the same weights. Levels and bins stay as they are.
        """
        self._check_added_up()
        forgetful = copy.copy(self)
        _, rows = forgetful._training_rows(
            (X, y, sample_weight), self.class_weight, unlabeled=False, classes=self.classes_, reset=False
        )
        source = forgetful._source(rows)
        if not forgetful._closed(rule_named(self.rule), source):
            raise ValueError(
                "rows with something hidden (components of a mixture, missing cells under a full covariance) "
                "are no sums, and cannot be taken away"
            )
        gone = survey(self._model, source, self._engine(), Data(), len(self.classes_))
        forgetful._settle(_without(self._model, self.data_statistics_, gone))
        return forgetful

    def _settle(self, statistics: Trees) -> None:
        """The closed form of these statistics, or what it lacks."""
        self.data_statistics_ = statistics
        for stale in ("history_", "best_iter_"):
            self.__dict__.pop(stale, None)
        try:
            self._model = self._model.prepare(statistics)
        except ValueError as lacking:
            self._not_yet(str(lacking))
            return
        self.statistics_ = self._state = self._model.statistics_of(statistics)
        self.parameters_, self._unready = self._model.parameters(self.statistics_), ""

    def _check_added_up(self) -> None:
        check_is_fitted(self)
        self._refuse_shifted()
        if not rule_named(self.rule).closed_form:
            raise ValueError(
                f"rule {self.rule!r} has no closed form: only ML and MAP models are sums of their rows"
            )
        if not self._added_up:
            raise ValueError(
                "something hidden (components of a mixture, missing cells under a full covariance) was filled "
                "by expectation: no sums of rows"
            )
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' depends on all rows at once: give row weights instead")

    def _check_mergeable(self, other: Any) -> None:
        if type(self) is not type(other):
            raise ValueError(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
        ours, theirs = self.get_params(), other.get_params()
        differ = [
            name for name in ours if name not in WITHOUT_EFFECT and not _equal(ours[name], theirs[name])
        ]
        if differ:
            raise ValueError(f"models with different parameters cannot be merged: {', '.join(differ)}")
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError(f"different classes: {self.classes_.tolist()} and {other.classes_.tolist()}")
        if self._bound.names != other._bound.names or self._bound.chosen != other._bound.chosen:
            raise ValueError("different columns, or columns of different kinds")

    def _unite(self, other: Self) -> None:
        """Add the other model's rows, in terms of encoders that suit both."""
        bound, moved, others = self._bound.unite(other._bound)
        names = tuple(str(name) for name in self.classes_)
        layouts = bound.layouts(names)
        ours = recoded(self._model.families, self.data_statistics_, moved, layouts)
        theirs = recoded(other._model.families, other._centerd(bound), others, layouts)
        self._bound = bound
        self._model = self._model.bind(layouts, names)
        self._settle(add(ours, theirs))
        self.n_iter_ = self.n_iter_ + other.n_iter_

    def _centerd(self, bound: Any) -> Trees:
        """Statistics about the centers of other encoders."""
        layouts = bound.layouts(tuple(str(name) for name in self.classes_))
        moved = {
            name: family.move(self.data_statistics_[name], layouts[name].center)
            for name, family in self._model.families.items()
            if isinstance(family, Movable)
        }
        return {**self.data_statistics_, **moved}


def _without(model: Product, whole: Trees, gone: Trees) -> Trees:
    """Statistics without some rows; a sentence where those cannot have been among them."""
    left: Trees = map_leaves(_cleaned, subtract(whole, gone), whole)
    statistics = model.statistics_of(left)
    counts = [left[PRIOR]["count"]] + [
        f.cells(statistics[name]) for name, f in model.families.items() if isinstance(f, CountStatistics)
    ]
    if any((count < 0).any() for count in counts):
        raise ValueError(
            "there are more rows to forget than were learned: these cannot all have been among them"
        )
    return left


def _cleaned(now: Array, before: Array) -> Array:
    return np.where(np.abs(now) <= ROUNDING * np.abs(before), 0.0, now)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    try:
        return bool(left == right) or repr(left) == repr(right)
    except ValueError:  # they hold arrays somewhere
        return repr(left) == repr(right)
