"""Exact inference in Bayesian networks over columns of levels: sums over missing values, their posteriors and samples.

Column j has a table of log probabilities of its levels given those of its parents, (k, levels of each parent, levels).
Codes (n, d) are negative where missing. Missing columns are eliminated one after the other: the factors that contain a column
are added up and summed over its levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import logsumexp

from calibayes.core.protocols import Array
from calibayes.kernels.level_counts import draw

CELLS_AT_A_TIME = 2**20
"""Cells of a factor, over all rows and classes, that are in memory at a time."""
MOST_CELLS = 2**26
"""Largest number of cells of a factor for one row."""


Columns: TypeAlias = tuple[int, ...]
Missing: TypeAlias = frozenset[int]
"""The columns without a known value in some rows."""


class Network(NamedTuple):
    """A directed acyclic graph over d columns and its conditional log probabilities."""

    parents: tuple[Columns, ...]
    order: Columns
    """All columns, parents before their children."""
    tables: Sequence[Array]

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return tuple(int(table.shape[-1]) for table in self.tables)


class Factor(NamedTuple):
    """Log values by the levels of some missing columns."""

    scope: Columns
    values: Array
    """(n or 1, k, levels of each column of the scope)."""


class Group(NamedTuple):
    """Missing columns of a row that are summed over together, and the columns whose tables contain one of them."""

    missing: Missing
    columns: Columns


def log_sums(codes: Array, network: Network) -> Array:
    """Sums over missing values: the part of the log probability of the known cells of each row, (n, k), with missing columns.

    The other part is the sum over the tables of which a row has all columns. Missing columns that do not occur in one table
    are summed over apart from each other, together for all rows in which they are missing.
    """
    total = np.zeros((len(codes), len(network.tables[0])))
    by_group: dict[Group, list[Array]] = {}
    for rows, missing in _patterns(codes):
        for group in _groups(network.parents, network.order, missing):
            by_group.setdefault(group, []).append(rows)
    for group, parts in by_group.items():
        for rows in _pieces(np.concatenate(parts), network, group):
            factors = [_factor(codes[rows], network, j, group.missing) for j in group.columns]
            left, _ = _eliminate(factors, network, keep=-1)
            total[rows] += reduce(np.add, (factor.values for factor in left))
    return total


def beliefs(codes: Array, network: Network) -> tuple[Sequence[Array], Sequence[Array]]:
    """For each column, the rows in which it is missing and the posterior of its levels there, (rows, k, levels).

    The posterior is given all known cells of the row.
    """
    d, k = codes.shape[1], len(network.tables[0])
    positions = [np.flatnonzero(column < 0) for column in codes.T]
    found = [np.zeros((len(rows), k, size)) for rows, size in zip(positions, network.levels, strict=True)]
    for rows, missing in _pattern_pieces(codes, network):
        for j in (j for j in range(d) if j in missing):
            needed = _with_known_below(network.parents, network.order, missing - {j}) & missing
            left, _ = _eliminate(_factors(codes[rows], network, missing, needed), network, keep=j)
            joint = _joined([factor for factor in left if factor.scope], (j,))
            posterior = np.exp(joint.values - logsumexp(joint.values, axis=2, keepdims=True))
            found[j][np.searchsorted(positions[j], rows)] = posterior
    return positions, found


def draw_missing(codes: Array, classes: Array, network: Network, rng: np.random.Generator) -> Array:
    """The rows with missing values drawn given the known ones and the class (n,) of each row, (n, d)."""
    complete = codes.copy()
    for rows, missing in _pattern_pieces(codes, network):
        needed = _with_known_below(network.parents, network.order, missing) & missing
        _, eliminated = _eliminate(_factors(codes[rows], network, missing, needed), network, keep=-1)
        for joint in reversed(eliminated):
            complete[rows, joint.scope[-1]] = _draw_from(joint, complete[rows], classes[rows], rng)
        for j in (j for j in network.order if j in missing - needed):
            joint = Factor((*network.parents[j], j), network.tables[j][None])
            complete[rows, j] = _draw_from(joint, complete[rows], classes[rows], rng)
    return complete


def _draw_from(joint: Factor, rows: Array, classes: Array, rng: np.random.Generator) -> Array:
    """A level of the last column of the scope for each row, given its class and its levels in the other columns."""
    places = np.arange(len(rows)) if len(joint.values) > 1 else np.zeros(len(rows), dtype=np.intp)
    log_weight = joint.values[(places, classes, *(rows[:, j] for j in joint.scope[:-1]))]
    return draw(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), rng)


def _patterns(codes: Array) -> Iterator[tuple[Array, Missing]]:
    """Positions of the rows with the same columns missing, and these columns."""
    patterns, pattern_of_row = np.unique(codes < 0, axis=0, return_inverse=True)
    by_pattern = np.argsort(pattern_of_row.reshape(-1), kind="stable")
    numbers = np.bincount(pattern_of_row.reshape(-1), minlength=len(patterns))
    for pattern, last, number in zip(patterns, np.cumsum(numbers), numbers, strict=True):
        yield by_pattern[last - number : last], frozenset(np.flatnonzero(pattern).tolist())


def _pattern_pieces(codes: Array, network: Network) -> Iterator[tuple[Array, Missing]]:
    """`_patterns`, of few enough rows for memory."""
    for rows, missing in _patterns(codes):
        for piece in _pieces(rows, network, Group(missing, network.order)):
            yield piece, missing


def _pieces(rows: Array, network: Network, group: Group) -> Iterator[Array]:
    """Few enough of the rows for memory at a time. Raises ValueError if a single row needs too much."""
    cells = len(network.tables[0]) * _largest_factor(network, group)
    if cells > MOST_CELLS:
        raise ValueError(
            f"a row with {len(group.missing)} missing values needs a table of {cells:.3g} cells to sum over them, more than "
            f"{MOST_CELLS:.3g}: one parent per column (max_parents=1) or fewer bins help"
        )
    size = max(CELLS_AT_A_TIME // cells, 1)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@lru_cache(maxsize=2**14)
def _groups(parents: tuple[Columns, ...], order: Columns, missing: Missing) -> tuple[Group, ...]:
    """The missing columns with a known one below them, grouped by the tables that they share."""
    relevant = _with_known_below(parents, order, missing)
    groups: list[tuple[set[int], set[int]]] = []
    for j in (j for j in order if j in relevant):
        columns, members = {j}, {*parents[j], j} & missing
        if members:
            touching = [group for group in groups if group[0] & members]
            groups = [group for group in groups if not group[0] & members]
            members = members.union(*(group[0] for group in touching))
            groups.append((members, columns.union(*(group[1] for group in touching))))
    return tuple(Group(frozenset(members), tuple(sorted(columns))) for members, columns in groups)


def _with_known_below(parents: tuple[Columns, ...], order: Columns, missing: Missing) -> frozenset[int]:
    """The columns that are known or have a known column below them; sums over all others are 1."""
    relevant: set[int] = set()
    for j in reversed(order):
        if j in relevant or j not in missing:
            relevant |= {j, *parents[j]}
    return frozenset(relevant)


def _factors(codes: Array, network: Network, missing: Missing, columns: frozenset[int]) -> list[Factor]:
    """The log probabilities of these columns, by the levels of the missing ones among them and their parents."""
    return [_factor(codes, network, j, missing) for j in network.order if j in columns or j not in missing]


def _factor(codes: Array, network: Network, j: int, missing: Missing) -> Factor:
    axes = (*network.parents[j], j)
    known = [axis for axis, column in enumerate(axes) if column not in missing]
    scope = tuple(column for column in axes if column in missing)
    free = [axis for axis, column in enumerate(axes) if column in missing]
    table = network.tables[j].transpose(*(1 + axis for axis in known), 0, *(1 + axis for axis in free))
    return Factor(scope, table[tuple(codes[:, axes[axis]] for axis in known)] if known else table[None])


def _eliminate(factors: list[Factor], network: Network, keep: int) -> tuple[list[Factor], list[Factor]]:
    """Sum over all columns of the scopes but ``keep``: the factors that are left, and for each of these columns the sum
    of the factors that contained it, in whose scope it is the last.
    """
    eliminated: list[Factor] = []
    for column, scope in _elimination([factor.scope for factor in factors], network, keep):
        joint = _joined([factor for factor in factors if column in factor.scope], scope)
        message = Factor(scope[:-1], logsumexp(joint.values, axis=-1))
        factors = [*(factor for factor in factors if column not in factor.scope), message]
        eliminated.append(joint)
    return factors, eliminated


def _joined(factors: Sequence[Factor], scope: Columns) -> Factor:
    """The sum of factors, by the levels of the columns of a scope that contains theirs."""
    return Factor(scope, reduce(np.add, (_aligned(factor, scope) for factor in factors)))


def _aligned(factor: Factor, scope: Columns) -> Array:
    """The values with an axis for each column of another scope, of length 1 where they do not depend on it."""
    present = [factor.scope.index(column) for column in scope if column in factor.scope]
    values = factor.values.transpose(0, 1, *(2 + axis for axis in present))
    absent = [2 + place for place, column in enumerate(scope) if column not in factor.scope]
    return np.expand_dims(values, absent)


def _elimination(scopes: Sequence[Columns], network: Network, keep: int) -> Iterator[tuple[int, Columns]]:
    """The columns to sum over, each with the columns that its factors contain, itself last.

    Next is always the column with the smallest joint factor; of equal ones, that which comes last in the network.
    """
    left = [set(scope) for scope in scopes]
    while columns := sorted(set().union(*left) - {keep}, key=network.order.index, reverse=True):
        unions = {j: set().union(*(scope for scope in left if j in scope)) for j in columns}
        column = min(columns, key=lambda j: prod(network.levels[i] for i in unions[j]))
        yield column, (*sorted(unions[column] - {column}), column)
        left = [scope for scope in left if column not in scope] + [unions[column] - {column}]


def _largest_factor(network: Network, group: Group) -> int:
    """Number of cells of the largest factor when the columns of a group are summed over."""
    relevant = _with_known_below(network.parents, network.order, group.missing)
    families = [(*network.parents[j], j) for j in group.columns if j in relevant]
    scopes = [tuple(j for j in family if j in group.missing) for family in families]
    steps = _elimination(scopes, network, keep=-1)
    return max((prod(network.levels[j] for j in scope) for _, scope in steps), default=1)


# -- Belief propagation in trees over columns of levels: sums over missing values, posteriors and samples of them
#
# Column j has a table of log probabilities of its levels given those of its parent, (k, parent's levels, levels); a root
# (parent -1) has one row. Known values separate the tree, so only the missing ones between known ones are summed over.
# Codes (n, d) are negative where missing.


class TreeProbabilities(NamedTuple):
    """A tree over d columns and its conditional log probabilities."""

    parents: tuple[int, ...]
    order: tuple[int, ...]
    """All columns, parents before their children."""
    tables: Sequence[Array]


class UpwardPass(NamedTuple):
    """Result of the pass from the leaves to the roots."""

    total: Array
    """Log probability of the known cells of each row, (k, n)."""
    missing: Sequence[Array]
    """For each column, the positions of the rows in which it is missing."""
    below: dict[int, Array]
    """Column -> log probability of the known cells below it given its level, (k, missing, levels); absent if none."""


def upward_pass(codes: Array, tree: TreeProbabilities) -> UpwardPass:
    """Sum over missing values, from the leaves to the roots."""
    missing = [np.flatnonzero(column < 0) for column in codes.T]
    result = UpwardPass(np.zeros((len(tree.tables[0]), len(codes))), missing, {})
    for j in reversed(tree.order):
        table, parent_codes = tree.tables[j], _parent_codes(codes, tree.parents[j])
        is_known = codes[:, j] >= 0
        parent_known = np.flatnonzero(is_known & (parent_codes >= 0))
        result.total[:, parent_known] += table[:, parent_codes[parent_known], codes[parent_known, j]]
        parent_missing = np.flatnonzero(is_known & (parent_codes < 0))
        message = table[:, :, codes[parent_missing, j]].transpose(0, 2, 1)
        _add_message(result, tree, j, parent_missing, message)
        if j in result.below:
            rows, message = missing[j], _log_sum(result.below[j], np.exp(table))
            parent_known = np.flatnonzero(parent_codes[rows] >= 0)
            result.total[:, rows[parent_known]] += message[:, parent_known, parent_codes[rows[parent_known]]]
            parent_missing = np.flatnonzero(parent_codes[rows] < 0)
            _add_message(result, tree, j, rows[parent_missing], message[:, parent_missing])
    return result


def _parent_codes(codes: Array, parent: int) -> Array:
    """The level of the parent in each row, (n,); 0 for a root."""
    return np.zeros(len(codes), dtype=np.intp) if parent < 0 else codes[:, parent]


def _add_message(result: UpwardPass, tree: TreeProbabilities, j: int, rows: Array, message: Array) -> None:
    """Add a message (k, rows, parent's levels) from column j to its parent, which is missing in these rows."""
    if len(rows):
        parent = tree.parents[j]
        shape = (len(result.total), len(result.missing[parent]), tree.tables[parent].shape[2])
        below = result.below.setdefault(parent, np.zeros(shape))
        below[:, np.searchsorted(result.missing[parent], rows)] += message


def _log_sum(below: Array, probability: Array) -> Array:
    """log of the sum over the levels of a missing value, for each level of its parent, (k, rows, parent's levels)."""
    top = below.max(axis=2, keepdims=True)
    return np.asarray(np.log(np.exp(below - top) @ np.swapaxes(probability, 1, 2)) + top)


def tree_beliefs(codes: Array, tree: TreeProbabilities) -> tuple[Sequence[Array], Sequence[Array]]:
    """For each column, the rows in which it is missing and the posterior of its levels there, (k, rows, levels).

    The posterior is given all known cells of the row.
    """
    passed = upward_pass(codes, tree)
    posteriors: list[Array] = [np.zeros(0)] * len(tree.parents)
    for j in tree.order:
        rows, probability, parent = passed.missing[j], np.exp(tree.tables[j]), tree.parents[j]
        below = passed.below.get(j, np.zeros((len(probability), len(rows), 1)))
        likelihood = np.exp(below - below.max(axis=2, keepdims=True))
        parent_codes = _parent_codes(codes, parent)[rows]
        from_parent = probability[:, np.maximum(parent_codes, 0)]
        if parent_missing := np.flatnonzero(parent_codes < 0).tolist():
            belief = posteriors[parent][:, np.searchsorted(passed.missing[parent], rows[parent_missing])]
            # The parent's posterior contains the message of this column, which is divided out.
            shape = *belief.shape[:2], probability.shape[2]
            message = np.broadcast_to(likelihood[:, parent_missing], shape) @ np.swapaxes(probability, 1, 2)
            from_parent[:, parent_missing] = (belief / message) @ probability
        joint = from_parent * likelihood
        posteriors[j] = joint / joint.sum(axis=2, keepdims=True)
    return passed.missing, posteriors


def draw_missing_in_tree(
    codes: Array, classes: Array, tree: TreeProbabilities, rng: np.random.Generator
) -> Array:
    """The rows with missing values drawn given the known ones and the class (n,) of each row, (n, d)."""
    passed, complete = upward_pass(codes, tree), codes.copy()
    for j in tree.order:
        rows = passed.missing[j]
        log_weight = tree.tables[j][classes[rows], _parent_codes(complete, tree.parents[j])[rows]]
        if j in passed.below:
            log_weight = log_weight + passed.below[j][classes[rows], np.arange(len(rows))]
        if len(rows):
            complete[rows, j] = draw(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), rng)
    return complete
