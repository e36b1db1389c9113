"""Dot plot: estimates with their intervals, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.report.drawings.canvas import WIDTH, dot, drawing, line, rectangle, text
from calibayes.report.drawings.scale import Scale, around
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import shortened

ROW, TOP, BOTTOM = 22.0, 6.0, 36.0
LABEL = 138.0
"""Width of the names."""
LETTERS = 21
"""Most letters of a name."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, NaN without one."""

    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    is_chosen: bool = False


def dot_plot(
    title: str,
    description: str,
    estimates: Sequence[Estimate],
    label: str,
    written: Callable[[float], str],
    band: tuple[float, float] | None = None,
) -> Markup:
    """Dots with whiskers; ``band`` is a shaded range of values."""
    height = TOP + ROW * len(estimates) + BOTTOM
    ends = [value for each in estimates for value in (each.value, each.low, each.high)]
    scale = around(np.array([*ends, *(band or ())]), LABEL + 8, WIDTH - 14, floor=0.0)
    bottom = height - BOTTOM
    shade = [_shade(scale, band, bottom)] if band is not None else []
    grid = [line(scale(tick), TOP, scale(tick), bottom, "grid") for tick in scale.ticks(4)]
    ticks = [text(scale(tick), bottom + 14, written(tick), "middle") for tick in scale.ticks(4)]
    rows = [_row(scale, each, TOP + ROW * (place + 0.5)) for place, each in enumerate(estimates)]
    name = text((LABEL + WIDTH) / 2, height - 4, label, "middle ink")
    return drawing(height, title, description, shade, grid, ticks, rows, name)


def _shade(scale: Scale, band: tuple[float, float], bottom: float) -> Markup:
    start, end = scale(band[0]), min(scale(band[1]), scale.end)
    return rectangle(start, TOP, end - start, bottom - TOP, "band")


def _row(scale: Scale, each: Estimate, y: float) -> list[Markup]:
    style = "end strong" if each.is_chosen else "end"
    label = text(LABEL, y + 4, shortened(each.name, LETTERS), style)
    has_interval = np.isfinite(each.low) and np.isfinite(each.high)
    ends = (
        (max(scale(each.low), scale.start), min(scale(each.high), scale.end)) if has_interval else (0.0, 0.0)
    )
    whisker = (
        [line(ends[0], y, ends[1], y, "whisker" if each.is_chosen else "muted-line")] if has_interval else []
    )
    return [label, *whisker, dot(scale(each.value), y, "accent" if each.is_chosen else "muted")]
