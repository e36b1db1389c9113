"""What a paper says about its errors, and where it holds in ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.experiments.signed_ranks import LEVEL, not_worse
from calibayes.ranks import wilcoxon

Errors = Mapping[str, Sequence[float]]
"""Model -> errors of paired repetitions."""


@dataclass(frozen=True)
class Claim:
    """A sentence that holds or not for each row of a table.

    Parameters
    ----------
    says : str
    printed : str
        How often it holds in the paper.
    holds : function of the errors of a row
    """

    says: str
    printed: str
    holds: Callable[[Errors], bool]

    def told(self, found: Mapping[str, Errors]) -> str:
        """How often it holds, and the rows where it does, or does not, whichever are fewer."""
        yes = [label for label, errors in found.items() if self.holds(errors)]
        no = [label for label in found if label not in yes]
        fewer, word = (no, "not in") if len(no) <= len(yes) else (yes, "in")
        where = f" ({word} {', '.join(fewer)})" if fewer else ""
        return f"Claim: {self.says}. Here in {len(yes)} of {len(found)}{where}; printed: {self.printed}."


def best(name: str) -> Callable[[Errors], bool]:
    """Best, or not told from the best."""
    return lambda errors: name in not_worse(errors)


def no_worse(name: str, rival: str) -> Callable[[Errors], bool]:
    """Better than a rival, or not told from it by signed ranks."""
    return lambda errors: _mean(errors[name]) <= _mean(errors[rival]) or not _told_apart(errors, name, rival)


def better(name: str, rival: str) -> Callable[[Errors], bool]:
    """Better than a rival, and told from it by signed ranks."""
    return lambda errors: _mean(errors[name]) < _mean(errors[rival]) and _told_apart(errors, name, rival)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _told_apart(errors: Errors, name: str, rival: str) -> bool:
    return wilcoxon(errors[name], errors[rival]) <= LEVEL
