"""A table for the tests of ensembles."""

import numpy as np
import pandas as pd


def frame(n=160, seed=0):
    """Numbers, text, booleans and missing values; "noise" and "flag" are independent of the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    columns = {
        "noise": rng.normal(size=n),
        "size": np.where(rng.random(n) < 0.2 * (y == 2), np.nan, rng.normal(size=n) + y),
        "color": np.where(rng.random(n) < 0.7, np.array(["red", "green", "blue"])[y], "red"),
        "flag": rng.random(n) < 0.5,
    }
    return pd.DataFrame(columns), np.array(["x", "y", "z"])[y]
