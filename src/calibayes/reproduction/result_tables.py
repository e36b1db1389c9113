"""The report of an experiment: computed numbers with the published ones, and figures."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibayes.plots.figures import boxes, panels, summary_boxes

CLOSE = 0.005
"""Error rates that differ by at most this are counted as close."""


@dataclass(frozen=True)
class NumberPair:
    """A computed number and the published one.

    Parameters
    ----------
    ours, published : float or None
        None if there is no such number.
    spread : float
        Tolerated difference: the spread that the paper prints, else one unit of its last digit.
    digits : int
        Decimals that the paper prints; ours is rounded to them before the comparison.
    unit : float
        Factor that converts the number to an error rate: 1, 0.01 for percent, 0 if it is no error rate.
    extra_digits : int
        Decimals of ours that are printed in addition to ``digits``.
    truncated : bool
        Whether the paper truncates numbers instead of rounding them.
    bold : bool
        Whether ours is printed in bold, because it is among the best of its row.
    apart : bool
        Whether it is counted apart: it was computed as the paper evidently did, with test rows in the fit, or it is of
        data that earlier counts do not have.
    stands_for : (row, column), optional
        Where the table has the usual number beside the same published one.

    Examples
    --------
    >>> NumberPair(0.1234, published=0.123).exact
    True
    """

    ours: float | None
    published: float | None = None
    spread: float = 0.0
    digits: int = 3
    unit: float = 1.0
    extra_digits: int = 0
    truncated: bool = False
    bold: bool = False
    apart: bool = False
    stands_for: tuple[str, str] | None = None

    @property
    def compared(self) -> bool:
        """Whether both numbers exist."""
        return self.ours is not None and self.published is not None

    @property
    def difference(self) -> float:
        """Absolute difference at the printed digits; NaN if a number is missing."""
        if self.ours is None or self.published is None:
            return math.nan
        return abs(self._as_printed(self.ours) - self.published)

    def _as_printed(self, number: float) -> float:
        """The number, rounded or truncated to the digits of the paper."""
        shift = 10.0**self.digits
        return math.floor(number * shift + 1e-9) / shift if self.truncated else round(number, self.digits)

    @property
    def exact(self) -> bool:
        """Whether the numbers are equal at the printed digits."""
        return self.difference < 0.1 * 10.0**-self.digits

    @property
    def close(self) -> bool:
        """Whether the error rates differ by at most 0.005."""
        return self.difference * self.unit <= CLOSE + 1e-9

    @property
    def differs(self) -> bool:
        """Whether the difference is larger than the tolerated spread."""
        return self.compared and self.difference > self.spread + 1e-9


def uncompared(ours: float | None, published: float | None, digits: int) -> NumberPair:
    """Numbers that are no error rates and whose difference is not marked, such as means over other data sets."""
    return NumberPair(ours, published, spread=math.inf, digits=digits, unit=0.0)


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its label, its numbers by column, and the reason if they differ from the published ones.

    Examples
    --------
    >>> TableRow("iris", {"error": NumberPair(0.04, published=0.05, spread=0.02)}).differs
    False
    """

    label: str
    pairs: Mapping[str, NumberPair]
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether any number differs by more than the tolerated spread."""
        return any(pair.differs for pair in self.pairs.values())


@dataclass(frozen=True)
class Figure:
    """A figure: the name of its file without ending, and a function that draws and returns a matplotlib figure.

    Parameters
    ----------
    numbers : BoxNumbers, CurveNumbers or None
        Numbers that the figure is drawn from, if they are kept.
    is_on_site : bool
        Whether the documentation site draws the figure while it is built. A page refers to it by a link then, and has
        a file with its numbers, if there are any, instead of one with the picture.

    Examples
    --------
    >>> from calibayes.plots import boxes
    >>> Figure("errors", lambda: boxes({"iris": {"NB": [0.04, 0.06]}}, y="error")).draw().axes[0].get_title(loc="left")
    'iris'
    """

    name: str
    draw: Callable[[], Any]
    numbers: Any = None
    is_on_site: bool = False

    @classmethod
    def of(cls, name: str, numbers: Any) -> Figure:
        """The figure of some numbers, which the site draws."""
        return cls(name, numbers.draw, numbers, is_on_site=True)


@dataclass(frozen=True)
class ExperimentReport:
    """A reproduced table or figure of a paper.

    Parameters
    ----------
    paper, name, title : str
        Name of the paper, number of the table or figure, and its title.
    rows : tuple of TableRow
        Averages over rows are rows too.
    notes : tuple of str
        Sentences printed above the table.
    reason : str
        Why numbers may differ from the published ones; for rows without a reason of their own.
    figures : tuple of Figure

    Examples
    --------
    >>> row = TableRow("iris", {"error": NumberPair(0.04, published=0.05)})
    >>> ExperimentReport("gdt-2004", "1", "A table", rows=(row,)).columns
    ['error']
    """

    paper: str
    name: str
    title: str
    rows: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    figures: tuple[Figure, ...] = field(default=())

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row.pairs))


# -- The published numbers, copied from the tables of the papers (CSV files in ``published/``) ---------------

Published = dict[str, dict[str, float]]
"""Row label -> column -> number, without the entries that the paper leaves empty."""


@cache
def published_table(paper: str, table: str) -> Published:
    """A published table.

    >>> published_table("rc-probabilistic-2024", "II")["iris"]["RC iter"]
    30.0
    """
    header, *rows = _read_csv(f"{paper}-{table}.csv")
    return {
        row[0]: {name: float(text) for name, text in zip(header[1:], row[1:], strict=True) if text}
        for row in rows
    }


def published_sizes(paper: str, table: str) -> dict[str, float]:
    """Row label -> number of rows of the data set.

    >>> published_sizes("rc-probabilistic-2024", "I")["iris"]
    150.0
    """
    return {label: row["rows"] for label, row in published_table(paper, table).items()}


@cache
def known_reasons(paper: str, table: str) -> dict[str, str]:
    """Row label -> why the reproduced row differs from the published one.

    >>> sorted(known_reasons("rc-probabilistic-2024", "VI"))
    ['redwine']
    """
    return {row[1]: row[2] for row in _read_csv(f"{paper}-reasons.csv")[1:] if row[0] == table}


def _read_csv(name: str) -> list[list[str]]:
    file = resources.files("calibayes.reproduction") / "published" / name
    return list(csv.reader(file.read_text(encoding="utf-8").splitlines()))


# -- The numbers of a figure, from which the documentation draws it ------------------------------------------


DECIMALS = 5
"""Decimals of the numbers in a file; a picture shows fewer."""


@dataclass(frozen=True)
class BoxNumbers:
    """Numbers of box plots: title of a panel -> name of a box -> numbers."""

    panels: Mapping[str, Mapping[str, Sequence[float]]]
    y: str
    columns: int = 4

    kind: ClassVar[str] = "boxes"

    def draw(self) -> Any:
        return boxes(self.panels, y=self.y, columns=self.columns)


@dataclass(frozen=True)
class BoxSummaries(BoxNumbers):
    """Summaries for box plots: ends of the whiskers, quartiles and median in the order of size, then the outliers."""

    kind: ClassVar[str] = "summaries"

    def draw(self) -> Any:
        return summary_boxes(self.panels, y=self.y, columns=self.columns)


def box_summary(sample: Sequence[float]) -> list[float]:
    """The numbers of one box of `BoxSummaries`; whiskers end at the last value within 1.5 times the box.

    >>> box_summary([0.1, 0.2, 0.3, 0.4, 0.5, 2.0])
    [0.1, 0.225, 0.35, 0.475, 0.5, 2.0]
    """
    values = np.sort(np.asarray(sample, dtype=float))
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    reach = 1.5 * (high - low)
    inside = (values >= low - reach) & (values <= high + reach)
    ends = values[inside]
    return [float(ends[0]), low, median, high, float(ends[-1]), *values[~inside].tolist()]


@dataclass(frozen=True)
class CurveNumbers:
    """Numbers of line plots: title of a panel -> label of a curve -> x values and y values."""

    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
    x: str
    y: str
    columns: int

    kind: ClassVar[str] = "curves"

    def draw(self) -> Any:
        curves = {
            title: {label: (np.asarray(x), np.asarray(y)) for label, (x, y) in by_label.items()}
            for title, by_label in self.panels.items()
        }
        return panels(curves, columns=self.columns, x=self.x, y=self.y)


KINDS = {kind.kind: kind for kind in (BoxNumbers, BoxSummaries, CurveNumbers)}


def to_json(numbers: BoxNumbers | CurveNumbers) -> str:
    """JSON text with one line for each panel."""
    settings = {"kind": numbers.kind, **{k: v for k, v in vars(numbers).items() if k != "panels"}}
    head = json.dumps(settings)[1:-1]
    lines = [f"{json.dumps(title)}: {json.dumps(_rounded(panel))}" for title, panel in numbers.panels.items()]
    return "{" + head + ', "panels": {\n' + ",\n".join(lines) + "\n}}\n"


def read_numbers(path: Path) -> BoxNumbers | CurveNumbers:
    """The numbers in a file. Raises ValueError if they are of no known kind."""
    content = json.loads(path.read_text(encoding="utf-8"))
    kind = content.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"{path.name} has numbers of kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind](**content)


def _rounded(value: Any) -> Any:
    """Numbers in nested mappings and sequences, rounded."""
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [_rounded(part) for part in value]
    return round(float(value), DECIMALS)
