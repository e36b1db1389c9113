"""Named numbers as horizontal bars, to the left and to the right of zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.report.drawings.canvas import WIDTH, drawing, line, rectangle, text
from calibayes.report.drawings.scale import Scale
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import shortened, signed

ROW = 22.0
LABEL = 152.0
LETTERS = 21
VALUE = 44.0
"""Width of the number beside a bar."""


def bars(
    title: str, description: str, names: Sequence[str], values: Sequence[float], *, is_signed: bool
) -> Markup:
    """One bar for each name; bars of signed numbers extend to both sides of a zero line."""
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0
    low = min(0.0, float(np.min(values, initial=0.0))) if is_signed else 0.0
    high = max(float(np.max(values, initial=0.0)), 0.0) or (largest if low == 0.0 else 0.0)
    start = LABEL + 8 + (VALUE if low < 0 else 0.0)
    scale = Scale(low, high, start, WIDTH - VALUE)
    height = ROW * len(names) + 6
    rows = [
        _bar(scale, name, value, ROW * (j + 0.5) + 3, is_signed)
        for j, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    zero = line(scale(0.0), 2, scale(0.0), height - 2, "axis")
    return drawing(height, title, description, rows, zero)


def _bar(scale: Scale, name: str, value: float, y: float, is_signed: bool) -> list[Markup]:
    zero, end = scale(0.0), scale(value)
    bar = rectangle(min(zero, end), y - 7, abs(end - zero), 14, "accent" if value >= 0 else "negative", rx=2)
    written = signed(value) if is_signed else f"{value:.2f}"
    side = text(end + 5, y + 4, written, "ink") if value >= 0 else text(end - 5, y + 4, written, "ink end")
    return [text(LABEL, y + 4, shortened(name, LETTERS), "end ink"), bar, side]
