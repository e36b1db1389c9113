"""What the kind "auto" chooses: the density of a column of numbers that gives held-out values the highest likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import logsumexp

from calibayes.core.notices import discarded_warnings
from calibayes.core.protocols import Array, Family, Layout
from calibayes.encoders.encoder import Encoder
from calibayes.families import NegativeBinomial
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array
from calibayes.tables.summary import ColumnSummary, TableSummary

FOLDS = 5
MOST_ROWS = 2**13
"""Rows of a column that are compared: of more, evenly spaced quantiles of each class."""

Density: TypeAlias = tuple[Family, Encoder]


class ColumnRows(NamedTuple):
    """Known values of a column with their classes, and the fold in which each is held out."""

    x: Array
    codes: Array
    fold: Array
    """(n,); -1 for rows that are always trained on, those of classes with fewer rows than folds."""
    k: int


def likeliest_kind(summary: TableSummary, j: int, densities: Mapping[str, Callable[[], Density]]) -> str:
    """The kind of the highest held-out log likelihood; the first where nothing can be compared.

    The values are divided into folds, at random within each class. A density competes if all values of the column lie in its
    support and it can be fitted. Densities are compared as probabilities of the values at the
    resolution of the column (`log_probabilities`).
    """
    first, column = next(iter(densities)), summary.column(j)
    if summary.codes is None or len(column.low) < 2:
        return first
    rows = rows_of(column)
    if (rows.fold < 0).all() or rows.x.min() == rows.x.max():
        return first
    with discarded_warnings(), np.errstate(all="ignore"):
        scores = {
            kind: held_out_log_likelihood(rows, *density())
            for kind, density in densities.items()
            if holds_all(density()[0], column)
        }
    return max(scores, key=lambda kind: scores[kind]) if scores else first


def rows_of(column: ColumnSummary) -> ColumnRows:
    """Rows with the weights of the classes: a row of weight w counts as w rows."""
    weights = column.class_weights[:, :-1]
    are_whole = bool((weights == np.floor(weights)).all())
    scale = 1.0 if are_whole else column.rows.sum() / max(weights.sum(), 1e-300)
    scale = min(scale, MOST_ROWS / max(weights.sum(), 1e-300))
    x, codes, fold = [], [], []
    for c, of_class in enumerate(weights.T * scale):
        size = round(of_class.sum())
        places = (np.arange(size) + 0.5) * (of_class.sum() / max(size, 1))
        x.append(column.values[np.searchsorted(np.cumsum(of_class)[:-1], places, side="right")])
        codes.append(np.full(size, c))
        order = np.random.default_rng(0).permutation(size)
        fold.append(order % FOLDS if size >= FOLDS else np.full(size, -1))
    all_x, all_codes, all_folds = (np.concatenate(part) for part in (x, codes, fold))
    return ColumnRows(all_x, all_codes, all_folds, weights.shape[1])


def holds_all(family: Any, column: ColumnSummary) -> bool:
    """Whether all values of a column have a density in a family."""
    if not hasattr(family, "in_support"):
        return True
    if not column.is_exact and isinstance(family, NegativeBinomial):
        return False  # of a cell of several values only the ends are known
    ends = np.stack([column.low, column.high], axis=1)
    return bool(family.in_support(ends.astype(np.float64)).all())


def held_out_log_likelihood(rows: ColumnRows, family: Family, encoder: Encoder) -> float:
    """The sum over all folds of log p(value | class) under the density of the other rows; -inf if it cannot be fitted."""
    values, place = np.unique(rows.x, return_inverse=True)
    total = 0.0
    try:
        for fold in range(FOLDS):
            known, new = (_counts(rows, place, chosen) for chosen in (rows.fold != fold, rows.fold == fold))
            logs = fitted_log_probabilities(values, known, family, encoder)
            total += float(np.sum(np.where(new > 0, new * logs, 0.0)))
    except (ValueError, FloatingPointError):
        return -np.inf
    return total if np.isfinite(total) else -np.inf


def _counts(rows: ColumnRows, place: Array, chosen: Array) -> Array:
    """Number of the chosen rows of each value and class, (values, k)."""
    counts = np.zeros((int(place.max()) + 1, rows.k))
    np.add.at(counts, (place[chosen], rows.codes[chosen]), 1.0)
    return counts


def fitted_log_probabilities(values: Array, counts: Array, family: Family, encoder: Encoder) -> Array:
    """Log probabilities of different values, ascending, under the density of rows with these counts, (values, k) each."""
    weight, table = counts.sum(axis=1), read_array(values[:, None])
    known = np.flatnonzero(weight)
    fitted = encoder.fit(summary_of(table.rows(known), weight[known]), [0])
    layout = Layout(tuple(map(str, range(counts.shape[1]))), ("column",), **fitted.layout())
    columns, bound = fitted.encode(table), family.bind(layout)
    statistics = bound.statistics(columns, counts)
    prepared = bound.prepare(statistics)
    density = prepared.log_density(columns, prepared.parameters(statistics))
    if isinstance(family, NegativeBinomial):
        return density
    if layout.levels and not layout.log_volume.any():  # probabilities of bins around one value each
        density = density - np.log(_bin_widths(values, columns[:, 0]))[:, None]
    return log_probabilities(density, values)


def _bin_widths(values: Array, codes: Array) -> Array:
    """For each value the width of its bin: the half distances to the neighbors of all values in it."""
    gaps = np.diff(values)
    widths = (np.append(gaps, gaps[-1]) + np.insert(gaps, 0, gaps[0])) / 2.0
    return np.bincount(codes, widths)[codes]


def log_probabilities(density: Array, values: Array) -> Array:
    """Log probabilities of values at the resolution of their column, from log densities, (values, k) each.

    A density is multiplied by the smallest distance between two values. Where all values of a class then have a probability
    above 1, they are divided by it: a narrow density of rounded values, or one that is cut off at 0, has no advantage.
    """
    logs = density + np.log(np.diff(values).min())
    return np.asarray(logs - np.maximum(logsumexp(logs, axis=0), 0.0))
