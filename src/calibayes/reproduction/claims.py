"""Claims of a paper about its results, and how often they hold in the reproduced results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.ranks import wilcoxon

# -- Which models do not differ significantly from the best one, by signed-rank tests (slb-2020, section 5)

LEVEL = 0.05


def can_be_significant(repetitions: int, models: int) -> bool:
    """Whether the smallest possible p-value, 2^(1 - repetitions), is below the Bonferroni-corrected level.

    >>> can_be_significant(5, 7), can_be_significant(15, 7)
    (False, True)
    """
    return 2.0 ** (1 - repetitions) <= LEVEL / max(models - 1, 1)


def not_significantly_worse(errors: Mapping[str, Sequence[float]]) -> list[str]:
    """The model with the lowest mean error and those not significantly different from it.

    Two-sided Wilcoxon signed-rank tests of paired errors with Bonferroni correction.

    >>> not_significantly_worse({"a": [0.1] * 12, "b": [0.2 + i / 100 for i in range(12)], "c": [0.1] * 12})
    ['a', 'c']
    """
    best = min(errors, key=lambda name: float(np.mean(errors[name])))
    level = LEVEL / max(len(errors) - 1, 1)
    return [name for name in errors if name == best or wilcoxon(errors[best], errors[name]) > level]


# -- Claims of a paper about its results, and how often they hold in the reproduced results ------------------

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


# -- Count how often one method is better than another -------------------------------------------------------


def count_better_equal_worse(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int]:
    """Number of pairs of errors whose first is lower than, equal to, higher than the second.

    >>> count_better_equal_worse([(0.1, 0.2), (0.3, 0.3)])
    (1, 1, 0)
    """
    signs = [(a > b) - (a < b) for a, b in pairs]
    return signs.count(-1), signs.count(0), signs.count(1)


def reach(curve: Sequence[float], level: float) -> float | None:
    """The first iteration, from 1, at which the curve is not above the level; None if there is none."""
    below = np.asarray(curve) <= level
    return float(np.argmax(below)) + 1.0 if below.any() else None
