"""Distinct cells of a column of a CSV file as numbers, text, flags or durations.

What a cell means does not depend on the cells around it, so that the division of a file into blocks changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.csv_file import Markers, NumberFormat, number_formats
from calibayes.tables.input.expected import DURATION, FLAG, NUMBER

FLAGS = {
    "true": True,
    "false": False,
    "1": True,
    "0": False,
    "1.0": True,
    "0.0": False,
    "yes": True,
    "no": False,
}
"""Ways to write a flag, in lower case."""


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a column are read.

    Attributes
    ----------
    name : str
    holds : str
        What the column holds.
    form : NumberFormat
        How numbers are written at the beginning of the file.
    decimal_comma : bool
        Whether a comma that can be both is a decimal comma rather than a thousands separator.
    missing : Markers
    """

    name: str
    holds: str
    form: NumberFormat
    decimal_comma: bool
    missing: Markers

    def column(self, cells: Sequence[str], places: Array) -> Array | CodedColumn:
        """The column whose row i has the text ``cells[places[i]]``; the last place, len(cells), is a missing value."""
        if self.holds == NUMBER:
            return np.array([*self._numbers(cells), np.nan])[places]
        if self.holds == DURATION:
            return np.array([*map(self._duration, cells), np.timedelta64("NaT", "us")], dtype="m8[us]")[
                places
            ]
        values = [self._flag(cell) if self.holds == FLAG else self._text(cell) for cell in cells]
        return _coded(values, places)

    def _numbers(self, cells: Sequence[str]) -> list[float]:
        """The cells as numbers, at once if all are plain ones."""
        if not self.form.meaning and not any("_" in cell for cell in cells):
            try:
                return [float(cell) if cell else np.nan for cell in cells]
            except ValueError:
                pass
        return [self._number(cell) for cell in cells]

    def _number(self, cell: str) -> float:
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return np.nan
        for form in (self.form, *number_formats(self.decimal_comma)):
            try:
                return form.parse(cell)
            except ValueError:
                continue
        raise self._unexpected(cell, "numbers", "number")

    def _text(self, cell: str) -> str | None:
        return None if cell.strip() in self.missing.always else cell

    def _flag(self, cell: str) -> bool | None:
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return None
        if text.lower() not in FLAGS:
            raise self._unexpected(cell, "true and false", "such value")
        return FLAGS[text.lower()]

    def _duration(self, cell: str) -> Any:
        """A duration as pandas writes it. Imports pandas only on use, because that import is slow."""
        if cell.strip() in self.missing.always:
            return np.timedelta64("NaT", "us")
        import pandas as pd

        try:
            return pd.Timedelta(cell.strip()).to_timedelta64()
        except ValueError:
            raise self._unexpected(cell, "durations", "duration") from None

    def _unexpected(self, cell: str, held: str, noun: str) -> ValueError:
        return ValueError(
            f"column {self.name!r} held {held} in training, but {cell!r} is no {noun}; if it stands for a missing value, "
            f"say so: --missing-value {cell.strip()!r}"
        )


def _coded(values: Sequence[Any], places: Array) -> CodedColumn:
    """A coded column of the values that occur; None is missing."""
    occurs = np.bincount(places, minlength=len(values) + 1)[: len(values)] > 0
    known = sorted({value for value, used in zip(values, occurs, strict=True) if used and value is not None})
    code = {value: number for number, value in enumerate(known)}
    codes = np.array([*(code.get(value, len(known)) for value in values), len(known)])
    distinct = np.empty(len(known), dtype=object)
    distinct[:] = known
    return CodedColumn(distinct, codes[places])
