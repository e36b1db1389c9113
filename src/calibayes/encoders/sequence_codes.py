"""A column of sequences (strings, lists of symbols) as codes of symbols, one column of codes for each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns
from calibayes.encoders.encoder import NewCodes
from calibayes.kernels.dispatch import code_type
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table, distinct_values, is_missing

# -- Lists as text: a table holds one value in a cell, and text passes every kind of table, file and cache ------------

END, GAP = "\x1f", "\x00"
"""Every item of a list is followed by a unit separator; a missing item is a null character."""
LONGEST = 2**20
"""Most symbols of a sequence."""
CONTAINERS = (list, tuple, np.ndarray)


def item_text(item: Any) -> str:
    """An item of a list as text; whole numbers are symbols, other numbers are none."""
    if is_missing(item):
        return GAP
    if isinstance(item, float | np.floating) and not float(item).is_integer():
        raise ValueError(
            f"a sequence holds the number {item!r}, which is no symbol: cut numbers into bins and name these"
        )
    if not isinstance(item, str | bool | np.bool_ | int | float | np.integer | np.floating):
        raise ValueError(
            f"a sequence holds {item!r}, a {type(item).__name__}: its items must be texts or whole numbers"
        )
    text = (
        item
        if isinstance(item, str)
        else str(int(item))
        if not isinstance(item, bool | np.bool_)
        else str(item)
    )
    if END in text or GAP in text:
        raise ValueError(
            f"a sequence holds {item!r}: the characters {END!r} and {GAP!r} are used to store lists"
        )
    return text


def sequence_text(cell: Any) -> Any:
    """A list as text; texts and missing cells unchanged."""
    if isinstance(cell, CONTAINERS) or type(cell).__module__.partition(".")[0] in ("polars", "pyarrow"):
        return "".join(item_text(item) + END for item in cell)
    return cell


def sequences_as_text(X: Any) -> Any:
    """A table whose lists are texts: X is a data frame, a column, an array, or a list of sequences.

    A list, whose items are strings or lists, and an array or column with one sequence in each entry, are one column.
    """
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        lists = [series for series in frame.iter_columns() if _holds_lists(series)]
        return frame.with_columns(*map(_text_series, lists)).to_native() if lists else X
    if nw.dependencies.is_into_series(X):
        X = nw.from_native(X, series_only=True).to_list()
    if isinstance(X, list | tuple):
        return _one_column(X)
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return _one_column(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return np.array([[sequence_text(cell) for cell in row] for row in X], dtype=object).reshape(X.shape)
    return X


def _one_column(cells: Sequence[Any] | Array) -> Array:
    """Cells as an array of one column of objects, (n, 1)."""
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = [sequence_text(cell) for cell in cells]
    return column


def _holds_lists(series: Any) -> bool:
    if series.dtype.is_nested():
        return True
    if not isinstance(series.dtype, nw.Object | nw.Unknown):
        return False
    return any(isinstance(cell, CONTAINERS) for cell in series.to_list())


def _text_series(series: Any) -> Any:
    """A column of lists as one of text."""
    cells = [
        None if not isinstance(cell, CONTAINERS) and is_missing(cell) else sequence_text(cell)
        for cell in series.to_list()
    ]
    return nw.new_series(series.name, cells, nw.String, backend=series.implementation)


# -- The encoder -------------------------------------------------------------------------------------------------------


def symbols_of(text: str, separator: str | None) -> list[str]:
    """The symbols of a sequence that is stored as text; GAP where one is missing."""
    if END in text:
        return text.split(END)[:-1]
    if separator is None:
        return list(text)
    return [part.strip() or GAP for part in text.split(separator)] if text else []


@dataclass(frozen=True)
class Sequences:
    """Codes of the symbols of sequences, (n, length of the longest); -1 after the end, at gaps, and for unseen symbols.

    A cell is a string, whose symbols are its characters or, with a ``separator``, the parts between separators (an empty
    part is a gap). `calibayes.sequences.SequenceClassifier` also reads lists; other estimators are given lists as text.

    Parameters
    ----------
    separator : str, optional
        What separates the symbols of a string, such as " " or ">"; by default each character is a symbol.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.sequences import MarkovChain
    >>> X, y = [["home>cart>pay"], ["home>help>home"], ["cart>pay"], ["home>help"]], ["buys", "leaves", "buys", "leaves"]
    >>> families = [("clicks", MarkovChain(order=1, alpha=1.0), every, Sequences(separator=">"))]
    >>> GenerativeClassifier(families=families).fit(X, y).predict([["home>cart"]])
    array(['buys'], dtype='<U6')
    """

    separator: str | None = None
    indices: tuple[int, ...] = ()
    symbols: tuple[str, ...] = ()
    """Symbols of the training rows, ascending; the code of a symbol is its position."""
    length: int = 1
    """Length of the longest sequence of the training rows: encoded rows are at least as wide."""

    data_dependence = ""

    def __post_init__(self) -> None:
        given: Any = self.separator  # any type, before this check
        if given is not None and not (isinstance(given, str) and given):
            raise ValueError(f"separator must be a text that is not empty, or None, got {self.separator!r}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Sequences:
        if len(indices) != 1:
            names = ", ".join(repr(summary.names[j]) for j in indices[:3])
            raise ValueError(
                f"Sequences encodes one column, got {len(indices)} ({names}, ...): give each column a family of its own"
            )
        texts = self._texts(summary.levels(indices, weights_needed=False)[0][0], summary.names[indices[0]])
        symbols, length = self._found(texts)
        if not symbols:
            raise ValueError(f"column {summary.names[indices[0]]!r} holds empty sequences only: leave it out")
        return replace(self, indices=tuple(indices), symbols=symbols, length=length)

    def _texts(self, values: Array, name: str) -> list[str]:
        """The distinct values of a column. Raises ValueError if they are no texts."""
        listed = values.tolist()
        other = next((value for value in listed if not isinstance(value, str)), None)
        if other is not None:
            raise ValueError(
                f"column {name!r} holds {other!r}, a {type(other).__name__}, where a sequence is expected: a string, or a list of "
                "symbols (texts or whole numbers)"
            )
        return listed

    def _found(self, texts: Sequence[str]) -> tuple[tuple[str, ...], int]:
        """The symbols of texts, ascending, and the length of the longest sequence."""
        found, length = set(), 1
        for text in texts:
            symbols = symbols_of(text, self.separator)
            found.update(symbols)
            length = max(length, len(symbols))
        if length > LONGEST:
            raise ValueError(
                f"a sequence has {length:,} symbols, more than {LONGEST:,}, and all would be padded to its length: cut it into windows"
            )
        return tuple(sorted(found - {GAP})), length

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        require(not self.indices or bool(self.symbols), "an encoder of sequences without symbols")
        require(1 <= self.length <= LONGEST, f"sequences of {self.length} positions")
        is_ascending = list(self.symbols) == sorted(set(self.symbols))
        require(is_ascending, "symbols must be ascending, each once")

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {symbol: code for code, symbol in enumerate(self.symbols)}

    def encode(self, table: Table) -> Array:
        j = self.indices[0]
        values, positions = distinct_values(table, j)
        texts = self._texts(values, table.names[j])
        coded = [
            [self._codes.get(symbol, -1) for symbol in symbols_of(text, self.separator)] for text in texts
        ]
        length = max(map(len, coded), default=0)
        codes = np.full((len(texts) + 1, max(length, self.length)), -1, dtype=code_type(len(self.symbols)))
        for row, sequence in zip(codes, coded, strict=False):
            row[: len(sequence)] = sequence
        return codes[positions]

    def split(self, table: Table) -> tuple[tuple[str | None, ...], ...]:
        """The symbols of each row of a table, None at gaps; none of a missing sequence."""
        j = self.indices[0]
        values, positions = distinct_values(table, j)
        texts = self._texts(values, table.names[j])
        listed = [tuple(None if s == GAP else s for s in symbols_of(text, self.separator)) for text in texts]
        listed.append(())
        return tuple(listed[place] for place in positions.tolist())

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("sequences of symbols cannot be drawn: the length of a sequence has no distribution")

    def layout(self) -> Mapping[str, Any]:
        return {"levels": (len(self.symbols),)}

    def extend(self, table: Table) -> tuple[Sequences, NewCodes]:
        texts = self._texts(distinct_values(table, self.indices[0])[0], table.names[self.indices[0]])
        return self._with(*self._found(texts))

    def _with(self, symbols: Sequence[str], length: int) -> tuple[Sequences, NewCodes]:
        """This encoder with further symbols, and the new codes of the old ones if they changed."""
        symbols = tuple(sorted({*self.symbols, *symbols}))
        extended = replace(self, symbols=symbols, length=max(self.length, length))
        return extended, self._codes_in(extended)

    def _codes_in(self, other: Sequences) -> NewCodes:
        codes = np.array([other._codes.get(symbol, -1) for symbol in self.symbols], dtype=np.int64)
        return None if self.symbols == other.symbols else [codes]

    def restricted_to(self, counts: Array) -> tuple[Sequences, NewCodes]:
        present = tuple(symbol for symbol, count in zip(self.symbols, counts, strict=True) if count > 0)
        if not present or len(present) == len(self.symbols):
            return self, None
        restricted = replace(self, symbols=present)
        return restricted, self._codes_in(restricted)

    def unite(self, other: Sequences) -> tuple[Sequences, NewCodes, NewCodes]:
        if self.separator != other.separator:
            raise ValueError(
                f"models whose sequences are separated by {self.separator!r} and {other.separator!r} cannot be merged"
            )
        united, ours = self._with(other.symbols, other.length)
        return united, ours, other._codes_in(united)

    def remarks(self) -> list[str]:
        return [f"{counted(len(self.symbols), 'symbol')}, at most {counted(self.length, 'position')}"]
