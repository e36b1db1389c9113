"""Learning: from rows to a model, by the one loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from calibayes import engines
from calibayes.core.abilities import AllowsMissing, Recodable, Sized
from calibayes.core.named_arrays import add
from calibayes.core.protocols import Array, Engine, Family, Rule, Trees
from calibayes.engines.local import one_thread
from calibayes.estimators import checks
from calibayes.estimators.columns import Bound, bind
from calibayes.estimators.reading import Reading, Rows
from calibayes.estimators.targets import hold_out, read_classes
from calibayes.families import ClassPrior, Product
from calibayes.kernels.numbers.sparse import columns_where
from calibayes.kernels.threads import reuse_threads, thread_limit
from calibayes.learn import (
    Data,
    Even,
    Lane,
    Likelihood,
    PrintProgress,
    Start,
    Stop,
    ToTheEnd,
    ValidationLoss,
    as_arrays,
    brought_statistics,
    learn,
    mini_batches,
    start_named,
    start_statistics,
    stop_named,
    survey,
)
from calibayes.learn.progress import Callback
from calibayes.learn.stops import Settled
from calibayes.posterior import best_temperature, log_normalize
from calibayes.rules import ML, rule_named
from calibayes.tables.read import Table
from calibayes.tables.sources import ArraySource

PRIVATE = (
    "_counts",
    "_drawn",
    "_origin",
    "_added_up",
    "_shifted",
    "_bound",
    "_model",
    "_state",
    "_rule_name",
    "_unready",
)


class Kept(Reading):
    """What learning leaves behind."""

    classes_: Array
    data_statistics_: Trees
    statistics_: Any
    parameters_: Any
    temperature_: float
    class_weight: Any = None
    _bound: Bound
    _model: Product
    _state: Any
    _rule_name: str
    _unready: str
    _shifted: bool
    _added_up: bool
    """Whether the statistics are sums over rows and nothing else."""


@dataclass(eq=False, repr=False, kw_only=True)
class Training(ClassifierMixin, Kept):  # type: ignore[misc]
    """The training parameters that all estimators share, `fit` and `partial_fit`."""

    rule: str | Rule = "rc"
    start: str | Start = "data"
    max_iter: int = 64
    stop: str | Stop | list[Stop] | tuple[Stop, ...] | None = "objective"
    batch_size: int | None = None
    validation_fraction: float | None = None
    refit: bool = True
    temperature: float | str = 1.0
    class_alpha: float = 0.0
    callbacks: Sequence[Callback] | None = None
    random_state: int | np.random.RandomState | None = None
    engine: Engine | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- what a preset says ----------------------------------------------------------------------------------------

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        """The families that these parameters stand for: (name, family, columns) or (name, family, columns, encoder)."""
        raise TypeError(f"{type(self).__name__} names no families")

    def _fixed_priors(self, k: int) -> Array | None:
        """Class probabilities that stay fixed, or None to count them."""
        return None

    # -- fit -------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a table. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array, data frame or, where all families read counts or flags, sparse array of shape (n, d)
            Missing cells are NaN, None or NA.
        y : (n,) labels
            None, NaN or NA is a row without a label, for ``rule="em"``.
        sample_weight : (n,) floats, optional
        """
        with one_thread(), reuse_threads(), thread_limit(engines.thread_count(checks.jobs(self.n_jobs))):
            return self._adopt(self._blank()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        rule = self._checked_rule()
        self.classes_, rows = self._training_rows(
            (X, y, sample_weight), self.class_weight, unlabeled=rule.unlabeled
        )
        rng = check_random_state(self.random_state)
        held = self._held_out(rows.codes, rng)
        seed = int(rng.randint(2**31 - 1))
        self._bind(rule, rows.only(~held))
        stop = stop_named(self.stop)
        lane = self._run(rule, self._source(rows, held), seed, ValidationLoss(stop) if held.any() else stop)
        if lane.history:
            self.history_ = as_arrays(lane.history)
        self.n_iter_ = max(lane.updates, 1)
        self.best_iter_ = lane.best_iter
        self.temperature_ = self._found_temperature(rows.only(held), lane)
        if held.any() and self.refit:
            # On all rows, as far as the best state on the held-out rows had come: to the same sum of steps.
            self._bind(rule, rows)
            horizon = lane.history[lane.best_iter].tau
            lane = self._run(rule, self._source(rows), seed, ToTheEnd(), horizon)
        self._keep(rule, lane)
        return self

    def _run(
        self, rule: Rule, source: ArraySource, seed: int, stop: Stop, horizon: float = float("inf")
    ) -> Lane:
        """A lane from the start to its end. The model is prepared on the data, whatever the start."""
        engine, k = self._engine(), len(self.classes_)
        start, closed = start_named(self.start, seed), self._closed(rule, source)
        self._added_up = closed
        self.data_statistics_ = survey(self._model, source, engine, Data(), k)
        self._prepare(source, engine)
        from_data = isinstance(start, Data)
        begin = self._data_start(start, rule, source) if from_data else self._other_start(start, source)
        most = int(not from_data) if closed else self.max_iter
        lane = Lane(
            self._model,
            rule,
            rule.begin(self._model, begin),
            stop=ToTheEnd() if closed else stop,
            limit=min(most, self.max_iter) if horizon else 0,
            horizon=horizon or float("inf"),
            sweep=None if self.batch_size is None else mini_batches(source, self.batch_size, seed),
        )
        if not (closed and from_data) or self._watched(source):
            learn([lane], source, engine, self._callbacks())
        return lane

    def _watched(self, source: ArraySource) -> bool:
        """Whether someone wants to know how good a closed form is: that is one more pass, dearer than the sums."""
        return bool(self._callbacks()) or bool(source.held_out.any())

    def _data_start(self, start: Start, rule: Rule, source: ArraySource) -> Trees:
        """The statistics of the data, where something is hidden as far as maximum likelihood takes them."""
        begin = self._model.statistics_of(self.data_statistics_)
        if rule.closed_form or not isinstance(start, Likelihood) or not self._hidden(source):
            return begin
        lane = Lane(self._model, ML(), begin, stop=Settled(), limit=self.max_iter)
        learn([lane], source, self._engine(), self._callbacks())
        return lane.best.state

    def _other_start(self, start: Start, source: ArraySource) -> Trees:
        """Statistics that have little to do with the labels, if they can be learned from."""
        begin = start_statistics(self._model, source, self._engine(), start, len(self.classes_))
        if self._model.keep_valid(begin, begin)[1]:
            raise ValueError(f"start={self.start!r} gives statistics without valid parameters: a prior helps")
        return begin

    def _found_temperature(self, held: Rows, lane: Lane) -> float:
        """The temperature given, or the one with the least log loss on held-out rows."""
        if not isinstance(self.temperature, str):
            return checks.number("temperature", self.temperature, 1e-6, 1e6)
        if self.temperature != "auto":
            raise ValueError(f"temperature must be a number or 'auto', got {self.temperature!r}")
        if not len(held.codes):
            raise ValueError("temperature='auto' needs rows to find it on: give validation_fraction")
        source = self._source(held)
        parts = [
            log_normalize(self._model.log_joint(load(), lane.best.parameters))[0] for load in source.parts()
        ]
        return best_temperature(np.concatenate(parts), held.codes, held.weight)

    def _prepare(self, source: ArraySource, engine: Engine) -> None:
        """Fix what stays fixed, from all rows that take part, labeled or not."""
        pooled = None
        if (source.labels < 0).any():
            pooled = survey(self._model, source, engine, Even(), len(self.classes_))
        self._model = self._model.prepare(self.data_statistics_, pooled)

    # -- partial_fit -----------------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows.

        For ML and MAP the result is that of `fit` on all rows so far, given the kinds, bins, grids and pooled levels
        that the first call settles. For other rules, and where something is hidden (components of a mixture, missing
        cells under a full covariance), the rows' statistics are added and one step of the rule is taken on them. The
        first call needs all classes. Levels may be added later, and join "other" where levels are pooled; gradient
        descent and trees then start anew from the data so far, as trees do where their structure changes.
        Until every class has enough rows the model cannot predict, and says what it lacks.
        """
        with one_thread(), reuse_threads(), thread_limit(engines.thread_count(checks.jobs(self.n_jobs))):
            return self._adopt(copy.copy(self)._partial_fit(X, y, classes, sample_weight))

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        rule = self._checked_rule()
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all rows at once: give weights to partial_fit instead"
            )
        self._refuse_shifted()
        first = not hasattr(self, "data_statistics_")
        known = self._known_classes(classes, first)
        self.classes_, rows = self._training_rows(
            (X, y, sample_weight), self.class_weight, unlabeled=rule.unlabeled, classes=known, reset=first
        )
        if first:
            self._bind(rule, rows)
        else:
            self._extend(rows.table)
        source, engine = self._source(rows), self._engine()
        new = survey(self._model, source, engine, Data(), len(known))
        structure = self._model.structure
        self.data_statistics_ = new if first else add(self.data_statistics_, new)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self.temperature_ = 1.0 if isinstance(self.temperature, str) else self.temperature
        for stale in ("history_", "best_iter_"):
            self.__dict__.pop(stale, None)
        self._added_up = self._closed(rule, source) and (first or self._added_up)
        try:
            self._prepare(source, engine)
        except ValueError as lacking:
            self._not_yet(str(lacking))
            return self
        if self._model.structure != structure:
            self._state = None  # of another structure: it begins anew from the data so far
        self._step(rule, source, engine)
        return self

    def _step(self, rule: Rule, source: ArraySource, engine: Engine) -> None:
        """One step of the rule on further rows; a closed form needs none."""
        before: Any = getattr(self, "_state", None)
        closed = self._closed(rule, source)
        if before is None or closed or self._rule_name != rule.name:
            brought, state = None, rule.begin(self._model, self._model.statistics_of(self.data_statistics_))
        else:
            parameters = rule.parameters(self._model, before)
            brought = brought_statistics(self._model, source, engine, rule, parameters)
            state = rule.absorb(before, brought)
        lane = Lane(self._model, rule, state, stop=ToTheEnd(), limit=int(not closed), brought=brought)
        if not closed:
            learn([lane], source, engine, self._callbacks())
            self.history_, self.best_iter_ = as_arrays(lane.history), lane.best_iter
        self._keep(rule, lane)

    def _refuse_shifted(self) -> None:
        if getattr(self, "_shifted", False):
            raise ValueError(
                "the class priors of this model were shifted: learn, merge or forget first, then shift"
            )

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = read_classes(classes) if classes is not None else self.classes_
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes differ from those of the first call: {known.tolist()}, {self.classes_.tolist()}"
            )
        return known

    def _extend(self, table: Table) -> None:
        """Make room for levels that were not there before."""
        before = self._model
        self._bound, moved = self._bound.extend(table)
        if not moved:
            return
        names = tuple(str(name) for name in self.classes_)
        layouts = self._bound.layouts(names)
        self._model = before.bind(layouts, names)
        self.data_statistics_ = recoded(before.families, self.data_statistics_, moved, layouts)
        statistics = None if before.structure else self.statistics_  # only surveys can move to more levels
        self._state = None if statistics is None else recoded(before.families, statistics, moved, layouts)

    # -- parts of both ---------------------------------------------------------------------------------------------

    def _checked_rule(self) -> Rule:
        checks.whole_number("max_iter", self.max_iter, 0)
        checks.number("class_alpha", self.class_alpha, 0.0, 1e300)
        checks.jobs(self.n_jobs)
        if self.batch_size is not None:
            checks.whole_number("batch_size", self.batch_size, 1)
        if self.validation_fraction is not None:
            checks.open_fraction("validation_fraction", self.validation_fraction)
        return rule_named(self.rule)

    def _bind(self, rule: Rule, rows: Rows) -> None:
        bound = bind(self.specifications(), rows.table, rows.weight, rows.codes)
        self._bound = replace(bound, origin=self._origin)
        for name, family in self._bound.families.items():
            checks.needs_met(rule, name, family)
        families = {name: rule.adapt(family) for name, family in self._bound.families.items()}
        prior = ClassPrior(fixed=self._fixed_priors(len(self.classes_)), alpha=self.class_alpha)
        names = tuple(str(name) for name in self.classes_)
        self._model = Product(prior, families).bind(self._bound.layouts(names), names)

    def _source(self, rows: Rows, held: Array | None = None) -> ArraySource:
        judged = np.zeros(len(rows.codes)) if held is None else rows.weight * held
        weight = rows.weight if held is None else rows.weight * ~held
        encoded = self._encode(rows.table)
        return ArraySource(
            encoded, rows.codes, weight, judged, k=len(self.classes_), least_cells=self._least_cells
        )

    @property
    def _least_cells(self) -> int:
        """Cells of a block below which its own statistics, or factors of parameters, would outweigh it."""
        families = self._model.families.values()
        return max((family.size for family in families if isinstance(family, Sized)), default=0)

    def _encode(self, table: Table) -> dict[str, Array]:
        """The columns of each family; a sentence where one cannot use missing cells."""
        encoded = self._bound.encode(table)
        for name, family in self._model.families.items():
            if isinstance(family, AllowsMissing):
                continue
            absent = _with_gaps(encoded[name])
            if len(absent):
                column = self._bound.names[self._bound.chosen[name][absent[0]]]
                raise ValueError(
                    f"column {column!r} contains NaN, and {type(family).__name__} cannot use missing cells"
                )
        return encoded

    def _closed(self, rule: Rule, source: ArraySource) -> bool:
        """Whether the rule ends in closed form on these rows: not where a family must guess missing cells."""
        return rule.closed_form and not self._hidden(source)

    def _hidden(self, source: ArraySource) -> bool:
        """Whether the statistics of some family depend on its parameters."""
        families = self._model.families.items()
        return any(
            isinstance(f, AllowsMissing) and f.has_hidden(source.columns[name]) for name, f in families
        )

    def _held_out(self, codes: Array, rng: np.random.RandomState) -> Array:
        if self.validation_fraction is None:
            return np.zeros(len(codes), dtype=bool)
        return hold_out(codes, self.validation_fraction, np.random.default_rng(rng.randint(2**31 - 1)))

    def _engine(self) -> Engine:
        return engines.engine_for(self.n_jobs) if self.engine is None else self.engine

    def _callbacks(self) -> list[Callback]:
        printing: list[Callback] = [PrintProgress(type(self).__name__)] if self.verbose else []
        return printing + checks.listed_callbacks(self.callbacks)

    # -- what is kept ----------------------------------------------------------------------------------------------

    def _keep(self, rule: Rule, lane: Lane) -> None:
        self._state = lane.best.state
        self._rule_name = rule.name
        self._unready = ""
        self.statistics_ = rule.statistics(lane.best.state)
        self.parameters_ = lane.best.parameters

    def _not_yet(self, reason: str) -> None:
        """There are rows, but not enough for parameters."""
        self._state = self.statistics_ = self.parameters_ = None
        self._rule_name, self._unready = "", reason

    def _blank(self) -> Self:
        """A copy with the constructor parameters alone."""
        blank = copy.copy(self)
        for name in [name for name in vars(self) if name.endswith("_") or name in PRIVATE]:
            delattr(blank, name)
        return blank

    def _adopt(self, trained: Self) -> Self:
        """Take over what a copy has learned."""
        self.__dict__.clear()
        self.__dict__.update(vars(trained))
        return self


def _with_gaps(columns: Array) -> Array:
    """Positions of encoded columns with missing cells."""
    return columns_where(columns, np.isnan if columns.dtype.kind == "f" else lambda codes: codes < 0)


def recoded(
    families: Mapping[str, Family],
    statistics: Trees,
    moved: Mapping[str, Sequence[Array]],
    layouts: Mapping[str, Any],
) -> Trees:
    """Statistics after levels have moved to new codes."""
    changed = {
        name: family.recode(statistics[name], moved[name], layouts[name].levels)
        for name, family in families.items()
        if name in moved and isinstance(family, Recodable)
    }
    return {**statistics, **changed}
