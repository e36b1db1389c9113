"""The class prior p(class): counted once, whatever the number of families beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.kernels import moments
from calibayes.kernels.simplex import log_project


@dataclass(frozen=True)
class ClassPrior:
    """Class probabilities from counts.

    Parameters
    ----------
    fixed : (k,) array, optional
        Probabilities to keep under every rule.
    alpha : float, default=0
        Pseudo-count per class.
    """

    fixed: Array | None = None
    alpha: float = 0.0
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)

    def bind(self, layout: Layout) -> ClassPrior:
        k = len(layout.classes)
        if not self.alpha >= 0:
            raise ValueError(f"the pseudo-count of classes must not be negative, got {self.alpha}")
        if self.fixed is None:
            return replace(self, layout=layout)
        fixed = np.asarray(self.fixed, dtype=np.float64)
        if fixed.shape != (k,):
            raise ValueError(
                f"Number of priors must match number of classes: {fixed.size} given, {k} classes"
            )
        if not (np.isfinite(fixed).all() and (fixed > 0).all()):
            raise ValueError("Priors must be positive: a class that cannot occur should be left out")
        if not np.isclose(fixed.sum(), 1.0):
            raise ValueError(f"The sum of the priors should be 1, not {fixed.sum():g}")
        return replace(self, layout=layout, fixed=fixed / fixed.sum())

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> ClassPrior:
        empty = [
            name for name, count in zip(self.layout.classes, start["count"], strict=True) if not count > 0
        ]
        if empty:
            raise ValueError(f"no rows (or no weight) in class {', '.join(map(repr, empty))}")
        return self

    def statistics(self, weights: Array) -> Arrays:
        return {"count": moments.zeroth(weights)}

    def parameters(self, statistics: Arrays) -> Arrays:
        if self.fixed is not None:
            return {"log_probability": np.log(self.fixed)}
        count = statistics["count"] + self.alpha
        return {"log_probability": np.log(count) - np.log(count.sum())}

    def admit(self, current: Arrays, proposed: Arrays, held: Array) -> tuple[Arrays, int]:
        """Counts stay above zero, and a class that a family holds keeps its count."""
        keep = held | ~(proposed["count"] > 0)
        return {"count": np.where(keep, current["count"], proposed["count"])}, int(keep.sum())

    def ascend(self, parameters: Arrays, direction: Arrays, rate: float, offset: Array | None) -> Arrays:
        """A gradient step on log p, projected onto the simplex; only normalised where families are conditional."""
        if self.fixed is not None:
            return parameters
        moved = parameters["log_probability"] + rate * direction["count"]
        if offset is not None:
            moved = moved + offset
            return {"log_probability": moved - np.logaddexp.reduce(moved)}
        return {"log_probability": log_project(moved[None, :])[0]}

    def log_prior(self, parameters: Arrays) -> float:
        return 0.0 if self.fixed is not None else self.alpha * float(np.sum(parameters["log_probability"]))
