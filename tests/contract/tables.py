"""Tables that several tests of the estimators share."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification


def table(n=400, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=seed
    )
    return np.round(np.abs(X) * 2, 1), np.array(["x", "y", "z"])[y]


def gappy(seed=0):
    X, y = table(300, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X, y


def frame(n=30):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.normal(50, 9, n), "dose": rng.normal(5, 2, n), "pulse": rng.normal(70, 5, n)}
    )
    return X, np.array(["ill", "well"])[np.arange(n) % 2]
