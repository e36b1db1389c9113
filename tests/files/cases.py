"""Fitted models of every estimator, and of what can be given to them: parameters as objects, tables of all kinds."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.covariance import LedoitWolf
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.utils import get_tags

import calibayes as cb
from calibayes import families as f
from calibayes import rules
from calibayes.dependence import BestFraction, Permuted, Spearman
from calibayes.encoders import Grid, PrincipalComponents, QuantileBins
from calibayes.encoders.dense import Dense
from calibayes.engines import Threads
from calibayes.learn import AnyOf, MaxPasses, Patience, RandomLabels, SoftErrorRises
from tests.contract.test_scikit_learn import ESTIMATORS

OUTPUTS = ("predict_proba", "decision_function", "score_samples", "transform", "predict")
N = 90


class ModelCase(NamedTuple):
    """A model to fit, its table, and what is made of the fitted model: model, X, y -> model."""

    estimator: Any
    table: Callable[[], tuple[Any, Any]]
    changed: Callable[[Any, Any, Any], Any] = lambda model, X, y: model

    def fitted(self):
        X, y = self.table()
        return self.changed(deepcopy(self.estimator).fit(X, y), X, y), X


def counts(labels=(0, 1, 2)):
    rng, y = np.random.default_rng(3), np.arange(N) % 3
    rates = np.array([[1.0, 3.0, 0.5, 2.0], [2.0, 1.0, 1.5, 2.5], [3.5, 0.7, 2.0, 0.5]])
    return rng.poisson(rates[y]).astype(float), np.array(labels)[y]


def texts():
    return counts(("low", "middle", "höher"))


def single():
    X, y = counts()
    return X.astype(np.float32), y


def gappy():
    X, y = counts((False, True, True))
    X[np.random.default_rng(4).random(X.shape) < 0.1] = np.nan
    return X, y


def mixed():
    """A data frame with every kind of column."""
    rng, (X, y) = np.random.default_rng(5), texts()
    frame = pd.DataFrame(X, columns=["a", "b", "c c", "d.d"])
    frame["text"] = np.array(["rot", "grün", None, "blau"], dtype=object)[rng.integers(0, 4, N)]
    frame["category"] = pd.Categorical(rng.choice(["x", "y"], N))
    frame["flag"] = rng.random(N) < 0.4
    frame["day"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 400, N), "D")
    frame["zoned"] = frame["day"].dt.tz_localize("Europe/Berlin")
    frame["written"] = frame["day"].dt.strftime("%d.%m.%Y")
    frame["name"] = [f"customer {row}" for row in range(N)]
    frame.loc[::7, "a"] = np.nan
    return frame, y


def monotone():
    """Two classes, numbers, levels and missing cells."""
    X, y = mixed()
    return X[["a", "b", "text", "flag"]], y == "low"


def dates_as_labels():
    X, y = counts()
    return X, np.array(["2020-01-01", "2021-01-01", "2022-06-30"], dtype="datetime64[D]")[y]


def sparse():
    X, y = counts()
    return csr_array(X), y


TABLES = (counts, texts, single, gappy, mixed)


def reads(estimator, table):
    """Whether an estimator can be trained on a table. The default members of a mixture include one of numbers alone."""
    accepted = get_tags(estimator).input_tags
    if table is mixed:
        return accepted.string and not isinstance(estimator, cb.PosteriorMixture)
    return accepted.allow_nan or table is not gappy


BY_HAND = [
    ("shape", f.Gaussian(f.TiedSpherical(), prior=f.NormalInverseWishart(m1=1.0, m2=3.0)), [0, 1]),
    ("bins", f.Categorical(prior=f.Dirichlet(3.0)), slice(2, 3), QuantileBins(4)),
    ("smooth", f.KernelDensity(f.SheatherJones(), prior_rows=2.0), [3], Grid()),
]
VARIANTS = {
    "families by hand": ModelCase(cb.GenerativeClassifier(families=BY_HAND), counts),
    "kinds": ModelCase(cb.GenerativeClassifier(kinds={"a": "kernel", "flag": "categorical"}), mixed),
    "poisson": ModelCase(cb.GenerativeClassifier(families=[("n", f.Poisson(f.Gamma()), cb.numeric)]), counts),
    "tree covariance": ModelCase(
        cb.GenerativeClassifier(families=[("t", f.Gaussian(f.TreeCovariance()), cb.every)]), counts
    ),
    "mixture by hand": ModelCase(
        cb.GenerativeClassifier(families=[("m", f.Mixture(f.Gaussian(f.Full(), prior="auto")), cb.every)]),
        counts,
    ),
    "pair": ModelCase(
        cb.GenerativeClassifier(families=[("p", f.KernelPair(f.Silverman()), [0, 1], Grid())]), counts
    ),
    "principal components": ModelCase(
        cb.GenerativeClassifier(
            families=[("z", f.Gaussian(f.Tied(), prior="auto"), cb.every, PrincipalComponents(2, Dense()))]
        ),
        counts,
    ),
    "rule gd": ModelCase(cb.GaussianNB(rule=rules.GD(step=rules.Fixed(0.1)), max_iter=3), counts),
    "rule dfe": ModelCase(cb.CategoricalNB(rule="dfe", max_iter=2, random_state=1), counts),
    "rule tm": ModelCase(cb.NaiveBayes(rule=rules.TM(step=rules.Schedule((0.5, 0.2)))), counts),
    "rule map": ModelCase(cb.GaussianNB(rule=rules.MAP()), gappy),
    "rule em": ModelCase(cb.QuadraticDiscriminantAnalysis(rule="em"), counts),
    "rule gdt": ModelCase(cb.TreeAugmentedNB(rule=rules.GDT(lam=0.3, step=rules.Backtracking())), mixed),
    "options": ModelCase(
        cb.GaussianNB(
            training=cb.TrainingOptions(
                start=RandomLabels(seed=3), validation_fraction=0.3, temperature="auto"
            ),
            stop=AnyOf((MaxPasses(20), Patience(rounds=2), SoftErrorRises())),
            engine=Threads(2),
            priors=[0.2, 0.3, 0.5],
            costs=np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0]]),
            random_state=np.random.RandomState(7),
        ),
        counts,
    ),
    "weights of classes": ModelCase(cb.GaussianNB(class_weight={0: 1.0, 1: 2.5, 2: 1.0}), counts),
    "covariance estimator": ModelCase(
        cb.LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf()), counts
    ),
    "dense encoder": ModelCase(cb.LinearDiscriminantAnalysis(encoder="dense"), mixed),
    "splitter": ModelCase(
        cb.PosteriorMixture(
            models=[("nb", cb.NaiveBayes(rule="ml")), ("near", cb.JointKernelClassifier())],
            cv=StratifiedKFold(3, shuffle=True, random_state=0),
        ),
        mixed,
    ),
    "trade-off": ModelCase(
        cb.TradeOffCV(estimator=cb.NaiveBayes(), cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)), mixed
    ),
    "no rows kept": ModelCase(cb.BayesClassifier(keep_rows=False), mixed),
    "paper": ModelCase(cb.SparseLogBivariateClassifier.paper(), counts),
    "measure": ModelCase(
        cb.LogDensityFeatures(measure=Permuted(Spearman(), times=5, seed=1), selection=BestFraction((0.5,))),
        counts,
    ),
    "dates as labels": ModelCase(cb.GaussianNB(), dates_as_labels),
    "sparse": ModelCase(cb.MultinomialNB(), sparse),
    "binned": ModelCase(cb.NaiveBayes(discretize="mdl", rare_levels=0.05), mixed),
    "levels": ModelCase(cb.CategoricalNB(min_categories=12, rule="ml"), mixed),
    "components": ModelCase(cb.MixtureDiscriminantAnalysis(n_components="bic", max_components=2), counts),
    "few trees": ModelCase(cb.CalibratedTrees(max_trees=4, max_leaves=5, monotone={"a": 1}), monotone),
    "trees per class": ModelCase(cb.TreeAugmentedNB(per_class=True), mixed),
}
CASES = {
    **{
        f"{type(estimator).__name__} {table.__name__}": ModelCase(estimator, table)
        for estimator in ESTIMATORS
        for table in TABLES
        if reads(estimator, table)
    },
    **VARIANTS,
}


def outputs(model, X):
    """What a model computes, as arrays without objects."""
    computed = {name: np.asarray(getattr(model, name)(X)) for name in OUTPUTS if hasattr(model, name)}
    return {name: array.astype(str) if array.dtype == object else array for name, array in computed.items()}


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert array.dtype == expected[name].dtype, name
        assert array.tobytes() == expected[name].tobytes(), name
