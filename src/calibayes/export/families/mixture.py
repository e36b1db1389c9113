"""Mixtures: the log of the weighted sum of the densities of a class's components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Arrays
from calibayes.export.expressions import Expression, Once, log_sum_exp
from calibayes.export.families.log_density import log_densities
from calibayes.families import Mixture


@log_densities.register
def _(family: Mixture, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    densities = log_densities(family.family, parameters, columns)
    parts = [
        Once(density + weight)
        for density, weight in zip(densities, parameters["log_weight"].tolist(), strict=True)
    ]
    classes = family.component_classes
    return [
        log_sum_exp([parts[i] for i in np.flatnonzero(classes == c).tolist()])
        for c in range(len(family.layout.classes))
    ]
