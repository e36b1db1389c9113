"""Class scores of rows of which only some columns are known.

The columns that are left out are integrated out of p(x, class): log p(class | known columns), up to a term of the row.
This is what a missing value means to a model that did not learn from missing values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import AllowsMissing, ConditionalTerms, Reasons
from calibayes.core.protocols import Array
from calibayes.encoders import Leaves, PrincipalComponents
from calibayes.encoders.encoder import Derived
from calibayes.families import Categorical
from calibayes.families.joint_model import PRIOR
from calibayes.model.checked_rows import new_table
from calibayes.model.fitted import Fitted
from calibayes.tables.table import Table

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


# -- Class scores of a fitted model when only some columns are known, from which it is explained -------------


def marginals(fitted: Fitted, table: Table) -> Marginals:
    """log p(known columns, class) of the rows of a table, up to a term that all classes share: a part for each family.

    Raises ValueError if columns cannot be left out of a family.
    """
    parameters, encoded = fitted.learned(), fitted.binding.encode(table)
    parts = [_family_part(fitted, name, table, encoded[name]) for name in fitted.model.families]
    return Marginals(fitted.binding.names, parameters[PRIOR]["log_probability"], tuple(parts))


def _family_part(fitted: Fitted, name: str, table: Table, encoded: Array) -> Part:
    family, parameters = fitted.model.families[name], fitted.learned()[name]
    encoder, columns = fitted.binding.encoders[name], fitted.binding.chosen[name]
    if isinstance(encoder, PrincipalComponents):

        def scores(sets: Array) -> Array:
            rows = encoder.encode_known(table, sets)
            return np.asarray(family.log_density(rows, parameters).reshape(len(sets), table.n, -1))

        return JointColumns(columns, table.n, scores)
    if isinstance(encoder, Leaves) and isinstance(family, Categorical):
        mass = family.occurrences(fitted.data_statistics[name])
        path_terms, constant = encoder.path_terms(table, parameters["log_probability"], mass)
        return ColumnSum(columns, path_terms, constant)
    sources = np.array(encoder.sources if isinstance(encoder, Derived) else range(len(columns)))
    terms = family.terms(encoded, parameters) if isinstance(family, Reasons) else None
    if terms is not None:
        if not np.array_equal(sources, np.arange(len(columns))):
            terms = np.stack([terms[:, :, sources == j].sum(axis=2) for j in range(len(columns))], axis=2)
        return ColumnSum(columns, terms)
    if not isinstance(family, AllowsMissing):
        raise PartNeedsAllColumns(
            f"family {name!r} ({type(family).__name__}) cannot be explained: its log density is no sum over columns, "
            "and it cannot leave columns out as missing values"
        )

    def scores_of_sets(sets: Array) -> Array:
        rows = known_cells(encoded, sets[:, sources])
        return np.asarray(family.log_density(rows, parameters).reshape(len(sets), len(encoded), -1))

    if not isinstance(family, ConditionalTerms):
        return JointColumns(columns, len(encoded), scores_of_sets)
    terms_of = partial(family.conditional_terms, encoded, parameters)
    return ConditionalColumns(columns, len(encoded), scores_of_sets, terms_of, sources)


@dataclass(frozen=True)
class ConditionalColumns(JointColumns):
    """The same for a family that computes the density of each column given those before it.

    Attributes
    ----------
    terms : function
        Terms of the encoded columns, (n, k, encoded columns), in the order in which these are given.
    sources : (encoded columns,) array
        The position, among ``columns``, of the column that each encoded one was derived from.
    """

    terms: Callable[[Array], Array]
    sources: Array

    def along(self, order: Array) -> Iterator[Array]:
        by_column = [np.flatnonzero(self.sources == j) for j in order]
        terms = self.terms(np.concatenate(by_column))
        scores = np.zeros(terms.shape[:2])
        for positions in by_column:
            scores = scores + terms[:, :, positions].sum(axis=2)
            yield scores


def refuse_marginals(self: Any, X: Any) -> Marginals:
    """log p(class | known columns) of the rows, up to a term of the row, for any known columns.

    Raises ValueError for a classifier that cannot leave out columns.
    """
    raise ModelNeedsAllColumns(f"{type(self).__name__} cannot leave out columns")


def marginals_of(self: Any, X: Any) -> Marginals:
    """log p(known columns, class) of the rows before any temperature, up to a term that all classes share."""
    check_is_fitted(self, "fitted_")
    self.fitted_.learned()
    return marginals(self.fitted_, new_table(self, X))
