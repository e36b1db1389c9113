"""Class scores of rows of which only some columns are known.

The columns that are left out are integrated out of p(x, class): log p(class | known columns), up to a term of the row.
This is what a missing value means to a model that did not learn from missing values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array

ROWS_AT_ONCE = 1024
"""Rows, times sets of columns, that are computed at once: a call for each set would be slow for few rows."""


class PartNeedsAllColumns(ValueError):
    """A family or a member of an ensemble cannot leave out columns, so that there are no `Marginals`."""


class ModelNeedsAllColumns(TypeError):
    """A kind of model that cannot leave out columns: it has no `Marginals`."""


NEEDS_ALL_COLUMNS = (PartNeedsAllColumns, ModelNeedsAllColumns)


class Part(Protocol):
    """A part of the class scores that depends on some columns only."""

    @property
    def columns(self) -> Sequence[int]:
        """Positions of these columns in the table."""

    def scores(self, present: Array) -> Array:
        """The part with some of its columns, (len(columns),) booleans: (n, k)."""

    def along(self, order: Array) -> Iterator[Array]:
        """The part with the first column of an order, with the first two, and so on, (n, k) each."""


@dataclass(frozen=True)
class ColumnSum:
    """A sum over columns, each with a term of its own: columns that are independent given the class.

    Attributes
    ----------
    columns : sequence of int
    terms : (n, k, len(columns)) array
    constant : (k,) array or 0
        The sum without any column.
    """

    columns: Sequence[int]
    terms: Array
    constant: Array | float = 0.0

    def scores(self, present: Array) -> Array:
        return np.asarray(self.terms[:, :, present].sum(axis=2) + self.constant)

    def along(self, order: Array) -> Iterator[Array]:
        scores = np.zeros(self.terms.shape[:2]) + self.constant
        for j in order:
            scores = scores + self.terms[:, :, j]
            yield scores


@dataclass(frozen=True)
class JointColumns:
    """A function of several columns that is no sum over them.

    Attributes
    ----------
    columns : sequence of int
    n : int
        Number of rows.
    function : callable
        Sets of columns that are present, (sets, len(columns)) booleans -> scores, (sets, n, k).
    """

    columns: Sequence[int]
    n: int
    function: Callable[[Array], Array]

    def scores(self, present: Array) -> Array:
        return np.asarray(self.function(present[None])[0])

    def along(self, order: Array) -> Iterator[Array]:
        leading = np.argsort(order) <= np.arange(len(order))[:, None]
        step = max(ROWS_AT_ONCE // max(self.n, 1), 1)
        for start in range(0, len(order), step):
            yield from self.function(leading[start : start + step])


def known_cells(x: Array, present: Array) -> Array:
    """Rows x (n, d) once for each set of columns that are present, (sets, d) booleans: (sets * n, d).

    Other cells are missing: NaN among numbers, -1 among codes.
    """
    missing = np.asarray(np.nan if x.dtype.kind == "f" else -1, x.dtype)
    return np.where(present[:, None, :], x, missing).reshape(-1, x.shape[1])


@dataclass(frozen=True)
class Marginals:
    """log p(class | known columns) of the rows of a table, up to a term of the row, for any known columns.

    Attributes
    ----------
    names : tuple of str
        The d columns of the table.
    prior : (k,) array
    parts : tuple of Part
        Parts over disjoint columns; the prior and the parts add up.
    """

    names: tuple[str, ...]
    prior: Array
    parts: tuple[Part, ...]

    def scores(self, present: Array) -> Array:
        """The scores with some columns of the table, (d,) booleans: (n, k)."""
        return np.asarray(self.prior + sum(part.scores(present[list(part.columns)]) for part in self.parts))

    def along(self, order: Array) -> Iterator[Array]:
        """The scores with the first column of an order of all columns, with the first two, and so on, (n, k) each."""
        current = [part.scores(np.zeros(len(part.columns), dtype=bool)) for part in self.parts]
        owner = {j: number for number, part in enumerate(self.parts) for j in part.columns}
        paths = [part.along(_order_within(order, part.columns)) for part in self.parts]
        for j in order.tolist():
            if j in owner:
                current[owner[j]] = next(paths[owner[j]])
            yield np.asarray(self.prior + sum(current))


def _order_within(order: Array, columns: Sequence[int]) -> Array:
    """The order of some columns, as positions among them."""
    place = {j: position for position, j in enumerate(columns)}
    return np.array([place[j] for j in order.tolist() if j in place], dtype=int)
