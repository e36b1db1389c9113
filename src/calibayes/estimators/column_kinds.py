"""Kinds of columns: which family models a column, and with which encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from calibayes.core.protocols import Family
from calibayes.core.verify import require
from calibayes.encoders.bins import AdaptiveBins, KMeansBins
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Counts, Flags, Numbers
from calibayes.encoders.schema import CATEGORICAL, NUMERIC, Schema, content_type, default_kind, schema
from calibayes.families import (
    Bernoulli,
    Categorical,
    Diagonal,
    Gamma,
    Gaussian,
    KernelDensity,
    Multinomial,
    OverBins,
    Poisson,
)
from calibayes.model.binding import position
from calibayes.tables.conversion import IDENTIFIER
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

ColumnKinds: TypeAlias = Mapping[str | int, str]
"""Name or position of a column -> its kind."""


@dataclass(frozen=True)
class KindChoices:
    """Families and encoders that the parameters of an estimator choose for the kinds."""

    smoothing: Mapping[str, Any] = field(default_factory=lambda: {"alpha": 1.0})
    """``alpha`` or ``prior`` of families that count."""
    bins: Encoder = field(default_factory=KMeansBins)
    levels: Encoder = field(default_factory=Levels)
    kernel: Family = field(default_factory=lambda: KernelDensity(OverBins()))
    cells: Encoder = field(default_factory=AdaptiveBins)
    """The family of kernel densities, and the encoder of its columns."""


class Kind(NamedTuple):
    """The family and the encoder of a kind, and which contents of a column it accepts."""

    family: Callable[[KindChoices], Family]
    encoder: Callable[[KindChoices], Encoder]
    holds: tuple[str, ...] = ("numbers",)


KINDS: dict[str, Kind] = {
    "gaussian": Kind(lambda choices: Gaussian(Diagonal(), prior="auto"), lambda choices: Numbers()),
    "kernel": Kind(lambda choices: choices.kernel, lambda choices: choices.cells),
    "binned": Kind(lambda choices: Categorical(**choices.smoothing), lambda choices: choices.bins),
    "categorical": Kind(
        lambda choices: Categorical(**choices.smoothing),
        lambda choices: choices.levels,
        ("numbers", "booleans", "text", "categories", "dates"),
    ),
    "multinomial": Kind(lambda choices: Multinomial(alpha=1.0), lambda choices: Counts()),
    "poisson": Kind(lambda choices: Poisson(prior=Gamma()), lambda choices: Counts()),
    "bernoulli": Kind(
        lambda choices: Bernoulli(**choices.smoothing),
        lambda choices: Flags(threshold=None),
        ("numbers", "booleans"),
    ),
}
"""Name -> kind, in the order of the families."""


def check_kinds(given: Any) -> ColumnKinds:
    """The given kinds. Raises ValueError if one is unknown."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"kinds must be a mapping from columns to kinds, got {given!r}")
    for column, kind in given.items():
        if kind not in KINDS and kind != IDENTIFIER:
            raise ValueError(
                f"unknown kind {kind!r} of column {column!r}; the kinds are {', '.join(KINDS)}, {IDENTIFIER}"
            )
    return given


def given_columns(given: ColumnKinds, table: Table | TableSummary) -> dict[int, str]:
    """Position -> kind. Raises ValueError if a column is given twice."""
    kinds: dict[int, str] = {}
    for column, kind in given.items():
        j = position(column, table)
        if kinds.setdefault(j, kind) != kind:
            raise ValueError(f"column {table.names[j]!r} is given as {kinds[j]!r} and as {kind!r}")
    return kinds


def given_kinds(given: ColumnKinds, table: Table | TableSummary) -> dict[int, str]:
    """Position -> kind. Raises ValueError if a kind cannot model the content of its column."""
    kinds = given_columns(given, table)
    for j, kind in kinds.items():
        if kind != IDENTIFIER and (held := content_type(table, j)) not in KINDS[kind].holds:
            raise ValueError(
                f"column {table.names[j]!r} cannot be {kind!r}: it holds {held}, not {KINDS[kind].holds[0]}"
            )
    return kinds


@dataclass(frozen=True)
class OfKind:
    """The columns of one kind, as a selection for a family."""

    kind: str
    given: ColumnKinds
    numeric: str
    """The kind of numeric columns without a given kind."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        check_kinds(self.given)
        for kind in (self.kind, self.numeric):
            require(kind in KINDS, f"unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")

    def __call__(self, table: Table | TableSummary) -> list[int]:
        natural = {NUMERIC: self.numeric, CATEGORICAL: "categorical"}
        given = given_kinds(self.given, table)
        kinds = {j: natural[default_kind(table, j)] for j in table.used} | given
        return sorted(j for j, kind in kinds.items() if kind == self.kind)


def specifications(given: ColumnKinds, numeric: str, choices: KindChoices) -> list[tuple[Any, ...]]:
    """One family and encoder for each kind in use, over the columns of that kind."""
    used = {numeric, "categorical", *given.values()}
    return [
        (name, kind.family(choices), OfKind(name, given, numeric), kind.encoder(choices))
        for name, kind in KINDS.items()
        if name in used
    ]


def kinds_schema(
    given: ColumnKinds,
    summary: TableSummary,
    encoders: Mapping[str, Encoder],
    chosen: Mapping[str, tuple[int, ...]],
) -> Schema:
    """The schema of a table whose columns were bound by kind."""
    return schema(summary, encoders, chosen, frozenset(given_kinds(given, summary)))
