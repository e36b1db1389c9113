"""Training errors over the updates on images, raw pixels (rc-probabilistic-2024, Figures 1 to 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from calibayes.core.protocols import Array
from calibayes.datasets import find
from calibayes.experiments.protocols.fitting import fitted

ENDING = ".npz"


@dataclass(frozen=True)
class ImageCurve:
    """One model on the first rows of a set of images; entry 0 of the curve is the start.

    Parameters
    ----------
    name : str
        Of a file ``NAME.npz`` with ``x_train`` (n, height, width) and ``y_train`` (n,), as MNIST is passed around.
    rows : int
        How many images are used.
    pool : int
        Pixels are averaged over squares of this side.
    within_classes : bool
        Leave out pixels that are constant within a class, and standardize the others.
    """

    name: str
    model: Any
    rows: int
    pool: int
    within_classes: bool

    def inputs(self) -> tuple[str, ...]:
        """Name of the file it reads."""
        return (self.name + ENDING,)

    def run(self) -> dict[str, Any]:
        """The curve, the size of the table and notes."""
        columns, target = self._table()
        groups = (
            [columns[target == label] for label in np.unique(target)] if self.within_classes else [columns]
        )
        columns = columns[:, np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)]
        if self.within_classes:
            columns = StandardScaler().fit_transform(columns)
        model, notes = fitted(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}

    def _table(self) -> tuple[Array, Array]:
        path = find(self.name, ending=ENDING)
        if path is None:
            raise ValueError(f"there is no file {self.name}{ENDING} in the folder that CALIBAYES_DATA names")
        with np.load(path) as file:
            images, target = file["x_train"][: self.rows], file["y_train"][: self.rows]
        n, height, width = images.shape
        high, wide = height // self.pool, width // self.pool
        kept = images[:, : high * self.pool, : wide * self.pool].astype(np.float64)
        pooled = kept.reshape(n, high, self.pool, wide, self.pool).mean(axis=(2, 4))
        return pooled.reshape(n, -1), target
