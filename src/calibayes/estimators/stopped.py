"""A member that comes along a path, as far as held-out rows say."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array, Rule
from calibayes.estimators.folds import Fold, begun, shared
from calibayes.estimators.members import Path, Setting, Tried, held_out_scores
from calibayes.estimators.patience import Patience
from calibayes.estimators.training import Training
from calibayes.learn import TAUS, AnyOf, Data, Lane, MaxPasses, ToTheEnd, as_arrays, survey, walk
from calibayes.posterior import log_normalize
from calibayes.rules import rule_named
from calibayes.tables.sources import ArraySource


@dataclass(frozen=True)
class Stopped:
    """An estimator whose path is stopped at the tau of least held-out log loss; the folds walk it together.

    Parameters
    ----------
    estimator : Training
    passes : int
        Most passes over the data on the whole path.
    taus : sequence
        Where the path is looked at.
    costly : bool
        Whether passes take so long that it is followed only while the mixture gains by it.
    """

    estimator: Training
    passes: int = 120
    taus: Sequence[float] = TAUS
    costly: bool = False

    def tried(self, setting: Setting) -> Tried:
        rows, (base, rule) = setting.rows, self._begun(setting)
        found = np.full((len(rows.codes), len(setting.classes)), np.nan)
        if not setting.splits:
            return Tried(found, Path(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan), 0))
        source, folds = shared(base, rule, rows, setting.splits, setting.training)
        lanes = self._lanes(folds, rule, source, setting)
        patience = Patience(setting.beside, self.costly)
        taus: list[float] = []
        losses: list[float] = []
        errors: list[float] = []
        for tau in walk(lanes, source, setting.engine, self.taus):
            said = _held_out(folds, lanes, source, found.shape)
            loss, error = held_out_scores(said, rows)
            found = said if loss < min(losses, default=np.inf) or not losses else found
            taus.append(tau)
            losses.append(loss)
            errors.append(error)
            said_so = f"tau {tau:g}: log loss {loss:.4f}, error {error:.4f} on held-out rows"
            setting.tell(said_so, len(taus) / len(self.taus))
            if patience.over(tau, loss, said) or setting.late():
                break
        best = int(np.argmin(losses))
        return Tried(found, Path(np.array(taus), np.array(losses), np.array(errors), best, patience.why))

    def trained(self, setting: Setting, path: Path) -> Any:
        taus = [tau for tau in self.taus if tau <= path.stop]
        return trained_to(*self._begun(setting), setting, taus, self.passes)

    def _begun(self, setting: Setting) -> tuple[Training, Rule]:
        base = copy.copy(self.estimator)
        base.classes_, base._origin = setting.classes, setting.origin
        return base, rule_named(base.rule)

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
    state = rule.begin(model._model, model._model.statistics_of(model.data_statistics_))
    lane = path_lane(model._model, rule, state, passes)
    for _ in walk([lane], source, setting.engine, taus):
        pass
    model._keep(rule, lane)
    model.history_, model.best_iter_ = as_arrays(lane.history), lane.best_iter
    model.n_iter_, model.temperature_, model._added_up = max(lane.updates, 1), 1.0, False
    return model


def _held_out(
    folds: Sequence[Fold], lanes: Sequence[Lane], source: ArraySource, shape: tuple[int, ...]
) -> Array:
    """What the lanes of the folds say now of the rows that these hold out, (n, k); NaN for a row in no fold."""
    found = np.full(shape, np.nan)
    for load in source.parts():
        shown = load()
        for fold, lane in zip(folds, lanes, strict=True):
            mine = np.flatnonzero(fold.held[shown.first : shown.first + len(shown.weight)])
            if len(mine):
                block = fold.view(shown)
                columns = {name: array[mine] for name, array in block.columns.items()}
                held = replace(block, columns=columns, weight=block.weight[mine])
                # A posterior needs no more than what differs between classes.
                contrast = lane.model.contrast(held, lane.accepted.parameters)
                found[shown.first + mine] = log_normalize(contrast)[0]
    return found
