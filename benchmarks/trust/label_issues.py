"""Planted wrong labels: how many of them `label_issues` finds, beside cleanlab, and how long both take.

    python -m benchmarks.trust.label_issues            # 20 tables, and the time of closed forms
    python -m benchmarks.trust.label_issues --quick    # two tables and few rows, in seconds
    python -m benchmarks.trust.label_issues --time     # the time on the 20 tables alone, beside cleanlab

The folder of tables is that of CALIBAYES_DATA. cleanlab (https://github.com/cleanlab/cleanlab) is optional; without it only
the own results are printed, and ``--time`` measures nothing.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.trust.tables import tables
from calibayes import CategoricalNB, GaussianNB, NaiveBayes

try:
    from cleanlab.classification import CleanLearning
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
except ImportError:
    CleanLearning = None

SHARE = 0.05
"""Share of the labels that are wrong, and of the rows that are looked at."""
FIRST_SEED = 200
"""The score was chosen among variants on draws with smaller seeds; others are measured here."""
OURS = "label_issues"


def planted(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the labels, 5 % of them changed to another class, and which, (n,) booleans."""
    rng, (classes, codes) = np.random.default_rng(seed), np.unique(y, return_inverse=True)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(SHARE * len(y)), replace=False)] = True
    codes[wrong] = (codes[wrong] + rng.integers(1, len(classes), int(wrong.sum()))) % len(classes)
    return codes, wrong


