"""Lines over two axes: curves of operating characteristics, learning curves, reliability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.report.drawings.canvas import WIDTH, dot, drawing, line, polyline, text
from calibayes.report.drawings.scale import Scale
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import number

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 220.0, 46.0, 12.0, 12.0, 38.0


@dataclass(frozen=True)
class Line:
    """Points of a curve, and the class of its style."""

    x: Array
    y: Array
    class_: str = "accent-line"
    has_dots: bool = False


@dataclass(frozen=True)
class Axis:
    """The range of an axis, its label, and how its values are written."""

    label: str
    low: float = 0.0
    high: float = 1.0
    written: Callable[[float], str] = number


@dataclass(frozen=True)
class Frame:
    """The two scales of a chart."""

    x: Scale
    y: Scale


def frame_of(x: Axis, y: Axis, height: float = HEIGHT) -> Frame:
    """Where a chart with these axes has its points."""
    return Frame(
        Scale(x.low, x.high, LEFT, WIDTH - RIGHT), Scale(y.low, y.high, height - BOTTOM, TOP)
    )


def chart(
    title: str,
    description: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    extra: Callable[[Frame], Sequence[Markup]] | None = None,
    height: float = HEIGHT,
) -> Markup:
    """Curves in one frame; ``extra`` draws what else belongs into it, behind the curves."""
    frame = frame_of(x, y, height)
    behind = [*_grid(frame, x, y, height), *(extra(frame) if extra is not None else ())]
    return drawing(height, title, description, behind, [_curve(frame, each) for each in lines])


def _curve(frame: Frame, each: Line) -> list[Markup]:
    known = np.isfinite(each.x) & np.isfinite(each.y)
    a, b = frame.x(np.asarray(each.x, float)[known]), frame.y(np.asarray(each.y, float)[known])
    fill = each.class_.replace("-line", "").replace("s", "f", 1) if each.class_[0] == "s" else "accent"
    dots = [dot(p, q, f"{fill} paper", 3.5) for p, q in zip(a, b, strict=True)] if each.has_dots else []
    return [*([polyline(a, b, each.class_)] if len(a) else []), *dots]


def _grid(frame: Frame, x: Axis, y: Axis, height: float) -> list[Markup]:
    """Grid lines, values and labels of both axes."""
    bottom, right = height - BOTTOM, WIDTH - RIGHT
    across = [line(LEFT, frame.y(tick), right, frame.y(tick), "grid") for tick in frame.y.ticks()]
    left = [text(LEFT - 6, frame.y(tick) + 4, y.written(tick), "end") for tick in frame.y.ticks()]
    below = [text(frame.x(tick), bottom + 15, x.written(tick), "middle") for tick in frame.x.ticks()]
    labels = [
        text((LEFT + right) / 2, height - 5, x.label, "middle ink"),
    ]
    return [*across, line(LEFT, bottom, right, bottom, "axis"), *left, *below, *labels]
