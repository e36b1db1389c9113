"""Shapley values of columns: contributions that depend on no order of the columns.

For values v(S) of sets S of d columns, the Shapley value of a column is the mean change of v when the column is added to
those before it, over all d! orders of the columns (Shapley 1953). The values of all columns sum to v(all) - v(none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.parameters import seed_of, whole_number
from calibayes.estimators.interface.progress import ProgressReporter

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
class Sampling:
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


def sampling(permutations: int, random_state: Any, progress: ProgressReporter) -> Sampling:
    """Checked options. Raises ValueError if the permutations are not an even number from 4 on."""
    if whole_number("permutations", permutations, 4) % 2:
        raise ValueError(
            f"permutations must be even, since each order is followed by its reverse, got {permutations}"
        )
    seed = seed_of(random_state)
    return Sampling(permutations, seed, partial(progress.count, "sets of columns"))


def shapley_values(value: Value, along: ValuesAlong, d: int, how: Sampling) -> ShapleyValues:
    """Shapley values of d columns: exact if they are few, else the mean over sampled orders with its standard error."""
    if how.is_exact(d):
        exact = _exact_values(value, d, how)
        return ShapleyValues(exact, np.zeros(exact.shape), 0)
    start = value(np.zeros(d, dtype=bool))
    mean, error = _mean_over_orders(along, start, d, how)
    return ShapleyValues(mean, error, how.permutations)


def _exact_values(value: Value, d: int, how: Sampling) -> Array:
    """Sums over all sets, (n, d): a set of s columns has weight 1 / (d C(d - 1, s)) in the change by one more column."""
    weights = np.array([1.0 / (d * comb(d - 1, s)) for s in range(d)] + [0.0])
    values: Array = 0.0
    for number in range(2**d):
        present = (number >> np.arange(d)) % 2 == 1
        size = int(present.sum())
        values = values + value(present)[:, None] * np.where(present, weights[size - 1], -weights[size])
        how.report(number + 1, 2**d)
    return values


def _mean_over_orders(along: ValuesAlong, start: Array, d: int, how: Sampling) -> tuple[Array, Array]:
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
