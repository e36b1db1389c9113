"""The cleaning that the papers' tables need: numbers only, complete rows, columns that vary."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets.dataset import Dataset
from calibayes.tables.table import missing_mask


def complete_varying_numbers(
    data: Dataset,
    *,
    missing_is_level: bool = False,
    least_class_rows: int = 1,
    within_classes: bool = False,
) -> tuple[Array, Array]:
    """Columns as numbers, (n, d), without gaps, without constant columns and small classes; and the target.

    Text becomes codes in alphabetical order.

    Parameters
    ----------
    data : Dataset
    missing_is_level : bool, default=False
        A missing text is a value of its own; by default its row is left out, as where a number is missing.
    least_class_rows : int, default=1
        Classes with fewer rows are left out.
    within_classes : bool, default=False
        Leave out columns that are constant within some class, not only those that are constant altogether.

    Examples
    --------
    >>> from calibayes.datasets import complete_varying_numbers, load
    >>> complete_varying_numbers(load("penguins"))[0].shape
    (333, 7)
    """
    columns = [data.columns.column(j) for j in range(len(data.columns.names))]
    absent = [missing_mask(column) & ~(missing_is_level & (column.dtype.kind == "O")) for column in columns]
    whole = ~np.any(absent, axis=0)
    numbers = np.stack([_codes(column[whole]) for column in columns], axis=1)
    target = data.target[whole]
    classes, sizes = np.unique(target, return_counts=True)
    large = np.isin(target, classes[sizes >= least_class_rows])
    numbers, target = numbers[large], target[large]
    groups = [numbers[target == label] for label in np.unique(target)] if within_classes else [numbers]
    varying = np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)
    return numbers[:, varying], target


def _codes(column: Array) -> Array:
    """Numbers as they are, anything else as its place among the values, a missing one first."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    text = np.where(missing_mask(column), "", column).astype(str)
    return np.unique(text, return_inverse=True)[1].astype(np.float64)
