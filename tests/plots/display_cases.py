"""For each display: how it is made from pandas and from arrays, and the artists and names that it must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from calibayes import GaussianNB, PosteriorMixture, TradeOffCV, TreeAugmentedNB
from calibayes.datasets import load_penguins
from calibayes.plots import (
    CostDisplay,
    CoverageDisplay,
    DriftDisplay,
    HistoryDisplay,
    LiftDisplay,
    MembersDisplay,
    RankDisplay,
    ReasonsDisplay,
    ReliabilityDisplay,
    SurpriseDisplay,
    TradeOffDisplay,
    TreeDisplay,
)

WEIRD, OTHER = "_$x$ <&> \\frac{", "ordinary"
COLUMNS = ["$a$_1", "_b", "c"]


@dataclass(frozen=True)
class DisplayCase:
    """A display of a model and rows."""

    make: Callable[..., Any]
    """(fitted model, X, y, ax=..., **artist options) -> display."""
    artists: tuple[str, ...]
    """Attributes that hold artists."""
    options: dict[str, Any]
    """Options of the main artist, and their values."""
    shows: str
    """Text that must be in the legend, a label, a title or a tick."""


@cache
def rows(frame: bool) -> tuple[Any, Any, Any, Any]:
    """Training and other rows of two classes that overlap."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.4, WEIRD, OTHER)
    X = rng.normal(size=(300, 3)) + 1.2 * (y == WEIRD)[:, None]
    table = pd.DataFrame(X, columns=COLUMNS) if frame else X
    labels = pd.Series(y) if frame else y
    return table[:200], labels[:200], table[200:], labels[200:]


@cache
def model(frame: bool) -> Any:
    X, y, *_ = rows(frame)
    return GaussianNB(rule="rc").fit(X[:150], y[:150]).with_held_out(X[150:], y[150:])


def _ranks(fitted: Any, X: Any, y: Any, **options: Any) -> RankDisplay:
    errors = np.random.default_rng(0).random((6, 4)) + np.arange(4)
    return RankDisplay.from_errors(errors, [WEIRD, "b", "c", "d"], **options)


def _members(fitted: Any, X: Any, y: Any, **options: Any) -> MembersDisplay:
    mixture = PosteriorMixture(models=[(WEIRD, GaussianNB(rule="ml"))]).fit(X, y)
    return MembersDisplay.from_estimator(mixture, X, **options)


def _trade_off(fitted: Any, X: Any, y: Any, **options: Any) -> TradeOffDisplay:
    return TradeOffDisplay.from_estimator(TradeOffCV(lams=[1.0, 0.5]).fit(X, y), **options)


def _tree(fitted: Any, X: Any, y: Any, **options: Any) -> TreeDisplay:
    penguins = load_penguins()
    return TreeDisplay.from_estimator(
        TreeAugmentedNB(rule="ml").fit(penguins.data, penguins.target), **options
    )


CASES = {
    "reliability": DisplayCase(
        ReliabilityDisplay.from_estimator,
        ("line_", "bars_", "diagonal_"),
        {"color": "green"},
        "GaussianNB (calibration error",
    ),
    "reliability of a class": DisplayCase(
        lambda fitted, X, y, **options: ReliabilityDisplay.from_estimator(
            fitted, X, y, pos_label=WEIRD, **options
        ),
        ("line_",),
        {"color": "green"},
        WEIRD,
    ),
    "cost": DisplayCase(
        CostDisplay.from_estimator, ("line_", "best_", "bayes_"), {"color": "green"}, "GaussianNB: least cost"
    ),
    "gain": DisplayCase(
        lambda fitted, X, y, **options: LiftDisplay.from_estimator(fitted, X, y, pos_label=WEIRD, **options),
        ("line_", "chance_", "best_"),
        {"color": "green"},
        WEIRD,
    ),
    "lift": DisplayCase(
        lambda fitted, X, y, **options: LiftDisplay.from_estimator(fitted, X, y, kind="lift", **options),
        ("line_", "chance_"),
        {"color": "green"},
        "GaussianNB",
    ),
    "history": DisplayCase(
        lambda fitted, X, y, **options: HistoryDisplay.from_estimator(fitted, **options),
        ("lines_",),
        {"color": "green"},
        "GaussianNB",
    ),
    "reasons of a row": DisplayCase(
        lambda fitted, X, y, **options: ReasonsDisplay.from_estimator(fitted, X, row=1, **options),
        ("bars_",),
        {"color": "green"},
        WEIRD,
    ),
    "reasons of all rows": DisplayCase(
        lambda fitted, X, y, **options: ReasonsDisplay.from_estimator(fitted, X, **options),
        ("bars_",),
        {"color": "green"},
        "Contribution of the columns",
    ),
    "coverage": DisplayCase(
        CoverageDisplay.from_estimator, ("line_", "bars_", "diagonal_"), {"color": "green"}, "GaussianNB"
    ),
    "drift": DisplayCase(
        lambda fitted, X, y, **options: DriftDisplay.from_estimator(fitted, X, **options),
        ("bars_", "limit_"),
        {"color": "green"},
        "0 of 3 columns moved",
    ),
    "surprise": DisplayCase(
        lambda fitted, X, y, **options: SurpriseDisplay.from_estimator(fitted, X, **options),
        ("bars_", "expected_"),
        {"color": "green"},
        "GaussianNB",
    ),
    "members": DisplayCase(_members, ("bars_",), {"color": "green"}, WEIRD),
    "trade-off": DisplayCase(
        _trade_off, ("line_", "band_", "chosen_"), {"color": "green"}, "lowest held-out loss"
    ),
    "tree": DisplayCase(_tree, ("lines_", "names_"), {"color": "green"}, "Dependence tree of all classes"),
    "ranks": DisplayCase(_ranks, ("labels_", "bars_"), {"color": "green"}, WEIRD),
}
