"""The rows that a report describes: in the form that the model reads, and as a data frame to display."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets.loading import data_frame
from calibayes.model.door import in_memory
from calibayes.tables.read import object_array, read_frame
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
        In the form that the model reads.
    frame : pandas.DataFrame
        The same rows; all column names are strings.
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
        """Some rows, in the form that the model reads."""
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
    """Rows of a table and their labels; with ``as_frame`` the model reads them as a data frame with column names.

    Raises ValueError if X and y have different lengths, there are fewer than two classes, or two columns have the same name.
    """
    X, y, _ = in_memory(X, y)
    frame, labels = _frame(X), _labels(y)
    if len(frame) != len(labels):
        raise ValueError(
            f"the table has {counted(len(frame), 'row')}, but there are {counted(len(labels), 'label')}: give one label for "
            "each row"
        )
    read_frame(frame)  # refuses a table without rows or columns, or with two columns of one name
    known = np.flatnonzero(~missing_mask(labels))
    if len(set(labels[known].tolist())) < 2:
        raise ValueError("a report needs labeled rows of at least two classes: check y")
    given = frame if as_frame or isinstance(X, Table) else _indexable(X)
    rows = LabeledRows(given, frame, labels, len(labels) - len(known), np.arange(len(labels)))
    return rows.only(known) if rows.unlabeled else rows


def _indexable(X: Any) -> Any:
    """A table whose rows can be selected by their positions."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return object_array(X) if isinstance(X, list) else X


def _frame(X: Any) -> Any:
    """A pandas data frame whose column names are strings and whose index is the position of the row."""
    import pandas as pd

    if isinstance(X, Table):
        return data_frame(X)
    if hasattr(X, "tocsr"):
        made = pd.DataFrame.sparse.from_spmatrix(X)
    elif hasattr(X, "to_pandas"):
        made = X.to_pandas()
    else:
        made = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).infer_objects()
    is_unnamed = not hasattr(X, "columns") and not hasattr(X, "column_names")
    names = [f"x{j}" if is_unnamed else str(name) for j, name in enumerate(made.columns)]
    return made.set_axis(names, axis=1).reset_index(drop=True)


def _labels(y: Any) -> Array:
    """Labels as an array, (n,)."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values
