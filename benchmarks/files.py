"""Size of saved models, and time to save and to load them, beside joblib and skops.

`python benchmarks/files.py` prints the table of docs/lab/0039-model-files.md. skops is left out if it is not installed.
``--quick`` takes two estimators, once.

Every estimator is fitted to the penguins (344 rows, mixed columns with missing values) if it reads them, else to their four
measurements as an array without missing values; `BayesClassifier` also to 20,000 rows of 20 numbers. joblib writes without
compression. skops loads with all types of the file trusted, as one has to. The three take turns; the best time of each
counts. All loaded models must predict the same as the saved one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.utils import get_tags

import calibayes
from calibayes.datasets import load_penguins

LARGE_ROWS, LARGE_COLUMNS = 20_000, 20
ROUNDS = 7
QUICK = ("GaussianNB", "NaiveBayes")


class Format(NamedTuple):
    """A way to save a model and to load it."""

    name: str
    save: Callable[[Any, Path], Any]
    load: Callable[[Path], Any]


class Measured(NamedTuple):
    """Bytes of a file, and best seconds to save and to load; what happened, if one of both failed."""

    size: int = 0
    save: float = 0.0
    load: float = 0.0
    failure: str = ""


def formats():
    """calibayes, joblib and, where it is installed, skops."""
    known = [
        Format("calibayes", calibayes.save, calibayes.load),
        Format("joblib", joblib.dump, joblib.load),
    ]
    try:
        import skops.io
    except ImportError:
        return known

    def load_trusted(path):
        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))

    return [*known, Format("skops", skops.io.dump, load_trusted)]


def estimators(quick):
    """Name and instance of every estimator of the package, or of two."""
    for name in calibayes.__all__:
        thing = getattr(calibayes, name)
        is_estimator = isinstance(thing, type) and issubclass(thing, BaseEstimator)
        if is_estimator and thing is not calibayes.TrainingOptions and (name in QUICK or not quick):
            yield name, thing(calibayes.GaussianNB()) if thing is calibayes.TradeOffCV else thing()


def models(quick):
    """Name, fitted model and its table."""
    penguins = load_penguins()
    numbers = penguins.data.select_dtypes("number").drop(columns="year").dropna()
    labels = penguins.target[numbers.index].to_numpy()
    for name, estimator in estimators(quick):
        tags = get_tags(estimator).input_tags
        mixed = tags.string and tags.allow_nan and name != "PosteriorMixture"
        X, y = (penguins.data, penguins.target) if mixed else (numbers.to_numpy(), labels)
        yield f"{name}{'' if mixed else ' (numbers)'}", estimator.fit(X, y), X
    if not quick:
        X, y = make_classification(LARGE_ROWS, LARGE_COLUMNS, n_informative=10, random_state=0)
        yield f"BayesClassifier ({LARGE_ROWS:,} x {LARGE_COLUMNS})", calibayes.BayesClassifier().fit(X, y), X


def predictions(model, X):
    return np.asarray((model.predict_proba if hasattr(model, "predict_proba") else model.transform)(X[:500]))


def seconds(function, *arguments):
    begin = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - begin, result


def one_round(form, model, X, path):
    """Save and load once. Raises ValueError if the loaded model predicts something else."""
    save, _ = seconds(form.save, model, path)
    load, loaded = seconds(form.load, path)
    if not np.array_equal(predictions(loaded, X), predictions(model, X)):
        raise ValueError("it predicts something else")
    return Measured(path.stat().st_size, save, load)


def measured(form, model, X, path):
    try:
        return one_round(form, model, X, path)
    except Exception as error:  # another package may fail in any way, which is a result
        if form.name == "calibayes":
            raise
        return Measured(failure=f"{type(error).__name__}: {error}".splitlines()[0][:80])


def best(results):
    """The best times of several rounds."""
    failed = [result for result in results if result.failure]
    if failed:
        return failed[0]
    return Measured(results[0].size, min(r.save for r in results), min(r.load for r in results))


def race(model, X, rounds, folder):
    """Format -> best result; the formats take turns."""
    results = {form.name: [] for form in formats()}
    for _ in range(rounds):
        for form in formats():
            results[form.name].append(measured(form, model, X, folder / f"model.{form.name}"))
    return {name: best(rounds) for name, rounds in results.items()}


def line(name, results):
    """A line of the table: sizes, times to save, times to load."""
    sizes = [f"{r.size / 1000:,.1f}" if not r.failure else "failed" for r in results.values()]
    saves = [f"{1000 * r.save:,.1f}" if not r.failure else "" for r in results.values()]
    loads = [f"{1000 * r.load:,.1f}" if not r.failure else "" for r in results.values()]
    return f"| {name} | {' | '.join([*sizes, *saves, *loads])} |"


def heading():
    first, *others = [form.name for form in formats()]
    titles = [title for what in ("kB", "save ms", "load ms") for title in (f"{what}, {first}", *others)]
    return f"| model | {' | '.join(titles)} |\n|{' --- |' * (1 + len(titles))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two estimators, once")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    print(heading(), flush=True)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model, X in models(quick):
            results = race(model, X, 1 if quick else ROUNDS, Path(folder))
            print(line(name, results), flush=True)
            failures += [f"{name}: {form}: {r.failure}" for form, r in results.items() if r.failure]
    print("\n".join(failures))


if __name__ == "__main__":
    main()
