"""Which models do not differ significantly from the best one, by signed-rank tests (slb-2020, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibayes.ranks import wilcoxon

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
