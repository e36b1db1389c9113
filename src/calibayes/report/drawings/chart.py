"""Line charts with two axes: ROC and gain curves, learning curves, reliability diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.report.drawings.canvas import WIDTH, dot, drawing, line, polyline, text
from calibayes.report.drawings.scale import Scale
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import number

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
    dots = [dot(p, q, "accent paper", 4.0) for p, q in zip(a, b, strict=True)] if each.has_dots else []
    return [*([polyline(a, b, each.class_)] if len(a) else []), *dots]


def _axes(frame: Frame, x: Axis, y: Axis, size: tuple[float, float]) -> list[Markup]:
    """Grid lines, values and labels of both axes."""
    bottom, right = frame.y.start, frame.x.end
    across = [line(LEFT, frame.y(tick), right, frame.y(tick), "grid") for tick in frame.y.ticks()]
    left = [text(LEFT - 6, frame.y(tick) + 4, y.written(tick), "end") for tick in frame.y.ticks()]
    below = [text(frame.x(tick), bottom + 16, x.written(tick), "middle") for tick in frame.x.ticks(4)]
    labels = [text((LEFT + right) / 2, size[1] - 4, x.label, "middle ink"), text(2, 12, y.label, "ink")]
    return [*across, line(LEFT, bottom, right, bottom, "axis"), *left, *below, *labels]
