"""The models that benchmarks/accuracy.py compares: ours, and scikit-learn's as a careful person would set them up.

Each is made for the columns of a table: numbers get their median where they are missing and an indicator of that, and
are standardized; all else becomes indicators. Trees get numbers as they are. Nothing is tuned but where the name says;
QDA has a tenth of shrinkage, since without any, and with Ledoit and Wolf's, it fails on some of these tables.
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
    """Names of the columns of numbers, and of all others."""
    numbers = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    return numbers, [name for name in frame.columns if name not in numbers]


def whole(frame):
    """Numbers without gaps, of like size, and indicators."""
    numbers, others = split_columns(frame)
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="if_binary")
    return make_column_transformer((filled, numbers), (indicators, others))


def indicated(frame):
    """Numbers as they are, and indicators."""
    numbers, others = split_columns(frame)
    indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(("passthrough", numbers), (indicators, others))


def boosted(frame, **options):
    numbers, others = split_columns(frame)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    columns = make_column_transformer((codes, others), ("passthrough", numbers))
    categories = [j for j, name in enumerate(others) if frame[name].nunique() < 255]
    model = HistGradientBoostingClassifier(random_state=SEED, categorical_features=categories, **options)
    return make_pipeline(columns, model)


def tuned(model, grid):
    inner = StratifiedKFold(3, shuffle=True, random_state=SEED)
    return GridSearchCV(model, grid, cv=inner, scoring="neg_log_loss" if _probable(model) else "accuracy")


def _probable(model):
    return hasattr(model, "predict_proba")


def boosting_machine(frame):
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=SEED, n_jobs=1)


OURS = {"BayesClassifier": lambda frame: BayesClassifier()}
PEERS = {
    "GaussianNB": lambda frame: make_pipeline(whole(frame), GaussianNB()),
    "LDA": lambda frame: make_pipeline(whole(frame), LinearDiscriminantAnalysis()),
    "QDA": lambda frame: make_pipeline(
        whole(frame), QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)
    ),
    "LogisticRegression": lambda frame: make_pipeline(whole(frame), LogisticRegression(max_iter=1000)),
    "RandomForest": lambda frame: make_pipeline(
        indicated(frame), RandomForestClassifier(200, random_state=SEED, n_jobs=1)
    ),
    "HistGB": boosted,
    "SVC": lambda frame: make_pipeline(whole(frame), SVC(random_state=SEED)),
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
EBM = {"EBM": boosting_machine}
EVERYTHING = {**OURS, **PEERS, **TUNED, **EBM}
