"""Tree-augmented naive Bayes: tables of a column given its parent, with sums over missing values.

If a column is missing, its levels are summed over (belief propagation, from the leaves to the roots): with below(b) the log
probability of the known cells below it given its level b, it adds M(a) = log of the sum over b of p(b | a) e**below(b) for
level a of its parent. If the parent is missing too, M(a) is part of the parent's below(a).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.export.expressions import (
    MISSING,
    Constant,
    Entry,
    Expression,
    Function,
    Greatest,
    IsMissing,
    Once,
    Where,
    log_sum_exp,
    total,
)
from calibayes.export.families.log_density import known, log_densities
from calibayes.families import AveragedOneDependence, KDependence, Tree
from calibayes.kernels.levels.trees import TreeTables


@log_densities.register
def _(family: Tree, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    densities: dict[int, Expression] = {}
    for tree in family.class_trees:
        by_class = tree_densities(tree.with_probabilities(parameters), columns)
        densities |= dict(zip(tree.classes.tolist(), by_class, strict=True))
    return [densities[c] for c in range(len(family.layout.classes))]


@log_densities.register
def _(family: AveragedOneDependence, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    """Stars, each a tree, are averaged."""
    stars = [tree_densities(star, columns) for star in family.stars.with_probabilities(parameters)]
    return [log_sum_exp([Once(density) for density in by_star]) for by_star in zip(*stars, strict=True)]


@log_densities.register
def _(family: KDependence, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    tables = family.tables
    if any(len(parents) > 1 for parents in tables.parents):
        raise TypeError(
            "its columns depend on two others each, whose missing values are not summed over in an expression: "
            "max_parents=1, or TreeAugmentedNB, can be exported"
        )
    parents = tuple(next(iter(of_column), -1) for of_column in tables.parents)
    return tree_densities(
        TreeTables(parents, tables.order, tables.split(parameters["log_probability"])), columns
    )


def tree_densities(tree: TreeTables, columns: Sequence[Expression]) -> list[Expression]:
    """log p(known cells | class) of the classes that share a tree."""
    cells = _cells(tree, columns)
    return [
        ClassDensity(tree, [table[c] for table in tree.tables], columns, cells).total()
        for c in range(len(tree.tables[0]))
    ]


def _cells(tree: TreeTables, columns: Sequence[Expression]) -> list[Expression]:
    """The cell of each column in its table; missing where the column or its parent is."""
    return [
        columns[j] if parent < 0 else Once(columns[parent] * float(tree.tables[j].shape[-1]) + columns[j])
        for j, parent in enumerate(tree.parents)
    ]


@dataclass(frozen=True)
class ClassDensity:
    """The log density of one class."""

    tree: TreeTables
    tables: Sequence[Array]
    """log p(level | parent's level) of each column, (parent's levels or 1, levels)."""
    columns: Sequence[Expression]
    cells: Sequence[Expression]

    def total(self) -> Expression:
        """log p(known cells)."""
        terms = [
            known(Entry(tuple(table.ravel().tolist()), cell))
            for table, cell in zip(self.tables, self.cells, strict=True)
        ]
        messages: dict[int, list[Expression]] = {}
        for j in reversed(self.tree.order):
            if children := [child for child, parent in enumerate(self.tree.parents) if parent == j]:
                messages[j] = self._messages(j, children, messages)
                terms.append(self._summed_out(j, messages[j]))
        return total(terms)

    def _messages(
        self, j: int, children: Sequence[int], messages: dict[int, list[Expression]]
    ) -> list[Expression]:
        """M(a) of a missing column with children, for each level a of its parent."""
        below = [
            self._if_missing(j, total([self._from_child(child, b, messages) for child in children]))
            for b in range(self.tables[j].shape[1])
        ]
        top = Once(Greatest(tuple(below)))
        shares = [Once(Function("exp", value - top)) for value in below]
        return [
            Function("log", total([share * p for share, p in zip(shares, row.tolist(), strict=True)])) + top
            for row in np.exp(self.tables[j])
        ]

    def _if_missing(self, j: int, value: Expression) -> Expression:
        return Once(Where(IsMissing(self.columns[j]), value, MISSING))

    def _from_child(self, child: int, b: int, messages: dict[int, list[Expression]]) -> Expression:
        """log probability of the known cells of a child and below, given level b of its parent."""
        of_level = Entry(tuple(self.tables[child][b].tolist()), self.columns[child])
        if child not in messages:
            return known(of_level)
        return Where(IsMissing(self.columns[child]), messages[child][b], of_level)

    def _summed_out(self, j: int, messages: Sequence[Expression]) -> Expression:
        """What a missing column adds if its parent is known; 0 otherwise."""
        nothing, parent = Constant(0.0), self.tree.parents[j]
        added = messages[0]
        if parent >= 0:
            code = self.columns[parent]
            added = Where(IsMissing(code), nothing, choice(code, messages))
        return Where(IsMissing(self.columns[j]), added, nothing)


def choice(code: Expression, values: Sequence[Expression], first: int = 0) -> Expression:
    """The expression at a code that is not missing, found by log2(size) comparisons."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    left, right = choice(code, values[:middle], first), choice(code, values[middle:], first + middle)
    return Where(code < first + middle - 0.5, left, right)
