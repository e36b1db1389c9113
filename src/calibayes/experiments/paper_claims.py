"""Claims of a paper about its results, and how often they hold in the reproduced results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.experiments.signed_ranks import LEVEL, not_significantly_worse
from calibayes.ranks import wilcoxon

Errors = Mapping[str, Sequence[float]]
"""Model -> errors of paired repetitions."""


@dataclass(frozen=True)
class Claim:
    """A claim that is true or false for each row of a table.

    Parameters
    ----------
    statement : str
    published : str
        How often the claim holds in the paper.
    holds : function
        Whether the claim holds, given the errors of a row.
    """

    statement: str
    published: str
    holds: Callable[[Errors], bool]

    def check(self, errors_by_row: Mapping[str, Errors]) -> str:
        """A sentence: how often the claim holds, and the rows where it does or does not, whichever are fewer."""
        true_rows = [label for label, errors in errors_by_row.items() if self.holds(errors)]
        false_rows = [label for label in errors_by_row if label not in true_rows]
        fewer, word = (false_rows, "not in") if len(false_rows) <= len(true_rows) else (true_rows, "in")
        exceptions = f" ({word} {', '.join(fewer)})" if fewer else ""
        return (
            f"Claim: {self.statement}. True here in {len(true_rows)} of {len(errors_by_row)}{exceptions}; "
            f"published: {self.published}."
        )


def best(name: str) -> Callable[[Errors], bool]:
    """The model has the lowest mean error or does not differ significantly from the one that has."""
    return lambda errors: name in not_significantly_worse(errors)


def no_worse(name: str, rival: str) -> Callable[[Errors], bool]:
    """The mean error is not higher than the rival's, or the difference is not significant."""
    return lambda errors: _mean(errors[name]) <= _mean(errors[rival]) or not _differs(errors, name, rival)


def better(name: str, rival: str) -> Callable[[Errors], bool]:
    """The mean error is lower than the rival's, and the difference is significant."""
    return lambda errors: _mean(errors[name]) < _mean(errors[rival]) and _differs(errors, name, rival)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _differs(errors: Errors, name: str, rival: str) -> bool:
    """Whether Wilcoxon's signed-rank test rejects that the two models have equal errors."""
    return wilcoxon(errors[name], errors[rival]) <= LEVEL
