"""The protocol of encoders, and the optional abilities an encoder may have.

An encoder converts columns of a table into the matrix that a family reads: numbers, codes of levels or bins, indicator
columns. It is fitted to training rows and immutable afterwards: `fit` returns a new object, which encodes any table with
the same columns and decodes sampled rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

NewCodes: TypeAlias = Sequence[Array] | None
"""For each column the new code of each old code, (levels,), -1 for a level that was removed; None: no code changed."""


class Encoder(Protocol):
    """Encodes columns of a table. An encoder that accepts sparse tables has a class attribute ``sparse = True``."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Encoder:
        """This encoder fitted to the columns at ``indices`` of a table, of which it gets the summary.

        An encoder of single columns uses their summaries (`TableSummary.column`), which can be added up over the blocks
        of a table that is not in memory; an encoder of several columns at once uses the rows of `TableSummary.sample`.
        """

    def encode(self, table: Table) -> Array:
        """The encoded columns, (n, d)."""

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        """The columns of the table from encoded ones (n, d).

        Where several values have one code (a bin, pooled levels), one of them is drawn; without a generator a fixed
        value is taken, such as the midpoint of the bin. Raises ValueError if the encoding cannot be inverted.
        """

    def layout(self) -> Mapping[str, Any]:
        """Fields of `calibayes.core.protocols.Layout` that describe the encoded columns, besides classes and names."""

    def extend(self, table: Table) -> tuple[Encoder, NewCodes]:
        """This encoder with the levels of further rows added, and the new codes of the old levels."""

    def restricted_to(self, counts: Array) -> tuple[Encoder, NewCodes]:
        """This encoder without the levels whose count is 0, and the new codes; counts of all columns, (cells,)."""

    @property
    def data_dependence(self) -> str:
        """What in the encoder depends on the training rows other than through sums over rows; "" if nothing does.

        A clause for error messages, such as "bins of numbers are found in the training rows". If it is not empty, adding
        or removing rows would need a new fit: cross-validation by subtracting the sums of a fold is then refused.
        """

    def unite(self, other: Any) -> tuple[Encoder, NewCodes, NewCodes]:
        """An encoder with the levels of both, and the new codes of the levels of each.

        Raises ValueError if the two encode the same values differently (other bins, other scaling).
        """


@runtime_checkable
class HasRemarks(Protocol):
    """An encoder that describes its columns in a schema."""

    def remarks(self) -> Sequence[str]:
        """A short description of the encoding of each column, such as "12 levels"."""


@runtime_checkable
class ImputesTraining(Protocol):
    """An encoder that imputes missing values of training rows, and leaves them missing (NaN) in new rows.

    A model of complete training rows is trained in one pass, and integrates missing values out when it predicts.
    """

    def for_new_rows(self) -> Encoder:
        """The same encoder for the rows that a trained model predicts."""


@runtime_checkable
class Derived(Protocol):
    """An encoder whose encoded columns do not correspond one to one to the columns of the table."""

    sources: tuple[int, ...]
    """For each encoded column, the position (among the encoder's columns) of the column it was computed from."""


def verify_nested(inner: Encoder, indices: Sequence[int], *, is_codes: bool) -> Mapping[str, Any]:
    """The layout of a verified encoder inside of another one.

    Raises ValueError unless it is fitted to the columns at ``indices``, and encodes them as codes or as numbers.
    """
    fitted_to, name = getattr(inner, "indices", None), f"{type(inner).__name__} inside of another encoder"
    require(fitted_to == tuple(indices), f"{name} is fitted to other columns")
    layout, kind = inner.layout() if indices else {}, "codes" if is_codes else "numbers"
    encodes_codes = "levels" in layout and not layout.get("gridded", False)
    require(not indices or encodes_codes == is_codes, f"{name} must encode columns as {kind}")
    return layout


def is_same(left: Any, right: Any) -> bool:
    """Whether nested fields and arrays are equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return bool(np.array_equal(left, right))
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    if is_dataclass(left):
        return all(is_same(getattr(left, part.name), getattr(right, part.name)) for part in fields(left))
    return bool(left == right)


class FixedLayout:
    """Mixin of encoders whose encoded columns and codes are fixed by `fit`: further rows add or remove no levels."""

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None

    def restricted_to(self, counts: Array) -> tuple[Self, None]:
        return self, None


class DataIndependent(FixedLayout):
    """Mixin of encoders that encode a row in the same way whatever the training rows were."""

    data_dependence: ClassVar[str] = ""

    if TYPE_CHECKING:

        @property
        def indices(self) -> tuple[int, ...]: ...

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def unite(self, other: Self) -> tuple[Self, None, None]:
        return self, None, None
