"""The preprocessing of the papers: a numeric matrix of complete rows and non-constant columns."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets.dataset import Dataset
from calibayes.tables.read import read_frame
from calibayes.tables.table import missing_mask


def numeric_matrix(
    data: Dataset,
    *,
    missing_is_level: bool = False,
    least_class_rows: int = 1,
    within_classes: bool = False,
) -> tuple[Array, Array]:
    """Columns as numbers (n, d) and the target (n,), without missing values, constant columns and small classes.

    Text becomes integer codes in alphabetical order.

    Parameters
    ----------
    data : Dataset
    missing_is_level : bool, default=False
        Treat a missing text as a level of its own. By default its row is dropped, as where a number is missing.
    least_class_rows : int, default=1
        Classes with fewer rows are dropped.
    within_classes : bool, default=False
        Drop columns that are constant within at least one class, not only those that are constant in all rows.

    Examples
    --------
    >>> from calibayes.datasets import load, numeric_matrix
    >>> numeric_matrix(load("penguins"))[0].shape
    (333, 7)
    """
    table = read_frame(data.data)
    columns = [table.column(j) for j in range(len(table.names))]
    absent = [missing_mask(column) & ~(missing_is_level & (column.dtype.kind == "O")) for column in columns]
    complete = ~np.any(absent, axis=0)
    numbers = np.stack([_codes(column[complete]) for column in columns], axis=1)
    target = np.asarray(data.target)[complete]
    classes, sizes = np.unique(target, return_counts=True)
    in_large_class = np.isin(target, classes[sizes >= least_class_rows])
    numbers, target = numbers[in_large_class], target[in_large_class]
    groups = [numbers[target == label] for label in np.unique(target)] if within_classes else [numbers]
    varying = np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)
    return numbers[:, varying], target


def _codes(column: Array) -> Array:
    """Numbers unchanged, anything else as its position among the sorted distinct values; missing values sort first."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    text = np.where(missing_mask(column), "", column).astype(str)
    return np.unique(text, return_inverse=True)[1].astype(np.float64)
