"""A block of encoded rows: columns by family, labels and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import AnyArray, Array


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Attributes
    ----------
    columns : mapping
        Name of a family -> its columns, (n, d), in the encoding that the family reads.
    labels : (n,) integers
        Class codes; -1 is a row without a label.
    weight : (n,) floats
        Weight of each row in the statistics; 0 for a held-out row.
    held_out : (n,) floats
        Weight of each row in the validation metrics; 0 for a training row.
    first : int
        Position of the first row in the table: random starts are drawn by row, so that they do not depend on the blocks.
    """

    columns: Mapping[str, AnyArray]
    labels: Array
    weight: Array
    held_out: Array
    first: int = 0

    def onehot(self, k: int) -> Array:
        """Labels as indicators, (n, k); a row without a label is all zero."""
        return np.asarray(self.labels[:, None] == np.arange(k), dtype=np.float64)
