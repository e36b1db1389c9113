"""Which models are not worse than the best one, by signed ranks of paired errors (slb-2020, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibayes.ranks import wilcoxon

LEVEL = 0.05


def can_tell(repetitions: int, models: int) -> bool:
    """Whether so many paired errors could tell a model from the best at all: the least p-value is 2^(1 - n).

    >>> can_tell(5, 7), can_tell(15, 7)
    (False, True)
    """
    return 2.0 ** (1 - repetitions) <= LEVEL / max(models - 1, 1)


def not_worse(errors: Mapping[str, Sequence[float]]) -> list[str]:
    """The model of least mean error and those that two-sided tests, after Bonferroni, do not tell from it.

    >>> not_worse({"a": [0.1] * 12, "b": [0.2 + i / 100 for i in range(12)], "c": [0.1] * 12})
    ['a', 'c']
    """
    best = min(errors, key=lambda name: float(np.mean(errors[name])))
    level = LEVEL / max(len(errors) - 1, 1)
    return [name for name in errors if name == best or wilcoxon(errors[best], errors[name]) > level]
