"""Why this class: the log odds of a decision as a sum over class prior and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.abilities import Reasons
from calibayes.core.protocols import Array
from calibayes.decision import most_probable
from calibayes.encoders.numbers import Derived
from calibayes.estimators.predicting import Predicting
from calibayes.families.model import PRIOR


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
        """How much each name moves the log odds on average over the rows (mean absolute value), largest first."""
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


@dataclass(eq=False, repr=False, kw_only=True)
class Explaining(Predicting):
    """Reasons for decisions."""

    def explain(self, X: Any, against: Any = None) -> Explanation:
        """What speaks for the most probable class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        against : label, optional
            The class to compare with; by default each row's second most probable one. Where it is the most probable
            one itself, the second most probable one is explained against it.

        Returns
        -------
        Explanation
            The contributions of a row sum to its log odds before any temperature. Costs do not enter: it is the most
            probable class that is explained.
        """
        log_joint = self.predict_joint_log_proba(X)
        names, terms = self._terms(X)
        chosen, other = pairs(log_joint, code_of(against, self.classes_))
        rows = np.arange(len(log_joint))
        return Explanation(
            names, terms[rows, chosen] - terms[rows, other], self.classes_[chosen], self.classes_[other]
        )

    def _terms(self, X: Any) -> tuple[tuple[str, ...], Array]:
        """Names and terms (n, k, names) of the joint log density."""
        encoded = self._encode(self._read(X, reset=False))
        names, terms = ["class prior"], [self.parameters_[PRIOR]["log_probability"][None, :, None]]
        for name, family in self._model.families.items():
            if not isinstance(family, Reasons):
                raise ValueError(f"family {name!r} ({type(family).__name__}) gives no reasons")
            told = family.terms(encoded[name], self.parameters_[name])
            encoder, groups = self._bound.encoders[name], family.groups
            if isinstance(encoder, Derived) and len(groups) == len(encoder.sources):
                groups, told = _by_source(self._bound.columns(name), encoder.sources, told)
            names += groups
            terms.append(told)
        n = len(terms[1])
        return tuple(names), np.concatenate([np.broadcast_to(t, (n, *t.shape[1:])) for t in terms], axis=2)


def code_of(label: Any, classes: Array) -> int | None:
    """The code of a class, if one is given."""
    if label is None:
        return None
    if label not in classes.tolist():
        raise ValueError(f"{label!r} is not among the classes {classes.tolist()}")
    return int(classes.tolist().index(label))


def _by_source(
    columns: tuple[str, ...], sources: tuple[int, ...], terms: Array
) -> tuple[tuple[str, ...], Array]:
    """The terms of encoded columns, added up for the columns that they were made of; those that have none left out."""
    owners = sorted(set(sources))
    whole = np.stack([terms[:, :, np.array(sources) == owner].sum(axis=2) for owner in owners], axis=2)
    return tuple(columns[owner] for owner in owners), whole


def pairs(log_joint: Array, against: int | None) -> tuple[Array, Array]:
    """The class that is explained and the one it is compared with, (n,) codes each."""
    best = most_probable(log_joint)
    without = log_joint.copy()
    without[np.arange(len(best)), best] = -np.inf
    second = most_probable(without)
    if against is None:
        return best, second
    return np.where(best == against, second, best), np.full(len(best), against)
