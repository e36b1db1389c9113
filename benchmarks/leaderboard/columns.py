"""How a table's columns are passed to each model: text as levels wherever the model takes levels, missing values unchanged."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

MISSING = "(missing)"


def split_columns(frame):
    """Names of the numeric columns (booleans included), and of all others."""
    numbers = [name for name in frame.columns if frame[name].dtype.kind in "iufb"]
    return numbers, [name for name in frame.columns if name not in numbers]


class Renamed(TransformerMixin, BaseEstimator):
    """Numbers as floats, and columns named c0, c1, ..., because some models refuse some names."""

    def fit(self, frame, target=None):
        self.names_ = {name: f"c{j}" for j, name in enumerate(frame.columns)}
        return self

    def transform(self, frame):
        numbers, _ = split_columns(frame)
        return frame.astype(dict.fromkeys(numbers, float)).rename(columns=self.names_)


class LevelColumns(TransformerMixin, BaseEstimator):
    """Text as pandas categories of the levels in the training rows; a new level is a missing value."""

    def fit(self, frame, target=None):
        _, others = split_columns(frame)
        self.levels_ = {name: np.sort(frame[name].dropna().astype(str).unique()) for name in others}
        return self

    def transform(self, frame):
        return frame.assign(**{name: as_levels(frame[name], levels) for name, levels in self.levels_.items()})


class TextColumns(TransformerMixin, BaseEstimator):
    """Text as Python strings. A missing one is a level of its own if ``missing`` is a string, else unchanged."""

    def __init__(self, missing=None):
        self.missing = missing

    def fit(self, frame, target=None):
        return self

    def transform(self, frame):
        _, others = split_columns(frame)
        columns = {name: text(frame[name]) for name in others}
        if self.missing is not None:
            columns = {name: column.fillna(self.missing) for name, column in columns.items()}
        return frame.assign(**columns)


def as_levels(column, levels):
    """Categories; a value that is none of the levels is missing."""
    values = text(column)
    return values.where(values.isin(levels)).astype(pd.CategoricalDtype(levels.astype(object)))


def text(column):
    """Strings and missing values, as objects."""
    return column.astype(object).map(str, na_action="ignore")
