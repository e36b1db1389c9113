"""Members of a mixture: trained on all rows, and what they say of rows that they were not trained on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array, Engine, Model, Rule
from calibayes.estimators.folds import Fold, begun, shared
from calibayes.estimators.reading import Rows
from calibayes.estimators.training import Training
from calibayes.learn import TAUS, AnyOf, Data, Lane, MaxPasses, ToTheEnd, as_arrays, survey, walk
from calibayes.posterior import log_normalise, scores
from calibayes.rules import rule_named
from calibayes.tables.origin import Origin
from calibayes.tables.sources import ArraySource

PATIENCE = 2
"""Values of tau without a lower held-out log loss after which a path ends."""


@dataclass(frozen=True)
class Path:
    """Held-out log loss and error along the path of a member, summed over folds and divided by the weight of the rows."""

    tau: Array
    log_loss: Array
    error: Array
    best: int
    """Which of them was taken: that of least log loss."""

    @property
    def stop(self) -> float:
        """The tau that was taken."""
        return float(self.tau[self.best])


class Trained(NamedTuple):
    """A member after training."""

    model: Any
    out_of_fold: Array
    """log p(class | x) of each row, by a model that has not seen it, (n, k); NaN for a row in no fold."""
    path: Path


@dataclass(frozen=True)
class Setting:
    """What all members share."""

    rows: Rows
    labels: Array
    classes: Array
    origin: Origin
    splits: Sequence[Array]
    engine: Engine
    tell: Callable[[str], None] = lambda text: None
    late: Callable[[], bool] = lambda: False
    """Whether time is up: then a path ends where it is."""


class Member(Protocol):
    """Something that can be mixed."""

    def train(self, setting: Setting) -> Trained: ...


@dataclass(frozen=True)
class AsItIs:
    """An estimator trained as it is, once a fold and once on all rows."""

    estimator: Any

    def train(self, setting: Setting) -> Trained:
        rows, found = setting.rows, np.full((len(setting.rows.codes), len(setting.classes)), np.nan)
        for held in setting.splits:
            model = self._fitted(rows.only(~held), setting.labels[~held])
            found[held] = model.predict_log_proba(rows.table.rows(held))
        loss, error = held_out_scores(found, rows)
        path = Path(np.array([np.nan]), np.array([loss]), np.array([error]), 0)
        return Trained(self._fitted(rows, setting.labels), found, path)

    def _fitted(self, rows: Rows, labels: Array) -> Any:
        return clone(self.estimator).fit(rows.table, labels, sample_weight=rows.weight)


@dataclass(frozen=True)
class Stopped:
    """An estimator whose path is stopped at the tau of least held-out log loss; the folds walk it together.

    Parameters
    ----------
    estimator : Training
    passes : int
        Most passes over the data on the whole path.
    """

    estimator: Training
    passes: int = 120
    taus: Sequence[float] = TAUS

    def train(self, setting: Setting) -> Trained:
        base = copy.copy(self.estimator)
        base.classes_, base._origin, rule = setting.classes, setting.origin, rule_named(base.rule)
        path, found = self._cross_validated(base, rule, setting)
        taus = [tau for tau in self.taus if tau <= path.stop]
        return Trained(trained_to(base, rule, setting, taus, self.passes), found, path)

    def _cross_validated(self, base: Training, rule: Rule, setting: Setting) -> tuple[Path, Array]:
        rows, splits = setting.rows, setting.splits
        found = np.full((len(rows.codes), len(setting.classes)), np.nan)
        if not splits:
            return Path(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan), 0), found
        source, folds = shared(base, rule, rows, splits)
        lanes = self._lanes(folds, rule, source, setting)
        mass = np.array([rows.weight[held].sum() for held in splits])
        taus: list[float] = []
        losses: list[float] = []
        errors: list[float] = []
        best = [lane.candidate.parameters for lane in lanes]
        for tau in walk(lanes, source, setting.engine, self.taus):
            ends = [
                (lane.history[-1].validation_log_loss, lane.history[-1].validation_error) for lane in lanes
            ]
            loss, error = mass @ np.array(ends) / mass.sum()
            if not losses or loss < min(losses):
                best = [lane.accepted.parameters for lane in lanes]
            taus.append(tau)
            losses.append(float(loss))
            errors.append(float(error))
            setting.tell(f"tau {tau:g}: log loss {loss:.4f}, error {error:.4f} on held-out rows")
            if setting.late() or len(losses) - 1 - int(np.argmin(losses)) >= PATIENCE:
                break
        for fold, lane, parameters in zip(folds, lanes, best, strict=True):
            _predict_held_out(found, fold, lane.model, parameters, source)
        return Path(np.array(taus), np.array(losses), np.array(errors), int(np.argmin(losses))), found

    def _lanes(self, folds: Sequence[Fold], rule: Rule, source: ArraySource, setting: Setting) -> list[Lane]:
        models, states = begun(folds, source, setting.engine, len(setting.classes))
        return [
            path_lane(model, rule, rule.begin(model, state), self.passes, fold.view)
            for model, state, fold in zip(models, states, folds, strict=True)
        ]


def path_lane(model: Any, rule: Rule, state: Any, passes: int, view: Any = lambda block: block) -> Lane:
    """A lane at the beginning of a path."""
    stop = AnyOf((ToTheEnd(), MaxPasses(passes)))
    return Lane(model, rule, state, stop=stop, limit=passes, horizon=0.0, view=view)


def trained_to(base: Training, rule: Rule, setting: Setting, taus: Sequence[float], passes: int) -> Any:
    """The estimator, trained on all rows as far as the last tau."""
    model: Any = clone(base)
    model._match_names(setting.rows.table, reset=True)
    model.classes_, model._origin = setting.classes, base._origin
    model._bind(rule, setting.rows)
    source = model._source(setting.rows)
    model.data_statistics_ = survey(model._model, source, setting.engine, Data(), len(setting.classes))
    model._prepare(source, setting.engine)
    state = rule.begin(model._model, model._model.project(model.data_statistics_))
    lane = path_lane(model._model, rule, state, passes)
    for _ in walk([lane], source, setting.engine, taus):
        pass
    model._keep(rule, lane)
    model.history_, model.best_iter_ = as_arrays(lane.history), lane.best_iter
    model.n_iter_, model.temperature_, model._added_up = max(lane.updates, 1), 1.0, False
    return model


def _predict_held_out(found: Array, fold: Fold, model: Model, parameters: Any, source: ArraySource) -> None:
    """Write down what a fold says of its held-out rows."""
    for load in source.parts():
        block = fold.view(load())
        mine = fold.held[block.first : block.first + len(block.weight)]
        if mine.any():
            columns = {name: array[mine] for name, array in block.columns.items()}
            held = replace(block, columns=columns, weight=block.weight[mine])
            log_joint = model.log_joint(held, parameters)
            found[block.first + np.flatnonzero(mine)] = log_normalise(log_joint)[0]


def held_out_scores(log_posterior: Array, rows: Rows) -> tuple[float, float]:
    """Log loss and error of the rows that were in some fold; NaN without any."""
    some = ~np.isnan(log_posterior).any(axis=1)
    if not some.any():
        return np.nan, np.nan
    onehot = np.eye(log_posterior.shape[1])[rows.codes[some]]
    sums = scores(log_posterior[some], onehot, rows.weight[some])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]
