"""Class frequencies that moved by a factor of 3: error with, without and after adapting to them, on twenty tables.

Half of each table is for training. Of the other half, the odds of one class at a time are multiplied or divided by 3, by
leaving out two thirds of the rows of the other classes, or of that class. The rest are the new rows, without labels.

    CALIBAYES_DATA=... python -m benchmarks.trust.prior_shift
    python -m benchmarks.trust.prior_shift --quick
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedShuffleSplit

import calibayes as cb
from benchmarks.trust.tables import tables

FACTOR = 3
MOST_CLASSES = 3
"""Classes of a table whose frequency is moved, the first in a random order."""
MOST_TRAINING, MOST_NEW = 2500, 4000
PICTURE = Path(__file__).parents[2] / "docs" / "prior-shift.svg"
MODELS = {"NaiveBayes": cb.NaiveBayes, "BayesClassifier": cb.BayesClassifier}


def scenarios(codes: np.ndarray, k: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """What was done with the new rows, and positions of those that are left."""
    yield "unmoved", np.arange(len(codes))
    for c in rng.permutation(k)[:MOST_CLASSES]:
        for thinned in (codes != c, codes == c):
            rows = rng.permutation(np.flatnonzero(thinned))
            yield "moved", np.setdiff1d(np.arange(len(codes)), rows[: len(rows) * (FACTOR - 1) // FACTOR])


def split_results(
    model: Any, X: pd.DataFrame, y: np.ndarray, split: int, bootstrap: int
) -> Iterator[dict[str, Any]]:
    """Errors on the new rows of each scenario of one split, in percent."""
    share = min(0.5, MOST_TRAINING / len(y))
    splitter = StratifiedShuffleSplit(1, train_size=share, test_size=0.5, random_state=split)
    training, new = next(splitter.split(X, y))
    new = new[:MOST_NEW]
    model.fit(X.iloc[training], y[training])
    codes, k = np.searchsorted(model.classes_, y[new]), len(model.classes_)
    for kind, kept in scenarios(codes, k, np.random.default_rng(split)):
        X_new, truth = X.iloc[new[kept]], y[new[kept]]
        frequencies = np.maximum(np.bincount(codes[kept], minlength=k), 1e-9) / len(kept)
        adapted = model.adapt_priors(X_new, bootstrap=bootstrap)
        known = model.with_priors(frequencies / frequencies.sum())
        report = adapted.prior_shift_
        low, high = report.interval.T
        yield {
            "kind": kind,
            "rows": len(kept),
            **{
                name: 100 * float(np.mean(estimator.predict(X_new) != truth))
                for name, estimator in (("unadapted", model), ("adapted", adapted), ("known", known))
            },
            "shift found": report.has_shift,
            "x alarm": report.is_of_classes_alone is False,
            "coverage": float(np.mean((low <= frequencies) & (frequencies <= high))),
        }


def measured(name: str, splits: int, quick: bool, sampled: bool) -> pd.DataFrame:
    """All results of a model, a line for each scenario."""
    found = []
    for table, X, y in tables(quick, sampled=sampled):
        for split in range(splits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = split_results(MODELS[name](), X, y, split, 60 if quick else 100)
                found += [{"table": table, "n": len(y), **result} for result in results]
    return pd.DataFrame(found)


def by_table(results: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Means over the scenarios of each table."""
    return results[results["kind"] == kind].drop(columns="kind").groupby("table").mean()


def summarized(results: pd.DataFrame) -> pd.DataFrame:
    """Means over tables: all, and those of at least 1,000 rows."""
    lines = {}
    for kind in ("moved", "unmoved"):
        means = by_table(results, kind)
        for of, chosen in (("all tables", means), ("from 1,000 rows on", means[means["n"] >= 1000])):
            lines[kind, of] = {"tables": len(chosen), **chosen.drop(columns=["n", "rows"]).mean()}
    return pd.DataFrame(lines).T


def draw(results: dict[str, pd.DataFrame], path: Path) -> None:
    """For each table, the error without adapting and after it, above that with known frequencies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "prior shift", "svg.fonttype": "none"})
    figure, panels = plt.subplots(1, len(results), figsize=(4.6 * len(results), 4.8), squeeze=False)
    for panel, (name, found) in zip(panels[0], results.items(), strict=True):
        means = by_table(found, "moved")
        means = means.loc[(means["unadapted"] - means["known"]).sort_values().index]
        places = np.arange(len(means))
        unadapted, adapted = (means[column] - means["known"] for column in ("unadapted", "adapted"))
        panel.hlines(places, adapted, unadapted, color="0.8", zorder=0)
        panel.plot(unadapted, places, "o", color="#c44e52", label="training frequencies")
        panel.plot(adapted, places, "o", color="#4c72b0", label="adapt_priors")
        panel.axvline(0, color="black", linewidth=0.8)
        panel.set_yticks(places, means.index, fontsize=7)
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xticks([-1, 0, 1, 3, 10, 20], ["-1", "0", "1", "3", "10", "20"])
        panel.set(title=name, xlabel="error above known frequencies, points")
    panels[0][0].legend(loc="upper left", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def results_of(name: str, splits: int, quick: bool, sampled: bool, folder: Path | None) -> pd.DataFrame:
    """The results of a model, from a file in the folder if it is there; else they are measured and written to it."""
    path = None if folder is None else folder / f"prior-shift-{name}.csv"
    if path is not None and path.exists():
        return pd.read_csv(path)
    results = measured(name, splits, quick, sampled)
    if path is not None:
        results.to_csv(path, index=False)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two tables of scikit-learn, one split")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--splits", type=int, default=2, help="of NaiveBayes; one of BayesClassifier")
    parser.add_argument("--sampled", action="store_true", help="also larger tables, of which rows are drawn")
    parser.add_argument("--results", type=Path, help="folder of results, which are measured once")
    parser.add_argument("--draw", action="store_true", help=f"write {PICTURE.name}")
    given = parser.parse_args()
    results = {}
    for name in given.models[: 1 if given.quick else None]:
        splits = 1 if given.quick or name == "BayesClassifier" else given.splits
        results[name] = results_of(name, splits, given.quick, given.sampled, given.results)
        print(f"{name}: errors in percent, {splits} splits\n")
        print(by_table(results[name], "moved").round(2).to_string(), "\n")
        print(summarized(results[name]).round(3).to_string(), "\n", flush=True)
    if given.draw:
        draw(results, PICTURE)


if __name__ == "__main__":
    main()
