"""Fits that keep a checkpoint, and a process that continues them: python -m tests.estimators.generative.checkpoint_cases ...

continue FOLDER     continues each interrupted fit, whose checkpoint is FOLDER/CASE-NUMBER, and writes its result beside it
killed CASE PATH    begins a fit and kills its own process after the second update
"""

import os
import pickle
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris, load_wine

from calibayes import (
    GaussianNB,
    MixtureDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
    TreeAugmentedNB,
)
from calibayes.datasets import load_penguins
from calibayes.rules import GD, GDT, RC


def iris():
    return load_iris(return_X_y=True)


def overlapping():
    """Three columns of the wine data, in which classes overlap, standardized."""
    x, y = load_wine(return_X_y=True)
    return ((x - x.mean(axis=0)) / x.std(axis=0))[:, [1, 4, 7]], y


def incomplete():
    x, y = overlapping()
    x[::5, 0] = np.nan
    return x, y


def unlabeled():
    x, y = overlapping()
    return x, np.where(np.arange(len(y)) % 4 == 0, np.nan, y)


def penguins():
    """Numbers, levels and missing cells."""
    data = load_penguins()
    return data.data, data.target


def counts():
    return np.random.default_rng(0).poisson(1 + np.arange(90)[:, None] % 3 * np.eye(3)[[0] * 90]), np.arange(
        90
    ) % 3


CASES = {
    "GaussianNB": (GaussianNB, overlapping, {}, {}),
    "mixed columns": (NaiveBayes, penguins, {}, {}),
    "quadratic": (QuadraticDiscriminantAnalysis, iris, {}, {}),
    "quadratic, missing cells": (QuadraticDiscriminantAnalysis, incomplete, {}, {"start": "likelihood"}),
    "maximum likelihood, missing cells": (QuadraticDiscriminantAnalysis, incomplete, {"rule": "ml"}, {}),
    "tree": (TreeAugmentedNB, penguins, {}, {}),
    "mixture": (MixtureDiscriminantAnalysis, overlapping, {"n_components": 2}, {}),
    "counts": (MultinomialNB, counts, {}, {}),
    "GDT": (GaussianNB, overlapping, {"rule": GDT(lam=0.3)}, {}),
    "GD": (GaussianNB, overlapping, {"rule": GD(step=0.5)}, {}),
    "fixed step": (GaussianNB, overlapping, {"rule": RC(step=0.1)}, {}),
    "unlabeled rows": (GaussianNB, unlabeled, {"rule": "em"}, {}),
    "validation and refit": (NaiveBayes, penguins, {}, {"validation_fraction": 0.3}),
    "validation alone": (
        GaussianNB,
        overlapping,
        {},
        {"validation_fraction": 0.3, "refit": False, "temperature": "auto"},
    ),
    "mixture, validation and refit": (
        MixtureDiscriminantAnalysis,
        overlapping,
        {"n_components": 2},
        {"validation_fraction": 0.3},
    ),
    "mini-batches": (GaussianNB, overlapping, {}, {"batch_size": 25}),
    "random start": (GaussianNB, overlapping, {}, {"start": "random"}),
}
"""Name -> estimator, table, parameters, training options."""


def fit(name, path=None, callbacks=None):
    """The fitted estimator of a case."""
    estimator, table, parameters, options = CASES[name]
    training = TrainingOptions(checkpoint=path, callbacks=callbacks, **options)
    shared = {"max_iter": 4, "stop": None, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**{**shared, **parameters}, training=training).fit(*table())


def result(model):
    """All that training has found, but for how long it took."""
    history = {key: value for key, value in model.history_.items() if key != "seconds"}
    numbers = (model.n_iter_, model.best_iter_, model.temperature_)
    return {
        "statistics": model.statistics_,
        "data": model.data_statistics_,
        "parameters": model.parameters_,
        "history": history,
        "numbers": numbers,
    }


def kill_after_two(progress):
    if progress.update == 2:
        os.kill(os.getpid(), signal.SIGKILL)


def main(action, *arguments):
    if action == "killed":
        name, path = arguments
        fit(name, path, [kill_after_two])
    for checkpoint in sorted(Path(arguments[0]).glob("*.safetensors")):
        name = checkpoint.stem.rpartition("-")[0]
        checkpoint.with_suffix(".pickle").write_bytes(pickle.dumps(result(fit(name, checkpoint))))


if __name__ == "__main__":
    main(*sys.argv[1:])
