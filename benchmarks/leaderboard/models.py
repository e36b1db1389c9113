"""The models of the leaderboard, with the default settings of their packages, one thread and seed 0.

Each function makes a model for the columns of the training rows. Text columns are levels for the models that take levels
(CatBoost, LightGBM, XGBoost, HistGB, EBM, Khiops, ours); missing values are passed on to the models that take them. Packages
are imported when a model is made, so that those that are missing are left out.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from leaderboard.columns import MISSING, LevelColumns, Renamed, TextColumns, split_columns
from leaderboard.tuning import SPACES, tuned

SEED = 0
MAX_LEVELS = 255
"""HistGB takes columns of at most so many levels as levels."""


def lightgbm(frame, **options):
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(random_state=SEED, n_jobs=1, verbose=-1, **options)
    return make_pipeline(Renamed(), LevelColumns(), model)


def catboost(frame, **options):
    from catboost import CatBoostClassifier

    _, levels = split_columns(Renamed().fit_transform(frame))
    model = CatBoostClassifier(
        random_seed=SEED,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        cat_features=levels,
        **options,
    )
    return make_pipeline(Renamed(), TextColumns(MISSING), model)


def xgboost(frame, **options):
    from xgboost import XGBClassifier

    model = XGBClassifier(random_state=SEED, n_jobs=1, enable_categorical=True, **options)
    return make_pipeline(Renamed(), LevelColumns(), model)


def hist_gradient_boosting(frame, **options):
    """Columns of more levels than it takes are target-encoded (by cross-fitting)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import TargetEncoder

    model = HistGradientBoostingClassifier(random_state=SEED, categorical_features="from_dtype", **options)
    _, levels = split_columns(frame)
    many = [f"c{j}" for j, name in enumerate(frame) if name in levels and frame[name].nunique() > MAX_LEVELS]
    if not many:
        return make_pipeline(Renamed(), LevelColumns(), model)
    encoder = make_column_transformer(
        (TargetEncoder(random_state=SEED), many), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    return make_pipeline(Renamed(), LevelColumns(), encoder, model)


def random_forest(frame, **options):
    """Levels as numbers in alphabetical order; missing values as they are."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder

    numbers, levels = split_columns(Renamed().fit_transform(frame))
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    columns = make_column_transformer(("passthrough", numbers), (codes, levels))
    model = RandomForestClassifier(random_state=SEED, n_jobs=1, **options)
    return make_pipeline(Renamed(), TextColumns(), columns, model)


def logistic_regression(frame, **options):
    """Numbers imputed by the median, with indicators, and standardized; levels as indicators."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers, levels = split_columns(Renamed().fit_transform(frame))
    numeric = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    columns = make_column_transformer((numeric, numbers), (OneHotEncoder(handle_unknown="ignore"), levels))
    return make_pipeline(Renamed(), TextColumns(), columns, LogisticRegression(max_iter=1000, **options))


def explainable_boosting(frame, **options):
    from interpret.glassbox import ExplainableBoostingClassifier

    return make_pipeline(TextColumns(), ExplainableBoostingClassifier(random_state=SEED, n_jobs=1, **options))


def khiops(frame, **options):
    from khiops.sklearn import KhiopsClassifier

    return make_pipeline(Renamed(), TextColumns(MISSING), KhiopsClassifier(**options))


def ours(name):
    """A function that makes a classifier of calibayes."""

    def make(frame, **options):
        import calibayes

        return getattr(calibayes, name)(**options)

    return make


PEERS = {
    "LightGBM": (lightgbm, "lightgbm"),
    "CatBoost": (catboost, "catboost"),
    "XGBoost": (xgboost, "xgboost"),
    "HistGB": (hist_gradient_boosting, "sklearn"),
    "RandomForest": (random_forest, "sklearn"),
    "LogisticRegression": (logistic_regression, "sklearn"),
    "EBM": (explainable_boosting, "interpret"),
    "Khiops": (khiops, "khiops"),
}
"""Name -> function that makes the model, and the package it needs."""
OURS = {name: (ours(name), "calibayes") for name in ("BayesClassifier", "CalibratedTrees")}
TUNED = {f"{name}, tuned": (tuned(PEERS[name][0], SPACES[name]), PEERS[name][1]) for name in SPACES}
MODELS = {**PEERS, **OURS, **TUNED}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "interpret": "interpret-core"}
"""Packages whose distribution has another name."""
LIMITS = {
    **dict.fromkeys(("EBM", "Khiops"), (50_000, 200)),
    **dict.fromkeys(TUNED, (15_000, np.inf)),
}
"""Model -> the most rows and columns of a table on which it is measured."""
PARTIAL = (*LIMITS, "CalibratedTrees")
"""Models that need not be measured on all tables."""


def is_installed(model):
    """Whether the package of a model is there and, for ours, has the class."""
    package = MODELS[model][1]
    if importlib.util.find_spec(package) is None:
        return False
    return model not in OURS or hasattr(importlib.import_module(package), model)


def package_version(model):
    """The version of the package that a model comes from."""
    package = MODELS[model][1]
    if package == "calibayes":
        return importlib.import_module(package).__version__
    return version(DISTRIBUTIONS.get(package, package))


def is_suited(model, rows, columns):
    """Whether a table is small enough for a model."""
    most_rows, most_columns = LIMITS.get(model, (np.inf, np.inf))
    return rows <= most_rows and columns <= most_columns
