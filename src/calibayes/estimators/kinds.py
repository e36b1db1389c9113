"""Kinds of columns: which family models a column, and through which encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from calibayes.core.protocols import Family
from calibayes.encoders.bins import AdaptiveBins, KMeansBins
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Counts, Encoder, Flags, Numbers
from calibayes.encoders.schema import CATEGORICAL, NUMERIC, content, natural_kind
from calibayes.estimators.columns import position
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
from calibayes.tables.read import Table

Given: TypeAlias = Mapping[str | int, str]
"""Name or position of a column -> its kind."""


@dataclass(frozen=True)
class Choices:
    """What an estimator's parameters say to all kinds."""

    smoothing: Mapping[str, Any] = field(default_factory=lambda: {"alpha": 1.0})
    """``alpha`` or ``prior`` of families that count."""
    bins: Encoder = field(default_factory=KMeansBins)
    levels: Encoder = field(default_factory=Levels)
    kernel: Family = field(default_factory=lambda: KernelDensity(OverBins()))
    cells: Encoder = field(default_factory=AdaptiveBins)
    """The family of kernel densities, and what its columns lie on."""


class Kind(NamedTuple):
    """How a kind makes its family and its encoder, and what its columns may hold."""

    family: Callable[[Choices], Family]
    encoder: Callable[[Choices], Encoder]
    holds: tuple[str, ...] = ("numbers",)


KINDS: dict[str, Kind] = {
    "gaussian": Kind(lambda choices: Gaussian(Diagonal(), prior="auto"), lambda choices: Numbers()),
    "kernel": Kind(lambda choices: choices.kernel, lambda choices: choices.cells),
    "binned": Kind(lambda choices: Categorical(**choices.smoothing), lambda choices: choices.bins),
    "categorical": Kind(
        lambda choices: Categorical(**choices.smoothing),
        lambda choices: choices.levels,
        ("numbers", "booleans", "text", "categories"),
    ),
    "multinomial": Kind(lambda choices: Multinomial(alpha=1.0), lambda choices: Counts()),
    "poisson": Kind(lambda choices: Poisson(prior=Gamma()), lambda choices: Counts()),
    "bernoulli": Kind(
        lambda choices: Bernoulli(**choices.smoothing),
        lambda choices: Flags(threshold=None),
        ("numbers", "booleans"),
    ),
}
"""Name -> kind, in the order of the families. A new kind is one more entry."""


def check_kinds(given: Any) -> Given:
    """The kinds that a person gave, all of them known."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"kinds must be a mapping from columns to kinds, got {given!r}")
    for column, kind in given.items():
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r} of column {column!r}; the kinds are {', '.join(KINDS)}")
    return given


def given_kinds(given: Given, table: Table) -> dict[int, str]:
    """Position -> kind, each such that the kind can read the column."""
    found: dict[int, str] = {}
    for column, kind in given.items():
        j = position(column, table)
        if found.setdefault(j, kind) != kind:
            raise ValueError(f"column {table.names[j]!r} is said to be {found[j]!r} and {kind!r}")
        if (held := content(table, j)) not in KINDS[kind].holds:
            raise ValueError(
                f"column {table.names[j]!r} cannot be {kind!r}: it holds {held}, not {KINDS[kind].holds[0]}"
            )
    return found


@dataclass(frozen=True)
class OfKind:
    """The columns of one kind: a selection that a family is bound to."""

    kind: str
    given: Given
    numeric: str
    """The kind of numbers that nobody gave another one."""

    def __call__(self, table: Table) -> list[int]:
        natural = {NUMERIC: self.numeric, CATEGORICAL: "categorical"}
        told = given_kinds(self.given, table)
        kinds = [told.get(j, natural[natural_kind(table, j)]) for j in range(len(table.names))]
        return [j for j, kind in enumerate(kinds) if kind == self.kind]


def specifications(given: Given, numeric: str, choices: Choices) -> list[tuple[Any, ...]]:
    """One family and encoder for each kind that is in use, over the columns of that kind."""
    used = {numeric, "categorical", *given.values()}
    return [
        (name, kind.family(choices), OfKind(name, given, numeric), kind.encoder(choices))
        for name, kind in KINDS.items()
        if name in used
    ]
