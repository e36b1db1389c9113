"""The models that benchmarks/accuracy.py compares: ours, and scikit-learn's with ordinary preprocessing.

Each is made for the columns of a table. Missing numbers are imputed by the median, with an indicator column, and numbers
are standardized; all other columns are one-hot encoded. Trees get numbers unchanged. Nothing is tuned unless the name says
so. QDA has shrinkage 0.1, because without any, and with Ledoit and Wolf's, it fails on some of these tables.
"""

from __future__ import annotations

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

from calibayes import BayesClassifier

SEED = 0


def split_columns(frame):
    """Names of the numeric columns, and of all others."""
    numbers = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    return numbers, [name for name in frame.columns if name not in numbers]


def imputed_and_scaled(frame):
    """Imputed and standardized numbers, and one-hot indicators."""
    numbers, others = split_columns(frame)
    numeric = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="if_binary")
    return make_column_transformer((numeric, numbers), (indicators, others))


def one_hot(frame):
    """Unchanged numbers and one-hot indicators."""
    numbers, others = split_columns(frame)
    indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(("passthrough", numbers), (indicators, others))


def boosted(frame, **options):
    """Histogram gradient boosting with native categorical columns."""
    numbers, others = split_columns(frame)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    columns = make_column_transformer((codes, others), ("passthrough", numbers))
    categories = [j for j, name in enumerate(others) if frame[name].nunique() < 255]
    model = HistGradientBoostingClassifier(random_state=SEED, categorical_features=categories, **options)
    return make_pipeline(columns, model)


def tuned(model, grid):
    """Grid search by log loss; by accuracy for models without probabilities."""
    inner = StratifiedKFold(3, shuffle=True, random_state=SEED)
    scoring = "neg_log_loss" if hasattr(model, "predict_proba") else "accuracy"
    return GridSearchCV(model, grid, cv=inner, scoring=scoring)


def explainable_boosting(frame):
    """The EBM of interpret-core, which is imported only if it is used."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=SEED, n_jobs=1)


OURS = {"BayesClassifier": lambda frame: BayesClassifier()}
PEERS = {
    "GaussianNB": lambda frame: make_pipeline(imputed_and_scaled(frame), GaussianNB()),
    "LDA": lambda frame: make_pipeline(imputed_and_scaled(frame), LinearDiscriminantAnalysis()),
    "QDA": lambda frame: make_pipeline(
        imputed_and_scaled(frame), QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)
    ),
    "LogisticRegression": lambda frame: make_pipeline(
        imputed_and_scaled(frame), LogisticRegression(max_iter=1000)
    ),
    "RandomForest": lambda frame: make_pipeline(
        one_hot(frame), RandomForestClassifier(200, random_state=SEED, n_jobs=1)
    ),
    "HistGB": boosted,
    "SVC": lambda frame: make_pipeline(imputed_and_scaled(frame), SVC(random_state=SEED)),
}
TUNED = {
    "LogisticRegression, tuned": lambda frame: tuned(
        PEERS["LogisticRegression"](frame), {"logisticregression__C": np.logspace(-3, 3, 7)}
    ),
    "SVC, tuned": lambda frame: tuned(
        PEERS["SVC"](frame), {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": ["scale", 0.01, 0.1]}
    ),
    "HistGB, tuned": lambda frame: tuned(
        boosted(frame),
        {
            "histgradientboostingclassifier__learning_rate": [0.03, 0.1],
            "histgradientboostingclassifier__max_leaf_nodes": [7, 31],
        },
    ),
}
EBM = {"EBM": explainable_boosting}
ALL_MODELS = {**OURS, **PEERS, **TUNED, **EBM}
