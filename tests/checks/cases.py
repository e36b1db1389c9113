"""For each check, a table (and a model or results) with its fault, and one without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from calibayes import GaussianNB
from calibayes.compare import FoldResult

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


def _with(column: str, values: Any) -> Given:
    table, y = plain_table()
    return Given(table.assign(**{column: values}), y)


def _random() -> np.random.Generator:
    return np.random.default_rng(1)


def _with_model(table: pd.DataFrame, y: Any) -> Given:
    """The complete columns of numbers, and a model of them that leaves out single rows in closed form."""
    numbers = table.select_dtypes("number").drop(columns="girth", errors="ignore")
    return Given(numbers, y, {"model": GaussianNB(rule="ml").fit(numbers, y)})


def _noise(columns: int) -> Given:
    """Numbers that have nothing to do with the two classes, and a model of them."""
    rng = _random()
    table = pd.DataFrame(rng.normal(size=(150, columns)), columns=[f"x{j}" for j in range(columns)])
    return _with_model(table, pd.Series(rng.choice(["no", "yes"], 150)))


def _over_fitted() -> CheckCase:
    return CheckCase(_noise(100), _with_model(*plain_table()))


def _fold_results(gains: Any) -> Given:
    """Five folds of one model, whose calibrated error and log loss are lower by these gains."""
    errors = (0.20, 0.22, 0.19, 0.21, 0.20)
    plain = [FoldResult("KernelNB", "ml", e, 0.5, 0.19, 0.2, 0, 1.0) for e in errors]
    calibrated = [
        FoldResult("KernelNB", "rc", e - gain, 0.5 - gain, 0.18, 0.2, 9, 1.0)
        for e, gain in zip(errors, gains, strict=True)
    ]
    return Given(*plain_table(), {"results": plain + calibrated})


def _useless_calibration() -> CheckCase:
    return CheckCase(
        _fold_results((-0.01, -0.012, -0.011, -0.009, -0.01)), _fold_results((0.03, 0.02, 0.0, 0.01, 0.02))
    )


def _column_of_the_class() -> CheckCase:
    _, y = plain_table()
    rng = _random()
    leaf = np.where(rng.random(len(y)) < 0.002, "needle", y.map({"ash": "a", "beech": "b", "oak": "c"}))
    often = np.where(rng.random(len(y)) < 0.15, rng.permutation(leaf), leaf)
    return CheckCase(_with("leaf", leaf), _with("leaf", often), ("leaf",))


def _identifier() -> CheckCase:
    rng = _random()
    unique, drawn = rng.permutation(ROWS) + 1000, rng.integers(1000, 2000, ROWS)
    return CheckCase(_with("number", unique), _with("number", drawn), ("number",))


def _few_levels(table: pd.DataFrame) -> pd.DataFrame:
    """Columns of which many rows are equal by chance."""
    return table[["soil", "slope"]].assign(birds=table["birds"].clip(upper=3))


def _equal_rows(same_class: bool) -> CheckCase:
    table, y = plain_table()
    labels = ["ash", "beech", "oak"]
    other = y.map(dict(zip(labels, labels[1:] + labels[:1], strict=True)))
    copied = pd.concat([table, table[:20]], ignore_index=True)
    copies = pd.concat([y, (y if same_class else other)[:20]], ignore_index=True)
    return CheckCase(Given(copied, copies), Given(_few_levels(table), y))


def _moving_rows() -> CheckCase:
    table, _ = plain_table()
    moved = table["height"] + np.linspace(0, 6, ROWS)
    return CheckCase(
        _with("height", moved), _with("height", moved.sample(frac=1, random_state=0).array), ("height",)
    )


def _constant() -> CheckCase:
    return CheckCase(_with("unit", "m"), _with("unit", np.where(np.arange(ROWS) == 0, "cm", "m")), ("unit",))


def _rare_class() -> CheckCase:
    table, y = plain_table()
    rare, less_rare = y.copy(), y.copy()
    rare[:9], less_rare[:10] = "yew", "yew"
    return CheckCase(Given(table, rare), Given(table, less_rare))


def _mostly_missing() -> CheckCase:
    values, rng = np.arange(ROWS) % 7 + 0.5, _random()
    gaps = {share: np.where(rng.random(ROWS) < share, np.nan, values) for share in (0.9, 0.6)}
    return CheckCase(_with("age", gaps[0.9]), _with("age", gaps[0.6]), ("age",))


def _informative_gaps() -> CheckCase:
    _, y = plain_table()
    values, draws = np.arange(ROWS) % 7 + 0.5, _random().random(ROWS)
    by_class = np.where(draws < np.where(y == "oak", 0.5, 0.2), np.nan, values)
    return CheckCase(_with("age", by_class), _with("age", np.where(draws < 0.3, np.nan, values)), ("age",))


def _too_sure() -> CheckCase:
    table, y = plain_table()
    copies = table.assign(**{f"height {i}": table["height"] + i for i in range(8)})
    return CheckCase(_with_model(copies, y), _with_model(table, y))


def _without_gain() -> CheckCase:
    return CheckCase(_noise(2), _with_model(*plain_table()))


def _equal_columns() -> CheckCase:
    table, _ = plain_table()
    feet = table["height"] * 3.28084
    nearly = feet.where(feet < feet.max(), 0.0)
    return CheckCase(_with("feet", feet), _with("feet", nearly), ("height", "feet"))


def _rare_levels() -> CheckCase:
    rng = _random()
    many, few = rng.zipf(1.7, ROWS).astype(str), rng.choice(list("abcdefgh"), ROWS)
    return CheckCase(_with("town", "t" + many.astype(object)), _with("town", few), ("town",))


def _missing_code() -> CheckCase:
    table, _ = plain_table()
    draws, height = _random().random(ROWS), table["height"]
    return CheckCase(
        _with("height", height.mask(draws < 0.03, -999.0)),
        _with("height", height.mask(draws < 0.03, 9.0)),
        ("height",),
    )


def _numbers_as_text() -> CheckCase:
    rng = _random()
    lengths, postal = rng.integers(10, 99, ROWS).astype(str).astype(object), rng.integers(10, 60, ROWS)
    lengths[:3] = "unknown"
    return CheckCase(_with("length", lengths), _with("length", [f"0{code}" for code in postal]), ("length",))


CASES: dict[str, CheckCase] = {
    "CB001": _over_fitted(),
    "CB002": _useless_calibration(),
    "CB003": _column_of_the_class(),
    "CB004": _identifier(),
    "CB005": _equal_rows(same_class=False),
    "CB006": _moving_rows(),
    "CB007": _equal_rows(same_class=True),
    "CB008": _constant(),
    "CB009": _rare_class(),
    "CB010": _mostly_missing(),
    "CB011": _informative_gaps(),
    "CB012": _too_sure(),
    "CB013": _without_gain(),
    "CB014": _equal_columns(),
    "CB015": _rare_levels(),
    "CB016": _missing_code(),
    "CB017": _numbers_as_text(),
}
