"""A column of objects (text, flags with gaps) as distinct values and codes; its cells are made only if they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibayes.core.protocols import Array


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column that behaves like an object array of shape (n,).

    A Python object per row takes more time and memory than most of what is done with a column of text. `Table.column`
    gives an ordinary array.

    >>> column = CodedColumn(np.array(["a", "b"], dtype=object), np.array([1, 0, 2]))
    >>> column.dtype, column.shape, column[0], column.array().tolist()
    (dtype('O'), (3,), 'b', ['b', 'a', None])
    """

    values: Array
    """Distinct values in ascending order, objects, (v,); some may occur in no row."""
    codes: Array
    """Position of each row's value, (n,); v where missing."""

    dtype: ClassVar[np.dtype[Any]] = np.dtype(object)
    ndim: ClassVar[int] = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)"""
        return (len(self.codes),)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return CodedColumn(self.values, codes) if np.ndim(codes) else self._cells()[codes]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        cells = self.array()
        return cells if dtype is None else cells.astype(dtype)

    def array(self) -> Array:
        """The cells as an object array, None where missing."""
        return self._cells()[self.codes]

    def _cells(self) -> Array:
        return np.append(self.values, np.array([None], dtype=object))


def as_array(column: Any) -> Array:
    """A column as an ordinary array: the cells of a `CodedColumn`, anything else unchanged."""
    return column.array() if isinstance(column, CodedColumn) else column
