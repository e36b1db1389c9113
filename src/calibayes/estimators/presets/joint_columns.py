"""One family over all binned and categorical columns, beside families of further kinds: what such presets share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from calibayes.core.protocols import Family
from calibayes.encoders.bins import bins_named
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.recipe import Specification
from calibayes.estimators.interface.parameters import whole_number
from calibayes.estimators.presets.kinds import (
    ColumnKinds,
    KindChoices,
    OfKind,
    check_kinds,
    kinds_schema,
    specifications,
)
from calibayes.estimators.presets.tabular import BINS_WITHOUT_DISCRETIZE, DEFAULT_BINS
from calibayes.estimators.presets.tree_columns import Positions
from calibayes.families.tree.structures import Edges
from calibayes.tables.summaries.summary import TableSummary
from calibayes.tables.table import Table

ALONE = "without parent"
"""Name of the family over further columns, if there are too many for one family."""
JOINT_KINDS = ("binned", "categorical")
"""Kinds of columns that are modeled jointly; columns of other kinds are independent of them given the class."""


@dataclass(frozen=True)
class BinnedOrCategorical:
    """The columns that are modeled jointly."""

    binned: OfKind
    categorical: OfKind

    def __call__(self, table: Table | TableSummary) -> list[int]:
        return sorted([*self.binned(table), *self.categorical(table)])


def chosen_bins(discretize: str | Encoder | None, n_bins: int | None, default: Encoder) -> Encoder:
    """The encoder of binned columns that parameters choose."""
    if discretize is None and n_bins is not None:
        raise ValueError(BINS_WITHOUT_DISCRETIZE)
    most = whole_number("n_bins", DEFAULT_BINS if n_bins is None else n_bins, 1)
    return default if discretize is None else bins_named(discretize, most)


def checked_edges(edges: Edges | None, default: Edges) -> Edges:
    """The given criterion for edges. Raises ValueError if it is none."""
    chosen = default if edges is None else edges
    if isinstance(chosen, type) or not hasattr(chosen, "allowed"):
        raise ValueError(
            "edges must be an object such as AllEdges(), InformativeEdges() or SignificantEdges(), "
            f"got {edges!r}"
        )
    return chosen


def joint_specifications(
    name: str, family: Family, kinds: Any, choices: KindChoices
) -> Sequence[tuple[Any, ...]]:
    """A family over the binned and categorical columns, and families of the other kinds that are given."""
    given = check_kinds(kinds)
    others = [s for s in specifications(given, "binned", choices) if s[0] not in JOINT_KINDS]
    binned, categorical = (OfKind(kind, given, "binned") for kind in JOINT_KINDS)
    encoder = ByColumnType(numbers=choices.bins, others=choices.levels, binned=binned)
    return [(name, family, BinnedOrCategorical(binned, categorical), encoder), *others]


def with_most_relevant(
    specification: Specification,
    table: TableSummary,
    choose: Callable[[Sequence[int], Encoder], list[int] | None],
) -> Specification:
    """The specification with the first family over the chosen columns only; the others depend on the class alone.

    ``choose`` gets positions and encoder of the columns; None if all of them fit.
    """
    (name, family, selection, encoder), *others = specification.families
    positions = selection(table)
    chosen = choose(positions, encoder)
    if chosen is None:
        return specification
    rest = tuple(j for j in positions if j not in set(chosen))
    families = [
        (name, family, Positions(tuple(chosen)), encoder),
        (ALONE, replace(family, max_cells=0), Positions(rest), encoder),
    ]
    return specification._replace(families=[*families, *others])


def joint_schema(
    name: str, kinds: ColumnKinds | None, binding: ColumnBinding, summary: TableSummary
) -> Schema:
    """The schema, in which binned and categorical columns of the joint family are apart."""
    encoders, chosen = dict(binding.encoders), dict(binding.chosen)
    for family in [family for family in (name, ALONE) if family in encoders]:
        by_type, positions = cast(ByColumnType, encoders.pop(family)), chosen.pop(family)
        for kind, part, places in by_type.by_side(JOINT_KINDS):
            key = kind if family == name else f"{kind}, {family}"
            encoders[key], chosen[key] = part, tuple(positions[place] for place in places)
    return kinds_schema(check_kinds(kinds), summary, encoders, chosen)
