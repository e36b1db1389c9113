"""Random search for the settings of a model: 25 draws, at most 10 minutes, by the log loss of three inner folds."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

DRAWS, SECONDS, INNER_FOLDS = 25, 600, 3


class TunedModel(ClassifierMixin, BaseEstimator):
    """The settings with the lowest log loss on inner folds, fitted to all rows; the first draw is the default.

    Parameters
    ----------
    make : callable
        Makes a model for a data frame and settings.
    space : dict
        Setting -> (lowest, highest value, whether it is an integer); drawn uniformly from the logarithms.
    """

    def __init__(self, make, space, draws=DRAWS, seconds=SECONDS):
        self.make = make
        self.space = space
        self.draws = draws
        self.seconds = seconds

    def fit(self, frame, target):
        end, rng, losses = time.monotonic() + self.seconds, np.random.default_rng(0), {}
        candidates = [{}, *(draw(self.space, rng) for _ in range(self.draws - 1))]
        for number, settings in enumerate(candidates):
            if number and time.monotonic() > end:
                break
            losses[number] = self.inner_loss(frame, target, settings)
        self.losses_ = list(losses.values())
        self.settings_ = candidates[min(losses, key=losses.get)]
        self.model_ = self.make(frame, **self.settings_).fit(frame, target)
        self.classes_ = self.model_.classes_
        return self

    def inner_loss(self, frame, target, settings):
        """Mean log loss of the held-out rows."""
        splitter, losses = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0), []
        for train, test in splitter.split(frame, target):
            model = self.make(frame.iloc[train], **settings).fit(frame.iloc[train], target[train])
            posterior = model.predict_proba(frame.iloc[test])
            losses.append(log_loss(target[test], posterior, labels=model.classes_))
        return float(np.mean(losses))

    def predict_proba(self, frame):
        return self.model_.predict_proba(frame)


def draw(space, rng):
    """Settings at random, uniform in the logarithm of each."""
    values = {name: np.exp(rng.uniform(np.log(low), np.log(high))) for name, (low, high, _) in space.items()}
    return {name: round(value) if space[name][2] else float(value) for name, value in values.items()}


def tuned(make, space):
    """A function that makes the tuned model."""
    return lambda frame: TunedModel(make, space)


SPACES = {
    "LightGBM": {
        "n_estimators": (50, 1000, True),
        "learning_rate": (0.01, 0.3, False),
        "num_leaves": (7, 127, True),
        "min_child_samples": (5, 100, True),
        "colsample_bytree": (0.4, 1.0, False),
        "reg_lambda": (1e-3, 10.0, False),
    },
    "CatBoost": {
        "iterations": (100, 1000, True),
        "learning_rate": (0.01, 0.3, False),
        "depth": (4, 8, True),
        "l2_leaf_reg": (0.3, 30.0, False),
    },
    "XGBoost": {
        "n_estimators": (50, 1000, True),
        "learning_rate": (0.01, 0.3, False),
        "max_depth": (3, 10, True),
        "min_child_weight": (0.1, 30.0, False),
        "colsample_bytree": (0.4, 1.0, False),
        "reg_lambda": (0.1, 10.0, False),
    },
    "HistGB": {
        "max_iter": (50, 1000, True),
        "learning_rate": (0.01, 0.3, False),
        "max_leaf_nodes": (7, 127, True),
        "min_samples_leaf": (5, 100, True),
        "l2_regularization": (1e-3, 10.0, False),
    },
}
"""Settings of the boosted models that are searched."""
