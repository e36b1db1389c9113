"""Naive Bayes with Gaussian, kernel and chosen densities, on held-out rows: prints the tables of docs/how-to/densities.md.

Ten-fold cross-validation, the same folds for all models. A held-out cell that a chosen density refuses is set to missing, and
counted. Usage: python -m benchmarks.densities [DATA SET ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from calibayes import GenerativeClassifier, NaiveBayes, families
from calibayes.datasets import is_local, load

DATA_SETS = (
    *("australian", "blood-transfusion", "climate-model", "diabetes", "ecoli", "haberman", "indian-liver"),
    *("ionosphere", "iris", "liver-disorders", "parkinsons", "pulsar", "qsar", "redwine", "spectf"),
    *("vehicle", "wdbc", "adult"),
)
MODELS = {
    "Gaussian": lambda rule: GenerativeClassifier(rule=rule),
    "kernel": lambda rule: NaiveBayes(rule=rule),
    "auto": lambda rule: NaiveBayes(kinds="auto", rule=rule),
}
RULES = ("ml", "rc")
FOLDS, MOST_ROWS = 10, 6000
REFUSING = {
    "exponential": families.Exponential(),
    "gamma": families.GammaDensity(),
    "lognormal": families.LogNormal(),
    "negative_binomial": families.NegativeBinomial(),
}


def table(name):
    """Columns and labels; at most 6,000 rows, drawn at random."""
    data = load(name)
    X, y = pd.DataFrame(data.data).reset_index(drop=True), pd.Series(np.asarray(data.target).astype(str))
    frequent = y.map(y.value_counts()) >= FOLDS
    X, y = X[frequent], y[frequent]
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    return X.iloc[chosen].reset_index(drop=True), y.iloc[chosen].to_numpy()


def without_refused(model, X):
    """The rows with missing cells for those that a density refuses, and how many there are."""
    X, refused = X.copy(), 0
    for column in model.schema_.columns:
        if family := REFUSING.get(column.kind):
            cells = X[column.name].to_numpy(dtype=float)
            outside = ~(family.in_support(cells) | np.isnan(cells))
            refused += int(outside.sum())
            X[column.name] = np.where(outside, np.nan, cells)
    return X, refused


def held_out(make, X, y):
    """Log loss of each row, error, refused cells, chosen kinds and seconds of the fits."""
    losses, wrong, refused, kinds, seconds = np.zeros(len(y)), 0, 0, Counter(), 0.0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        start = time.perf_counter()
        model = make().fit(X.iloc[train], y[train])
        seconds += time.perf_counter() - start
        rows, cells = without_refused(model, X.iloc[test])
        probability = model.predict_proba(rows)
        refused += cells
        kinds.update(column.kind for column in model.schema_.columns)
        true = np.searchsorted(model.classes_, y[test])
        losses[test] = -np.log(np.maximum(probability[np.arange(len(test)), true], 1e-15))
        wrong += int((probability.argmax(axis=1) != true).sum())
        assert np.isclose(
            losses[test].mean(),
            log_loss(y[test], np.clip(probability, 1e-15, 1), labels=model.classes_),
            rtol=1e-3,
        )
    return losses, wrong / len(y), refused, kinds, seconds


def report(name):
    X, y = table(name)
    for rule in RULES:
        results = {model: held_out(partial(make, rule), X, y) for model, make in MODELS.items()}
        losses, auto = {model: result[0].mean() for model, result in results.items()}, results["auto"]
        difference = auto[0] - results["kernel"][0]
        deviation = difference.std(ddof=1) / np.sqrt(len(y))
        cells = [name, rule, len(y), *(f"{loss:.3f}" for loss in losses.values())]
        cells += [f"{difference.mean():+.3f} ± {deviation:.3f}"]
        cells += [f"{100 * result[1]:.1f}" for result in results.values()]
        chosen = ", ".join(f"{kind} {round(count / FOLDS, 1):g}" for kind, count in auto[3].most_common())
        times = " / ".join(f"{result[4] / FOLDS:.2f}" for result in results.values())
        print("| " + " | ".join(map(str, [*cells, chosen, auto[2], times])) + " |", flush=True)


# -- rows of known densities: what is lost if they are not known ------------------------------------------------------

KINDS = {
    "wait": "exponential",
    "amount": "gamma",
    "income": "lognormal",
    "visits": "negative_binomial",
    "angle": "vonmises",
}
SIZES, REPEATS, NEW_ROWS = (30, 100, 300, 1000), 30, 3000


def calls(n, rng):
    """Rows of the densities of the example of docs/how-to/densities.md."""
    is_late = np.arange(n) % 10 < 3
    columns = {
        "wait": rng.exponential(np.where(is_late, 9.0, 4.0)),
        "amount": rng.gamma(np.where(is_late, 2.0, 4.0), 20.0),
        "income": rng.lognormal(np.where(is_late, 10.0, 10.5), 0.6),
        "visits": rng.negative_binomial(2, np.where(is_late, 0.25, 0.4)),
        "angle": rng.vonmises(np.where(is_late, 1.0, -1.0), 2.0),
    }
    return pd.DataFrame(columns), is_late


def report_calls():
    """Mean log loss of new rows, by the number of training rows, and its standard error over the samples."""
    models = {**MODELS, "given": lambda rule: NaiveBayes(kinds=KINDS, rule=rule)}
    for size, rule in product(SIZES, RULES):
        losses = []
        for seed in range(REPEATS):
            rng = np.random.default_rng(seed)
            (X, y), (new, labels) = calls(size, rng), calls(NEW_ROWS, rng)
            fitted = [make(rule).fit(X, y) for make in models.values()]
            losses.append([log_loss(labels, model.predict_proba(new)) for model in fitted])
        means, errors = np.mean(losses, axis=0), np.std(losses, axis=0, ddof=1) / np.sqrt(REPEATS)
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
        print("| " + " | ".join([str(size), rule, *cells]) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", module="calibayes")
    for data_set in sys.argv[1:] or filter(is_local, DATA_SETS):
        report(data_set)
    report_calls()
