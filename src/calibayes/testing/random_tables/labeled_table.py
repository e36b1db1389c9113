"""What a property of estimators is checked on: training rows with labels, and new rows of the same columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array


class LabeledTable(NamedTuple):
    """Training rows with their labels, and new rows of the same columns.

    Examples
    --------
    >>> LabeledTable(training=[[1.0], [2.0]], labels=["a", "b"], new=[[1.5]]).labels
    ['a', 'b']
    """

    training: Any
    """A data frame or an array (n, d)."""
    labels: Any
    """A list, an array or a series of n labels."""
    new: Any
    """Rows of the same columns and of the same type as the training rows; levels may be new, cells may be missing."""

    @property
    def classes(self) -> Array:
        """The distinct labels, ascending."""
        return np.unique(np.asarray(self.labels))
