"""The SVG element of a picture, and basic shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.report.markup import Child, Markup, count, element, number, shortened, signed
from calibayes.report.values import Interval

WIDTH = 340.0
"""Width of a picture in SVG units: about that of a phone in pixels, so that text is not scaled there."""


def drawing(height: float, title: str, description: str, *children: Child, width: float = WIDTH) -> Markup:
    """A picture with a name and a description for screen readers."""
    named = [element("title", title), element("desc", description)]
    options = {"viewBox": f"0 0 {width:g} {height:g}", "role": "img", "focusable": "false"}
    return element("svg", named, *children, **options)


def swatch(code: int) -> Markup:
    """A small square in the color of a class, placed beside its name."""
    square = element("rect", width=12, height=12, rx=3, class_=f"f{code}")
    return element("svg", square, viewBox="0 0 12 12", aria_hidden="true", focusable="false")


def text(x: float, y: float, content: str, class_: str | None = None) -> Markup:
    """Text at a point."""
    return element("text", content, x=_short(x), y=_short(y), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("path", d=f"M{_short(x1)} {_short(y1)}L{_short(x2)} {_short(y2)}", class_=class_)


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, **more: float | str | None
) -> Markup:
    """A rectangle."""
    sizes = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
    return element("rect", **{name: _short(value) for name, value in sizes.items()}, class_=class_, **more)


def dot(x: float, y: float, class_: str) -> Markup:
    """A disk."""
    return element("circle", cx=_short(x), cy=_short(y), r=4.0, class_=class_)


def polyline(x: Array, y: Array, class_: str) -> Markup:
    """Connected points."""
    points = "L".join(f"{_short(a)} {_short(b)}" for a, b in zip(x, y, strict=True))
    return element("path", d=f"M{points}", class_=class_)


def _short(value: float) -> str:
    """A coordinate with one decimal."""
    return f"{value:.1f}".removesuffix(".0")


# -- Linear scales: from values to coordinates, and the ticks of an axis -------------------------------------

Number = TypeVar("Number", float, Array)


@dataclass(frozen=True)
class Scale:
    """Maps values from ``low`` to ``high`` linearly to coordinates from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Number) -> Number:
        """The coordinate of a value, or those of an array of values."""
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else value * 0.0 + 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values on the scale.

        >>> Scale(0.0, 1.0, 0.0, 100.0).ticks()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        magnitude = 10.0 ** math.floor(math.log10(span / most))
        steps = [magnitude * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0)]
        step = next(step for step in steps if span / step <= most - 1 or step == steps[-1])
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def around(values: Array, start: float, end: float) -> Scale:
    """A scale that contains all finite values, with a margin; it begins at 0 or above."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Scale(0.0, 1.0, start, end)
    low, high = float(finite.min()), float(finite.max())
    margin = 0.06 * (high - low) or max(abs(high), 1e-3) * 0.1
    return Scale(max(low - margin, 0.0), high + margin, start, end)


# -- Named numbers as horizontal bars, to the left and to the right of zero ----------------------------------

BAR_ROW = 22.0
BAR_LABEL = 152.0
BAR_LETTERS = 21
VALUE = 44.0
"""Width of the number beside a bar."""


def bars(
    title: str, description: str, names: Sequence[str], values: Sequence[float], *, is_signed: bool
) -> Markup:
    """One bar for each name; bars of signed numbers extend to both sides of a zero line."""
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0
    low = min(0.0, float(np.min(values, initial=0.0))) if is_signed else 0.0
    high = max(float(np.max(values, initial=0.0)), 0.0) or (largest if low == 0.0 else 0.0)
    start = BAR_LABEL + 8 + (VALUE if low < 0 else 0.0)
    scale = Scale(low, high, start, WIDTH - VALUE)
    height = BAR_ROW * len(names) + 6
    entries = enumerate(zip(names, values, strict=True))
    rows = [_bar(scale, *entry, BAR_ROW * (j + 0.5) + 3, is_signed) for j, entry in entries]
    zero = line(scale(0.0), 2, scale(0.0), height - 2, "axis")
    return drawing(height, title, description, rows, zero)


def _bar(scale: Scale, name: str, value: float, y: float, is_signed: bool) -> list[Markup]:
    zero, end = scale(0.0), scale(value)
    bar = rectangle(min(zero, end), y - 7, abs(end - zero), 14, "accent" if value >= 0 else "negative", rx=2)
    written = signed(value) if is_signed else f"{value:.2f}"
    side = text(end + 5, y + 4, written, "ink") if value >= 0 else text(end - 5, y + 4, written, "ink end")
    return [text(BAR_LABEL, y + 4, shortened(name, BAR_LETTERS), "end ink"), bar, side]


# -- Line charts with two axes: ROC and gain curves, learning curves, reliability diagrams -------------------

SIZE = (WIDTH, 226.0)
SMALL = (260.0, 176.0)
"""Width and height of a chart in a group of small charts."""
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 24.0, 38.0


@dataclass(frozen=True)
class Line:
    """Points of a curve, and its CSS class."""

    x: Array
    y: Array
    class_: str = "accent-line"
    has_dots: bool = False


@dataclass(frozen=True)
class Axis:
    """The label of an axis, its range, and the function that formats its values."""

    label: str
    low: float = 0.0
    high: float = 1.0
    written: Callable[[float], str] = number


@dataclass(frozen=True)
class Frame:
    """The two scales of a chart."""

    x: Scale
    y: Scale


def chart(
    title: str,
    description: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    behind: Callable[[Frame], Sequence[Markup]] | None = None,
    size: tuple[float, float] = SIZE,
) -> Markup:
    """Curves in one frame; ``behind`` returns further shapes, which are drawn behind the curves."""
    width, height = size
    frame = Frame(Scale(x.low, x.high, LEFT, width - RIGHT), Scale(y.low, y.high, height - BOTTOM, TOP))
    extra = behind(frame) if behind is not None else ()
    curves = [_curve(frame, each) for each in lines]
    return drawing(height, title, description, _axes(frame, x, y, size), extra, curves, width=width)


def _curve(frame: Frame, each: Line) -> list[Markup]:
    known = np.isfinite(each.x) & np.isfinite(each.y)
    a, b = frame.x(np.asarray(each.x, float)[known]), frame.y(np.asarray(each.y, float)[known])
    dots = [dot(p, q, "accent paper") for p, q in zip(a, b, strict=True)] if each.has_dots else []
    return [*([polyline(a, b, each.class_)] if len(a) else []), *dots]


def _axes(frame: Frame, x: Axis, y: Axis, size: tuple[float, float]) -> list[Markup]:
    """Grid lines, values and labels of both axes."""
    bottom, right = frame.y.start, frame.x.end
    across = [line(LEFT, frame.y(tick), right, frame.y(tick), "grid") for tick in frame.y.ticks()]
    left = [text(LEFT - 6, frame.y(tick) + 4, y.written(tick), "end") for tick in frame.y.ticks()]
    below = [text(frame.x(tick), bottom + 16, x.written(tick), "middle") for tick in frame.x.ticks(4)]
    labels = [text((LEFT + right) / 2, size[1] - 4, x.label, "middle ink"), text(2, 12, y.label, "ink")]
    return [*across, line(LEFT, bottom, right, bottom, "axis"), *left, *below, *labels]


# -- The distribution of a column by class: a histogram of numbers, or bars of levels ------------------------

SPARK_WIDTH, HEIGHT = 260.0, 104.0
SPARK_ROW = 17.0
SPARK_LABEL = 104.0
SPARK_LETTERS = 15


def histogram(title: str, description: str, edges: Array, shares: Array, ends: tuple[str, str]) -> Markup:
    """Outlines of the share of the rows of each class in each bin, (k, bins); ``ends`` are the labels of the axis."""
    x = Scale(float(edges[0]), float(edges[-1]), 4, SPARK_WIDTH - 4)
    y = Scale(0.0, float(shares.max()) or 1.0, HEIGHT - 18, 6)
    outlines = [_outline(x, y, edges, row, code) for code, row in enumerate(shares)]
    base = line(4, HEIGHT - 18, SPARK_WIDTH - 4, HEIGHT - 18, "axis")
    labels = [text(4, HEIGHT - 4, ends[0]), text(SPARK_WIDTH - 4, HEIGHT - 4, ends[1], "end")]
    return drawing(HEIGHT, title, description, outlines, base, labels, width=SPARK_WIDTH)


def _outline(x: Scale, y: Scale, edges: Array, row: Array, code: int) -> list[Markup]:
    a = np.repeat(x(np.asarray(edges, float)), 2)
    b = np.concatenate([[y(0.0)], np.repeat(y(np.asarray(row, float)), 2), [y(0.0)]])
    return [polyline(a, b, f"f{code} soft"), polyline(a, b, f"s{code}")]


def level_bars(title: str, description: str, names: Sequence[str], counts: Array) -> Markup:
    """Stacked bars of the number of rows of each level, divided by class, (levels, k)."""
    scale = Scale(0.0, float(counts.sum(axis=1).max(initial=1.0)) or 1.0, SPARK_LABEL + 6, SPARK_WIDTH - 40)
    entries = enumerate(zip(names, counts, strict=True))
    rows = [_level(scale, *entry, 4 + SPARK_ROW * (j + 0.5)) for j, entry in entries]
    return drawing(SPARK_ROW * len(names) + 8, title, description, rows, width=SPARK_WIDTH)


def _level(scale: Scale, name: str, row: Array, y: float) -> list[Markup]:
    ends = np.concatenate([[0.0], np.cumsum(row)])
    bars = [
        rectangle(scale(ends[j]), y - 5, scale(ends[j + 1]) - scale(ends[j]), 10, f"f{j}")
        for j in range(len(row))
        if row[j] > 0
    ]
    label = text(SPARK_LABEL, y + 4, shortened(name, SPARK_LETTERS) or "(empty)", "end")
    return [label, *bars, text(scale(ends[-1]) + 4, y + 4, count(ends[-1]))]


# -- Dot plot: estimates with their intervals, one below the other -------------------------------------------

DOT_ROW, DOT_TOP, DOT_BOTTOM = 22.0, 6.0, 36.0
DOT_LABEL = 138.0
"""Width of the names."""
DOT_LETTERS = 21
"""Most letters of a name."""


def dot_plot(
    title: str,
    description: str,
    estimates: Mapping[str, Interval],
    label: str,
    written: Callable[[float], str],
    band: tuple[float, float] | None = None,
) -> Markup:
    """Dots with whiskers, the first one emphasized; ``band`` is a shaded range of values."""
    height = DOT_TOP + DOT_ROW * len(estimates) + DOT_BOTTOM
    ends = [value for each in estimates.values() for value in (each.mean, each.low, each.high)]
    scale = around(np.array([*ends, *(band or ())]), DOT_LABEL + 8, WIDTH - 14)
    bottom = height - DOT_BOTTOM
    shade = None
    if band is not None:
        start, end = scale(band[0]), min(scale(band[1]), scale.end)
        shade = rectangle(start, DOT_TOP, end - start, bottom - DOT_TOP, "band")
    grid = [line(scale(tick), DOT_TOP, scale(tick), bottom, "grid") for tick in scale.ticks(4)]
    ticks = [text(scale(tick), bottom + 14, written(tick), "middle") for tick in scale.ticks(4)]
    rows = [_row(scale, name, each, place) for place, (name, each) in enumerate(estimates.items())]
    axis = text((DOT_LABEL + WIDTH) / 2, height - 4, label, "middle ink")
    return drawing(height, title, description, shade, grid, ticks, rows, axis)


def _row(scale: Scale, name: str, each: Interval, place: int) -> list[Markup]:
    y, styles = DOT_TOP + DOT_ROW * (place + 0.5), ("end", "muted-line", "muted")
    if place == 0:
        styles = ("end strong", "whisker", "accent")
    shapes = [text(DOT_LABEL, y + 4, shortened(name, DOT_LETTERS), styles[0])]
    if np.isfinite(each.low) and np.isfinite(each.high):
        start, end = max(scale(each.low), scale.start), min(scale(each.high), scale.end)
        shapes.append(line(start, y, end, y, styles[1]))
    return [*shapes, dot(scale(each.mean), y, styles[2])]


# -- A confusion matrix: true classes by predicted classes ---------------------------------------------------

MATRIX_LEFT, MATRIX_TOP = 92.0, 40.0
WRITTEN = 7
"""Most classes for which cells contain their numbers."""
STRONGEST, STRONGEST_BEHIND_TEXT = 0.9, 0.45
"""Largest opacity of a cell; behind a number it is lower, for a contrast of at least 4.5 in both color schemes."""


def matrix(title: str, description: str, names: Sequence[str], counts: Array) -> Markup:
    """Cells are colored by their share of the row, which is the share of the true class."""
    k = len(names)
    size = (WIDTH - MATRIX_LEFT - 4) / k
    height = min(size, 62.0)
    letters = max(3, int(size / 6.5))
    shares = counts / counts.sum(axis=1, keepdims=True).clip(1)
    strongest = STRONGEST_BEHIND_TEXT if k <= WRITTEN else STRONGEST
    cells = []
    for i, j in np.ndindex(k, k):
        x, y = MATRIX_LEFT + j * size, MATRIX_TOP + i * height
        opacity = f"{0.04 + strongest * shares[i, j]:.3f}"
        cells.append(rectangle(x + 1, y + 1, size - 2, height - 2, "cell", fill_opacity=opacity, rx=3))
        if k <= WRITTEN:
            cells.append(text(x + size / 2, y + height / 2 + 4, count(float(counts[i, j])), "middle ink"))
    left, columns = MATRIX_LEFT - 8, []
    rows = [
        text(left, MATRIX_TOP + (i + 0.5) * height + 4, shortened(name, 13), "end ink")
        for i, name in enumerate(names)
    ]
    if size > 24:
        places = [(MATRIX_LEFT + (j + 0.5) * size, shortened(name, letters)) for j, name in enumerate(names)]
        columns = [text(x, MATRIX_TOP - 8, name, "middle ink") for x, name in places]
    axes = [
        text(left, MATRIX_TOP - 26, "true class", "end"),
        text((MATRIX_LEFT + WIDTH) / 2, MATRIX_TOP - 26, "predicted class", "middle"),
    ]
    return drawing(MATRIX_TOP + k * height + 4, title, description, cells, rows, columns, axes)
