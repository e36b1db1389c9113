"""A member that asks the rows that lie near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.estimators.joint_density import joint_density
from calibayes.estimators.joint_kernel import KEPT_ROWS, trained_at
from calibayes.estimators.members import Path, Setting, Tried, held_out_scores
from calibayes.kernels.joint_kernel import STEPS

MOST_DISTANCES = 2e7
"""Distances between rows in all folds together, about; fewer rows are kept for trials where there would be more."""
FEWEST_KEPT = 1000
JUDGED_ROWS = 2000
"""Held-out rows that say how narrow kernels are; all are asked at that bandwidth alone."""


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
        most = min(self.kept_rows, max(int(MOST_DISTANCES / len(rows.codes)), FEWEST_KEPT))
        densities = [joint_density(training, k, most, self.seed) for training in setting.training]
        along = np.full((STEPS, len(rows.codes), k), np.nan)
        for held, density in zip(setting.splits, densities, strict=True):
            some = np.flatnonzero(held)[: -(-JUDGED_ROWS // len(densities))]
            along[:, some] = density.log_posteriors(rows.table.rows(some))
        losses, errors = np.array([held_out_scores(said, rows) for said in along]).T
        best = int(np.nanargmin(losses)) if densities else 0
        found = along[best]
        for held, density in zip(setting.splits, densities, strict=True):
            rest = held & np.isnan(found[:, 0])
            if rest.any():
                found[rest] = density.log_posterior(rows.table.rows(rest), best)
        setting.tell(f"log loss {losses[best]:.4f}, error {errors[best]:.4f} on held-out rows", 1.0)
        return Tried(found, Path(np.arange(float(STEPS)), losses, errors, best))

    def trained(self, setting: Setting, path: Path) -> Any:
        return trained_at(setting.rows, setting.classes, int(path.stop), self.kept_rows, self.seed)
