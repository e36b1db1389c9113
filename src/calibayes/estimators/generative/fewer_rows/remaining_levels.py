"""Model and statistics without the levels that only removed rows had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibayes.core.abilities import Recodable
from calibayes.core.protocols import Array, Trees
from calibayes.estimators.generative.recipe import Assembly, layouts_of, recoded
from calibayes.families import Product

LEAST_COUNT = 1e-9
"""Counts below this are rounding of rows that were subtracted."""


def with_remaining_levels(
    assembly: Assembly, statistics: Trees, given: Mapping[str, Array]
) -> tuple[Product, Trees, dict[str, Array]]:
    """Model, statistics and columns of the removed rows, without the levels that no other row has."""
    binding, families = assembly.binding, assembly.model.families
    moved, encoders, columns = {}, dict(binding.encoders), dict(given)
    for name, family in families.items():
        if isinstance(family, Recodable):
            counts = family.occurrences(statistics[name])
            encoders[name], codes = encoders[name].restricted_to(np.where(counts > LEAST_COUNT, counts, 0.0))
            if codes is not None:
                moved[name] = codes
                columns[name] = _recoded_columns(columns[name], codes)
    if not moved:
        return assembly.model, statistics, columns
    layouts, names = layouts_of(replace(binding, encoders=encoders), assembly.classes)
    return assembly.model.bind(layouts, names), recoded(families, statistics, moved, layouts), columns


def _recoded_columns(columns: Array, codes: Any) -> Array:
    """Codes of levels after recoding; -1 for a level that was removed."""
    return np.stack(
        [np.append(new, -1)[column] for new, column in zip(codes, columns.T, strict=True)], axis=1
    )
