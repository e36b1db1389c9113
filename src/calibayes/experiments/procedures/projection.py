"""Dimension reduction by Fisher's discriminant directions and principal components of the residuals (gdt-2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.presets.discriminant_analysis import LinearDiscriminantAnalysis


@dataclass(frozen=True)
class Projection:
    """A linear projection of standardized columns, fitted on training rows."""

    mean: Array
    scale: Array
    directions: Array

    def apply(self, columns: Array) -> Array:
        """Coordinates (n, count) of rows (n, d)."""
        return np.asarray((columns - self.mean) / self.scale @ self.directions)


def fit_projection(columns: Array, target: Array, count: int) -> Projection:
    """Discriminant directions of the standardized columns, then principal components of the residuals, ``count`` in all.

    Discriminant directions have unit variance within the classes; components have unit length.
    """
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    standard = (columns - mean) / scale
    fisher = LinearDiscriminantAnalysis(rule="ml").fit(standard, target).scalings_[:, :count]
    basis, _ = np.linalg.qr(fisher)
    residuals = standard - standard @ basis @ basis.T
    _, _, components = np.linalg.svd(residuals - residuals.mean(axis=0), full_matrices=False)
    return Projection(mean, scale, np.hstack([fisher, components[: count - fisher.shape[1]].T]))
