"""For each check, a table (and a model or results) with its fault, and one without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

ROWS = 600


@dataclass(frozen=True)
class Given:
    """Arguments of `run_checks`."""

    X: Any
    y: Any
    further: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckCase:
    """Arguments with the fault, arguments without it that are as similar as possible, and the columns at fault."""

    faulty: Given
    faultless: Given
    columns: tuple[str, ...] = ()


def plain_table(seed: int = 0, n: int = ROWS) -> tuple[pd.DataFrame, pd.Series]:
    """Two numbers, a count, two levels and missing cells at random; three classes that they tell apart with errors."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["ash", "beech", "oak"], n, p=[0.5, 0.3, 0.2])
    place = np.searchsorted(["ash", "beech", "oak"], y)
    table = pd.DataFrame(
        {
            "height": rng.normal(20 + 2 * place, 3),
            "girth": rng.gamma(2.0 + place, 30),
            "birds": rng.poisson(2 + place),
            "soil": rng.choice(["clay", "loam", "sand"], n),
            "slope": np.where(rng.random(n) < 0.3 + 0.2 * place, "steep", "flat"),
        }
    )
    table.loc[rng.random(n) < 0.1, "girth"] = np.nan
    table.loc[rng.random(n) < 0.1, "soil"] = None
    return table, pd.Series(y, name="tree")


def _with(column: str, values: Any, **further: Any) -> Given:
    table, y = plain_table()
    return Given(table.assign(**{column: values}), y, further)


def _column_of_the_class() -> CheckCase:
    _, y = plain_table()
    rng = np.random.default_rng(1)
    leaf = np.where(rng.random(len(y)) < 0.002, "needle", y.map({"ash": "a", "beech": "b", "oak": "c"}))
    often = np.where(rng.random(len(y)) < 0.15, rng.permutation(leaf), leaf)
    return CheckCase(_with("leaf", leaf), _with("leaf", often), ("leaf",))


def _identifier() -> CheckCase:
    rng = np.random.default_rng(1)
    return CheckCase(
        _with("number", rng.permutation(ROWS) + 1000),
        _with("number", rng.integers(1000, 2000, ROWS)),
        ("number",),
    )


CASES: dict[str, CheckCase] = {
    "CB003": _column_of_the_class(),
    "CB004": _identifier(),
}
