"""Search for the parents of columns by how well the model classifies.

The tree of Chow and Liu (1968) maximizes the likelihood of the columns, which says little about p(class | x). Here arcs are
added to naive Bayes one at a time: in each step every arc that keeps the structure valid is tried, with the parameters of
maximum likelihood, and the one that lowers the loss of the posterior most is kept, until none does (greedy search by the
conditional likelihood, Grossman and Domingos 2004; by the error, Pernkopf and Bilmes 2005; for trees, Santafe, Lozano and
Larranaga 2005). log p(x, class) is a sum over columns, so an arc changes one term: a trial costs rows times classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.k_dependence import (
    KDependence,
    allowed_gains,
    conditional_information,
    gain_matrix,
    relevance_order,
)
from calibayes.families.network_tables import ParentSets
from calibayes.families.tree_structures import SAME_GAIN, Candidates, PosteriorLoss, descending
from calibayes.kernels import level_counts
from calibayes.kernels.cut_points import mixed

Trial: TypeAlias = tuple[int, tuple[int, ...]]
"""A column and its new parents: those that it has and one more."""
MOST_PARTNERS = 16
"""Columns that are tried as the first parent of a column: those of the largest mutual information given the class."""
MOST_TERMS = 2**23
"""Most terms (scored rows x classes x first parents of all columns) that are held in memory: 64 megabytes."""
LARGEST_ODDS = 700.0
"""Log odds above this count as this: their exponential would overflow."""
LEAST_LOSS = 1e-9
"""Share of the loss that an arc must take away: less is rounding error."""


# -- Which arcs may be added ----------------------------------------------------------------------------------


class Arcs(Protocol):
    """The structures that a search may pass through."""

    @property
    def partners(self) -> Sequence[Array]:
        """The columns that are tried as the first parent of each column."""

    def next_trials(self, parents: ParentSets) -> Iterator[Trial]:
        """Every valid structure with one arc more, as the column that gets it and all of its parents."""


@dataclass(frozen=True)
class TreeArcs:
    """Trees and forests: each column has at most one parent, and there is no cycle."""

    partners: Sequence[Array]
    """The columns that may be the parent of each column."""

    def next_trials(self, parents: ParentSets) -> Iterator[Trial]:
        for j, of_column in enumerate(parents):
            if not of_column:
                yield from ((j, (int(p),)) for p in self.partners[j] if j not in _ancestors(parents, int(p)))


def _ancestors(parents: ParentSets, column: int) -> set[int]:
    """A column of a forest and all of its ancestors."""
    found = {column}
    while parents[column]:
        [column] = parents[column]
        found.add(column)
    return found


@dataclass
class OrderedArcs:
    """k-dependence Bayes: parents come before their child in an order, and a second parent is joined to the first one."""

    order: Sequence[int]
    partners: Sequence[Array]
    family: KDependence
    sums: Arrays
    """The structure statistics, in which the dependence on a second parent is tested."""
    _tested: dict[tuple[int, int, int], bool] = field(default_factory=dict)

    def next_trials(self, parents: ParentSets) -> Iterator[Trial]:
        for place, j in enumerate(self.order):
            earlier = self.order[:place]
            if not parents[j]:
                yield from ((j, (int(p),)) for p in self.partners[j])
            elif len(parents[j]) < self.family.max_parents:
                [first] = parents[j]
                joined = (i for i in earlier if i in parents[first] or first in parents[i])
                yield from ((j, (first, i)) for i in joined if self._is_allowed(first, i, j))

    def _is_allowed(self, first: int, second: int, column: int) -> bool:
        """Whether the criterion for edges allows a second parent, given the first one."""
        key = (first, second, column)
        if key not in self._tested:
            information = conditional_information([self.family.count_of(self.sums, key)])
            self._tested[key] = bool(np.isfinite(allowed_gains(information, self.family.edges))[0])
        return self._tested[key]


def partners_of(gains: Array, keys: Array) -> list[Array]:
    """The columns that are tried as parents of each column: the most informative ones of those that are allowed."""
    orders = [descending(np.where(np.isfinite(row), row, 0.0), keys) for row in gains]
    return [order[np.isfinite(row[order])][:MOST_PARTNERS] for order, row in zip(orders, gains, strict=True)]


# -- Terms of the columns in log p(x, class), under parameters that the row has no part in ---------------------


class EncodedRows(NamedTuple):
    """Labeled rows in an order that depends on their content alone, equal ones of a fold as one with their weight."""

    codes: Array
    """Levels, (n, d), negative where missing."""
    labels: Array
    weight: Array
    fold: Array
    """The fold of each row, (n,); -1 for one that is never held out."""


@dataclass
class ColumnTerms:
    """What columns add to the log odds of the other classes against the true one, of the scored rows, (k - 1, n).

    Known are the terms log p(column | parents, class), by column and parents, as differences to that of the true class. The
    parameters are those of the family, prepared on the rows outside the fold of a row. Where a parent of a known cell is
    missing, the term is that of the column with one parent fewer.
    """

    family: KDependence
    rows: EncodedRows
    scored: Array
    """Positions of the scored rows."""
    known: dict[Trial, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        k, fold = len(self.family.layout.classes), self.rows.fold
        self._folds = [fold == number for number in range(fold.max(initial=0) + 1)]
        self._weights = (np.arange(k) == self.rows.labels[:, None]) * self.rows.weight[:, None]
        total = self._sums(slice(None))
        parts = [self._sums(mask) for mask in self._folds] if len(self._folds) > 1 else [_none_of(total)]
        self._remaining = [_without(total, part) for part in parts]
        self.scored_weight = self.rows.weight[self.scored]
        self.require((j, ()) for j in range(len(self.family.layout.columns)))

    def _sums(self, rows: Array | slice) -> Arrays:
        """Counts of classes, columns and, for second parents, of pairs of columns."""
        codes, weights, levels = self.rows.codes[rows], self._weights[rows], self.family.layout.levels
        classes = {"classes": weights.sum(axis=0)}
        if self.family.counts_triples:
            return classes | dict(replace(self.family, max_parents=1).structure_statistics(codes, weights))
        return classes | {
            "single": level_counts.weighted_counts(codes, weights, level_counts.offsets(levels))
        }

    def log_prior(self, fixed: Array | None) -> Array:
        """The log odds of the class prior, (k - 1, n), counted outside of the folds of the rows unless it is fixed."""
        counts = [sums["classes"] if fixed is None else fixed for sums in self._remaining]
        shares = np.maximum([count / count.sum() for count in counts], np.finfo(float).tiny)
        return self._odds(np.log(shares)[self._fold_of_scored].T)

    def _odds(self, terms: Array) -> Array:
        """Terms of all classes, (k, n), as those of the other classes minus that of the true class, (k - 1, n)."""
        k, labels = len(terms), self.rows.labels[self.scored]
        others = (labels + np.arange(1, k)[:, None]) % k
        return np.asarray(np.take_along_axis(terms, others, axis=0) - terms[labels, np.arange(len(labels))])

    @property
    def _fold_of_scored(self) -> Array:
        return (
            self.rows.fold[self.scored] if len(self._remaining) > 1 else np.zeros(len(self.scored), dtype=int)
        )

    def require(self, trials: Iterable[Trial]) -> None:
        """Compute the terms that are not known yet, those of one set of parents for each column at a time."""
        waiting: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
        for j, parents in trials:
            if (j, parents) not in self.known:
                waiting[j].append(parents)
        while waiting:
            self._compute({j: sets.pop() for j, sets in waiting.items()})
            waiting = defaultdict(list, {j: sets for j, sets in waiting.items() if sets})

    def _compute(self, chosen: Mapping[int, tuple[int, ...]]) -> None:
        parents = tuple(chosen.get(j, ()) for j in range(len(self.family.layout.columns)))
        family = replace(self.family, given=parents, parents=parents)
        counts = [family.statistics(self.rows.codes[mask], self._weights[mask]) for mask in self._counted]
        total = {"count": np.sum([count["count"] for count in counts], axis=0)}
        parts = counts[: len(self._folds)] if len(self._folds) > 1 else [_none_of(total)]
        tables = []
        for part, sums in zip(parts, self._remaining, strict=True):
            prepared = family.prepare(sums)
            tables.append(prepared.parameters(_without(total, part))["log_probability"])
        codes, fold = self.rows.codes[self.scored], self._fold_of_scored
        cells = family.tables.cell_codes(codes)
        for j, of_column in chosen.items():
            first, stop = family.tables.first[j], family.tables.first[j + 1]
            by_fold = np.stack([table[:, first:stop] for table in tables])
            terms = self._odds(by_fold[fold, :, np.maximum(cells[:, j], 0)].T)
            fewer = self.known[j, of_column[:-1]] if of_column else np.zeros_like(terms)
            self.known[j, of_column] = np.where(cells[:, j] >= 0, terms, fewer)

    @property
    def _counted(self) -> list[Array]:
        """The rows of each fold, and those that are never held out."""
        return [*self._folds, self.rows.fold < 0]


def _none_of(sums: Arrays) -> Arrays:
    """Sums of no row."""
    return {name: np.zeros_like(value) for name, value in sums.items()}


def _without(total: Arrays, part: Arrays) -> Arrays:
    """Sums without those of some rows; rounding does not make them negative."""
    return {name: np.maximum(value - part[name], 0.0) for name, value in total.items()}


# -- The search -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GreedySearch:
    """Adds the arc of the lowest loss until none lowers it."""

    terms: ColumnTerms
    loss: PosteriorLoss
    keys: Array
    """A hash of the content of each column: of equally good arcs that of the smallest key is added."""

    def parents(self, arcs: Arcs, log_prior: Array) -> ParentSets:
        """The parents of each column."""
        d = len(self.keys)
        parents: ParentSets = ((),) * d
        odds = log_prior + sum(self.terms.known[j, ()] for j in range(d))
        lowest = self.total(odds)
        while trials := list(arcs.next_trials(parents)):
            self.terms.require(trials)
            losses = np.array([self.total(odds + self._change(parents, trial)) for trial in trials])
            if not losses.min() < lowest - LEAST_LOSS * abs(lowest):
                break
            best = trials[self._first_of_best(trials, losses, SAME_GAIN * abs(lowest))]
            odds = odds + self._change(parents, best)
            parents = tuple(best[1] if j == best[0] else of_column for j, of_column in enumerate(parents))
            lowest = self.total(odds)
        return parents

    def total(self, odds: Array) -> float:
        """The loss of all scored rows from the log odds of the other classes against the true one, (k - 1, n)."""
        log_posterior = -np.log1p(np.exp(np.minimum(odds, LARGEST_ODDS)).sum(axis=0))
        return float(self.terms.scored_weight @ self.loss.of(log_posterior))

    def _change(self, parents: ParentSets, trial: Trial) -> Array:
        """What an arc adds to the log odds, (k - 1, n)."""
        return np.asarray(self.terms.known[trial] - self.terms.known[trial[0], parents[trial[0]]])

    def _first_of_best(self, trials: Sequence[Trial], losses: Array, tolerance: float) -> int:
        """Of the trials with the lowest loss, up to rounding, that of the smallest key, whatever the order of columns is."""
        near = np.flatnonzero(losses <= losses.min() + tolerance)
        children, added = np.array([(j, parents[-1]) for j, parents in (trials[int(i)] for i in near)]).T
        return int(near[np.argmin(mixed(mixed(self.keys[added]) + self.keys[children]))])


ArcsOf: TypeAlias = Callable[[KDependence, Arrays, Candidates], Arcs]
"""From a bound family, its structure statistics and the counted pairs of columns to the arcs that may be added."""


def tree_arcs(family: KDependence, sums: Arrays, candidates: Candidates) -> TreeArcs:
    """Any column may be the parent of any other."""
    return TreeArcs(partners_of(gain_matrix(candidates, family.edges), candidates.keys))


def ordered_arcs(family: KDependence, sums: Arrays, candidates: Candidates) -> OrderedArcs:
    """Parents depend more on the class than their child, as in k-dependence Bayes (Sahami 1996)."""
    order = relevance_order(family.column_counts(sums), candidates.keys)
    place = np.argsort(order)
    is_earlier = place[None, :] < place[:, None]
    gains = np.where(is_earlier, gain_matrix(candidates, family.edges), -np.inf)
    return OrderedArcs(order, partners_of(gains, candidates.keys), family, sums)


def searched_parents(
    family: KDependence,
    rows: EncodedRows,
    loss: PosteriorLoss,
    arcs_of: ArcsOf,
    fixed_prior: Array | None = None,
) -> ParentSets:
    """The parents of each column that a greedy search finds.

    ``family`` is bound to the columns and has the smoothing, the criterion for edges and the largest number of parents;
    ``fixed_prior`` are class probabilities that are not counted.
    """
    k = len(family.layout.classes)
    weights = (np.arange(k) == rows.labels[:, None]) * rows.weight[:, None]
    sums = family.structure_statistics(rows.codes, weights)
    candidates = family.candidates(sums)
    arcs = arcs_of(family, sums, candidates)
    per_row = k * max(sum(map(len, arcs.partners)), 1)
    scored = np.flatnonzero(rows.fold >= 0)[: max(MOST_TERMS // per_row, 1)]
    terms = ColumnTerms(family, rows, scored)
    return GreedySearch(terms, loss, candidates.keys).parents(arcs, terms.log_prior(fixed_prior))
