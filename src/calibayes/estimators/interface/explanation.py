"""Explanations: the log odds of a decision as a sum over class prior and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.decision import most_probable

EDGE = " | "
"""Between the names of a column and of the column that it depends on."""


@dataclass(frozen=True)
class Explanation:
    """Contributions to the log odds of one class against another, row by row.

    Attributes
    ----------
    names : tuple of str
        "class prior", then columns or groups of columns.
    contributions : (n, len(names)) array
        Each row sums to its log odds.
    chosen, other : (n,) arrays
        The class that is explained and the one it is compared with.
    """

    names: tuple[str, ...]
    contributions: Array
    chosen: Array
    other: Array

    @property
    def log_odds(self) -> Array:
        """log p(chosen | x) - log p(other | x), (n,)."""
        return self.contributions.sum(axis=1)

    def overall(self) -> dict[str, float]:
        """Mean absolute contribution of each name over the rows, largest first."""
        size = np.abs(self.contributions).mean(axis=0)
        order = np.argsort(-size, kind="stable")
        return {self.names[j]: float(size[j]) for j in order}

    def frame(self, backend: Any = "pandas") -> Any:
        """A data frame with the classes, the log odds and a column for each name."""
        columns = {"chosen": self.chosen, "other": self.other, "log_odds": self.log_odds}
        for j, name in enumerate(self.names):
            columns[f"{name} (column)" if name in columns else name] = self.contributions[:, j]
        return nw.from_dict(columns, backend=backend).to_native()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {size:.3g}" for name, size in list(self.overall().items())[:5])
        return f"Explanation of {len(self.chosen)} rows; mean absolute contributions: {parts}"


def explanation(
    names: tuple[str, ...], terms: Array, log_joint: Array, classes: Array, against: Any
) -> Explanation:
    """The explanation that follows from terms (n, k, names) whose sum over names is log p(class | x) up to a constant."""
    chosen, other = compared_classes(log_joint, code_of(against, classes))
    rows = np.arange(len(terms))
    return Explanation(names, terms[rows, chosen] - terms[rows, other], classes[chosen], classes[other])


def code_of(label: Any, classes: Array) -> int | None:
    """The code of a class, None if no label is given. Raises ValueError for an unknown label."""
    if label is None:
        return None
    if label not in classes.tolist():
        raise ValueError(f"{label!r} is not among the classes {classes.tolist()}")
    return int(classes.tolist().index(label))


def compared_classes(log_joint: Array, against: int | None) -> tuple[Array, Array]:
    """The class that is explained and the one it is compared with, (n,) codes each."""
    best = most_probable(log_joint)
    without = log_joint.copy()
    without[np.arange(len(best)), best] = -np.inf
    second = most_probable(without)
    if against is None:
        return best, second
    return np.where(best == against, second, best), np.full(len(best), against)


def summed_by_source(
    names: tuple[str, ...], terms: Array, sources: Mapping[str, str]
) -> tuple[tuple[str, ...], Array]:
    """Terms (n, k, names), with those of columns that were derived from one column (month, weekday) summed.

    ``sources`` maps the name of a derived column to that of its source. Of an edge ("child | parent") both ends are
    renamed; one between columns of the same source counts for the source.
    """
    if not sources:
        return names, terms
    renamed = [_source_name(name, sources) for name in names]
    distinct = tuple(dict.fromkeys(renamed))
    places = [[j for j, name in enumerate(renamed) if name == source] for source in distinct]
    return distinct, np.stack([terms[:, :, place].sum(axis=2) for place in places], axis=2)


def _source_name(name: str, sources: Mapping[str, str]) -> str:
    if name in sources:
        return sources[name]
    ends = dict.fromkeys(sources.get(end, end) for end in name.split(EDGE))
    return EDGE.join(ends)
