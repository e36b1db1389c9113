"""Gaps between groups and error before and after thresholds by group, on the rows they were found on and on new rows.

`python -m benchmarks.trust.fairness` prints the table of docs/fairness.md and draws its picture. It needs the folder of data
sets that CALIBAYES_DATA names. ``--quick`` uses made-up rows and draws nothing.

A third of the rows trains `NaiveBayes` (without the column of the group), a third finds the thresholds, a third is new.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from calibayes import NaiveBayes
from calibayes.trust import fair_thresholds

PICTURE = Path(__file__).parents[2] / "docs" / "fairness.svg"
CRITERIA = ("equal_opportunity", "demographic_parity")
TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
CASES = (("adult", "sex", ">50K"), ("adult", "race", ">50K"), ("indian-liver", "gender", 1))
"""Table, column of the groups, favorable class."""


class Score(NamedTuple):
    """Gap and error of decisions."""

    gap: float
    error: float


class Part(NamedTuple):
    """Some rows of a table."""

    X: pd.DataFrame
    y: np.ndarray
    groups: np.ndarray


class Outcome(NamedTuple):
    """Scores on the rows that thresholds were found on, and on new rows."""

    found_before: Score
    found_after: Score
    new_before: Score
    new_after: Score


def table(name, column):
    """Columns, labels and groups; groups of fewer than 2 % of the rows are joined."""
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets, or give --quick")
    frame = pd.read_csv(Path(folder) / f"{name}.csv.gz").dropna(subset=[column])
    share = frame[column].map(frame[column].value_counts(normalize=True))
    groups = frame[column].where(share >= 0.02, "other").to_numpy(dtype=object)
    return frame.drop(columns=["target", column]), frame["target"].to_numpy(), groups


def made_up(n=3000):
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], n, p=[0.7, 0.3]).astype(object)
    y = (rng.random(n) < np.where(groups == "a", 0.6, 0.4)).astype(int)
    numbers = rng.normal(size=(n, 2)) + y[:, None] - 0.8 * (groups == "b")[:, None]
    return pd.DataFrame(numbers, columns=["income", "savings"]), y, groups


def parts(X, y, groups):
    """Rows to train on, to find thresholds on, and new ones."""
    third = np.random.default_rng(0).permutation(len(y)) % 3
    return [Part(X[third == i], y[third == i], groups[third == i]) for i in range(3)]


def score(decided, part, criterion, positive):
    """Largest difference of the criterion's rate between two groups, and the error."""
    counted = part.y == positive if criterion == "equal_opportunity" else np.ones(len(part.y), dtype=bool)
    rates = [np.mean(decided[counted & (part.groups == g)] == positive) for g in np.unique(part.groups)]
    return Score(np.ptp(rates), np.mean(decided != part.y))


def outcome(model, found_on, new, criterion, positive, tolerance):
    fair = fair_thresholds(model, *found_on, criterion=criterion, positive=positive, tolerance=tolerance)
    scores = [
        score(decided, part, criterion, positive)
        for part in (found_on, new)
        for decided in (model.predict(part.X), fair.decide(model, part.X, part.groups))
    ]
    return Outcome(*scores)


def report(name, outcomes):
    for criterion in CRITERIA:
        result = outcomes[criterion, 0.02]
        cells = [f"{value:.3f}" for pair in result for value in pair]
        print(f"| {name} | {criterion} | {' | '.join(cells)} |")


def draw(outcomes, name):
    """Error on new rows against the gap on new rows, along the tolerances."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "calibayes"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for criterion, style, color in zip(CRITERIA, ("o-", "s--"), ("C0", "C1"), strict=True):
        along = [outcomes[criterion, tolerance].new_after for tolerance in TOLERANCES]
        label = criterion.replace("_", " ")
        axes.plot([s.gap for s in along], [100 * s.error for s in along], style, color=color, label=label)
        before = outcomes[criterion, TOLERANCES[0]].new_before
        axes.plot(before.gap, 100 * before.error, "*", color=color, markersize=12)
    axes.set(xlabel="gap between the groups' rates, new rows", ylabel="error on new rows (%)")
    axes.set_title(f"{name}: thresholds by group; stars are the model's own decisions", fontsize=10)
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="made-up rows, no picture")
    quick = parser.parse_args().quick
    print(
        "| groups | criterion | gap | error | gap after | error after | gap, new | error, new | gap after | error after |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in (("made up", "group", 1),) if quick else CASES:
        name, column, positive = case
        training, found_on, new = parts(*(made_up() if quick else table(name, column)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = NaiveBayes().fit(training.X, training.y)
            outcomes = {
                (criterion, tolerance): outcome(model, found_on, new, criterion, positive, tolerance)
                for criterion in CRITERIA
                for tolerance in TOLERANCES
            }
        report(f"{name}, {column}", outcomes)
        if case == CASES[0]:
            draw(outcomes, f"{name}, {column}")


if __name__ == "__main__":
    main()
