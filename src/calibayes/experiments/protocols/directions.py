"""A few directions for data of many columns: Fisher's first, then principal components of what is left (gdt-2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.discriminant_analysis import LinearDiscriminantAnalysis


@dataclass(frozen=True)
class Directions:
    """Columns -> coordinates; made from training rows alone."""

    mean: Array
    scale: Array
    directions: Array

    def apply(self, columns: Array) -> Array:
        """Coordinates (n, count) of rows (n, d)."""
        return np.asarray((columns - self.mean) / self.scale @ self.directions)


def find_directions(columns: Array, target: Array, count: int) -> Directions:
    """Discriminant directions of standardized columns, filled up by principal components of the residuals.

    Fisher's directions have unit variance within the classes; the components keep the units of the standardized
    columns.
    """
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    standard = (columns - mean) / scale
    fisher = LinearDiscriminantAnalysis(rule="ml").fit(standard, target).scalings_[:, :count]
    basis, _ = np.linalg.qr(fisher)
    residuals = standard - standard @ basis @ basis.T
    _, _, components = np.linalg.svd(residuals - residuals.mean(axis=0), full_matrices=False)
    return Directions(mean, scale, np.hstack([fisher, components[: count - fisher.shape[1]].T]))
