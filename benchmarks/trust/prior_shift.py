"""Class frequencies that moved by a factor of 3: error with, without and after adapting to them, on twenty tables.

Half of each table is for training. Of the other half, the odds of one class at a time are multiplied or divided by 3, by
leaving out two thirds of the rows of the other classes, or of that class. The rest are the new rows, without labels.
``--large`` measures all tables with 1,000 rows or more in that half, `CALIBAYES_DATA` being one folder or several (a:b).

Columns: errors without adapting, after `adapt_priors` and with known frequencies; with frequencies of `adapt_priors` of
BayesClassifier (``--of-bayes``); "informed" is the bound of `informed_frequencies`, "deviation" that of the log odds of the
moved class, by which a shift of log 3 = 1.1 must be seen.

    CALIBAYES_DATA=... python -m benchmarks.trust.prior_shift
    CALIBAYES_DATA=... python -m benchmarks.trust.prior_shift --large --of-bayes
    python -m benchmarks.trust.prior_shift --quick
"""

from __future__ import annotations

import argparse
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedShuffleSplit

import calibayes as cb
from benchmarks.trust.prior_shift_bounds import informed_frequencies, log_odds_deviation
from benchmarks.trust.tables import FEWEST_ROWS, tables
from calibayes.analysis.prior_shift_tests import LabeledSample

FACTOR = 3
MOST_CLASSES = 3
"""Classes of a table whose frequency is moved, the first in a random order."""
MOST_TRAINING, MOST_NEW = 2500, 4000
LARGE = 2000
"""Fewest rows of a large table: half of them are new."""
PICTURES = Path(__file__).parents[2] / "docs"
MODELS = {"NaiveBayes": cb.NaiveBayes, "BayesClassifier": cb.BayesClassifier}


