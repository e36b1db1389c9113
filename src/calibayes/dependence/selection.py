"""Which pairs to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.dependence.procedures import benjamini_hochberg
from calibayes.dependence.table import Dependence


class Selection(Protocol):
    """Says which (class, pair) to keep; where it offers several answers, held-out rows choose among them."""

    def candidates(self, table: Dependence) -> list[Array]:
        """Positions in the flat (k, pairs) table, the most dependent first, one array for each answer."""


@dataclass(frozen=True)
class TopFraction:
    """The most dependent share of all (class, pair); 1 keeps all, 0 none."""

    share: float = 1.0

    def candidates(self, table: Dependence) -> list[Array]:
        return BestFraction((self.share,)).candidates(table)


@dataclass(frozen=True)
class BestFraction:
    """The most dependent share of all (class, pair), the share chosen by cross-validation (slb-2020, section 3)."""

    shares: Sequence[float] = (0.0, 0.03, 0.1, 0.3, 1.0)

    def candidates(self, table: Dependence) -> list[Array]:
        order = table.order
        wrong = [share for share in self.shares if not 0 <= share <= 1]
        if wrong or not self.shares:
            raise ValueError(f"shares of pairs must lie between 0 and 1, got {self.shares!r}")
        return [order[: int(np.ceil(share * len(order) - 1e-9))] for share in self.shares]


@dataclass(frozen=True)
class SignificantPairs:
    """Those (class, pair) whose independence is rejected by tests of all of them.

    Parameters
    ----------
    level : float, default=0.05
    procedure : function of p-values, default=benjamini_hochberg
        What turns them into adjusted ones; `bonferroni` is the other one here.
    """

    level: float = 0.05
    procedure: Callable[[Array], Array] = benjamini_hochberg

    def candidates(self, table: Dependence) -> list[Array]:
        order = table.order
        adjusted = self.procedure(table.p_value.ravel())
        return [order[adjusted[order] <= self.level]]
