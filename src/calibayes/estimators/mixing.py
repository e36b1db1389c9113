"""An average of the posteriors of several models, weighted by what they said of rows they had not seen."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.protocols import Array
from calibayes.engines import engine_for, thread_count
from calibayes.engines.local import one_thread
from calibayes.estimators import checks
from calibayes.estimators.averaged import FREQUENCIES, Averaged
from calibayes.estimators.bar import Bar
from calibayes.estimators.members import Member, Setting, Tried, held_out_scores
from calibayes.estimators.patience import Beside, Judge, lower
from calibayes.estimators.reading import Rows
from calibayes.estimators.splits import Trial, trial, unit_weight
from calibayes.estimators.targets import class_frequencies
from calibayes.kernels.posterior.averaging import log_loss, mix, mixture_weights
from calibayes.kernels.threads import reuse_threads, thread_limit
from calibayes.tables.read import Table, array_names

LEAST_SHARE = 0.4
"""A member with less than this part of an even share does not count, and need not be trained on all rows."""


class SkippedMemberWarning(UserWarning):
    """A member of a mixture was left out, and why."""


class Clock:
    """The time since the beginning, and whether it is more than was given."""

    def __init__(self, limit: Any) -> None:
        self.limit = np.inf if limit is None else checks.number("time_limit", limit, 0.0, 1e300)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def late(self) -> bool:
        return self.seconds >= self.limit


@dataclass(eq=False, repr=False, kw_only=True)
class Mixing(Averaged):
    """Training of mixtures of posteriors."""

    cv: Any = None
    costs: Array | None = None
    class_weight: Mapping[Any, float] | str | None = None
    time_limit: float | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def _members(self, rows: Rows) -> Mapping[str, Member | str]:
        """Name -> member, or the reason why it is left out."""
        raise TypeError(f"{type(self).__name__} names no members")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the members and find their weights. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Missing cells are NaN, None or NA.
        y : (n,) labels
        sample_weight : (n,) floats, optional
        """
        with one_thread(), reuse_threads(), thread_limit(thread_count(checks.jobs(self.n_jobs))):
            trained = self._blank()._fit(X, y, sample_weight)
        self.__dict__.clear()
        self.__dict__.update(vars(trained))
        return self

    def _blank(self) -> Self:
        """A copy with the constructor parameters alone."""
        blank = copy.copy(self)
        for name in [
            name for name in vars(self) if name.endswith("_") or name in ("_origin", "_shift", "_now")
        ]:
            delattr(blank, name)
        return blank

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        clock = Clock(self.time_limit)
        self.classes_, rows = self._training_rows((X, y, sample_weight), self.class_weight, unlabeled=False)
        rows = rows._replace(table=rows.table.noting())
        seed = check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1)
        found = trial(self.cv, rows, len(np.asarray(y)), int(seed))
        self.class_prior_ = class_frequencies(rows.codes, rows.weight, self.classes_)
        self.rows_ = len(rows.codes)
        self.tried_rows_ = round(self.rows_ * float(found.rows.weight.sum() / rows.weight.sum()))
        whole, setting = self._setting(Trial(rows, []), clock), self._setting(found, clock)
        self.skipped_ = {}
        members = self._members(rows)
        bar = Bar(type(self).__name__, 2 * len(members), bool(self.verbose))
        tried = self._tried(members, setting, clock, bar)
        self._weigh({name: found for name, (_, found) in tried.items()}, setting)
        used = {name: pair for name, pair in tried.items() if self.weights_[name] > 0}
        self.models_ = {}
        for name, (member, result) in used.items():
            bar.enter(2 * len(members) - len(used) + len(self.models_), name)
            self.models_[name] = member.trained(whole, result.path)
            bar.step("trained on all rows", 1.0)
        bar.close()
        self._finish(whole, {name: member for name, (member, _) in tried.items()})
        return self

    def _tried(
        self, members: Mapping[str, Member | str], setting: Setting, clock: Clock, bar: Bar
    ) -> dict[str, tuple[Member, Tried]]:
        """What the members say of held-out rows, each beside those before it; others are skipped."""
        tried: dict[str, tuple[Member, Tried]] = {}
        for part, (name, member) in enumerate(members.items()):
            bar.enter(part, name)
            if isinstance(member, str):
                self._skip(name, member)
            elif tried and clock.late:
                self._skip(name, "the time limit was reached")
            else:
                own = replace(setting, tell=bar.step, beside=_beside(tried, setting.rows))
                tried[name] = member, member.tried(own)
        return tried

    def _finish(self, setting: Setting, members: Mapping[str, Member]) -> None:
        """What is left to do after training."""
        if not hasattr(self, "feature_names_in_"):
            for model in self.models_.values():  # they too are asked about arrays
                unnamed(model, setting.rows.table)

    def _setting(self, given: Trial, clock: Clock) -> Setting:
        rows, splits = given
        training = [rows.only(~held) for held in splits]
        return Setting(
            rows,
            self.classes_[rows.codes],
            self.classes_,
            self._origin,
            splits,
            training,
            _constant(given, training, self.classes_),
            engine_for(self.n_jobs),
            late=lambda: clock.late,
        )

    def _skip(self, name: str, reason: str) -> None:
        self.skipped_[name] = reason
        warnings.warn(f"member {name!r} is left out: {reason}", SkippedMemberWarning, stacklevel=5)

    def _weigh(self, tried: Mapping[str, Tried], setting: Setting) -> None:
        """Weights by what was said of held-out rows; a member with next to none is not used."""
        if not tried:
            raise ValueError(f"no member is left: {'; '.join(self.skipped_.values())}")
        rows, names = setting.rows, [*tried, FREQUENCIES]
        self.paths_ = {name: found.path for name, found in tried.items()}
        said = np.stack([*(found.out_of_fold for found in tried.values()), setting.constant])
        true = _of_true_class(said, rows)
        some = ~np.isnan(true).any(axis=1)
        weights = sparing_weights(true[some], rows.weight[some], unit_weight(rows))
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.out_of_fold_log_loss_, self.out_of_fold_error_ = held_out_scores(
            mix(said[:, some], weights), rows.only(some)
        )


