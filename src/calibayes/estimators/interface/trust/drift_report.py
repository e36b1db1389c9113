"""The result of `drift`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array

LISTED = 8
"""Most columns that the text names."""


@dataclass(frozen=True)
class ColumnDrift:
    """How one column differs between training rows and new rows.

    Attributes
    ----------
    name : str
    p_value : float
        Of equal distributions, adjusted for the number of columns (Holm).
    p_value_given_class : float
        Of equal distributions within every class, adjusted likewise.
    change : str
        The size of the difference, in words.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).drift(X[:60] + [0, 0, 0, 3]).columns[0].name
    'x3'
    """

    name: str
    p_value: float
    p_value_given_class: float
    change: str


@dataclass(frozen=True)
class Drift:
    """Whether new rows come from another distribution than the training rows, and in what they differ.

    The three p-values are adjusted for one another: without drift, one of them or more is at most ``alpha`` with probability
    at most about ``alpha``. The last two are no smaller than the first, as p(x) is unchanged if both of these are.

    Attributes
    ----------
    x : float
        p-value of an unchanged p(x): of all columns, of the predicted probabilities and of the log density.
    classes : float
        p-value of unchanged class frequencies, by the mean predicted probabilities.
    x_given_class : float
        p-value of an unchanged p(x | class), whatever the class frequencies.
    alpha : float
        The false-alarm rate.
    columns : tuple of ColumnDrift
        Smallest p-value first.
    class_names : tuple of str
    class_frequencies : (2, k) array
        Of the held-out rows and estimated for the new rows, if p(x | class) is unchanged.
    rows : tuple of int
        Number of held-out rows and of new rows.
    has_density : bool
        Whether log densities were compared; otherwise only single columns were.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).drift(X[:60] + 3.0).x < 0.05  # p-value of "p(x) has not moved"
    True
    """

    x: float
    classes: float
    x_given_class: float
    alpha: float
    columns: tuple[ColumnDrift, ...]
    class_names: tuple[str, ...]
    class_frequencies: Array
    rows: tuple[int, int]
    has_density: bool

    @property
    def moved(self) -> tuple[str, ...]:
        """Which of "p(x)", "p(class)" and "p(x | class)" have moved, at the false-alarm rate."""
        p_values = {"p(x)": self.x, "p(class)": self.classes, "p(x | class)": self.x_given_class}
        return tuple(name for name, p in p_values.items() if p <= self.alpha)

    @property
    def is_detected(self) -> bool:
        """Whether anything has moved."""
        return bool(self.moved)

    @property
    def moved_columns(self) -> tuple[str, ...]:
        """Names of the columns that have moved, at the false-alarm rate for all columns together."""
        return tuple(column.name for column in self.columns if column.p_value <= self.alpha)

    def __str__(self) -> str:
        old, new = self.rows
        lines = [f"drift of {new} new rows against {old} held-out rows, false-alarm rate {self.alpha:g}"]
        for name, p in (("p(x)", self.x), ("p(class)", self.classes), ("p(x | class)", self.x_given_class)):
            lines.append(f"  {name:<13}{'moved' if p <= self.alpha else 'no change found':<16} p = {p:.3g}")
        return "\n".join([*lines, *self._column_lines(), *self._class_lines()])

    def _column_lines(self) -> list[str]:
        moved = [column for column in self.columns if column.p_value <= self.alpha]
        lines = [f"  column {c.name}: {c.change} (p = {c.p_value:.3g})" for c in moved[:LISTED]]
        return lines + [f"  and {len(moved) - LISTED} more columns"] * (len(moved) > LISTED)

    def _class_lines(self) -> list[str]:
        """The class that moved most, unless p(class) has not moved, or cannot be told from p(x | class)."""
        if self.classes > self.alpha:
            return []
        if self.x_given_class <= self.alpha:
            return ["  the predicted classes moved, which the change of p(x | class) may explain"]
        before, after = self.class_frequencies
        most = int(np.argmax(np.abs(after - before)))
        return [f"  class {self.class_names[most]}: {before[most]:.0%} -> about {after[most]:.0%}"]
