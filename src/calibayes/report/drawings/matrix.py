"""A confusion matrix: true classes by predicted classes."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.core.protocols import Array
from calibayes.report.drawings.canvas import WIDTH, drawing, rectangle, text
from calibayes.report.page.markup import Markup
from calibayes.report.page.wording import count, shortened

LEFT, TOP = 92.0, 40.0
WRITTEN = 7
"""Most classes for which cells contain their numbers."""
STRONGEST, STRONGEST_BEHIND_TEXT = 0.9, 0.45
"""Largest opacity of a cell; behind a number it is lower, for a contrast of at least 4.5 in both color schemes."""


def matrix(title: str, description: str, names: Sequence[str], counts: Array) -> Markup:
    """Cells are colored by their share of the row, which is the share of the true class."""
    k = len(names)
    size = (WIDTH - LEFT - 4) / k
    height = min(size, 62.0)
    letters = max(3, int(size / 6.5))
    shares = counts / counts.sum(axis=1, keepdims=True).clip(1)
    cells = [
        _cell(
            LEFT + j * size,
            TOP + i * height,
            size,
            height,
            shares[i, j],
            counts[i, j] if k <= WRITTEN else None,
        )
        for i in range(k)
        for j in range(k)
    ]
    rows = [
        text(LEFT - 8, TOP + (i + 0.5) * height + 4, shortened(name, 13), "end ink")
        for i, name in enumerate(names)
    ]
    columns = [
        text(LEFT + (j + 0.5) * size, TOP - 8, shortened(name, letters), "middle ink")
        for j, name in enumerate(names)
    ]
    axes = [
        text(LEFT - 8, TOP - 26, "true class", "end"),
        text((LEFT + WIDTH) / 2, TOP - 26, "predicted class", "middle"),
    ]
    return drawing(
        TOP + k * height + 4, title, description, cells, rows, columns if size > 24 else None, axes
    )


def _cell(
    x: float, y: float, width: float, height: float, share: float, number: float | None
) -> list[Markup]:
    strongest = STRONGEST if number is None else STRONGEST_BEHIND_TEXT
    opacity = f"{0.04 + strongest * share:.3f}"
    back = rectangle(x + 1, y + 1, width - 2, height - 2, "cell", fill_opacity=opacity, rx=3)
    if number is None:
        return [back]
    return [back, text(x + width / 2, y + height / 2 + 4, count(number), "middle ink")]
