"""Classifiers of scikit-learn that the models are compared with: ordinary preprocessing, nothing tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MOST_CATEGORIES = 255
"""scikit-learn's gradient boosting treats columns with fewer levels as categorical."""


def columns_by_type(frame: Any) -> tuple[list[str], list[str]]:
    """Names of the numeric columns of a pandas data frame, and of all others; columns without a value are left out."""
    known = [name for name in frame.columns if frame[name].notna().any()]
    numbers = [name for name in known if frame[name].dtype.kind in "iuf"]
    return numbers, [name for name in known if name not in numbers]


def logistic_regression(frame: Any) -> Any:
    """Numbers imputed by the median (with an indicator column) and standardized; everything else one-hot encoded."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers, others = columns_by_type(frame)
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    columns = make_column_transformer(
        (make_pipeline(imputer, StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), others)
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def gradient_boosting(frame: Any) -> Any:
    """Numbers as they are; everything else as categories of the trees."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    numbers, others = columns_by_type(frame)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    columns = make_column_transformer((codes, others), ("passthrough", numbers))
    categories = [j for j, name in enumerate(others) if frame[name].nunique() < MOST_CATEGORIES]
    return make_pipeline(
        columns, HistGradientBoostingClassifier(categorical_features=categories, random_state=0)
    )


BASELINES: Mapping[str, Callable[[Any], Any]] = {
    "sklearn-LogReg": logistic_regression,
    "sklearn-HistGB": gradient_boosting,
}
"""Name -> function that creates a classifier for the columns of a data frame of training rows. Their imports are slow and made on use."""

NO_RULE = "-"
"""The rule of a baseline in results."""

DESCRIPTION = (
    "sklearn-LogReg and sklearn-HistGB are scikit-learn's LogisticRegression (imputed, standardized, one-hot encoded "
    "columns) and HistGradientBoostingClassifier, not tuned."
)
"""What the names mean, for a line below a table."""
