"""Fit and predict with every estimator, golden model files, a table of `calibayes compare`: for `check.py --oldest`.

It needs nothing but the packages that calibayes requires, so no pytest. A failure ends it with a traceback.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris, make_classification

import calibayes as cb
from calibayes.cli import app
from calibayes.datasets import load_penguins

MIXED_TYPES = (
    cb.BayesClassifier,
    cb.CalibratedTrees,
    cb.GenerativeClassifier,
    cb.JointKernelClassifier,
    cb.KernelNB,
    cb.NaiveBayes,
    cb.TreeAugmentedNB,
    cb.KDependenceBayes,
    cb.AODE,
)
"""Estimators for tables with columns of mixed types and missing values."""


SETTINGS = {
    cb.TradeOffCV: {"estimator": cb.GaussianNB()},
    cb.CalibratedTrees: {"max_trees": 20},  # trees take long without native kernels
}


def estimators():
    """An instance of every public estimator, with its default parameters but for `SETTINGS`."""
    for name in cb.__all__:
        thing = getattr(cb, name)
        if isinstance(thing, type) and issubclass(thing, BaseEstimator) and thing is not cb.TrainingOptions:
            yield thing(**SETTINGS.get(thing, {}))


def check(estimator, X, y):
    """Fit, then predict classes and probabilities or transform; the results are finite."""
    begin = time.perf_counter()
    estimator.fit(X, y)
    if isinstance(estimator, TransformerMixin):
        assert np.isfinite(estimator.transform(X)).all()
    else:
        assert len(estimator.predict(X)) == len(y)
        assert np.isfinite(estimator.predict_proba(X)).all()
    print(f"{time.perf_counter() - begin:6.2f} s  {estimator}", flush=True)


def check_golden_files():
    """Models that were saved with other versions of the packages load, and predict the same."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.golden.stored_cases import CASES, assert_predicts_the_same

    for version, case in CASES:
        assert_predicts_the_same(version, case)
    print(f"{len(CASES)} golden model files")


def main():
    warnings.simplefilter("ignore")
    check_golden_files()
    iris, species = load_iris(return_X_y=True)
    penguins = load_penguins()
    for estimator in estimators():
        check(estimator, iris, species)
        if isinstance(estimator, MIXED_TYPES):
            check(estimator, penguins.data, penguins.target)
    # From 1,000 rows on the default classifier has a tree among its members.
    check(cb.BayesClassifier(), *make_classification(1000, 6, n_informative=4, random_state=0))
    for command in (
        ["--help"],
        ["compare", "--help"],
        ["reproduce", "--help"],
        ["info"],
        ["compare", "--folds=2"],
    ):
        app(command, standalone_mode=False)


if __name__ == "__main__":
    sys.exit(main())
