"""Explanations: the log odds of a decision as a sum of the class prior and Shapley values of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import comb
from typing import Any, NamedTuple, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.analysis.marginals import ColumnSum, Marginals, Part
from calibayes.core.notices import ProgressReporter, counted, printable
from calibayes.core.protocols import Array
from calibayes.engines import computing
from calibayes.model.attributes import numpy_classes
from calibayes.model.decision import most_probable
from calibayes.model.parameters import seed_of, whole_number
from calibayes.tables.read import index_of, with_index

# -- Shapley values of columns: contributions that depend on no order of the columns -------------------------
#
# For values v(S) of sets S of d columns, the Shapley value of a column is the mean change of v when the column is added to
# those before it, over all d! orders of the columns (Shapley 1953). The values of all columns sum to v(all) - v(none).

PERMUTATIONS = 32
"""Default number of sampled orders of the columns."""

Value: TypeAlias = Callable[[Array], Array]
"""The set of columns that are present, (d,) booleans, -> v of each row, (n,)."""
ValuesAlong: TypeAlias = Callable[[Array], Iterator[Array]]
"""An order of the columns, (d,) positions, -> v of the first column, of the first two, ..., (n,) each."""


class ShapleyValues(NamedTuple):
    """Shapley values of d columns in n rows."""

    values: Array
    """(n, d)."""
    standard_error: Array
    """Of the values, (n, d); 0 if they are exact."""
    permutations: int
    """Number of sampled orders of the columns; 0 if the values are exact."""


@dataclass(frozen=True)
class OrderSampling:
    """How Shapley values are computed: exactly where that takes no longer, otherwise from sampled orders.

    Orders come in pairs, one and its reverse (antithetic sampling): an early place in one is a late place in the other.

    Attributes
    ----------
    permutations : int
        Number of sampled orders, even, at least 4.
    seed : int
    report : callable
        Progress: number of values computed, and of all.
    """

    permutations: int = PERMUTATIONS
    seed: int = 0
    report: Callable[[int, int], None] = lambda done, total: None

    def is_exact(self, d: int) -> bool:
        """Whether the 2^d sets of d columns are no more than the sets that the orders would need."""
        return bool(2**d <= self.permutations * d)

    def orders(self, d: int) -> Iterator[Array]:
        """One order of each pair."""
        rng = np.random.default_rng(self.seed)
        return (rng.permutation(d) for _ in range(self.permutations // 2))


def sampling(permutations: int, random_state: Any, progress: ProgressReporter) -> OrderSampling:
    """Checked options. Raises ValueError if the permutations are not an even number from 4 on."""
    if whole_number("permutations", permutations, 4) % 2:
        raise ValueError(
            f"permutations must be even, since each order is followed by its reverse, got {permutations}"
        )
    return OrderSampling(permutations, seed_of(random_state), partial(progress.count, "sets of columns"))


def shapley_values(value: Value, along: ValuesAlong, d: int, how: OrderSampling) -> ShapleyValues:
    """Shapley values of d columns: exact if they are few, else the mean over sampled orders with its standard error."""
    if how.is_exact(d):
        exact = _exact_values(value, d, how)
        return ShapleyValues(exact, np.zeros(exact.shape), 0)
    start = value(np.zeros(d, dtype=bool))
    mean, error = _mean_over_orders(along, start, d, how)
    return ShapleyValues(mean, error, how.permutations)


def _exact_values(value: Value, d: int, how: OrderSampling) -> Array:
    """Sums over all sets, (n, d): a set of s columns has weight 1 / (d C(d - 1, s)) in the change by one more column."""
    weights = np.array([1.0 / (d * comb(d - 1, s)) for s in range(d)] + [0.0])
    values: Any = 0.0
    for number in range(2**d):
        present = (number >> np.arange(d)) % 2 == 1
        size = int(present.sum())
        values = values + value(present)[:, None] * np.where(present, weights[size - 1], -weights[size])
        how.report(number + 1, 2**d)
    return values


def _mean_over_orders(along: ValuesAlong, start: Array, d: int, how: OrderSampling) -> tuple[Array, Array]:
    """Mean changes over pairs of orders, (n, d), and their standard errors (running sums: Welford 1962)."""
    mean, squares, pairs = np.zeros((len(start), d)), np.zeros((len(start), d)), 0
    for pairs, order in enumerate(how.orders(d), 1):
        change = 0.5 * (_changes(along, start, order) + _changes(along, start, order[::-1])) - mean
        mean += change / pairs
        squares += change**2 * (1.0 - 1.0 / pairs)
        how.report(2 * pairs * d, how.permutations * d)
    return mean, np.sqrt(squares / (pairs * (pairs - 1)))


def _changes(along: ValuesAlong, start: Array, order: Array) -> Array:
    """The change of v by each column along an order, (n, d)."""
    values = np.stack([start, *along(order)], axis=1)
    changes = np.empty((len(start), len(order)))
    changes[:, order] = np.diff(values, axis=1)
    return changes


# -- Explanations: the log odds of a decision as a sum of the class prior and Shapley values of the columns


@dataclass(frozen=True)
class Explanation:
    """Contributions of the columns to the log odds of one class against another, row by row.

    The contribution of a column is its Shapley value: the change of the log odds when the column becomes known, averaged
    over all orders in which the columns may become known. Columns that are not known yet are integrated out.

    Attributes
    ----------
    names : tuple of str
        "class prior", which is the log odds when no column is known, then the columns of the table.
    contributions : (n, len(names)) array
        Each row sums to its log odds.
    chosen, other : (n,) arrays
        The class that is explained and the one it is compared with.
    standard_error : (n, len(names)) array
        Standard errors of the contributions where orders of the columns were sampled; 0 where they are exact.
    permutations : int
        Number of sampled orders of the columns; 0 if all contributions are exact.
    index : (n,) pandas.Index or None
        That of the rows, if they came as a pandas data frame.
    """

    names: tuple[str, ...]
    contributions: Array
    chosen: Array
    other: Array
    standard_error: Array
    permutations: int
    index: Any = field(default=None, repr=False, compare=False)

    @property
    def log_odds(self) -> Array:
        """log p(chosen | x) - log p(other | x), (n,)."""
        return self.contributions.sum(axis=1)

    def overall(self) -> dict[str, float]:
        """Mean absolute contribution of each column over the rows, largest first; the class prior is no column."""
        size = np.abs(self.contributions[:, 1:]).mean(axis=0)
        order = np.argsort(-size, kind="stable")
        return {self.names[1 + j]: float(size[j]) for j in order}

    def frame(self, backend: Any = "pandas") -> Any:
        """A data frame with the classes, the log odds and a column for each name.

        Its lines have the index of the rows, if they came as a pandas data frame and ``backend`` is pandas. If orders were sampled, a column with the standard errors of each column of the table follows.
        """
        columns = {"chosen": self.chosen, "other": self.other, "log_odds": self.log_odds}
        for j, name in enumerate(self.names):
            columns[f"{name} (column)" if name in columns else name] = self.contributions[:, j]
        for j, name in enumerate(self.names[1:] if self.permutations else (), 1):
            columns[f"{name} (standard error)"] = self.standard_error[:, j]
        return with_index(nw.from_dict(columns, backend=backend).to_native(), self.index)

    def by_source(self, sources: Mapping[str, str]) -> Explanation:
        """The same with contributions of derived columns (month, weekday) added to those of their sources.

        ``sources`` maps the name of a derived column to that of its source. The sum of standard errors is an upper limit.
        """
        if not sources:
            return self
        names = tuple(name for name in self.names if name not in sources)
        place = {name: j for j, name in enumerate(names)}
        sums = np.zeros((len(self.names), len(names)))
        sums[np.arange(len(self.names)), [place[sources.get(name, name)] for name in self.names]] = 1.0
        contributions, standard_error = self.contributions @ sums, self.standard_error @ sums
        return replace(self, names=names, contributions=contributions, standard_error=standard_error)

    def __repr__(self) -> str:
        parts = ", ".join(f"{printable(name)}: {size:.3g}" for name, size in list(self.overall().items())[:5])
        error = self.standard_error.max(initial=0.0)
        sampled = f"{self.permutations} permutations, standard errors up to {error:.2g}"
        rows = f"{counted(len(self.chosen), 'row')}, {sampled if self.permutations else 'exact'}"
        return f"Explanation of {rows}; mean absolute contributions: {parts}"


def explanation_of(
    marginals: Marginals, classes: Array, chosen: Array, other: Array, how: OrderSampling
) -> Explanation:
    """The Shapley values of all columns of a table, of one class of each row against another, given as (n,) codes.

    Every model is explained here, from its `Marginals`. The log odds are a sum of parts over disjoint columns, so a column has
    a contribution to its own part only: its own term where the part is a sum over columns, else a Shapley value.
    """
    names, present = marginals.names, np.ones(len(marginals.names), dtype=bool)
    rows = np.arange(len(chosen))

    def odds(scores: Array) -> Array:
        return np.asarray(scores[rows, chosen] - scores[rows, other])

    contributions, standard_error = np.zeros((2, len(rows), 1 + len(names)))
    contributions[:, 0] = odds(marginals.scores(~present))
    permutations = 0
    for part in marginals.parts:
        result = _part_values(part, odds, names, how)
        places = np.array(part.columns, dtype=int) + 1
        contributions[:, places], standard_error[:, places] = result.values, result.standard_error
        permutations = max(permutations, result.permutations)
    return Explanation(
        ("class prior", *names), contributions, classes[chosen], classes[other], standard_error, permutations
    )


def _part_values(
    part: Part, odds: Callable[[Array], Array], names: tuple[str, ...], how: OrderSampling
) -> ShapleyValues:
    """The Shapley values of the columns of one part."""
    if isinstance(part, ColumnSum):
        values = odds(part.terms)
        return ShapleyValues(values, np.zeros(values.shape), 0)
    exact = getattr(part, "shapley_terms", None)
    if exact is not None:
        return ShapleyValues(odds(exact), np.zeros((len(exact), exact.shape[2])), 0)
    # In the order of their names, so that the same orders are sampled wherever the columns are in the table.
    by_name = np.array(sorted(range(len(part.columns)), key=lambda j: names[part.columns[j]]))
    place = np.argsort(by_name)
    value: Value = lambda present: odds(part.scores(present[place]))
    along: ValuesAlong = lambda order: map(odds, part.along(by_name[order]))
    result = shapley_values(value, along, len(place), how)
    return result._replace(values=result.values[:, place], standard_error=result.standard_error[:, place])


def code_of(label: Any, classes: Array) -> int | None:
    """The code of a class, None if no label is given. Raises ValueError for an unknown label."""
    if label is None:
        return None
    if label not in classes.tolist():
        raise ValueError(f"{label!r} is not among the classes {classes.tolist()}")
    return int(classes.tolist().index(label))


def compared_classes(log_joint: Array, against: int | None) -> tuple[Array, Array]:
    """The class that is explained and the one it is compared with, (n,) codes each."""
    best = most_probable(log_joint)
    without = log_joint.copy()
    without[np.arange(len(best)), best] = -np.inf
    second = most_probable(without)
    if against is None:
        return best, second
    return np.where(best == against, second, best), np.full(len(best), against)


# -- The method of classifiers --------------------------------------------------------------------------------

REPORT_SECONDS = 1.0
"""Least time between two reports of progress."""


def explain(
    self: Any, X: Any, against: Any = None, *, permutations: int = PERMUTATIONS, random_state: Any = None
) -> Explanation:
    """Contributions of the columns to the log odds of the most probable class.

    The contribution of a column is its Shapley value: the change of the log odds when the column becomes known,
    averaged over all orders in which the columns may become known. Columns that are not known are integrated out of
    the model. Where columns are independent given the class, as in naive Bayes, the Shapley value is the column's own
    log likelihood ratio. Otherwise it is exact up to eight columns and estimated from sampled orders beyond.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    against : label, optional
        The class to compare with; by default each row's second most probable one. For rows whose most probable
        class it is, the second most probable one is explained against it.
    permutations : int, default=32
        Number of sampled orders of d dependent columns, an even number: each order is followed by its reverse. The
        time is at most that of ``permutations * d`` predictions, and the standard errors fall with its square root.
        Shapley values are exact if the 2^d sets of columns are no more than that.
    random_state : int or RandomState, optional
        Seed of the orders; None is always the same.

    Returns
    -------
    Explanation
        The contributions of a row sum to its log odds (before any temperature), however many orders are sampled.
        ``standard_error`` has their standard errors. Costs have no influence. ``frame()`` has the index of X, if X is a
        pandas data frame.
    """
    verbose = bool(getattr(self, "verbose", 0))
    progress = ProgressReporter(type(self).__name__, verbose, interval=REPORT_SECONDS)
    how = sampling(permutations, random_state, progress)
    with computing(getattr(self, "engine", None), self.n_jobs):
        marginals, classes = self.marginals(X), numpy_classes(self)
        present = np.ones(len(marginals.names), dtype=bool)
        chosen, other = compared_classes(marginals.scores(present), code_of(against, classes))
        explained = explanation_of(marginals, classes, chosen, other, how)
    progress.close()
    return replace(explained.by_source(sources_of(self)), index=index_of(X))


def sources_of(model: Any) -> Mapping[str, str]:
    """Derived column of the training table -> the column that it was derived from."""
    return getattr(getattr(model, "conversion_", None), "sources", {})
