"""The rows that a report is about: as a model reads them, and as a data frame for people."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets.dataset import data_frame
from calibayes.estimators.interface.streams.streaming import in_memory
from calibayes.tables.read import read_frame
from calibayes.tables.table import Table, missing_mask
from calibayes.tables.text import counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LabeledRows:
    """Rows with a label.

    Attributes
    ----------
    given : array or data frame
        As a model reads them.
    frame : pandas.DataFrame
        The same with names of columns that are strings.
    labels : (n,) array
    unlabeled : int
        Number of rows without a label, which are left out.
    positions : (n,) array
        Positions of the rows in the table that was given.
    """

    given: Any
    frame: pd.DataFrame
    labels: Array
    unlabeled: int
    positions: Array

    def __len__(self) -> int:
        return len(self.labels)

    def table_rows(self, rows: Array) -> Any:
        """Some rows, as a model reads them."""
        return self.given.iloc[rows] if hasattr(self.given, "iloc") else self.given[rows]

    def only(self, rows: Array) -> LabeledRows:
        """Some of the rows."""
        return LabeledRows(
            self.table_rows(rows),
            self.frame.iloc[rows],
            self.labels[rows],
            self.unlabeled,
            self.positions[rows],
        )


def without_columns(rows: LabeledRows, names: Collection[str]) -> LabeledRows:
    """The rows of a data frame without some columns."""
    frame = rows.frame.drop(columns=list(names))
    return LabeledRows(frame, frame, rows.labels, rows.unlabeled, rows.positions)


def labeled_rows(X: Any, y: Any, *, as_frame: bool = True) -> LabeledRows:
    """Rows of a table and their labels; ``as_frame`` says whether a model is to read them with their names.

    Raises ValueError if their numbers differ, if fewer than two classes have a label, or if two columns have one name.
    """
    X, y, _ = in_memory(X, y)
    frame, labels = _frame(X), _labels(y)
    if len(frame) != len(labels):
        raise ValueError(
            f"the table has {counted(len(frame), 'row')}, but there are {counted(len(labels), 'label')}: give one a row"
        )
    read_frame(frame)  # refuses a table without rows or columns, or with two columns of one name
    known = np.flatnonzero(~missing_mask(labels))
    if len(set(labels[known].tolist())) < 2:
        raise ValueError("a report needs rows of two classes at least: check the labels")
    given = frame if as_frame or isinstance(X, Table) else X
    rows = LabeledRows(given, frame, labels, len(labels) - len(known), np.arange(len(labels)))
    return rows.only(known) if rows.unlabeled else rows


def _frame(X: Any) -> Any:
    """A pandas data frame with names that are strings and positions as its index."""
    import pandas as pd

    if isinstance(X, Table):
        return data_frame(X)
    if hasattr(X, "tocsr"):
        made = pd.DataFrame.sparse.from_spmatrix(X)
    elif hasattr(X, "to_pandas"):
        made = X.to_pandas()
    else:
        made = pd.DataFrame(X)
    is_unnamed = not hasattr(X, "columns") and not hasattr(X, "column_names")
    names = [f"x{j}" if is_unnamed else str(name) for j, name in enumerate(made.columns)]
    return made.set_axis(names, axis=1).reset_index(drop=True)


def _labels(y: Any) -> Array:
    """Labels as an array: of strings or objects, or of numbers."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values
