"""p-values of rows and of their cells under p(x), calibrated on rows that the model was not trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.analysis.cell_scores import SurpriseReference, cell_scores, densities, known_cells
from calibayes.analysis.held_out import kept_reference, surprise_reference
from calibayes.core.notices import printable
from calibayes.core.protocols import Array
from calibayes.model.checked_rows import new_table
from calibayes.model.training_rows import SURPRISE
from calibayes.tables.read import index_of, with_index

LISTED = 5
"""Rows in the text of a result."""


@dataclass(frozen=True)
class Surprise:
    """How unusual rows and their cells are under p(x).

    Attributes
    ----------
    p_value : (n,) array
        The probability of a row as improbable as this one, if rows come from the training distribution.
    column_p_value : (n, d) array
        The same for each cell, given the other cells of its row; NaN for missing cells, identifiers and columns that
        the model cannot leave out (sparse tables, multinomial counts).
    columns : tuple of str
        Names of the d columns.
    held_out_rows : int
        Number of rows that the p-values are calibrated on: none is below 1 / (1 + held_out_rows).
    index : (n,) pandas.Index or None
        That of the rows, if they came as a pandas data frame.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> model = GaussianNB(rule="ml").fit(*load_iris(return_X_y=True))
    >>> model.surprise([[5.0, 3.5, 1.4, 0.2], [5.0, 3.5, 1.4, 9.0]]).p_value.round(2)
    array([0.99, 0.01])
    """

    p_value: Array
    column_p_value: Array
    columns: tuple[str, ...]
    held_out_rows: int
    index: Any = field(default=None, repr=False, compare=False)

    def frame(self, backend: Any = "pandas") -> Any:
        """A data frame with a line for each row: its p-value, its strangest column and the p-value of that cell.

        Its lines have the index of the rows, if they came as a pandas data frame.
        """
        columns = {"p_value": self.p_value, "strangest_column": self.strangest_column()}
        cells = np.where(np.isnan(self.column_p_value), np.inf, self.column_p_value).min(
            axis=1, initial=np.inf
        )
        columns["cell_p_value"] = np.where(np.isinf(cells), np.nan, cells)
        return with_index(nw.from_dict(columns, backend=backend).to_native(), self.index)

    def most_surprising(self, n: int = 10) -> Array:
        """Positions of the n rows of smallest p-value, (n,), by that of their strangest cell where it is the same."""
        smallest = np.where(np.isnan(self.column_p_value), 1.0, self.column_p_value).min(axis=1, initial=1.0)
        return np.asarray(np.lexsort([smallest, self.p_value])[:n])

    def strangest_column(self) -> Array:
        """The name of the column of smallest p-value of each row, (n,); empty if there is none."""
        filled = np.where(np.isnan(self.column_p_value), np.inf, self.column_p_value)
        names = np.array([*self.columns, ""], dtype=object)
        found = np.where(np.isinf(filled).all(axis=1), len(self.columns), filled.argmin(axis=1))
        return np.asarray(names[found])

    def __str__(self) -> str:
        title = f"surprise of {len(self.p_value)} rows, calibrated on {self.held_out_rows} held-out rows"
        strangest = self.strangest_column()
        lines = [title]
        for i in self.most_surprising(LISTED):
            smallest = f" (p = {np.nanmin(self.column_p_value[i]):.3g})" if strangest[i] else ""
            cell = f", most unusual in {printable(strangest[i])}{smallest}" if strangest[i] else ""
            row = i if self.index is None else self.index[i]
            lines.append(f"  row {printable(row)}: p = {self.p_value[i]:.3g}{cell}")
        return "\n".join(lines)


def surprise(self: Any, X: Any) -> Surprise:
    """How unusual rows are under p(x), and which of their cells make them so.

    The p-value of a row is the share of held-out rows whose log density is no higher (a conformal p-value). That of a cell
    compares log p(x) - log p(x without the cell) with the same difference in held-out rows: how improbable the cell is given
    the rest of its row. This takes one prediction for each column. The first call trains the model without each of five
    folds.

    Parameters
    ----------
    X : array or data frame of shape (n, d)

    Returns
    -------
    Surprise
        ``p_value`` (n,), ``column_p_value`` (n, d), and ``frame()`` with both; print it for the most unusual rows. Rows are
        named by the index of a pandas data frame, otherwise by their positions, from 0.
    """
    refuse_without_density(self)
    table = new_table(self, X)
    reference: SurpriseReference = kept_reference(self, SURPRISE, "surprise", surprise_reference)
    log_density = densities(self, table)
    by_row = reference.p_values(log_density, known_cells(table))
    by_cell = reference.column_p_values(cell_scores(self, table, log_density))
    return Surprise(by_row, by_cell, table.source_names, len(reference.weight), index_of(X))


def refuse_without_density(model: Any) -> None:
    """Raises TypeError for a model without p(x)."""
    if not hasattr(model, "score_samples"):
        raise TypeError(
            f"{type(model).__name__} has no density p(x), which surprise needs: use a generative model, such as NaiveBayes"
        )
