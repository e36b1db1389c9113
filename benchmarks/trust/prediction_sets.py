"""Coverage and size of prediction sets on twenty tables, beside MAPIE's if it is installed.

Each table is divided at random into training and test rows of the same number. Coverage is the share of the test rows whose
class is in the set; by class, of the test rows of each class. `--bayes` measures BayesClassifier, whose training has made
posteriors of held-out rows, and nothing beside it.

    python -m benchmarks.trust.prediction_sets --records sets.csv
    python -m benchmarks.trust.prediction_sets --bayes --splits 5
    python -m benchmarks.trust.prediction_sets --read sets.csv --picture sets.svg
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.trust.tables import tables
from calibayes import BayesClassifier, NaiveBayes

COVERAGE = 0.9
FOLDS, SPLIT, BY_CLASS, ADAPTIVE = "folds", "split", "folds, by class", "folds, adaptive"
PEER = "MAPIE, folds"
Sets = Callable[[Any], np.ndarray]
"""Sets (n, k) of the test rows."""


def fold_sets(model: Any, X: pd.DataFrame, codes: np.ndarray) -> dict[str, Sets]:
    """Name -> sets, with training rows that were held out in folds."""
    fitted = model.fit(X, codes)
    return {
        FOLDS: lambda new: fitted.predict_set(new, COVERAGE),
        BY_CLASS: lambda new: fitted.predict_set(new, COVERAGE, by_class=True),
        ADAPTIVE: lambda new: fitted.predict_set(new, COVERAGE, score="adaptive"),
    }


def split_sets(model: Any, X: pd.DataFrame, codes: np.ndarray) -> dict[str, Sets]:
    """Name -> sets: half of the rows is for training, the other half is held out."""
    half = np.arange(len(codes)) < len(codes) // 2
    fitted = model.fit(X[half], codes[half]).with_held_out(X[~half], codes[~half])
    return {SPLIT: lambda new: fitted.predict_set(new, COVERAGE)}


def peer_sets(model: Any, X: pd.DataFrame, codes: np.ndarray) -> dict[str, Sets]:
    """Those of MAPIE with five folds and its score "lac", 1 - p(class | x)."""
    from mapie.classification import CrossConformalClassifier

    peer = CrossConformalClassifier(model, COVERAGE, conformity_score="lac", cv=5, random_state=0)
    peer.fit_conformalize(X, codes)
    return {PEER: lambda new: peer.predict_set(new)[1][:, :, 0]}


def measured(bayes: bool, quick: bool, splits: int) -> Iterator[dict[str, Any]]:
    """For each table, split, kind of sets and class: test rows, those whose class is in the set, and sizes of sets."""
    model = BayesClassifier if bayes else NaiveBayes
    further = [] if bayes else [split_sets, *([peer_sets] if find_spec("mapie") else [])]
    for name, X, y in tables(quick):
        codes = np.unique(y, return_inverse=True)[1]
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(codes))
            train, test = np.array_split(order, 2)
            given = (X.iloc[train].reset_index(drop=True), codes[train])
            kinds = [fitted(model(), *given) for fitted in (fold_sets, *further)]
            for kind, sets_of in [pair for made in kinds for pair in made.items()]:
                yield from _by_class(sets_of(X.iloc[test]), codes[test], table=name, split=split, kind=kind)
        print(f"{name}: {len(codes)} rows", flush=True)


def _by_class(sets: np.ndarray, codes: np.ndarray, **said: Any) -> Iterator[dict[str, Any]]:
    covered, sizes = sets[np.arange(len(codes)), codes], sets.sum(axis=1)
    for code in np.unique(codes):
        rows = codes == code
        yield {
            **said,
            "class": int(code),
            "rows": int(rows.sum()),
            "covered": int(covered[rows].sum()),
            "size": int(sizes[rows].sum()),
        }


def by_table(records: pd.DataFrame) -> pd.DataFrame:
    """Coverage and average size of the sets of each kind and table, over all splits."""
    sums = records.groupby(["kind", "table"])[["rows", "covered", "size"]].sum()
    return pd.DataFrame({"coverage": sums.covered / sums.rows, "size": sums["size"] / sums.rows})


def by_class(records: pd.DataFrame) -> pd.DataFrame:
    """Coverage of each class."""
    sums = records.groupby(["kind", "table", "class"])[["rows", "covered"]].sum()
    return pd.DataFrame({"rows": sums.rows, "coverage": sums.covered / sums.rows})


def summary(records: pd.DataFrame) -> pd.DataFrame:
    """Kinds of sets: coverage on average, of the tables furthest below and above, of classes, and average size."""
    tables_of, classes = by_table(records), by_class(records)
    shown = pd.DataFrame(
        {
            "coverage": tables_of.coverage.groupby("kind").mean(),
            "lowest table": tables_of.coverage.groupby("kind").min(),
            "highest table": tables_of.coverage.groupby("kind").max(),
            "average of classes": classes.coverage.groupby("kind").mean(),
            "lowest class": classes.coverage.groupby("kind").min(),
            "highest class": classes.coverage.groupby("kind").max(),
            "size": tables_of["size"].groupby("kind").mean(),
        }
    )
    return shown.loc[[kind for kind in records.kind.unique() if kind in shown.index]]


def draw(tables_of: pd.DataFrame, path: str) -> None:
    """Coverage of each table beside the promised one, and sizes of sets."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "calibayes", "svg.fonttype": "none", "font.size": 9})
    names = tables_of.loc[FOLDS].index[::-1]
    places = np.arange(len(names))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 5.2), sharey=True, layout="constrained")
    left.axvspan(COVERAGE - 0.03, COVERAGE + 0.03, color="0.93", label="within 3 points")
    left.axvline(COVERAGE, color="0.4", linewidth=1, label="promised")
    shown = {
        FOLDS: ("o", "#1f5fa8"),
        SPLIT: ("s", "#6baed6"),
        BY_CLASS: ("^", "#2e8b57"),
        PEER: ("x", "#c2571a"),
    }
    for kind, (marker, color) in shown.items():
        if kind in tables_of.index:
            of_kind = tables_of.loc[kind].loc[names]
            left.plot(of_kind.coverage, places, marker, color=color, markersize=4.5, label=kind)
            right.plot(of_kind["size"], places, marker, color=color, markersize=4.5)
    left.set(xlabel="coverage of test rows", yticks=places, yticklabels=names)
    right.set(xlabel="average number of classes in a set")
    right.grid(axis="y", color="0.93")
    left.legend(fontsize=7.5, loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two tables of scikit-learn, three splits")
    parser.add_argument("--splits", type=int, default=20, help="random divisions of each table")
    parser.add_argument("--bayes", action="store_true", help="BayesClassifier instead of NaiveBayes")
    parser.add_argument("--records", help="CSV file of all measurements to write")
    parser.add_argument("--read", help="CSV file of an earlier run, to show again")
    parser.add_argument("--picture", help="SVG file to draw")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # calibration that ends at its largest number of updates
    if options.read:
        records = pd.read_csv(options.read)
    else:
        splits = 3 if options.quick else options.splits
        records = pd.DataFrame(measured(options.bayes, options.quick, splits))
    print(by_table(records).unstack("kind").round(3).to_string())
    print(summary(records).round(3).to_string())
    if options.records:
        records.to_csv(options.records, index=False)
    if options.picture:
        draw(by_table(records), options.picture)


if __name__ == "__main__":
    main()
