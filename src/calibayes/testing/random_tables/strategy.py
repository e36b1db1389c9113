"""The strategy that draws a table: a theme, columns, labels and a container."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from calibayes.testing.random_tables.columns import THEMES, Column, Draw, draw_column
from calibayes.testing.random_tables.containers import draw_containers
from calibayes.testing.random_tables.labeled_table import LabeledTable
from calibayes.testing.random_tables.labels import draw_labels


@st.composite
def labeled_tables(
    draw: Draw,
    libraries: tuple[str, ...],
    themes: tuple[str, ...],
    max_rows: int,
    max_columns: int,
    missing: bool,
) -> LabeledTable:
    """See `calibayes.testing.tables`."""
    library = draw(st.sampled_from(libraries))
    theme = draw(st.sampled_from(themes))
    rows, new_rows = draw(st.integers(2, max_rows)), draw(st.integers(1, 6))
    kinds = draw(st.lists(st.sampled_from(THEMES[theme]), min_size=1, max_size=max_columns))
    gaps = missing and draw(st.booleans())
    columns: list[Column] = [
        draw_column(draw, f"x{j}", kind, rows, new_rows, missing=gaps) for j, kind in enumerate(kinds)
    ]
    training, new = draw_containers(draw, columns, library)
    labels: Any = draw_labels(draw, rows, library)
    return LabeledTable(training, labels, new)
