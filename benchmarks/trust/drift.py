"""False alarms of `drift` over 1,000 draws without drift, and its power beside a two-sample classifier test.

    python -m benchmarks.trust.drift            # some 20 tables in the folder that CALIBAYES_DATA names
    python -m benchmarks.trust.drift --quick    # two tables of scikit-learn, in seconds
    python -m benchmarks.trust.drift --picture docs/drift.svg

A draw splits a table at random into training rows and new rows. The classifier test trains a logistic regression to tell new
rows from as many training rows, and counts its correct predictions by 5-fold cross-validation (binomial test).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from benchmarks.trust.tables import tables

ALPHA = 0.05
NEW_ROWS = (30, 100, 300, 1000)
TRAINING_ROWS = 1000
POWER_ROWS = 150
KINDS = ("one column", "class frequencies", "p(x | class)")
TESTS = ("drift", "drift, right kind", "classifier test")


def split(X, y, n, rng):
    """Training rows and at most n new rows; at least half of the rows are for training."""
    order = rng.permutation(len(y))
    cut = max(len(y) - n, len(y) // 2)
    train, new = order[:cut][:TRAINING_ROWS], order[cut:]
    return X.iloc[train], y[train], X.iloc[new].reset_index(drop=True), y[new]


def moved(kind, X, y, rng):
    """New rows with a planted change; X and y are drawn from the distribution of the training rows."""
    if kind == "class frequencies":
        first = y == pd.Series(y).value_counts().index[0]
        keep = ~first | (rng.random(len(y)) < 1 / 4)
        return X[keep].reset_index(drop=True)
    rows = np.ones(len(y), bool) if kind == "one column" else y == pd.Series(y).value_counts().index[0]
    column = rng.choice(X.columns)
    values = X[column]
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > 2:
        return X.assign(**{column: values + 0.75 * values.std() * rows})
    common = values.mode().iloc[0]
    return X.assign(**{column: np.where(rows & (rng.random(len(y)) < 0.3), common, values)})


def classifier_test(old, new, rng):
    """p-value: can a logistic regression tell new rows from as many old ones?"""
    old = old.sample(min(len(new), len(old)), random_state=int(rng.integers(1 << 30)))
    both = pd.get_dummies(pd.concat([old, new], ignore_index=True), dummy_na=True).astype(float)
    both = both.fillna(both.median()).fillna(0.0)
    label = np.arange(len(both)) >= len(old)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    correct = int((cross_val_predict(model, both, label, cv=folds) == label).sum())
    return stats.binomtest(
        correct, len(label), max(label.mean(), 1 - label.mean()), alternative="greater"
    ).pvalue


def fitted(X, y):
    return cb.NaiveBayes(rule="ml", discretize="quantile").fit(X, y)


def false_alarms(chosen, draws):
    """Rows (new rows, alarm, alarm of each kind) of draws without drift; each table has random numbers of its own."""
    found = []
    for name, X, y in chosen:
        rng = np.random.default_rng(list(name.encode()))
        for number in range(draws):
            train, labels, new, _ = split(X, y, NEW_ROWS[number % len(NEW_ROWS)], rng)
            drift = fitted(train, labels).drift(new, alpha=ALPHA)
            found.append(
                {
                    "new rows": NEW_ROWS[number % len(NEW_ROWS)],
                    "any": drift.is_detected,
                    **{name: name in drift.moved for name in ("p(x)", "p(class)", "p(x | class)")},
                    "a column": bool(drift.moved_columns),
                }
            )
    return pd.DataFrame(found)


RIGHT = {"one column": "p(x | class)", "class frequencies": "p(class)", "p(x | class)": "p(x | class)"}


def power(chosen, draws, rng):
    """Rows (table, kind, test, found) of draws with a planted change."""
    found = []
    for name, X, y in chosen:
        for kind in KINDS * draws:
            train, labels, new, new_labels = split(X, y, POWER_ROWS, rng)
            new = moved(kind, new, new_labels, rng)
            drift = fitted(train, labels).drift(new, alpha=ALPHA)
            results = (
                drift.is_detected,
                RIGHT[kind] in drift.moved,
                classifier_test(train, new, rng) <= ALPHA,
            )
            found.append({"table": name, "kind": kind, **dict(zip(TESTS, results, strict=True))})
    return pd.DataFrame(found)


def picture(alarms, powers, path):
    """False alarms by number of new rows, and power by kind of change."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(1, 1.4))
    rates = alarms.groupby("new rows")["any"].agg(["mean", "size"])
    error = 2 * np.sqrt(rates["mean"] * (1 - rates["mean"]) / rates["size"])
    left.errorbar([str(n) for n in rates.index], rates["mean"], error, fmt="o", color="#1f5fa8", capsize=3)
    left.axhline(ALPHA, color="gray", linestyle="--", linewidth=1)
    left.set(xlabel="new rows", ylabel="false alarms", ylim=(0, 0.15), title="without drift")
    means = powers.groupby("kind")[list(TESTS)].mean().loc[list(KINDS)]
    for number, (test, color) in enumerate(zip(TESTS, ("#1f5fa8", "#8fb8e0", "#c9c9c9"), strict=True)):
        right.bar(np.arange(len(KINDS)) + 0.27 * (number - 1), means[test], 0.25, label=test, color=color)
    right.set_xticks(np.arange(len(KINDS)), KINDS)
    right.set(
        ylim=(0, 1.0), ylabel="share of draws in which it is found", title=f"planted, {POWER_ROWS} new rows"
    )
    right.legend(frameon=False, fontsize=8, loc="upper left", ncols=3)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("alarms", "power"), help="one of the two measurements")
    parser.add_argument("--picture", metavar="FILE", help="draw both measurements")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = list(tables(options.quick))
    draws = 12 if options.quick else -(-1000 // len(chosen))
    alarms = pd.DataFrame()
    if options.only != "power":
        alarms = false_alarms(chosen, draws)
        print(f"{len(chosen)} tables, {len(alarms)} draws without drift, stated rate {ALPHA}")
        print(f"alarms: {alarms['any'].mean():.1%} of draws")
        print(alarms.groupby("new rows").mean().round(3).to_string(), flush=True)
    if options.only != "alarms":
        powers = power(chosen, 2 if options.quick else 3, np.random.default_rng(1))
        print(f"\n{len(powers)} draws with a planted change, at most {POWER_ROWS} new rows")
        print(powers.groupby("kind")[list(TESTS)].mean().loc[list(KINDS)].round(2).to_string())
        if options.picture and len(alarms):
            picture(alarms, powers, options.picture)


if __name__ == "__main__":
    main()
