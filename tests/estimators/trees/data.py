"""Tables for the tests of trees."""

import numpy as np
import pandas as pd


def interaction(n=600, seed=0):
    """Two classes that depend on three columns together; two more are noise, one of them of texts."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["text"] = rng.choice(["u", "v", "w"], n)
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    is_odd = (X["a"] > 0) ^ (X["b"].fillna(1.0) > 0) ^ (X["text"] == "u")
    flipped = rng.random(n) < 0.05
    return X, np.where(is_odd.to_numpy() ^ flipped, "yes", "no")


def rising(n=500, seed=0):
    """Two classes: the second becomes more frequent with ``up`` and less with ``down``, with noise and missing cells."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=["up", "down", "free"])
    score = 2 * X["up"] - 2 * X["down"] + np.sin(6 * X["free"]) + rng.logistic(size=n)
    X.loc[rng.random(n) < 0.1, "up"] = np.nan
    return X, (score > 0).to_numpy(int)
