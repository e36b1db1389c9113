"""Tree-augmented naive Bayes, calibrated and not, on held-out rows; and how long trees take, beside pyAgrum's.

`python benchmarks/trees.py` prints the tables of docs/trees.md. Errors need the folder of data sets that CALIBAYES_DATA
names, and are left out without it; the ratio to pyAgrum needs pyAgrum. ``--quick`` is a run of everything on few rows.
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
from calibayes.kernels.levels import pairs

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
    "every edge, ml": lambda: TreeAugmentedNB(rule="ml", edges=AllEdges()),
    "every edge, rc": lambda: TreeAugmentedNB(rule="rc", edges=AllEdges()),
    "a tree a class, ml": lambda: TreeAugmentedNB(rule="ml", per_class=True),
    "a tree a class, rc": lambda: TreeAugmentedNB(rule="rc", per_class=True),
}
HALF_A_POINT = 0.5


def tables(quick):
    """Name -> columns and target."""
    if quick:
        penguins = load_penguins()
        columns = {name: penguins.columns.column(j) for j, name in enumerate(penguins.columns.names)}
        return {"penguins": (pd.DataFrame(columns), penguins.target)}
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        print("CALIBAYES_DATA is not set: no errors on held-out rows\n")
        return {}
    frames = {name: pd.read_csv(Path(folder) / f"{name}.csv.gz") for name in NAMES}
    return {name: (frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()) for name, frame in frames.items()}


def errors(X, y, splits):
    """Held-out error in per cent of each model, on the same splits."""
    found = {name: [] for name in MODELS}
    for seed in range(splits):
        train, test, codes, truth = train_test_split(X, y, test_size=0.25, random_state=seed)
        for name, make in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = make().fit(train, codes)
            found[name].append(100.0 * float(np.mean(model.predict(test) != truth)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def splits_for(rows):
    """More of them where a row more or less is much."""
    if rows > MANY_ROWS:
        return FEWER_SPLITS
    return MORE_SPLITS if rows < FEW_ROWS else SPLITS


def compare_errors(quick):
    print(f"| data | splits | {' | '.join(MODELS)} |")
    print(f"| --- | --- | {' | '.join('---' for _ in MODELS)} |")
    verdicts = []
    for name, (X, y) in tables(quick).items():
        splits = 1 if quick else splits_for(len(y))
        found = errors(X, y, splits)
        verdicts.append(found["tree, rc"] - found["tree, ml"])
        print(f"| {name} | {splits} | {' | '.join(f'{value:.2f}' for value in found.values())} |", flush=True)
    better, worse = (sum(v < 0 for v in verdicts), sum(v > HALF_A_POINT for v in verdicts))
    print(
        f"\nrc is better than ml on {better} of {len(verdicts)}; worse by more than half a point on {worse}.\n"
    )


# -- speed -------------------------------------------------------------------------------------------------------------


def levels_that_hang_together(n, d=20, seed=0):
    """Rows of levels of which each column repeats an earlier one now and then; the class moves the first."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    columns = [(rng.integers(0, 4, n) + labels) % 4]
    for j in range(1, d):
        earlier = columns[(j - 1) // 2]
        columns.append(np.where(rng.random(n) < 0.4, earlier, (rng.integers(0, 4, n) + labels * (j % 3)) % 4))
    return np.stack(columns, axis=1), labels


def seconds(run, repeats=3):
    """The quickest of some runs."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def time_pairs(quick):
    n, d, r = (2_000, 20, 5) if quick else (50_000, 100, 5)
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, r, (n, d)), np.eye(2)[rng.integers(0, 2, n)]
    kept = pairs.column_pairs((r,) * d, 10_000)

    def run():
        tables = pairs.weighted_pairs(codes, weights, (r,) * d, kept)
        return pairs.pair_information(tables, kept, (r,) * d)

    print(f"mutual information of all pairs, {d} columns x {n} rows: {seconds(run):.2f} s")


def time_trees(quick):
    n, held_out = (1_000, 200) if quick else (20_000, 2_000)
    codes, labels = levels_that_hang_together(n + held_out)
    words = np.array(["a", "b", "c", "d"])
    train, test = words[codes[:n]], words[codes[n:]]

    def ours():
        TreeAugmentedNB(rule="ml", edges=AllEdges()).fit(train, labels[:n]).predict(test)

    taken = seconds(ours)
    print(f"TreeAugmentedNB, fit on {n} x {codes.shape[1]} and predict {held_out}: {taken:.2f} s")
    if importlib.util.find_spec("pyagrum") is None:
        print("pyAgrum is not installed: no ratio")
        return
    theirs = time_agrum(train, labels[:n], test)
    print(f"pyAgrum's BNClassifier (TAN), the same: {theirs:.2f} s, {theirs / taken:.0f} times as long")


def time_agrum(train, labels, test):
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    names = [f"x{j}" for j in range(train.shape[1])]
    frame, further = pd.DataFrame(train, columns=names), pd.DataFrame(test, columns=names)
    processor = DiscreteTypeProcessor()
    model = BNClassifier(type_processor=processor, learningMethod="TAN", prior="Smoothing", priorWeight=1.0)
    began = time.perf_counter()
    model.fit(frame, pd.Series(labels.astype(str), name="y"))
    model.predict(further)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    time_pairs(quick)
    time_trees(quick)
    print()
    compare_errors(quick)


if __name__ == "__main__":
    main()