def scenarios(
    codes: np.ndarray, k: int, rng: np.random.Generator
) -> Iterator[tuple[str, int | None, np.ndarray]]:
    """What was done with the new rows, the class that was moved, and positions of the rows that are left."""
    yield "unmoved", None, np.arange(len(codes))
    for c in rng.permutation(k)[:MOST_CLASSES]:
        for thinned in (codes != c, codes == c):
            rows = rng.permutation(np.flatnonzero(thinned))
            yield (
                "moved",
                int(c),
                np.setdiff1d(np.arange(len(codes)), rows[: len(rows) * (FACTOR - 1) // FACTOR]),
            )


def split_of(y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training rows and of the new rows."""
    share = min(0.5, MOST_TRAINING / len(y))
    splitter = StratifiedShuffleSplit(1, train_size=share, test_size=0.5, random_state=split)
    training, new = next(splitter.split(np.zeros((len(y), 1)), y))
    return training, new[:MOST_NEW]


def split_results(
    models: list[Any], X: pd.DataFrame, y: np.ndarray, split: int, bootstrap: int
) -> Iterator[dict[str, Any]]:
    """Results of the first model for each scenario of one split; a second one estimates frequencies for it."""
    training, new = split_of(y, split)
    model, *others = [model.fit(X.iloc[training], y[training]) for model in models]
    others = [without_training_rows(other) for other in others]
    codes, k = np.searchsorted(model.classes_, y[new]), len(model.classes_)
    for kind, c, kept in scenarios(codes, k, np.random.default_rng(split)):
        X_new = X.iloc[new[kept]]
        adapted = model.adapt_priors(X_new, bootstrap=bootstrap)
        compared = {"unadapted": model, "adapted": adapted}
        for other in others:
            frequencies = other.adapt_priors(X_new, bootstrap=20).adapted_priors_
            compared[f"adapted by {type(other).__name__}"] = model.with_priors(frequencies)
        yield {"kind": kind, **scenario_result(compared, X_new, codes[kept], c)}


def without_training_rows(model: Any) -> Any:
    """A copy with held-out rows, but without training rows: `adapt_priors` does not test p(x | class) then, which takes a fit."""
    assert len(model.held_out_.codes)
    return pickle.loads(pickle.dumps(model))


def scenario_result(
    compared: dict[str, Any], X_new: pd.DataFrame, codes: np.ndarray, c: int | None
) -> dict[str, Any]:
    """Errors in percent, those with known and with informed frequencies among them, and what the report says."""
    model, report = compared["unadapted"], compared["adapted"].prior_shift_
    counts = np.maximum(np.bincount(codes, minlength=len(model.classes_)), 1e-9)
    frequencies = counts / counts.sum()
    sample, log_posterior = LabeledSample.of(model.held_out_), model.predict_log_proba(X_new)
    informed = model.with_priors(informed_frequencies(sample, log_posterior, FACTOR))
    further = {"known": model.with_priors(frequencies), "informed": informed}
    low, high = report.interval.T
    return {
        "rows": len(codes),
        **{
            name: 100 * float(np.mean(estimator.predict(X_new) != model.classes_[codes]))
            for name, estimator in (compared | further).items()
        },
        "deviation": np.nan if c is None else log_odds_deviation(sample, log_posterior, frequencies, c),
        "shift found": report.has_shift,
        "x alarm": report.is_of_classes_alone is False,
        "coverage": float(np.mean((low <= frequencies) & (frequencies <= high))),
    }


def measured(name: str, splits: int, given: argparse.Namespace) -> pd.DataFrame:
    """All results of a model, a line for each scenario."""
    found = []
    most, fewest = (None, LARGE) if given.large else (20, FEWEST_ROWS)
    others = [cb.BayesClassifier] if given.of_bayes and name != "BayesClassifier" else []
    for table, X, y in tables(given.quick, most, sampled=given.sampled or given.large, fewest=fewest):
        for split in range(splits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                models = [make() for make in (MODELS[name], *others)]
                results = split_results(models, X, y, split, 60 if given.quick else 100)
                found += [{"table": table, "n": len(y), **result} for result in results]
    return pd.DataFrame(found)


def by_table(results: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Means over the scenarios of each table."""
    return results[results["kind"] == kind].drop(columns="kind").groupby("table").mean()


def summarized(results: pd.DataFrame) -> pd.DataFrame:
    """Means over tables: all, those of at least 1,000 rows, and those where a shift is at least three deviations."""
    lines = {}
    precise = by_table(results, "moved")["deviation"] <= np.log(FACTOR) / 3
    for kind in ("moved", "unmoved"):
        means = by_table(results, kind)
        parts = {
            "all tables": means,
            "from 1,000 rows on": means[means["n"] >= 1000],
            "shift of 3 deviations": means[precise],
        }
        for of, chosen in parts.items():
            lines[kind, of] = {
                "tables": len(chosen),
                **chosen.drop(columns=["n", "rows", "deviation"]).mean(),
            }
    return pd.DataFrame(lines).T


def draw(results: dict[str, pd.DataFrame], path: Path) -> None:
    """For each table, the error without adapting, after it and of the bound, above that with known frequencies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "prior shift", "svg.fonttype": "none"})
    figure, panels = plt.subplots(1, len(results), figsize=(4.6 * len(results), 4.8), squeeze=False)
    for panel, (name, found) in zip(panels[0], results.items(), strict=True):
        means = by_table(found, "moved")
        means = means.loc[(means["unadapted"] - means["known"]).sort_values().index]
        places = np.arange(len(means))
        unadapted, adapted, informed = (
            means[column] - means["known"] for column in ("unadapted", "adapted", "informed")
        )
        panel.hlines(places, adapted, unadapted, color="0.8", zorder=0)
        panel.plot(unadapted, places, "o", color="#c44e52", label="training frequencies")
        panel.plot(adapted, places, "o", color="#4c72b0", label="adapt_priors")
        panel.plot(
            informed, places, "o", color="0.3", markersize=8, markerfacecolor="none", label="informed (bound)"
        )
        panel.axvline(0, color="black", linewidth=0.8)
        panel.set_yticks(places, means.index, fontsize=7)
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xticks([-1, 0, 1, 3, 10, 20], ["-1", "0", "1", "3", "10", "20"])
        panel.set(title=name, xlabel="error above known frequencies, points", xlim=(-2, 30))
    panels[0][0].legend(loc="lower right", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def results_of(name: str, splits: int, given: argparse.Namespace) -> pd.DataFrame:
    """The results of a model, from a file in the folder if it is there; else they are measured and written to it."""
    path = None if given.results is None else given.results / f"prior-shift-{name}.csv"
    if path is not None and path.exists():
        return pd.read_csv(path)
    results = measured(name, splits, given)
    if path is not None:
        results.to_csv(path, index=False)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two tables of scikit-learn, one split")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    parser.add_argument("--splits", type=int, default=2, help="of NaiveBayes; one of BayesClassifier")
    parser.add_argument("--sampled", action="store_true", help="also larger tables, of which rows are drawn")
    parser.add_argument(
        "--large", action="store_true", help="all tables with 1,000 new rows or more, one split"
    )
    parser.add_argument("--of-bayes", action="store_true", help="also frequencies of BayesClassifier")
    parser.add_argument("--results", type=Path, help="folder of results, which are measured once")
    parser.add_argument("--draw", action="store_true", help="write the picture of docs/prior-shift.md")
    given = parser.parse_args()
    results = {}
    for name in given.models[: 1 if given.quick else None]:
        splits = 1 if given.quick or given.large or name == "BayesClassifier" else given.splits
        results[name] = results_of(name, splits, given)
        print(f"{name}: errors in percent, {splits} splits\n")
        print(by_table(results[name], "moved").round(2).to_string(), "\n")
        print(summarized(results[name]).round(3).to_string(), "\n", flush=True)
    if given.draw:
        draw(results, PICTURES / ("prior-shift-large.svg" if given.large else "prior-shift.svg"))


if __name__ == "__main__":
    main()
