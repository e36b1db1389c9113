"""Training errors over the updates on raw pixels of images (rc-probabilistic-2024, Figures 1 to 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from calibayes.core.protocols import Array
from calibayes.datasets import find_file
from calibayes.experiments.procedures.fitting import fit_clone

ENDING = ".npz"


@dataclass(frozen=True)
class ImageCurve:
    """Task: fit one model on the first images of a set; entry 0 of the curve is the start.

    Parameters
    ----------
    name : str
        Name of a file ``NAME.npz`` with arrays ``x_train`` (n, height, width) and ``y_train`` (n,).
    rows : int
        Number of images.
    pool : int
        Pixels are averaged over squares of this side.
    within_classes : bool
        Drop pixels that are constant within a class, and standardize the others.
    """

    name: str
    model: Any
    rows: int
    pool: int
    within_classes: bool

    def inputs(self) -> tuple[str, ...]:
        """The file of images."""
        return (self.name + ENDING,)

    def run(self) -> dict[str, Any]:
        """The training errors, the shape of the columns and warnings (notes)."""
        columns, target = self._table()
        groups = (
            [columns[target == label] for label in np.unique(target)] if self.within_classes else [columns]
        )
        columns = columns[:, np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)]
        if self.within_classes:
            columns = StandardScaler().fit_transform(columns)
        model, notes = fit_clone(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}

    def _table(self) -> tuple[Array, Array]:
        path = find_file(self.name, ending=ENDING)
        if path is None:
            raise ValueError(
                f"file {self.name}{ENDING} not found: put it into the folder given by CALIBAYES_DATA"
            )
        with np.load(path) as file:
            images, target = file["x_train"][: self.rows], file["y_train"][: self.rows]
        n, height, width = images.shape
        pooled_height, pooled_width = height // self.pool, width // self.pool
        cropped = images[:, : pooled_height * self.pool, : pooled_width * self.pool].astype(np.float64)
        squares = cropped.reshape(n, pooled_height, self.pool, pooled_width, self.pool)
        pooled = squares.mean(axis=(2, 4))
        return pooled.reshape(n, -1), target
