"""Categorical, Bernoulli, Poisson, multinomial and complement densities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.export.expressions import Expression, total
from calibayes.export.families.log_density import entry_if_known, known, log_densities
from calibayes.families import Bernoulli, Categorical, Poisson
from calibayes.families.counts.event_counts import EventCounts


@log_densities.register
def _(family: Categorical, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    return sums_of_entries(parameters["log_probability"], family.layout.levels, columns)


def sums_of_entries(cells: Array, sizes: Sequence[int], columns: Sequence[Expression]) -> list[Expression]:
    """For each class the sum over columns of table entries, from tables side by side, (k, cells)."""
    tables = np.split(cells, np.cumsum(sizes)[:-1], axis=1)
    pairs = list(zip(tables, columns, strict=True))
    return [total([entry_if_known(table[c], code) for table, code in pairs]) for c in range(len(cells))]


@log_densities.register
def _(family: Bernoulli, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    zeros, ones = parameters["log_zero"], parameters["log_one"]
    return [
        total(
            [
                known(x * (one - zero) + zero)
                for x, zero, one in zip(columns, class_zeros, class_ones, strict=True)
            ]
        )
        for class_zeros, class_ones in zip(zeros.tolist(), ones.tolist(), strict=True)
    ]


@log_densities.register
def _(family: Poisson, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    return [
        total(
            [known(x * log_rate - rate) for x, log_rate, rate in zip(columns, log_rates, rates, strict=True)]
        )
        for log_rates, rates in zip(parameters["log_rate"].tolist(), parameters["rate"].tolist(), strict=True)
    ]


@log_densities.register
def _(family: EventCounts, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    """Without the multinomial coefficient, which all classes share."""
    return [
        total([x * weight for x, weight in zip(columns, weights, strict=True)])
        for weights in family.event_weights(parameters).tolist()
    ]
