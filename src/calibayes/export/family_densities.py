"""Log densities of families as expressions.

`log_densities` is a generic function (`functools.singledispatch`) with an implementation for each type of family. It returns
log p(x | class) of each class as an expression (`calibayes.export.expressions`); terms that all classes share may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from calibayes import families
from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Arrays
from calibayes.export import expressions as ex
from calibayes.families.events import EventCounts
from calibayes.kernels.gaussian_density import LOG_TWO_PI
from calibayes.kernels.networks import TreeProbabilities

# -- The generic function of which each exported family registers an implementation --------------------------


@singledispatch
def log_densities(family: Any, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """log p(x | class) of each class, up to a term that all classes share.

    Parameters
    ----------
    family : Family
        Bound and prepared.
    parameters : mapping
        Its arrays, the argument of `Family.log_density`.
    columns : sequence of Expression
        Its encoded columns, each a `Once`: numbers or codes, missing where a value is missing.

    Raises
    ------
    TypeError
        If the family cannot be written as an expression. The message follows "<model> cannot be exported: ".
    """
    raise TypeError(f"its family {type(family).__name__} is not written as an expression")


def known(term: ex.Expression) -> ex.Expression:
    """A term of the log density, 0 where its column is missing: missing values are left out."""
    return ex.Filled(term, ex.Constant(0.0))


def entry(table: Array, code: ex.Expression) -> ex.Expression:
    """The entry of an array at a code; missing where the code is."""
    return ex.TableEntry(tuple(table.ravel().tolist()), code)


# -- Categorical, Bernoulli and Poisson densities ------------------------------------------------------------


@log_densities.register
def _(family: families.Categorical, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    return sums_of_entries(parameters["log_probability"], family.layout.levels, columns)


def sums_of_entries(cells: Array, sizes: Sequence[int], columns: ex.Columns) -> list[ex.Expression]:
    """For each class the sum over columns of table entries, from tables side by side, (k, cells)."""
    tables = np.split(cells, np.cumsum(sizes)[:-1], axis=1)
    pairs = list(zip(tables, columns, strict=True))
    return [ex.total(known(entry(table[c], code)) for table, code in pairs) for c in range(len(cells))]


@log_densities.register
def _(family: families.Bernoulli, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    zeros, ones = parameters["log_zero"], parameters["log_one"]
    return [
        ex.total(
            known(x * (one - zero) + zero)
            for x, zero, one in zip(columns, class_zeros, class_ones, strict=True)
        )
        for class_zeros, class_ones in zip(zeros.tolist(), ones.tolist(), strict=True)
    ]


@log_densities.register
def _(family: families.Poisson, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    return [
        ex.total(
            known(x * log_rate - rate) for x, log_rate, rate in zip(columns, log_rates, rates, strict=True)
        )
        for log_rates, rates in zip(parameters["log_rate"].tolist(), parameters["rate"].tolist(), strict=True)
    ]


# -- Densities of positive numbers; a row with a number that has no density has no probabilities -------------


@log_densities.register
def _(family: families.Exponential, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    rates = parameters["rate"].tolist()
    cells = [
        [known(x * -rate + math.log(rate)) for x, rate in zip(columns, row, strict=True)] for row in rates
    ]
    return _within_support([x < 0.0 for x in columns], cells)


@log_densities.register(families.GammaDensity)
@log_densities.register(families.GammaByMoments)
def _(family: Any, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """Without -log x, which all classes share."""
    logs, pairs = (
        _logs(columns),
        list(zip(parameters["shape"].tolist(), parameters["rate"].tolist(), strict=True)),
    )
    cells = [
        [
            known(log * shape + x * -rate + (shape * math.log(rate) - math.lgamma(shape)))
            for x, log, shape, rate in zip(columns, logs, *of_class, strict=True)
        ]
        for of_class in pairs
    ]
    return _within_support([x <= 0.0 for x in columns], cells)


@log_densities.register
def _(family: families.LogNormal, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """Without -log x, which all classes share."""
    logs, moments = _logs(columns), zip(parameters["mean"], parameters["variance"], strict=True)
    densities = [[_independent(*of_class, logs)] for of_class in moments]
    return _within_support([x <= 0.0 for x in columns], densities)


def _logs(columns: ex.Columns) -> list[ex.Once]:
    """Logarithms of positive numbers, missing for others."""
    return [ex.Once(ex.Function("log", ex.Where(ex.Constant(0.0) < x, x, ex.MISSING))) for x in columns]


def _within_support(
    outside: Sequence[ex.Condition], cells: Sequence[Sequence[ex.Expression]]
) -> list[ex.Expression]:
    """For each class the sum of its cells, missing if a condition is true."""
    is_refused = ex.store(outside)
    return [ex.Where(is_refused, ex.MISSING, ex.total(of_class)) for of_class in cells]


# -- Multinomial and complement densities --------------------------------------------------------------------


@log_densities.register
def _(family: EventCounts, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """Without the multinomial coefficient, which all classes share."""
    return [ex.weighted_sum(columns, weights) for weights in family.event_weights(parameters).tolist()]


# -- Gaussian densities: independent columns, and full covariances with any missing values -------------------
#
# Under a full covariance, the density of the known cells of a row is a product of densities of one column given the known
# columns before it. These are computed by eliminating one column after the other: if column j is known, with residual r_j and
# conditional variance S_jj, then S <- S - S_.j S_j. / S_jj and r <- r - S_.j r_j / S_jj for the columns after it; if it is
# missing, nothing changes. In rows without missing values S does not depend on the row, and the log density is a quadratic
# form (up to a common term, a linear one if the classes share a covariance).

MOST_ELIMINATED = 24
"""Largest number d of columns with a full covariance of which values may be missing: there are d^3 / 6 steps."""


class WideCovarianceWarning(UserWarning):
    """Rows with missing values have no probabilities in the export, since the covariance has too many columns."""


@log_densities.register
def _(family: families.Gaussian, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    mean = parameters["mean"]
    if not family.shape.is_matrix:
        return [_independent(*moments, columns) for moments in zip(mean, parameters["variance"], strict=True)]
    covariance = parameters["covariance"]
    scores = _linear if len(covariance) == 1 else _quadratic
    complete = scores(mean, parameters, columns)
    incomplete = ex.store([ex.IsMissing(x) for x in columns])
    if len(columns) > MOST_ELIMINATED:
        warn(
            f"the covariance is full, of {len(columns)} columns: rows with a missing value in one of them have no "
            f"probabilities in the export, which supports missing values of at most {MOST_ELIMINATED} columns",
            WideCovarianceWarning,
        )
        return [ex.Where(incomplete, ex.MISSING, score) for score in complete]
    marginal = _marginal(mean, covariance, columns, incomplete)
    return [ex.Where(incomplete, other, score) for other, score in zip(marginal, complete, strict=True)]


def _independent(mean: Array, variance: Array, columns: ex.Columns) -> ex.Expression:
    """log density of one class with independent columns."""
    triples = zip(columns, mean.tolist(), variance.tolist(), strict=True)
    return ex.total(known(_log_normal(x - m, v)) for x, m, v in triples)


def _log_normal(residual: ex.Expression, variance: float) -> ex.Expression:
    squares = residual * residual * (-0.5 / variance)
    return squares - 0.5 * (float(np.log(variance)) + LOG_TWO_PI)


def _linear(mean: Array, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """Scores of classes with one covariance, in rows without missing values, up to a term that all share."""
    whitener, middle = parameters["whitener"][0], mean.mean(axis=0)
    slopes = (mean - middle) @ whitener.T @ whitener
    offsets = -0.5 * np.sum(slopes * (mean - middle), axis=1)
    centered = _centered(columns, middle)
    # The term that all classes share can be left out: a row uses either these scores or the marginal densities, for all classes.
    return [
        ex.weighted_sum(centered, class_slopes, offset)
        for class_slopes, offset in zip(slopes.tolist(), offsets.tolist(), strict=True)
    ]


def _quadratic(mean: Array, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """log densities of classes with a covariance each, in rows without missing values."""
    constants = -0.5 * (parameters["log_determinant"] + len(columns) * LOG_TWO_PI)
    scores: list[ex.Expression] = []
    for class_mean, whitener, constant in zip(mean, parameters["whitener"], constants, strict=True):
        whitened = _whitened(_centered(columns, class_mean), whitener)
        scores.append(ex.total((white * white * -0.5 for white in whitened), float(constant)))
    return scores


def _centered(columns: ex.Columns, mean: Array) -> list[ex.Once]:
    return [ex.Once(x - m) for x, m in zip(columns, mean.tolist(), strict=True)]


def _whitened(residuals: Sequence[ex.Once], whitener: Array) -> list[ex.Once]:
    """Coordinates of variance 1."""
    return [
        ex.Once(ex.total(x * weight for x, weight in zip(residuals, row, strict=True) if weight != 0.0))
        for row in whitener.tolist()
    ]


# -- rows with missing values --------------------------------------------------------------------------------------


def _marginal(
    mean: Array, covariance: Array, columns: ex.Columns, incomplete: ex.Condition
) -> list[ex.Expression]:
    """log densities of the known cells, by elimination; a covariance that classes share is eliminated once."""
    groups = zip(np.split(mean, len(covariance)), covariance, strict=True)
    return [density for group in groups for density in _eliminate(*group, columns, incomplete)]


def _eliminate(
    mean: Array, covariance: Array, columns: ex.Columns, incomplete: ex.Condition
) -> list[ex.Expression]:
    """log densities of the known cells for classes of one covariance; computed for incomplete rows only."""
    d, k = len(columns), len(mean)
    matrix: list[list[ex.Expression]] = [[ex.Constant(float(v)) for v in row] for row in covariance]
    residuals = [[x - float(m) for x, m in zip(columns, row, strict=True)] for row in mean]
    terms: list[list[ex.Expression]] = [[] for _ in range(k)]
    for j in range(d):
        variance, missing = matrix[j][j], ex.IsMissing(columns[j])
        log_variance = ex.Function("log", variance)
        slopes = {i: _store(matrix[i][j] / variance, incomplete) for i in range(j + 1, d)}
        for c in range(k):
            residual = residuals[c][j]
            square = residual * residual / variance
            terms[c].append(known((square + log_variance + LOG_TWO_PI) * -0.5))
            for i, slope in slopes.items():
                updated = residuals[c][i] - slope * residual
                residuals[c][i] = _store(ex.Where(missing, residuals[c][i], updated), incomplete)
        for i in range(j + 1, d):
            for h in range(j + 1, i + 1):
                updated = matrix[i][h] - slopes[i] * matrix[h][j]
                matrix[i][h] = _store(ex.Where(missing, matrix[i][h], updated), incomplete)
    return [ex.total(class_terms) for class_terms in terms]


def _store(value: ex.Expression, condition: ex.Condition) -> ex.Once:
    """A value that is computed once, in rows where a condition is true."""
    return ex.Once(ex.Where(condition, value, ex.MISSING))


# -- Kernel densities on bins, levels and grids --------------------------------------------------------------


@log_densities.register
def _(family: families.KernelDensity, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    cells, layout = parameters["log_density"], family.layout
    if not layout.gridded:
        return sums_of_entries(cells, layout.levels, columns)
    tables = np.split(cells, np.cumsum(layout.levels)[:-1], axis=1)
    places = [_place(position, points) for position, points in zip(columns, layout.ordered, strict=True)]
    pairs = list(zip(tables, places, strict=True))
    return [ex.total(_on_grid(table, place, c) for table, place in pairs) for c in range(len(cells))]


class _GridPlace(NamedTuple):
    """The place of a position on a grid; see `calibayes.kernels.grids.corners`."""

    lower: ex.Expression
    """Number of the grid point below, or of the cell for positions beyond the grid."""
    share: ex.Expression
    """Weight of the grid point above in the linear interpolation."""
    log_tail: ex.Expression
    """Change of the log density beyond the grid."""


def _place(position: ex.Expression, points: int) -> _GridPlace:
    last = points - 1.0
    below, above = position < 0.0, ex.Constant(last) < position
    floor = ex.Once(ex.where(position < last, ex.Function("floor", position), last - 1.0))
    lower = ex.where(below, points, ex.where(above, points + 1, floor))
    share = ex.where(below, 0.0, ex.where(above, 0.0, position - floor))
    excess = ex.where(below, ex.Constant(0.0) - position, ex.where(above, position - last, 0.0))
    log_tail = ex.Function("log", excess / last + 1.0) * -3.0
    # Missing where the position is missing: a comparison with a missing position is false, not missing.
    known_lower = lower + position * 0.0
    return _GridPlace(ex.Once(known_lower), ex.Once(share), ex.Once(log_tail))


def _on_grid(table: Array, place: _GridPlace, c: int) -> ex.Expression:
    """The log density of class c: the density is linear between grid points, and that of a Lomax distribution beyond."""
    top = float(table.max())
    density = np.exp(table[c] - top)
    rise = np.append(np.diff(density[:-2]), [0.0, 0.0, 0.0])
    between = entry(density, place.lower) + entry(rise, place.lower) * place.share
    return known(ex.Function("log", between) + place.log_tail + top)


# -- Mixtures: the log of the weighted sum of the densities of a class's components --------------------------


@log_densities.register
def _(family: families.Mixture, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    densities = log_densities(family.family, parameters, columns)
    parts = [
        ex.Once(density + weight)
        for density, weight in zip(densities, parameters["log_weight"].tolist(), strict=True)
    ]
    classes = family.component_classes
    return [
        ex.log_sum_exp([parts[i] for i in np.flatnonzero(classes == c).tolist()])
        for c in range(len(family.layout.classes))
    ]


# -- Tree-augmented naive Bayes: tables of a column given its parent, with sums over missing values ----------
#
# If a column is missing, its levels are summed over (belief propagation, from the leaves to the roots): with below(b) the log
# probability of the known cells below it given its level b, it adds M(a) = log of the sum over b of p(b | a) e**below(b) for
# level a of its parent. If the parent is missing too, M(a) is part of the parent's below(a).


@log_densities.register
def _(family: families.Tree, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    densities: dict[int, ex.Expression] = {}
    for tree in family.class_trees:
        by_class = tree_densities(tree.with_probabilities(parameters), columns)
        densities |= dict(zip(tree.classes.tolist(), by_class, strict=True))
    return [densities[c] for c in range(len(family.layout.classes))]


@log_densities.register
def _(family: families.AveragedOneDependence, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    """Stars, each a tree, are averaged."""
    stars = [tree_densities(star, columns) for star in family.stars.with_probabilities(parameters)]
    return [ex.log_sum_exp([ex.Once(density) for density in by_star]) for by_star in zip(*stars, strict=True)]


@log_densities.register
def _(family: families.KDependence, parameters: Arrays, columns: ex.Columns) -> list[ex.Expression]:
    tables = family.tables
    if any(len(parents) > 1 for parents in tables.parents):
        raise TypeError(
            "its columns depend on two others each, whose missing values are not summed over in an expression: "
            "max_parents=1, or TreeAugmentedNB, can be exported"
        )
    parents = tuple(next(iter(of_column), -1) for of_column in tables.parents)
    tree = TreeProbabilities(parents, tables.order, tables.split(parameters["log_probability"]))
    return tree_densities(tree, columns)


def tree_densities(tree: TreeProbabilities, columns: ex.Columns) -> list[ex.Expression]:
    """log p(known cells | class) of the classes that share a tree."""
    cells = _cells(tree, columns)
    return [
        ClassDensity(tree, [table[c] for table in tree.tables], columns, cells).total()
        for c in range(len(tree.tables[0]))
    ]


def _cells(tree: TreeProbabilities, columns: ex.Columns) -> list[ex.Expression]:
    """The cell of each column in its table; missing where the column or its parent is."""
    return [
        columns[j] if parent < 0 else ex.Once(columns[parent] * float(tree.tables[j].shape[-1]) + columns[j])
        for j, parent in enumerate(tree.parents)
    ]


@dataclass(frozen=True)
class ClassDensity:
    """The log density of one class."""

    tree: TreeProbabilities
    tables: Sequence[Array]
    """log p(level | parent's level) of each column, (parent's levels or 1, levels)."""
    columns: ex.Columns
    cells: Sequence[ex.Expression]

    def total(self) -> ex.Expression:
        """log p(known cells)."""
        terms = [known(entry(table, cell)) for table, cell in zip(self.tables, self.cells, strict=True)]
        messages: dict[int, list[ex.Expression]] = {}
        for j in reversed(self.tree.order):
            if children := [child for child, parent in enumerate(self.tree.parents) if parent == j]:
                messages[j] = self._messages(j, children, messages)
                terms.append(self._summed_out(j, messages[j]))
        return ex.total(terms)

    def _messages(
        self, j: int, children: Sequence[int], messages: Mapping[int, ex.Columns]
    ) -> list[ex.Expression]:
        """M(a) of a missing column with children, for each level a of its parent."""
        levels = range(self.tables[j].shape[1])
        sums = [ex.total(self._from_child(child, b, messages) for child in children) for b in levels]
        below = [_store(value, ex.IsMissing(self.columns[j])) for value in sums]
        top = ex.Once(ex.Greatest(tuple(below)))
        shares = [ex.Once(ex.Function("exp", value - top)) for value in below]
        rows = np.exp(self.tables[j]).tolist()
        return [ex.Function("log", ex.weighted_sum(shares, row)) + top for row in rows]

    def _from_child(self, child: int, b: int, messages: Mapping[int, ex.Columns]) -> ex.Expression:
        """log probability of the known cells of a child and below, given level b of its parent."""
        of_level = entry(self.tables[child][b], self.columns[child])
        if child not in messages:
            return known(of_level)
        return ex.Where(ex.IsMissing(self.columns[child]), messages[child][b], of_level)

    def _summed_out(self, j: int, messages: Sequence[ex.Expression]) -> ex.Expression:
        """What a missing column adds if its parent is known; 0 otherwise."""
        nothing, parent = ex.Constant(0.0), self.tree.parents[j]
        added = messages[0]
        if parent >= 0:
            code = self.columns[parent]
            added = ex.Where(ex.IsMissing(code), nothing, choice(code, messages))
        return ex.Where(ex.IsMissing(self.columns[j]), added, nothing)


def choice(code: ex.Expression, values: Sequence[ex.Expression], first: int = 0) -> ex.Expression:
    """The expression at a code that is not missing, found by log2(size) comparisons."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    left, right = choice(code, values[:middle], first), choice(code, values[middle:], first + middle)
    return ex.Where(code < first + middle - 0.5, left, right)
