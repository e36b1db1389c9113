"""Held-out error and log loss of trees and k-dependence Bayes by what their structure is chosen by.

`CALIBAYES_DATA=FOLDER python benchmarks/structure.py` prints the tables of docs/lab/0065-structure-search.md: repeated random
splits of 15 data sets NAME.csv.gz (last column: target) in that folder. Each number beside the first is a difference on the same
splits. ``--out`` names a file that keeps the results of each fit, so that another call goes on; ``--quick`` runs everything
on two splits of the penguins that ship.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from calibayes import KDependenceBayes, TreeAugmentedNB
from calibayes.datasets import load_penguins
from calibayes.families import AllEdges

NAMES = (
    *("vote", "breast-cancer", "australian", "tic-tac-toe", "diabetes", "car", "vehicle", "ionosphere"),
    *("wdbc", "redwine", "soybean", "qsar", "kr-vs-kp", "splice", "satellite"),
)
INFORMATION = "information"
STRUCTURES = {
    INFORMATION: {},
    "information, all edges": {"edges": AllEdges()},
    "conditional likelihood": {"structure": "conditional_likelihood"},
    "soft error": {"structure": "soft_error"},
}
MODELS = {
    "tree": TreeAugmentedNB,
    "KDB, 1": lambda **options: KDependenceBayes(max_parents=1, **options),
}
RULES = ("ml", "rc")
MIN_PROBABILITY = 1e-15
"""Probabilities are clipped to this, as in scikit-learn's log loss."""
TEST_SHARE = 0.25
CLEAR = 2.0
"""Standard errors of a mean difference from which on it is called clear."""


def load(name):
    """Columns and target, without classes of fewer than 4 rows."""
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets, or give --quick")
    table = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    target = table.iloc[:, -1]
    table = table[target.map(target.value_counts()) >= 4].reset_index(drop=True)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def scores(model, X, y, split):
    """Error in percent, log loss, seconds of processor time of the fit, and number of edges."""
    parts = train_test_split(X, y, test_size=TEST_SHARE, random_state=split, stratify=y)
    train, test, labels, truth = parts
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train, labels)
    seconds, posterior = time.process_time() - start, model.predict_proba(test)
    codes = np.searchsorted(model.classes_, truth)
    likelihood = np.clip(posterior[np.arange(len(codes)), codes], MIN_PROBABILITY, 1.0)
    error = 100.0 * np.mean(posterior.argmax(axis=1) != codes)
    return [float(error), float(-np.mean(np.log(likelihood))), seconds, len(model.edges_)]


def results(tables, splits, out):
    """(data set, model, rule, structure, split) -> scores; those in the file are not computed again."""
    known = {}
    if out is not None and out.exists():
        known = {tuple(key): value for key, value in map(json.loads, out.read_text().splitlines())}
    for split in range(splits):
        for name, (X, y) in tables.items():
            for key in ((name, m, r, s, split) for m in MODELS for r in RULES for s in STRUCTURES):
                if key not in known:
                    _, model, rule, structure, _ = key
                    known[key] = scores(MODELS[model](rule=rule, **STRUCTURES[structure]), X, y, split)
                    if out is not None:
                        with out.open("a") as file:
                            print(json.dumps([key, known[key]]), file=file)
    return known


def by_structure(known, name, model, rule):
    """Structure -> scores of each split, (splits, 4), of the splits that all structures have."""
    found = defaultdict(dict)
    for (of, m, r, structure, split), values in known.items():
        if (of, m, r) == (name, model, rule):
            found[structure][split] = values
    common = set.intersection(*(set(found[s]) for s in STRUCTURES))
    return {s: np.array([found[s][split] for split in sorted(common)]) for s in STRUCTURES}


def difference(values, base):
    """Mean difference and its standard error, corrected for rows that several splits share (Nadeau and Bengio 2003)."""
    paired = values - base
    return paired.mean(), paired.std(ddof=1) * np.sqrt(1 / len(paired) + TEST_SHARE / (1 - TEST_SHARE))


def marked(mean, error, digits):
    """A difference, in bold if it is clear."""
    text = f"{mean:+.{digits}f}"
    return f"**{text}**" if abs(mean) > CLEAR * error else text


def print_table(known, names, model, rule):
    """Error / log loss by data set: those of the first structure, differences of the others."""
    others = list(STRUCTURES)[1:]
    print(f"\n{model}, {rule}\n\n| data | {' | '.join(STRUCTURES)} |")
    print(f"| --- |{' --- |' * len(STRUCTURES)}")
    for name in names:
        found = by_structure(known, name, model, rule)
        base = found[INFORMATION]
        cells = [f"{base[:, 0].mean():.1f} / {base[:, 1].mean():.3f}"]
        for structure in others:
            error, loss = (difference(found[structure][:, i], base[:, i]) for i in (0, 1))
            cells.append(f"{marked(*error, 1)} / {marked(*loss, 3)}")
        print(f"| {name} | {' | '.join(cells)} |")


def print_summary(known, names):
    """Per model, rule and structure: mean error, ratio of log losses, clear gains and losses, time, edges."""
    print(
        "\n| model | structure | mean error | log loss | lower : higher error | lower : higher log loss",
        end="",
    )
    print(" | seconds | edges |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in MODELS:
        for rule in RULES:
            found = [by_structure(known, name, model, rule) for name in names]
            for structure in STRUCTURES:
                means = np.array([values[structure].mean(axis=0) for values in found])
                base = np.array([values[INFORMATION].mean(axis=0) for values in found])
                ratio = np.exp(np.mean(np.log(means[:, 1] / base[:, 1])))
                clear = [clear_differences(found, structure, i) for i in (0, 1)]
                counts = " | ".join(f"{lower} : {higher}" for lower, higher in clear)
                print(
                    f"| {model}, {rule} | {structure} | {means[:, 0].mean():.2f} | {ratio:.3f} | {counts}",
                    end="",
                )
                print(f" | {means[:, 2].mean():.2f} | {means[:, 3].mean():.1f} |")


def clear_differences(found, structure, score):
    """On how many data sets a score is clearly lower, and on how many clearly higher, than that of the first structure."""
    pairs = [difference(values[structure][:, score], values[INFORMATION][:, score]) for values in found]
    signs = [np.sign(mean) if abs(mean) > CLEAR * error else 0 for mean, error in pairs]
    return signs.count(-1), signs.count(1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="two splits of the penguins that ship")
    options = parser.parse_args()
    if options.quick:
        tables, splits = {"penguins": load_penguins(return_X_y=True)}, 2
    else:
        tables, splits = {name: load(name) for name in options.names}, options.splits
    known = results(tables, splits, options.out)
    for model in MODELS:
        for rule in RULES:
            print_table(known, tables, model, rule)
    print_summary(known, tables)


if __name__ == "__main__":
    main()
