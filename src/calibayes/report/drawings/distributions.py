"""The distribution of a column by class: a histogram of numbers, or bars of levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array
from calibayes.report.drawings.canvas import drawing, line, polyline, rectangle, text
from calibayes.report.drawings.scale import Scale
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import count, shortened

WIDTH, HEIGHT = 260.0, 104.0
ROW = 17.0
LABEL = 104.0
LETTERS = 15


def histogram(title: str, description: str, edges: Array, shares: Array, ends: tuple[str, str]) -> Markup:
    """Outlines of the share of the rows of each class in each bin, (k, bins); ``ends`` are the labels of the axis."""
    x, y = (
        Scale(float(edges[0]), float(edges[-1]), 4, WIDTH - 4),
        Scale(0.0, float(shares.max()) or 1.0, HEIGHT - 18, 6),
    )
    outlines = [_outline(x, y, edges, row, code) for code, row in enumerate(shares)]
    base = line(4, HEIGHT - 18, WIDTH - 4, HEIGHT - 18, "axis")
    labels = [text(4, HEIGHT - 4, ends[0]), text(WIDTH - 4, HEIGHT - 4, ends[1], "end")]
    return drawing(HEIGHT, title, description, outlines, base, labels, width=WIDTH)


def _outline(x: Scale, y: Scale, edges: Array, row: Array, code: int) -> list[Markup]:
    a = np.repeat(x(np.asarray(edges, float)), 2)
    b = np.concatenate([[y(0.0)], np.repeat(y(np.asarray(row, float)), 2), [y(0.0)]])
    return [polyline(a, b, f"f{code} soft"), polyline(a, b, f"s{code}")]


def level_bars(title: str, description: str, names: Sequence[str], counts: Array) -> Markup:
    """Stacked bars of the number of rows of each level, divided by class, (levels, k)."""
    scale = Scale(0.0, float(counts.sum(axis=1).max(initial=1.0)) or 1.0, LABEL + 6, WIDTH - 40)
    rows = [
        _level(scale, name, row, 4 + ROW * (j + 0.5))
        for j, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    return drawing(ROW * len(names) + 8, title, description, rows, width=WIDTH)


def _level(scale: Scale, name: str, row: Array, y: float) -> list[Markup]:
    ends = np.concatenate([[0.0], np.cumsum(row)])
    bars = [
        rectangle(scale(ends[j]), y - 5, scale(ends[j + 1]) - scale(ends[j]), 10, f"f{j}")
        for j in range(len(row))
        if row[j] > 0
    ]
    label = text(LABEL, y + 4, shortened(name, LETTERS) or "(empty)", "end")
    return [label, *bars, text(scale(ends[-1]) + 4, y + 4, count(ends[-1]))]
