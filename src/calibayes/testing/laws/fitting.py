"""Preparing and fitting a family without rule, engine or class prior."""

from __future__ import annotations

from calibayes.core.abilities import AllowsMissing, Structured
from calibayes.core.protocols import Array, Arrays, Family


def prepare(family: Family, columns: Array, weights: Array) -> Family:
    """The family after `Family.prepare` with the statistics of these rows."""
    return family.prepare(
        (family.structure_statistics if isinstance(family, Structured) else family.statistics)(
            columns, weights
        )
    )


def fit(family: Family, columns: Array, labels: Array, steps: int = 100) -> Arrays:
    """Parameters of maximum likelihood: the closed form, or ``steps`` steps of expectation maximization."""
    parameters = family.parameters(family.statistics(columns, labels))
    if isinstance(family, AllowsMissing) and family.has_hidden(columns):
        for _ in range(steps):
            parameters = family.parameters(family.statistics(columns, labels, parameters))
    return parameters
