"""What questions are worth that are chosen row by row, beside one order for all rows and random ones.

`python -m benchmarks.trust.questions` prints the table of docs/questions.md and draws its picture. It needs the folder of data
sets that CALIBAYES_DATA names. ``--quick`` uses two data sets of scikit-learn and draws nothing.

For each table with at most 20 columns, two thirds of the rows train `NaiveBayes` by maximum likelihood; at most 100 others
are rows of which nothing is known at first. Their cells become known one after another:

- by gain: the cell of the largest expected gain of the row (`questions`).
- one order: the columns by their gain when nothing is known, the same for all rows.
- random: in random order, different in each row.

"until settled" asks by gain and stops in each row when no likely combination of answers changes the decision.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.trust.tables import tables
from calibayes import NaiveBayes

MOST_COLUMNS, MOST_ROWS = 20, 100
PICTURE = Path(__file__).parents[2] / "docs" / "questions.svg"
SHARES = np.linspace(0, 1, 11)
ORDERS = ("by gain", "one order", "random")


class TableResult(NamedTuple):
    """Scores of a table."""

    name: str
    losses: dict[str, np.ndarray]
    """Order -> log loss after 0, 1, ... answers."""
    asked: float
    """Mean number of questions until settled."""
    settled_error: float
    complete_error: float
    same: float
    """Share of rows whose decision when settled is that of all cells."""


def measured(name, X, y):
    """The result of one table."""
    training, test = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=0)
    model = NaiveBayes(rule="ml").fit(X.iloc[training], y[training])
    rows, labels = X.iloc[test[:MOST_ROWS]].reset_index(drop=True), y[test[:MOST_ROWS]]
    losses, (asked, decided) = {}, until_settled(model, rows)
    for order in ORDERS:
        losses[order] = np.array(
            [log_loss(labels, p, labels=model.classes_) for p in posteriors(model, rows, order)]
        )
    complete = model.predict(rows)
    return TableResult(
        name,
        losses,
        asked.mean(),
        np.mean(decided != labels),
        np.mean(complete != labels),
        np.mean(decided == complete),
    )


def posteriors(model, rows, order):
    """The posterior of the rows after 0, 1, ... answers."""
    known = np.zeros(rows.shape, dtype=bool)
    rng = np.random.default_rng(0)
    fixed = rng.permuted(np.tile(np.arange(rows.shape[1]), (len(rows), 1)), axis=1)
    if order == "one order":
        first = model.questions(rows.mask(~known)).gain[:1]
        fixed = np.repeat(np.argsort(-first, axis=1), len(rows), axis=0)
    yield posterior(model, rows, known)
    for step in range(rows.shape[1]):
        chosen = next_cells(model, rows, known) if order == "by gain" else fixed[:, step]
        known[np.arange(len(rows)), chosen] = True
        yield posterior(model, rows, known)


def posterior(model, rows, known):
    return model.predict_proba(rows.mask(~known))


def next_cells(model, rows, known):
    """The unasked cell of the largest gain of each row; cells that are missing in the table are asked for too."""
    gain = model.questions(rows.mask(~known)).gain
    return np.argmax(np.where(known | np.isnan(gain), -np.inf, gain), axis=1)


def until_settled(model, rows):
    """Number of questions and the decision of each row."""
    known, asked = np.zeros(rows.shape, dtype=bool), np.zeros(len(rows), dtype=int)
    for _ in range(rows.shape[1]):
        found = model.questions(rows.mask(~known))
        open_rows = ~found.is_settled & ~known.all(axis=1)
        gain = np.where(known | np.isnan(found.gain), -np.inf, found.gain)
        known[open_rows, np.argmax(gain, axis=1)[open_rows]] = True
        asked += open_rows
    return asked, model.predict(rows.mask(~known))


def at_shares(losses):
    """Log losses at shares of the columns asked for."""
    return np.interp(SHARES, np.linspace(0, 1, len(losses)), losses)


def draw(results):
    """The mean log loss over the tables against the share of cells that are known."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "calibayes"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for order, style in zip(ORDERS, ("o-", "s--", "^:"), strict=True):
        mean = np.mean([at_shares(result.losses[order]) for result in results], axis=0)
        axes.plot(100 * SHARES, mean, style, label=order, markersize=4)
    axes.set(xlabel="cells known (%)", ylabel="log loss (nats)")
    axes.set_title(f"New rows whose cells become known, mean of {len(results)} tables", fontsize=10)
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def report(results):
    print(
        "| table | columns | by gain | one order | random | asked | error then | error, all cells | same decision |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for result in results:
        d = len(result.losses["random"]) - 1
        quarter = [at_shares(result.losses[order])[[2, 3]].mean() for order in ORDERS]
        rows.append((d, *quarter, result.asked, result.settled_error, result.complete_error, result.same))
        print(line(result.name, rows[-1]))
    print(line("mean", np.mean(rows, axis=0)))


def line(name, row):
    d, *losses, asked, error, complete, same = row
    shown = [f"{d:.3g}", *(f"{loss:.3f}" for loss in losses), f"{asked:.1f}"]
    shown += [f"{100 * error:.1f} %", f"{100 * complete:.1f} %", f"{100 * same:.1f} %"]
    return f"| {name} | {' | '.join(shown)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small tables, no picture")
    quick = parser.parse_args().quick
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = ((n, X, y) for n, X, y in tables(quick, most=10**6) if quick or X.shape[1] <= MOST_COLUMNS)
        results = [measured(*table) for table, _ in zip(chosen, range(2 if quick else 20), strict=False)]
    report(results)
    if not quick:
        draw(results)


if __name__ == "__main__":
    main()
