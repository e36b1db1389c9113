"""Tables on which `test_any_table.py` failed once; each is checked again in every run."""

import numpy as np

import calibayes as cb
from calibayes.testing import LabeledTable

KEPT = {
    "the covariance of a constant column before one of large numbers": (
        cb.QuadraticDiscriminantAnalysis(max_iter=8),
        LabeledTable(
            np.array([[5.0, -1e100], [5.0, 1e100], [5.0, 1e100], [5.0, -1e100]]),
            [0, 0, 1, 1],
            np.array([[5.0, np.nan]]),
        ),
    ),
    "gradient steps on large numbers": (
        cb.GenerativeLogisticRegression(rule="gd", max_iter=8),
        LabeledTable(np.array([[1e100], [1e100], [1e100], [0.0]]), [1, 1, 1, 0], np.array([[1e100]])),
    ),
    "gradient steps on large numbers with given priors": (
        cb.GenerativeLogisticRegression(rule="gd", max_iter=8, priors=[0.5, 0.5]),
        LabeledTable(np.array([[1e80], [-1e65]]), [0, 1], np.array([[1.0]])),
    ),
}
"""Estimator and table by what was wrong."""
