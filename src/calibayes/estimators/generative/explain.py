"""Class scores of a fitted model when only some columns are known, from which it is explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.abilities import AllowsMissing, ConditionalTerms, Reasons
from calibayes.core.protocols import Array, Arrays, Family
from calibayes.encoders.encoder import Derived, MixesColumns, SplitsColumns
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.interface.marginals import (
    ColumnSum,
    JointColumns,
    Marginals,
    Part,
    PartNeedsAllColumns,
    known_cells,
)
from calibayes.families import Categorical
from calibayes.families.model import PRIOR
from calibayes.tables.table import Table


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
    if isinstance(encoder, MixesColumns):

        def scores(sets: Array) -> Array:
            rows = encoder.encode_known(table, sets)
            return np.asarray(family.log_density(rows, parameters).reshape(len(sets), table.n, -1))

        return JointColumns(columns, table.n, scores)
    if isinstance(encoder, SplitsColumns) and isinstance(family, Categorical):
        mass = family.occurrences(fitted.data_statistics[name])
        path_terms, constant = encoder.path_terms(table, parameters["log_probability"], mass)
        return ColumnSum(columns, path_terms, constant)
    sources = np.array(encoder.sources if isinstance(encoder, Derived) else range(len(columns)))
    terms = family.terms(encoded, parameters) if isinstance(family, Reasons) else None
    if terms is not None:
        return ColumnSum(columns, _sums_by_source(terms, sources, len(columns)))
    if not isinstance(family, AllowsMissing):
        raise PartNeedsAllColumns(
            f"family {name!r} ({type(family).__name__}) cannot be explained: its log density is no sum over columns, "
            "and it cannot leave columns out as missing values"
        )
    return FamilyColumns(columns, family, parameters, encoded, sources)


def _sums_by_source(terms: Array, sources: Array, d: int) -> Array:
    """The terms of encoded columns, (n, k, encoded), summed by the column that each was derived from, (n, k, d)."""
    if np.array_equal(sources, np.arange(d)):
        return terms
    return np.stack([terms[:, :, sources == j].sum(axis=2) for j in range(d)], axis=2)


@dataclass(frozen=True)
class FamilyColumns:
    """log p(known columns | class) of a family whose columns are dependent given the class.

    Attributes
    ----------
    columns : sequence of int
        Positions in the table.
    family, parameters
    encoded : (n, encoded columns) array
    sources : (encoded columns,) array
        The position, among ``columns``, of the column that each encoded one was derived from.
    """

    columns: Sequence[int]
    family: Family
    parameters: Arrays
    encoded: Array
    sources: Array

    def scores(self, present: Array) -> Array:
        return np.asarray(self._scores_of_sets(present[None])[0])

    def _scores_of_sets(self, present: Array) -> Array:
        rows = known_cells(self.encoded, present[:, self.sources])
        scores = self.family.log_density(rows, self.parameters)
        return np.asarray(scores.reshape(len(present), len(self.encoded), -1))

    def along(self, order: Array) -> Iterator[Array]:
        if not isinstance(self.family, ConditionalTerms):
            yield from JointColumns(self.columns, len(self.encoded), self._scores_of_sets).along(order)
            return
        by_column = [np.flatnonzero(self.sources == j) for j in order]
        terms = self.family.conditional_terms(self.encoded, self.parameters, np.concatenate(by_column))
        scores = np.zeros(terms.shape[:2])
        for positions in by_column:
            scores = scores + terms[:, :, positions].sum(axis=2)
            yield scores