def sparing_weights(log_true: Array, weight: Array, unit: float = 1.0) -> Array:
    """Weights of members, class frequencies last: the likeliest ones, without members that hardly count.

    They begin with half a row each, of weight ``unit``, as Jeffreys would have it: few rows hardly tell good members from
    better ones, and the class frequencies always keep something, so that no row that comes is impossible. Where all
    together are no better than those, they alone count.
    """
    weights = mixture_weights(log_true, weight, 0.5 * unit)
    some = weights >= LEAST_SHARE / len(weights)
    some[-1] = True
    found = np.zeros(len(weights))
    found[some] = mixture_weights(log_true[:, some], weight, 0.5 * unit)
    alone = np.eye(len(weights))[-1]
    told = lower(log_loss(log_true, found, weight), log_loss(log_true, alone, weight))
    return found if told or not weight.any() else alone


def _of_true_class(said: Array, rows: Rows) -> Array:
    """What members (m, n, k) say of the class that each row has, (n, m)."""
    return np.asarray(said[:, np.arange(len(rows.codes)), rows.codes].T)


def _beside(tried: Mapping[str, tuple[Member, Tried]], rows: Rows) -> Judge:
    """What a further member is worth beside those that were tried already."""
    before = [found.out_of_fold for _, found in tried.values()]

    def beside(out_of_fold: Array) -> Beside | None:
        true = _of_true_class(np.stack([*before, out_of_fold]), rows)
        some = ~np.isnan(true).any(axis=1)
        weights = mixture_weights(true[some], rows.weight[some])
        return Beside(float(weights[-1]), log_loss(true[some], weights, rows.weight[some]))

    return beside if before else lambda out_of_fold: None


def unnamed(model: Any, table: Table) -> None:
    """A model of an array's columns, which have no names that a person gave."""
    if table.names == array_names(len(table.names)):
        model.__dict__.pop("feature_names_in_", None)


def _constant(given: Trial, training: Sequence[Rows], classes: Array) -> Array:
    """log class frequencies in the training rows of each row's fold, (n, k); NaN for a row in no fold."""
    found = np.full((len(given.rows.codes), len(classes)), np.nan)
    for held, own in zip(given.splits, training, strict=True):
        found[held] = np.log(class_frequencies(own.codes, own.weight, classes))
    return found
