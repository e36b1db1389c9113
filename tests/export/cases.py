"""Fitted models of every kind that is exported, each with rows to predict: missing cells, unseen levels, far numbers."""

from functools import cache

import numpy as np
import pandas as pd

from calibayes import (
    AODE,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    KDependenceBayes,
    KernelNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    PoissonNB,
    PosteriorMixture,
    QuadraticDiscriminantAnalysis,
    TreeAugmentedNB,
    every,
    load,
)
from calibayes.encoders import ByColumnType, MissingAsLevel
from calibayes.families import KernelDensity
from tests.golden.stored_cases import CASES as GOLDEN
from tests.golden.stored_cases import path_of, stored
from tests.golden.stored_tables import table_from_json
from tests.seeds import generator

N = 240


@cache
def mixed(n=N):
    """A table of numbers, levels, booleans, dates and durations, and its classes."""
    rng = generator(21)
    y = rng.integers(0, 3, n)
    dates = pd.Timestamp("2023-11-20 22:10") + pd.to_timedelta(rng.integers(0, 900, n) * 7 + 60 * y, unit="h")
    table = {
        "height": rng.normal(size=n) + y,
        "visits": rng.integers(0, 9, n) + y,
        "color": rng.choice(
            np.array(["red", "green", "it's \\ blue", "Red", "  pink", "ä", ""], dtype=object), n
        ),
        "size class": rng.choice(np.array(["S", "M", "L"], dtype=object), n),
        "is_new": rng.random(n) < 0.3 + 0.2 * y,
        "seen": dates,
        "bought": dates.tz_localize("UTC").tz_convert("Europe/Berlin"),
        "took": pd.to_timedelta(rng.integers(1, 900, n) + 60 * y, unit="s"),
    }
    frame = pd.DataFrame(table)
    frame["size class"] = frame["size class"].where(
        rng.random(n) > 0.4, np.array(["S", "M", "L"], dtype=object)[y]
    )
    return frame, np.array(["low", "mid", "high"], dtype=object)[y]


NUMBERS, LEVELS = ["height", "visits"], ["color", "size class", "is_new"]
TIMES = ["seen", "bought", "took"]


def numbers(d=4, n=N):
    rng = generator(22)
    y = rng.integers(0, 3, n)
    mixing = np.eye(d) + 0.4 * rng.normal(size=(d, d))
    return rng.normal(size=(n, d)) @ mixing + y[:, None] * np.linspace(0.2, 1.0, d), y


def counts(n=N):
    rng = generator(23)
    y = rng.integers(0, 2, n)
    return rng.poisson([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5]], (n, 2, 3))[np.arange(n), y].astype(float), y == 1


def codes(n=N):
    rng = generator(24)
    y = rng.integers(0, 2, n)
    a = rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.7, a % 3, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.6, (b + y) % 2, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.6, (c + a) % 3, rng.integers(0, 3, n))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), y


def with_gaps(X, seed=0, share=0.25):
    """The first rows of a table, some cells missing."""
    frame = pd.DataFrame(X).iloc[:60].copy()
    frame.columns = [f"x{j}" if isinstance(name, int) else name for j, name in enumerate(frame.columns)]
    rng = generator(30 + seed)
    for name in frame.columns:
        kind = frame[name].dtype.kind
        frame[name] = frame[name].astype(
            object if kind == "b" else float if kind in "iu" else frame[name].dtype
        )
        frame.loc[rng.random(len(frame)) < share, name] = None if frame[name].dtype == object else np.nan
    return frame


def strange_rows(columns):
    """Rows of the mixed table with missing cells, levels that did not occur in training, and far numbers."""
    frame = with_gaps(mixed()[0][list(columns)])
    for name, cells in {
        "height": [1e9, -1e9, 4.5],
        "color": ["RED", "pink", "violet"],
        "size class": ["s", "", "XL"],
    }.items():
        if name in frame:
            frame.loc[frame.index[:3], name] = cells
    return frame


def of_mixed(model, columns=(*NUMBERS, *LEVELS)):
    X, y = mixed()
    return model.fit(X[list(columns)], y), strange_rows(columns)


def of_numbers(model, d=4):
    X, y = numbers(d)
    return model.fit(X, y), with_gaps(X)


def of_counts(model, share=0.25):
    X, y = counts()
    return model.fit(X, y), with_gaps(X, share=share)


def of_codes(model):
    X, y = codes()
    rows = with_gaps(X)
    rows.loc[rows.index[0], "b"] = 7.0
    return model.fit(X, y), rows


def positive(n=N):
    """Numbers above 0."""
    rng = generator(25)
    y = rng.integers(0, 3, n)
    shape = np.array([[1.0, 4.0, 2.0], [2.5, 1.5, 2.0], [6.0, 0.7, 1.0]])[y]
    return pd.DataFrame(rng.gamma(shape, 3.0 / shape), columns=list("abc")), y


