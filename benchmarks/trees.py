"""Held-out error and time of tree-augmented naive Bayes, by maximum likelihood and calibrated.

`python benchmarks/trees.py` prints the figures of docs/trees.md. Held-out errors need the folder of data sets that
CALIBAYES_DATA names, the comparison of times needs pyAgrum; each is skipped if it is missing. ``--quick`` runs everything on
few rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from calibayes import NaiveBayes, TreeAugmentedNB
from calibayes.datasets import load_penguins
from calibayes.families import AllEdges
from calibayes.kernels import level_pairs

NAMES = (
    "vehicle",
    "satellite",
    "splice-uci",
    "car",
    "kr-vs-kp",
    "tic-tac-toe",
    "connect-4",
    "adult",
    "mushroom",
    "vote",
    "soybean",
    "optdigits",
)
FEW_ROWS, MANY_ROWS = 1_000, 20_000
SPLITS, MORE_SPLITS, FEWER_SPLITS = 5, 25, 1
MODELS = {
    "naive Bayes, ml": lambda: NaiveBayes(rule="ml"),
    "naive Bayes, rc": lambda: NaiveBayes(rule="rc"),
    "tree, ml": lambda: TreeAugmentedNB(rule="ml"),
    "tree, rc": lambda: TreeAugmentedNB(rule="rc"),
    "all edges, ml": lambda: TreeAugmentedNB(rule="ml", edges=AllEdges()),
    "all edges, rc": lambda: TreeAugmentedNB(rule="rc", edges=AllEdges()),
    "tree per class, ml": lambda: TreeAugmentedNB(rule="ml", per_class=True),
    "tree per class, rc": lambda: TreeAugmentedNB(rule="rc", per_class=True),
}
CLEAR_GAP = 0.5
"""Percentage points of error."""


def tables(quick):
    """Name -> columns and target."""
    if quick:
        return {"penguins": load_penguins(return_X_y=True)}
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        print("CALIBAYES_DATA is not set: held-out errors are skipped\n")
        return {}
    frames = {name: pd.read_csv(Path(folder) / f"{name}.csv.gz") for name in NAMES}
    return {name: (frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()) for name, frame in frames.items()}


def errors(X, y, splits):
    """Mean held-out error of each model in percent, on the same splits."""
    by_model = {name: [] for name in MODELS}
    for seed in range(splits):
        train, test, labels, truth = train_test_split(X, y, test_size=0.25, random_state=seed)
        for name, make in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = make().fit(train, labels)
            by_model[name].append(100.0 * float(np.mean(model.predict(test) != truth)))
    return {name: float(np.mean(values)) for name, values in by_model.items()}


def splits_for(rows):
    """Number of splits: more for small tables, where a single row matters."""
    if rows > MANY_ROWS:
        return FEWER_SPLITS
    return MORE_SPLITS if rows < FEW_ROWS else SPLITS


def compare_errors(quick):
    """Print the table of held-out errors."""
    print(f"| data | splits | {' | '.join(MODELS)} |")
    print(f"| --- | --- | {' | '.join('---' for _ in MODELS)} |")
    gaps = []
    for name, (X, y) in tables(quick).items():
        splits = 1 if quick else splits_for(len(y))
        by_model = errors(X, y, splits)
        gaps.append(by_model["tree, rc"] - by_model["tree, ml"])
        print(
            f"| {name} | {splits} | {' | '.join(f'{value:.2f}' for value in by_model.values())} |", flush=True
        )
    better, worse = (sum(gap < 0 for gap in gaps), sum(gap > CLEAR_GAP for gap in gaps))
    print(
        f"\nrc is better than ml on {better} of {len(gaps)} data sets; worse by more than half a point on {worse}.\n"
    )


# -- speed -------------------------------------------------------------------------------------------------------------


def dependent_levels(n, d=20, seed=0):
    """Codes (n, d), each column a noisy copy of an earlier one with the class mixed in, and classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    columns = [(rng.integers(0, 4, n) + labels) % 4]
    for j in range(1, d):
        earlier = columns[(j - 1) // 2]
        columns.append(np.where(rng.random(n) < 0.4, earlier, (rng.integers(0, 4, n) + labels * (j % 3)) % 4))
    return np.stack(columns, axis=1), labels


def seconds(run, repeats=3):
    """Lowest wall-clock time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def time_pairs(quick):
    """Print the time of the mutual information of all pairs of columns."""
    n, d, r = (2_000, 20, 5) if quick else (50_000, 100, 5)
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, r, (n, d)), np.eye(2)[rng.integers(0, 2, n)]
    column_pairs = level_pairs.column_pairs((r,) * d, 10_000)

    def run():
        tables = level_pairs.weighted_pairs(codes, weights, (r,) * d, column_pairs)
        return level_pairs.pair_information(tables, column_pairs, (r,) * d)

    print(f"mutual information of all pairs, {d} columns x {n} rows: {seconds(run):.2f} s")


def time_trees(quick):
    """Print the time of fit and predict, and that of pyAgrum if it is installed."""
    n, held_out = (1_000, 200) if quick else (20_000, 2_000)
    codes, labels = dependent_levels(n + held_out)
    words = np.array(["a", "b", "c", "d"])
    train, test = words[codes[:n]], words[codes[n:]]

    def ours():
        TreeAugmentedNB(rule="ml", edges=AllEdges()).fit(train, labels[:n]).predict(test)

    our_seconds = seconds(ours)
    print(f"TreeAugmentedNB, fit on {n} x {codes.shape[1]} and predict {held_out}: {our_seconds:.2f} s")
    if importlib.util.find_spec("pyagrum") is None:
        print("pyAgrum is not installed: the ratio is skipped")
        return
    their_seconds = time_agrum(train, labels[:n], test)
    print(
        f"pyAgrum's BNClassifier (TAN), the same: {their_seconds:.2f} s, {their_seconds / our_seconds:.0f} times as long"
    )


def time_agrum(train, labels, test):
    """Seconds of fit and predict of pyAgrum's tree-augmented naive Bayes."""
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    names = [f"x{j}" for j in range(train.shape[1])]
    frame, test_frame = pd.DataFrame(train, columns=names), pd.DataFrame(test, columns=names)
    processor = DiscreteTypeProcessor()
    model = BNClassifier(type_processor=processor, learningMethod="TAN", prior="Smoothing", priorWeight=1.0)
    start = time.perf_counter()
    model.fit(frame, pd.Series(labels.astype(str), name="y"))
    model.predict(test_frame)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, the penguins only")
    quick = parser.parse_args().quick
    time_pairs(quick)
    time_trees(quick)
    print()
    compare_errors(quick)


if __name__ == "__main__":
    main()