def rankings(X: pd.DataFrame, codes: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Name and order of the rows, most suspicious first: all from the same held-out posteriors of naive Bayes."""
    model = NaiveBayes().fit(X, codes)
    posterior = held_out_posterior(model, X, codes)
    yield OURS, model.label_issues(X, codes, reasons=0).row.to_numpy()
    if CleanLearning is None:
        return
    for method in ("self_confidence", "normalized_margin"):
        for is_adjusted in (False, True):
            name = f"cleanlab {method}" + ", adjusted" * is_adjusted
            score = get_label_quality_scores(codes, posterior, method=method, adjust_pred_probs=is_adjusted)
            yield name, np.argsort(score, kind="stable")
        found = np.isin(
            np.arange(len(codes)), find_label_issues(codes, posterior, return_indices_ranked_by=method)
        )
        score = get_label_quality_scores(codes, posterior, method=method)
        yield f"cleanlab issues by {method}", np.lexsort([score, ~found])


def held_out_posterior(model: Any, X: pd.DataFrame, codes: np.ndarray) -> np.ndarray:
    """The posterior that `label_issues` ranks by, (n, k)."""
    from calibayes.analysis import held_out, label_issues

    record = label_issues.judged_record(model, held_out.labeled_table(model, X, codes, None, reset=True))
    posterior = np.exp(record.log_posterior[np.argsort(record.rows)])
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def precisions(quick: bool, draws: int) -> pd.DataFrame:
    """Share of wrong labels among the first 5 % of the rows: a line for each table, a column for each ranking."""
    lines = {}
    for name, X, y in tables(quick):
        found: dict[str, list[float]] = {}
        for seed in range(FIRST_SEED, FIRST_SEED + draws):
            codes, wrong = planted(y, seed)
            for ranking, order in rankings(X, codes):
                found.setdefault(ranking, []).append(float(wrong[order[: wrong.sum()]].mean()))
        lines[name] = {ranking: np.mean(values) for ranking, values in found.items()}
        print(name, " ".join(f"{value:.3f}" for value in lines[name].values()), flush=True)
    return pd.DataFrame(lines).T


def rows_of(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, levels and labels of random rows: 20 columns, three classes that differ in five of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    numbers = rng.normal(size=(n, 20)) + 0.5 * y[:, None] * (np.arange(20) < 5)
    return numbers, np.clip((1.5 * numbers + 3).astype(np.int64), 0, 7), planted(y, seed)[0]


def seconds(function: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The shortest time of some runs, and the least processor time, that of processes it starts included."""
    runs = []
    for _ in range(repeats):
        start, used = time.perf_counter(), processor_time()
        function()
        runs.append((time.perf_counter() - start, processor_time() - used))
    return min(run[0] for run in runs), min(run[1] for run in runs)


def processor_time() -> float:
    """Seconds of this process and of those that it has started and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def times(sizes: tuple[int, ...]) -> pd.DataFrame:
    """Seconds from an estimator that is not fitted to the ranked rows, fit included; the ratio is of processor times."""
    lines = []
    for n in sizes:
        numbers, levels, y = rows_of(n)
        for model, X in ((GaussianNB(rule="ml"), numbers), (CategoricalNB(rule="ml"), levels)):
            repeats = 7 if n <= 20_000 else 4
            line = {"rows": n, "model": type(model).__name__}
            line["s"], line["processor s"] = seconds(lambda m=model, X=X, y=y: m.label_issues(X, y), repeats)
            if CleanLearning is not None:
                learner = CleanLearning(type(model)(rule="ml"), cv_n_folds=5)
                used = seconds(lambda c=learner, X=X, y=y: c.find_label_issues(X, y), repeats)
                line["cleanlab s"], line["cleanlab processor s"] = used
                line["ratio"] = line["cleanlab processor s"] / line["processor s"]
            lines.append(line)
            print(line, flush=True)
    return pd.DataFrame(lines)


def closed_form(X: pd.DataFrame) -> tuple[Any, np.ndarray]:
    """A naive Bayes model in closed form and its columns: codes of levels, or the numbers of a table that has any."""
    numbers = X.select_dtypes("number")
    if numbers.shape[1]:
        return GaussianNB(rule="ml"), numbers.to_numpy(float)
    codes = [np.maximum(pd.factorize(X[name], sort=True)[0], 0) for name in X]
    return CategoricalNB(rule="ml"), np.column_stack(codes)


def times_of_tables(quick: bool, repeats: int) -> pd.DataFrame:
    """Seconds to rank the rows of each table; ours by a model that is fitted before, cleanlab's by five folds.

    The runs alternate, so that other work on the machine slows down all of them.
    """
    lines = {}
    for name, X, y in tables(quick):
        codes = pd.factorize(y, sort=True)[0]
        model, columns = closed_form(X)
        model.fit(columns, codes)
        calls = {OURS: lambda m=model, x=columns, c=codes: m.label_issues(x, c)}
        for label, options in (("cleanlab", {}), ("cleanlab, n_jobs=1", {"n_jobs": 1})):
            learner = CleanLearning(
                type(model)(rule="ml"), cv_n_folds=5, find_label_issues_kwargs=options, verbose=False
            )
            calls[label] = lambda c=learner, x=columns, y=codes: c.find_label_issues(x, y)
        runs = [{label: seconds(call, 1) for label, call in calls.items()} for _ in range(repeats)]
        lines[name] = {
            f"{label}{unit}": min(run[label][i] for run in runs)
            for i, unit in enumerate((" s", " processor s"))
            for label in calls
        }
        print(name, " ".join(f"{value:.4f}" for value in lines[name].values()), flush=True)
    return pd.DataFrame(lines).T


def print_ratios(found: pd.DataFrame) -> None:
    """How many times as long as ours each of the others takes: geometric mean over tables, and ratio of the sums."""
    for unit in (" s", " processor s"):
        ours = found[f"{OURS}{unit}"]
        for label in ("cleanlab", "cleanlab, n_jobs=1"):
            other = found[f"{label}{unit}"]
            mean = np.exp(np.log(other / ours).mean())
            print(f"{label},{unit}: {mean:.1f} (geometric mean), {other.sum() / ours.sum():.1f} (sums)")


def figure(found: pd.DataFrame, path: Path) -> None:
    """Precision on each table: ours, and the better of cleanlab's on average."""
    import matplotlib.pyplot as plt

    others = [name for name in found if name != OURS]
    best = found[others].mean().idxmax() if others else OURS
    ordered = found.sort_values(OURS)
    axes = plt.subplots(figsize=(7, 5))[1]
    places = np.arange(len(ordered))
    axes.hlines(places, ordered[OURS], ordered[best], color="0.8")
    axes.plot(ordered[best], places, "o", color="0.55", label=best)
    axes.plot(ordered[OURS], places, "o", color="tab:blue", label=OURS)
    axes.axvline(SHARE, color="0.7", linestyle=":", label="by chance")
    axes.set_yticks(places, ordered.index, fontsize=8)
    axes.set(xlabel="share of wrong labels among the first 5 % of the rows", xlim=(0, 1.02))
    axes.legend(loc="lower right", frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.tight_layout()
    plt.rcParams["svg.hashsalt"] = "calibayes"
    axes.figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--times-only", action="store_true")
    parser.add_argument("--time", action="store_true", help="time on the tables, model fitted before")
    parser.add_argument("--repeats", type=int, default=7, help="runs of which --time takes the shortest")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.time:
        if CleanLearning is None:
            raise SystemExit("--time compares with cleanlab, which is not installed: pip install cleanlab")
        print_ratios(times_of_tables(arguments.quick, arguments.repeats))
        return
    if not arguments.times_only:
        found = precisions(arguments.quick, 1 if arguments.quick else arguments.draws)
        print(found.mean().sort_values(ascending=False).round(4).to_string())
        if arguments.figure is not None:
            figure(found, arguments.figure)
    print(times((1_000,) if arguments.quick else (1_000, 20_000, 200_000)).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
