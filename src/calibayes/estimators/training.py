"""Learning: from a table, labels and weights to a model, by the one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_consistent_length, validate_data

from calibayes.core.protocols import Array, Conjugate, Family, Incomplete, Regrouped, Rule, Trees
from calibayes.core.tree import add
from calibayes.engines import engine_for
from calibayes.estimators.columns import bind
from calibayes.estimators.targets import Target, hold_out, read_target, read_weight
from calibayes.families import ClassPrior, Product
from calibayes.families.product import PRIOR
from calibayes.learn import (
    Data,
    Lane,
    PrintProgress,
    Start,
    Stop,
    ToTheEnd,
    ValidationLoss,
    as_arrays,
    learn,
    mini_batches,
    start_named,
    start_statistics,
    stop_named,
)
from calibayes.learn.progress import Callback
from calibayes.rules import rule_named
from calibayes.tables.read import Table, is_frame, read_array, read_frame
from calibayes.tables.sources import ArraySource


@dataclass(eq=False, repr=False, kw_only=True)
class Training(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The training parameters that all estimators share, `fit` and `partial_fit`."""

    rule: str | Rule = "rc"
    start: str | Start = "data"
    max_iter: int = 64
    stop: str | Stop | list[Stop] | tuple[Stop, ...] | None = "objective"
    batch_size: int | None = None
    validation_fraction: float | None = None
    refit: bool = True
    class_alpha: float = 0.0
    class_weight: Mapping[Any, float] | str | None = None
    callbacks: Sequence[Callback] | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- what a preset says ----------------------------------------------------------------------------------------

    def _specifications(self) -> Sequence[tuple[Any, ...]]:
        """(name, family, columns) or (name, family, columns, encoder) of each family."""
        raise TypeError(f"{type(self).__name__} names no families")

    def _fixed_priors(self, k: int) -> Array | None:
        """Class probabilities that stay fixed, or None to count them."""
        return None

    def _bind(self, rule: Rule, table: Table, classes: Array, weight: Array) -> None:
        self.classes_ = classes
        self._bound = bind(self._specifications(), table, weight)
        families = {name: _able(rule, name, family) for name, family in self._bound.families.items()}
        names = tuple(str(name) for name in classes)
        prior = ClassPrior(fixed=self._fixed_priors(len(classes)), alpha=self.class_alpha)
        product = Product(prior, families)
        self._model: Product = product.bind(self._bound.layouts(names), names)

    def _keep(self, state: Trees | None, statistics: Trees | None, parameters: Trees | None) -> None:
        self._state: Any = state
        self.statistics_: Any = statistics
        self.parameters_: Any = parameters

    # -- learning --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        y : (n,) labels
            None, NaN or NA is a row without a label, for ``rule="em"``.
        sample_weight : (n,) floats, optional
        """
        rule = self._checked_rule()
        table, target, weight = self._training_rows(X, y, sample_weight, rule)
        self._bind(rule, table, target.classes, weight)
        rng = check_random_state(self.random_state)
        held = self._held_out(target.codes, rng)
        source = ArraySource(self._encode(table), target.codes, weight * ~held, weight * held)
        seed = int(rng.randint(2**31 - 1))
        start = start_named(self.start, seed)
        stop = stop_named(self.stop)
        lane = self._lane(rule, start, source, stop=ValidationLoss(stop) if held.any() else stop)
        if self.batch_size is not None:
            lane.sweep = mini_batches(source, self.batch_size, seed)
        learn([lane], source, engine_for(self.n_jobs), self._callbacks())
        self.history_ = as_arrays(lane.history)
        self.n_iter_ = max(lane.updates, 1)
        self.best_iter_ = lane.best_iter
        if held.any() and self.refit:
            lane = self._train_again(
                rule, start, lane, ArraySource(source.columns, target.codes, weight, 0.0 * weight)
            )
        self._keep(lane.best.state, rule.statistics(lane.best.state), lane.best.parameters)
        return self

    def _lane(self, rule: Rule, start: Start, source: ArraySource, **options: Any) -> Lane:
        """A lane at the start, its model prepared for it; the statistics of the data are kept."""
        engine, k = engine_for(self.n_jobs), len(self.classes_)
        self.data_statistics_ = start_statistics(self._model, source, engine, Data(), k)
        self._model.prior.prepare(self.data_statistics_[PRIOR])
        begin, limit = self.data_statistics_, 0 if self._closed(rule, source) else self.max_iter
        if not isinstance(start, Data):
            begin, limit = (
                start_statistics(self._model, source, engine, start, k),
                limit or min(1, self.max_iter),
            )
        self._model = self._model.prepare(begin)
        return Lane(self._model, rule, rule.begin(self._model, begin), **{"limit": limit, **options})

    def _train_again(self, rule: Rule, start: Start, lane: Lane, source: ArraySource) -> Lane:
        """On all rows, as far as the best state on the held-out rows had come: to the same sum of steps."""
        horizon = lane.history[lane.best_iter].tau
        limit = lane.limit if horizon else 0
        again = self._lane(rule, start, source, stop=ToTheEnd(), limit=limit, horizon=horizon)
        learn([again], source, engine_for(self.n_jobs))
        return again

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows.

        For ML and MAP the result is that of `fit` on all rows so far. For other rules the rows' statistics are added
        and one step of the rule is taken on them. The first call needs all classes, and settles the bins of
        discretised columns; levels may be added later.
        """
        rule = self._checked_rule()
        first = not hasattr(self, "data_statistics_")
        known = self._known_classes(classes, first)
        table, target, weight = self._training_rows(X, y, sample_weight, rule, classes=known, reset=first)
        if first:
            self._bind(rule, table, target.classes, weight)
        else:
            self._extend(table)
        source = ArraySource(self._encode(table), target.codes, weight, 0.0 * weight)
        new = start_statistics(self._model, source, engine_for(self.n_jobs), Data(), len(target.classes))
        self.data_statistics_ = new if first else add(self.data_statistics_, new)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        if (self.data_statistics_[PRIOR]["count"] > 0).all():
            self._step(rule, source, new)
        else:
            self._keep(None, None, None)
        return self

    def _step(self, rule: Rule, source: ArraySource, new: Trees) -> None:
        """One step of the rule on further rows; a closed form needs none."""
        self._model = self._model.prepare(self.data_statistics_)
        state = getattr(self, "_state", None)
        closed = self._closed(rule, source)
        if state is None or closed:
            state = rule.begin(self._model, self.data_statistics_)
        else:
            state = rule.absorb(state, new)
        lane = Lane(self._model, rule, state, stop=ToTheEnd(), limit=0 if closed else 1)
        if not closed:
            learn([lane], source, engine_for(self.n_jobs), self._callbacks())
        self._keep(lane.best.state, rule.statistics(lane.best.state), lane.best.parameters)

    # -- parts of it -----------------------------------------------------------------------------------------------

    def _checked_rule(self) -> Rule:
        rule = rule_named(self.rule)
        if self.max_iter != int(self.max_iter) or self.max_iter < 0:
            raise ValueError(f"max_iter must be a whole number from 0 on, got {self.max_iter!r}")
        if self.batch_size is not None and not self.batch_size >= 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size!r}")
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}"
            )
        return rule

    def _read(self, X: Any, *, reset: bool) -> Table:
        """The table, its columns checked against those of the first one."""
        if isinstance(X, Table):
            self._match_names(X, reset=reset)
            return X
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return read_frame(X)
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        return read_array(array, getattr(self, "feature_names_in_", None))

    def _match_names(self, table: Table, *, reset: bool) -> None:
        if reset:
            self.n_features_in_, self.feature_names_in_ = (
                len(table.names),
                np.array(table.names, dtype=object),
            )
        elif table.names != tuple(getattr(self, "feature_names_in_", ())):
            raise ValueError(f"the columns are {', '.join(table.names)}: not those of the training table")

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, rule: Rule, *, classes: Any = None, reset: bool = True
    ) -> tuple[Table, Target, Array]:
        """Rows that carry weight; a row of weight zero is as if it were not there."""
        table = self._read(X, reset=reset)
        target = read_target(y, unlabelled=rule.unlabelled, classes=classes)
        check_consistent_length(target.codes, np.empty(table.n))
        weight = read_weight(sample_weight, table.n)
        if self.class_weight is not None:
            labels = target.classes[target.codes]
            weight = weight * compute_sample_weight(self.class_weight, labels)
        carries = weight > 0
        return table.rows(carries), Target(target.classes, target.codes[carries]), weight[carries]

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = np.unique(classes) if classes is not None else self.classes_
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes differ from those of the first call: {known.tolist()}, {self.classes_.tolist()}"
            )
        return np.asarray(known)

    def _encode(self, table: Table) -> dict[str, Array]:
        """The columns of each family; a sentence where one cannot use missing cells."""
        encoded = self._bound.encode(table)
        for name, family in self._model.families.items():
            absent = _absent(encoded[name]).any(axis=0)
            if absent.any() and not isinstance(family, Incomplete):
                column = self._bound.names[self._bound.chosen[name][int(np.argmax(absent))]]
                raise ValueError(f"column {column!r} contains NaN, and {type(family).__name__} cannot use missing cells")
        return encoded

    def _closed(self, rule: Rule, source: ArraySource) -> bool:
        """Whether the rule ends in closed form on these rows: not where a family must guess missing cells."""
        families = self._model.families.items()
        hidden = [isinstance(f, Incomplete) and f.hidden(source.columns[name]) for name, f in families]
        return rule.closed_form and not any(hidden)

    def _extend(self, table: Table) -> None:
        """Make room for levels that were not there before."""
        before = self._model
        self._bound, moved = self._bound.extend(table)
        if not moved:
            return
        names = tuple(str(name) for name in self.classes_)
        layouts = self._bound.layouts(names)
        self._model = before.bind(layouts, names)
        statistics = getattr(self, "statistics_", None)
        self.data_statistics_ = _regrouped(before.families, self.data_statistics_, moved, layouts)
        self._state = None if statistics is None else _regrouped(before.families, statistics, moved, layouts)

    def _held_out(self, codes: Array, rng: np.random.RandomState) -> Array:
        if self.validation_fraction is None:
            return np.zeros(len(codes), dtype=bool)
        return hold_out(codes, self.validation_fraction, np.random.default_rng(rng.randint(2**31 - 1)))

    def _callbacks(self) -> list[Callback]:
        printing: list[Callback] = [PrintProgress(type(self).__name__)] if self.verbose else []
        return printing + list(self.callbacks or ())


def _absent(columns: Array) -> Array:
    """Which cells of encoded columns are missing, (n, d) booleans."""
    return np.isnan(columns) if columns.dtype.kind == "f" else columns < 0


def _able(rule: Rule, name: str, family: Family) -> Family:
    """The family as the rule needs it; a sentence where it lacks an ability."""
    for need in rule.needs:
        if not isinstance(family, need):
            doc = (need.__doc__ or need.__name__).strip().rstrip(".").lower()
            raise ValueError(
                f"rule {rule.name!r} needs families with {doc}, and {name!r} ({type(family).__name__}) is not one: "
                "choose another rule, or another family for these columns"
            )
    return family.conjugate() if Conjugate in rule.needs and isinstance(family, Conjugate) else family


def _regrouped(
    families: Mapping[str, Family],
    statistics: Trees,
    moved: Mapping[str, Sequence[Array]],
    layouts: Mapping[str, Any],
) -> Trees:
    """Statistics after levels have moved to new codes."""
    changed = {
        name: family.regroup(statistics[name], moved[name], layouts[name].levels)
        for name, family in families.items()
        if name in moved and isinstance(family, Regrouped)
    }
    return {**statistics, **changed}
