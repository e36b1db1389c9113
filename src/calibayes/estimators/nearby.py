"""A member that asks the rows that lie near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.estimators.joint_density import joint_density
from calibayes.estimators.joint_kernel import KEPT_ROWS, trained_at
from calibayes.estimators.members import Path, Setting, Tried, held_out_scores
from calibayes.kernels.joint_kernel import STEPS

MOST_DISTANCES = 4e7
"""Distances between rows in all folds together, about; fewer rows are kept for trials where there would be more."""
FEWEST_KEPT = 1000


@dataclass(frozen=True)
class Nearby:
    """Kernel densities over all columns together, as narrow as held-out rows say. Its tau is how often they were narrowed.

    Parameters
    ----------
    kept_rows : int
    seed : int
        Of the rows that are kept.
    """

    kept_rows: int = KEPT_ROWS
    seed: int = 0

    def tried(self, setting: Setting) -> Tried:
        rows, k = setting.rows, len(setting.classes)
        found = np.full((STEPS, len(rows.codes), k), np.nan)
        most = min(self.kept_rows, max(int(MOST_DISTANCES / len(rows.codes)), FEWEST_KEPT))
        for held, training in zip(setting.splits, setting.training, strict=True):
            density = joint_density(training, k, most, self.seed)
            found[:, held] = density.log_posteriors(rows.table.rows(held))
        losses, errors = np.array([held_out_scores(said, rows) for said in found]).T
        best = int(np.nanargmin(losses)) if len(setting.splits) else 0
        setting.tell(f"log loss {losses[best]:.4f}, error {errors[best]:.4f} on held-out rows", 1.0)
        return Tried(found[best], Path(np.arange(float(STEPS)), losses, errors, best))

    def trained(self, setting: Setting, path: Path) -> Any:
        return trained_at(setting.rows, setting.classes, int(path.stop), self.kept_rows, self.seed)
