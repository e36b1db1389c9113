"""Members of an ensemble: predictions for held-out rows, then training on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array, Engine
from calibayes.core.verify import require, require_array, require_number, require_positions
from calibayes.kernels.posterior import held_out_scores
from calibayes.model.input import Rows, TrainingRows

EnsembleLoss = Callable[[Array], float | None]
"""Held-out log loss of an ensemble with a further member, from its predictions; None without other members."""


@dataclass(frozen=True)
class CalibrationPath:
    """Held-out log loss and error along the path of a member, averaged over the rows of all folds.

    Attributes
    ----------
    total_step : array
        Sums of calibration steps (for a kernel member, bandwidth steps) at which the path was evaluated.
    log_loss, error : arrays
    best : int
        Position of the lowest log loss, which is used.
    ended : str
        Why the path was not followed further, if that was to save time.
    temperature : float
        Divides the log probabilities of the member; 1 unless the table has more columns than rows.
    """

    total_step: Array
    log_loss: Array
    error: Array
    best: int
    ended: str = ""
    temperature: float = 1.0

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        steps = len(require_array("total_step", self.total_step, (None,)))
        require_array("log_loss", self.log_loss, (steps,))
        require_array("error", self.error, (steps,))
        require(not (self.total_step < 0).any(), "total_step contains negative numbers")
        require_positions("best", [self.best], steps)
        require_number("temperature", self.temperature, 1e-12, 1e12)

    @property
    def stop(self) -> float:
        """The sum of steps that is used."""
        return float(self.total_step[self.best])


NO_PATH = CalibrationPath(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan), 0)
"""The path of a member that no fold was held out for."""


class MemberResult(NamedTuple):
    """Predictions of a member for rows that it was not trained on."""

    out_of_fold: Array
    """log p(class | x) of each row, (n, k); NaN for a row in no fold, or one that was left out to save time."""
    path: CalibrationPath


@dataclass(frozen=True)
class FoldContext:
    """What all members of an ensemble share.

    Attributes
    ----------
    rows, classes, labels
        The rows, the classes, and the label of each row.
    held_out : sequence of (n,) booleans
        The rows that each fold holds out.
    training : sequence of Rows
        The training rows of each fold.
    constant : (n, k) array
        Log class frequencies in the training rows of each row's fold; NaN for a row in no fold.
    engine : Engine
    n_jobs : int or None
    report : callable
        Progress: a message, and the share of the member's work that is done.
    is_late : callable
        Whether the time limit is reached: then a path ends.
    ensemble_loss : callable
        The loss of the ensemble of all members so far and a further one, from its held-out predictions; None for the
        first member.
    """

    rows: Rows
    classes: Array
    held_out: Sequence[Array]
    training: Sequence[Rows]
    constant: Array
    engine: Engine
    n_jobs: int | None = None
    report: Callable[[str, float], None] = lambda text, share: None
    is_late: Callable[[], bool] = lambda: False
    ensemble_loss: EnsembleLoss = lambda out_of_fold: None
    everything: TrainingRows | None = None
    """All rows of a source of which ``rows`` are a sample; None if they are all."""

    @property
    def summed_rows(self) -> TrainingRows:
        """The rows for models that learn from sums over rows: all of them."""
        return self.rows if self.everything is None else self.everything

    @property
    def labels(self) -> Array:
        return self.classes[self.rows.codes]


class Member(Protocol):
    """A model that can be part of an ensemble."""

    def evaluate(self, context: FoldContext) -> MemberResult:
        """Predictions for the held-out rows of each fold, and how far it was trained for them."""

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator trained on all rows, as far as the path says."""

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator trained on all rows for its density, without calibration."""


@dataclass(frozen=True)
class RefitMember:
    """An estimator that is fitted once per fold and once on all rows."""

    estimator: Any

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, labels = context.rows, context.labels
        out_of_fold = np.full((len(rows.codes), len(context.classes)), np.nan)
        for mask, training in zip(context.held_out, context.training, strict=True):
            model = self._fitted(training, labels[~mask], context.engine)
            out_of_fold[mask] = model.predict_log_proba(rows.table.rows(mask))
        loss, error = held_out_scores(out_of_fold, rows.codes, rows.weight)
        return MemberResult(
            out_of_fold, CalibrationPath(np.array([np.nan]), np.array([loss]), np.array([error]), 0)
        )

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        return self._fitted(context.rows, context.labels, context.engine)

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        return self.train(context, path)

    def _fitted(self, rows: Rows, labels: Array, engine: Engine) -> Any:
        model = clone(self.estimator)
        if model.get_params(deep=False).get("engine", engine) is None:
            model.set_params(engine=engine)
        return model.fit(rows.table, labels, sample_weight=rows.weight)
