"""How probable each cell of a row is, given the other cells, and the held-out rows that such scores are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array
from calibayes.kernels.event_counts import is_sparse
from calibayes.model.table_inputs import on_numpy
from calibayes.tables.table import Table

ENOUGH = 50
"""Held-out rows with the same missing values, for a row to be compared with these alone."""

DIGITS = 6
"""Decimals of log densities that are compared."""
UNREAD = 1e-12
"""Difference of log densities below which a cell was not read by the model."""


@dataclass(frozen=True)
class SurpriseReference:
    """Scores of rows that a model was not trained on.

    Attributes
    ----------
    log_density : (m,) array
        log p(x).
    cells : (m, d) array
        log p(x) minus log p(x without the cell); NaN for missing cells. Without columns for a sparse table.
    known : (m, d) booleans
        The cells that are not missing.
    weight : (m,) array
    """

    log_density: Array
    cells: Array
    known: Array
    weight: Array

    def verify(self) -> None:
        """Raises ValueError if the arrays, which may come from a model file, do not fit together."""
        m = len(require_array("log_density", self.log_density, (None,)))
        require_array("cells", self.cells, (m, None))
        require_array("known", self.known, (m, None), "b")
        require_array("weight", self.weight, (m,))
        require(m > 0 and bool((self.weight > 0).all()), "weights of held-out rows must be positive")

    def p_values(self, log_density: Array, known: Array) -> Array:
        """p-values of rows by their log density, (n,).

        A row with missing values is compared with held-out rows that lack the same columns, if there are 50 of them;
        otherwise log densities divided by the number of known columns are compared, with all held-out rows.
        """
        patterns, codes = np.unique(np.concatenate([self.known, known]), axis=0, return_inverse=True)
        old, new = np.split(codes.reshape(-1), [len(self.known)])
        p_values = np.empty(len(log_density))
        for code in np.unique(new):
            rows, same = new == code, old == code
            if same.sum() >= min(ENOUGH, len(old)):
                p_values[rows] = conformal(self.log_density[same], self.weight[same], log_density[rows])
            else:
                scaled = self.log_density / np.maximum(self.known.sum(axis=1), 1)
                each = log_density[rows] / max(int(patterns[code].sum()), 1)
                p_values[rows] = conformal(scaled, self.weight, each)
        return p_values

    def column_p_values(self, cells: Array) -> Array:
        """p-values of cells, (n, d); NaN where a cell is missing."""
        found = np.full(cells.shape, np.nan)
        for j, (old, new) in enumerate(zip(self.cells.T, cells.T, strict=True)):
            known, rows = ~np.isnan(old), ~np.isnan(new)
            found[rows, j] = conformal(old[known], self.weight[known], new[rows])
        return found


def conformal(old: Array, weight: Array, new: Array) -> Array:
    """(1 + weight of old scores that are no higher) / (1 + weight of all), weights of mean one: a p-value of each new score."""
    if not len(old):
        return np.ones(len(new))
    order = np.argsort(old)
    scaled = weight[order] / weight.mean()
    cumulated = np.concatenate([[0.0], np.cumsum(scaled)])
    return np.asarray((1 + cumulated[np.searchsorted(old[order], new, side="right")]) / (1 + cumulated[-1]))


def densities(model: Any, table: Table) -> Array:
    """log p(x), (n,), rounded: equal rows may differ in the last digits if they are computed beside other rows."""
    return np.round(np.asarray(on_numpy(model.score_samples(table)), dtype=np.float64), DIGITS)


def cell_scores(model: Any, table: Table, log_density: Array) -> Array:
    """log p(x) minus log p(x without the cell), (n, d); NaN for missing cells and for columns that cannot be left out.

    Models take a level that training rows did not have for a missing value, so that the difference is 0: its score is -inf.
    """
    scores = np.full((table.n, len(table.source_names)), np.nan)
    for j in used_sources(table):
        try:
            difference = log_density - densities(model, without_column(table, j))
        except ValueError:  # of a family that cannot model missing values
            continue
        difference = np.round(difference, DIGITS)
        is_unseen = (np.abs(difference) < UNREAD) & (not table.is_numeric(j))
        scores[:, j] = np.where(is_unseen, -np.inf, difference)
    return np.where(known_cells(table), scores, np.nan)


def used_sources(table: Table) -> list[int]:
    """Positions of the given columns that are not identifiers; none of a sparse table, which has no missing values."""
    if not isinstance(table.content, tuple) and is_sparse(table.content):
        return []
    return [j for j in table.used if not table.is_derived(j)]


def known_cells(table: Table) -> Array:
    """Which cells are not missing, (n, d) booleans, of the columns as they were given."""
    known = np.ones((table.n, len(table.source_names)), dtype=bool)
    for j in used_sources(table):
        known[:, j] = ~table.missing_mask(j)
    return known


def without_column(table: Table, j: int) -> Table:
    """The table with one column missing, and with it what was derived from it."""
    name = table.names[j]
    sources = {} if table.conversion is None else table.conversion.sources
    blank = [i for i, other in enumerate(table.names) if other == name or sources.get(other) == name]
    originals = {i: column for i, column in table.originals.items() if i not in blank}
    if isinstance(table.content, tuple):
        columns = enumerate(table.content)
        content: Any = tuple(_missing_like(table.column(i)) if i in blank else c for i, c in columns)
    else:
        missing = _missing_like(table.content[:, 0])
        content = table.content.astype(missing.dtype)
        content[:, blank] = missing[:, None]
    changed = replace(table, content=content, originals=originals)
    return replace(changed, distinct_cache={}, missing_cache={}, cache=None)


def _missing_like(column: Array) -> Array:
    """A column of missing values: NaN of the type of floats, NaN for integers, NaT for dates, None otherwise."""
    if column.dtype.kind in "fiu":
        return np.full(len(column), np.nan, column.dtype if column.dtype.kind == "f" else np.float64)
    if column.dtype.kind in "mM":
        return np.full(len(column), "NaT", column.dtype)
    return np.full(len(column), None, dtype=object)