def of_positive():
    """With rows that `predict_proba` refuses left out; those of the export have no probabilities."""
    X, y = positive()
    kinds = {"a": "exponential", "b": "gamma", "c": "lognormal"}
    return NaiveBayes(rule="ml", kinds=kinds).fit(X, y), with_gaps(X)


def mixed_families():
    missing = MissingAsLevel(ByColumnType())
    X, y = mixed()
    X = X[[*NUMBERS, *LEVELS]].copy()
    X.loc[X.index[::7], "height"] = np.nan
    X.loc[X.index[::5], "color"] = None
    model = GenerativeClassifier(families=[("all", KernelDensity(), every, missing)], rule="ml")
    return model.fit(X, y), strange_rows(X.columns)


def lda_dense():
    return of_mixed(
        LinearDiscriminantAnalysis(rule="ml", encoder="dense"), ("height", "size class", "is_new")
    )


def dense_with_gaps(kind):
    """Booleans and levels whose missing cells are columns of their own, computed in one query and used in a later one."""
    X, y = mixed()
    X = X[["height", "size class", "is_new"]].astype({"is_new": object})
    X.loc[X.index[::5], "is_new"], X.loc[X.index[::4], "size class"] = None, None
    return kind(rule="ml", encoder="dense").fit(X, y), strange_rows(X.columns)


def adapted():
    model, rows = of_numbers(GaussianNB(rule="ml"))
    return model.with_priors([0.2, 0.5, 0.3]), rows


def mixture_of_models():
    models = [("kernel", KernelNB(rule="ml")), ("qda", QuadraticDiscriminantAnalysis(rule="ml"))]
    return of_numbers(PosteriorMixture(models=models, cv=3))


def of_file(name):
    """A model of a golden file, whose training takes long, and its table."""
    version, entry = next((version, entry) for version, entry in GOLDEN if entry["file"] == name)
    table = table_from_json(stored(version, f"{entry['table']}.json"))
    return load(path_of(version, entry)), with_gaps(table)


CASES = {
    "gaussian": lambda: of_numbers(GaussianNB(max_iter=5, stop=None)),
    "gaussian, other class frequencies": adapted,
    "bernoulli": lambda: of_counts(BernoulliNB(binarize=0.5)),
    "categorical": lambda: of_codes(CategoricalNB(max_iter=5, stop=None)),
    "multinomial": lambda: of_counts(MultinomialNB(), share=0.0),
    "complement": lambda: of_counts(ComplementNB(), share=0.0),
    "poisson": lambda: of_counts(PoissonNB()),
    "naive Bayes": lambda: of_mixed(NaiveBayes(rule="ml")),
    "naive Bayes, bins": lambda: of_mixed(NaiveBayes(rule="ml", discretize="mdl", rare_levels=40)),
    "naive Bayes, dates": lambda: of_mixed(NaiveBayes(rule="ml"), (*NUMBERS, *TIMES)),
    "naive Bayes, kinds": lambda: of_mixed(
        NaiveBayes(rule="ml", kinds={"height": "gaussian", "visits": "categorical", "is_new": "bernoulli"})
    ),
    "positive numbers": of_positive,
    "kernel on a grid": lambda: of_mixed(KernelNB(rule="ml", binning="grid")),
    "missing cells as levels": mixed_families,
    "tree": lambda: of_codes(TreeAugmentedNB(rule="ml")),
    "tree per class": lambda: of_mixed(TreeAugmentedNB(rule="ml", per_class=True)),
    "AODE": lambda: of_codes(AODE(rule="ml")),
    "k-dependence": lambda: of_codes(KDependenceBayes(rule="ml", max_parents=1)),
    "trees": lambda: of_file("few-trees"),
    "trees on the members": lambda: of_file("trees-on-members"),
    "LDA": lambda: of_numbers(LinearDiscriminantAnalysis(max_iter=5, stop=None)),
    "LDA, dense": lda_dense,
    "LDA, dense with gaps": lambda: dense_with_gaps(LinearDiscriminantAnalysis),
    "QDA, dense with gaps": lambda: dense_with_gaps(QuadraticDiscriminantAnalysis),
    "QDA": lambda: of_numbers(QuadraticDiscriminantAnalysis(max_iter=5, stop=None)),
    "logistic regression": lambda: of_numbers(GenerativeLogisticRegression(max_iter=5, stop=None)),
    "mixture": lambda: of_numbers(MixtureDiscriminantAnalysis(rule="ml"), 3),
    "average of models": mixture_of_models,
}


@cache
def case(name):
    """The fitted model and the rows of a case."""
    return CASES[name]()
