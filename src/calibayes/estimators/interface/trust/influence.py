"""What training rows are worth: the change of the loss on other rows when they are left out of the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.text import shortened


@dataclass(frozen=True)
class Influence:
    """Change of the log loss of test rows when training rows, or groups of them, are left out.

    Attributes
    ----------
    values : (n,) array
        Log loss without the row or group, minus log loss with all rows: positive if the row is worth keeping. NaN if there
        is no model without it, such as for the only row of a class.
    loss : float
        Log loss of the test rows with all training rows.
    groups : tuple or None
        The n groups; None if single rows are left out.
    is_exact : bool
        Whether the values are those of models of the remaining rows; if not, updates of the training were repeated.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X[::2], y[::2]).influence(X[::2], y[::2], X[1::2], y[1::2]).values.shape
    (75,)
    """

    values: Array
    loss: float
    groups: tuple[Any, ...] | None
    is_exact: bool

    def by_group(self) -> dict[Any, float]:
        """Group (or position of a row) -> value, least worth keeping first."""
        names = range(len(self.values)) if self.groups is None else self.groups
        order = np.argsort(self.values, kind="stable").tolist()
        return {names[i]: float(self.values[i]) for i in order}

    def __str__(self) -> str:
        kind = "row" if self.groups is None else "group"
        how = "exact" if self.is_exact else "approximate"
        lines = [(kind, "change of log loss without it")]
        lines += [(str(name), f"{value:+.6f}") for name, value in self.by_group().items()]
        return f"log loss {self.loss:.4f} with all rows; changes are {how}\n{shortened(lines, 10)}"


def influence(
    self: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, groups: Any = None, sample_weight: Any = None
) -> Influence:
    """Change of the log loss of test rows when each training row, or each group of rows, is left out.

    A generative model of ML or MAP is a function of sums over rows: the sums of the row are subtracted, which is exact up to
    what the encoders have learned (levels, bins and grids stay as they are). For calibrated models, and where something is
    hidden (components of a mixture, missing values under a full covariance), the row is subtracted from the sums from which
    the training started, and as many updates are made on the remaining rows; the loss is compared with that after the same
    number of updates on all rows. That is approximate, because a fit without the row may stop at another update.

    Parameters
    ----------
    X, y, sample_weight
        The rows of `fit`. Closed forms accept some of them.
    X_test, y_test
        Rows that were not used in training.
    groups : (n,) labels, optional
        The group of each training row, such as its source: groups are left out as a whole. By default each row is left out.
        The time for each group is that of predicting the test rows and, unless the model is a closed form, of as many passes
        over the training rows as the model was trained for.

    Returns
    -------
    Influence
        Positive values are rows that are worth keeping; ``is_exact`` says whether they are exact.
    """
    raise TypeError(
        f"{type(self).__name__} is no function of sums over rows, so that rows can only be left out by fitting again: use a "
        "generative estimator such as NaiveBayes or GenerativeClassifier"
    )
