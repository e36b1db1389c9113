"""Members of a mixture: what they say of rows that they were not trained on, and then trained on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array, Engine
from calibayes.estimators.patience import Judge
from calibayes.estimators.reading import Rows
from calibayes.posterior import scores
from calibayes.tables.origin import Origin


@dataclass(frozen=True)
class Path:
    """Held-out log loss and error along the path of a member, averaged over the rows of all folds."""

    tau: Array
    log_loss: Array
    error: Array
    best: int
    """Which of them was taken: that of least log loss."""
    ended: str = ""
    """Why it was not followed further, where that was to save time."""

    @property
    def stop(self) -> float:
        """The tau that was taken."""
        return float(self.tau[self.best])


class Tried(NamedTuple):
    """What a member did on rows that it had not seen."""

    out_of_fold: Array
    """log p(class | x) of each row, (n, k); NaN for a row that is in no fold, or was not asked about to save time."""
    path: Path


@dataclass(frozen=True)
class Setting:
    """What all members share."""

    rows: Rows
    labels: Array
    classes: Array
    origin: Origin
    splits: Sequence[Array]
    training: Sequence[Rows]
    """The rows that each fold does not hold out."""
    constant: Array
    """log class frequencies out of each row's fold, (n, k); NaN for a row in no fold."""
    engine: Engine
    tell: Callable[[str, float], None] = lambda text, share: None
    """Told what a member has found, and which share of its way is done."""
    late: Callable[[], bool] = lambda: False
    """Whether time is up: then a path ends where it is."""
    beside: Judge = lambda out_of_fold: None
    """What a member is worth beside those that were tried before it, by what it says of held-out rows; None for the
    first."""


class Member(Protocol):
    """Something that can be mixed."""

    def tried(self, setting: Setting) -> Tried:
        """What it says of rows in the folds that hold them out, and how far it was trained for that."""

    def trained(self, setting: Setting, path: Path) -> Any:
        """The model of all rows, trained as far."""


@dataclass(frozen=True)
class AsItIs:
    """An estimator trained as it is, once a fold and once on all rows."""

    estimator: Any

    def tried(self, setting: Setting) -> Tried:
        rows, found = setting.rows, np.full((len(setting.rows.codes), len(setting.classes)), np.nan)
        for held, training in zip(setting.splits, setting.training, strict=True):
            model = self._fitted(training, setting.labels[~held])
            found[held] = model.predict_log_proba(rows.table.rows(held))
        loss, error = held_out_scores(found, rows)
        return Tried(found, Path(np.array([np.nan]), np.array([loss]), np.array([error]), 0))

    def trained(self, setting: Setting, path: Path) -> Any:
        return self._fitted(setting.rows, setting.labels)

    def _fitted(self, rows: Rows, labels: Array) -> Any:
        return clone(self.estimator).fit(rows.table, labels, sample_weight=rows.weight)


def held_out_scores(log_posterior: Array, rows: Rows) -> tuple[float, float]:
    """Log loss and error of the rows that were in some fold; NaN without any."""
    some = ~np.isnan(log_posterior).any(axis=1)
    if not some.any():
        return np.nan, np.nan
    onehot = np.eye(log_posterior.shape[1])[rows.codes[some]]
    sums = scores(log_posterior[some], onehot, rows.weight[some])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]
