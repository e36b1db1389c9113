"""Our numbers beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

CLOSE = 0.005


@dataclass(frozen=True)
class Pair:
    """A number of ours and what was published.

    Parameters
    ----------
    ours, published : float or None
    spread : float
        How far apart they may be: what the paper gives as its spread, else its last digit.
    digits : int
        Digits after the point that the paper prints; ours is rounded to them before it is compared.
    unit : float
        What one is worth as an error rate: 1, 0.01 for percents, 0 for what is no error rate.
    """

    ours: float | None
    published: float | None = None
    spread: float = 0.0
    digits: int = 3
    unit: float = 1.0
    further: int = 0
    """Digits of ours that are shown beyond those of the paper."""
    cut: bool = False
    """Whether the paper cuts further digits off instead of rounding."""
    bold: bool = False
    """Whether ours is among the best of its row."""

    @property
    def compared(self) -> bool:
        return self.ours is not None and self.published is not None

    @property
    def gap(self) -> float:
        """How far apart they are at the printed digits; NaN where one is missing."""
        if self.ours is None or self.published is None:
            return math.nan
        return abs(self._printed(self.ours) - self.published)

    def _printed(self, number: float) -> float:
        """A number as the paper would print it."""
        shift = 10.0**self.digits
        return math.floor(number * shift + 1e-9) / shift if self.cut else round(number, self.digits)

    @property
    def exact(self) -> bool:
        return self.gap < 0.1 * 10.0**-self.digits

    @property
    def close(self) -> bool:
        return self.gap * self.unit <= CLOSE + 1e-9

    @property
    def differs(self) -> bool:
        return self.compared and self.gap > self.spread + 1e-9


@dataclass(frozen=True)
class Row:
    """A line of a table: its label, its numbers by column, and the reason where they are not the published ones."""

    label: str
    pairs: Mapping[str, Pair]
    reason: str = ""

    @property
    def differs(self) -> bool:
        return any(pair.differs for pair in self.pairs.values())


@dataclass(frozen=True)
class Figure:
    """A picture: the name of its file, and what draws it (and returns the figure)."""

    name: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Report:
    """A table or figure of a paper as it came out.

    Parameters
    ----------
    paper, name, title : str
    rows : rows, an average among them too
    notes : sentences above the table
    reason : str
        Why numbers of this table may differ, for rows that have no reason of their own.
    """

    paper: str
    name: str
    title: str
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    figures: tuple[Figure, ...] = field(default=())

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.pairs))
