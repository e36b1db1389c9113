"""A member that asks the rows that lie near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.joint_density import (
    BACKINGS,
    Choice,
    JointDensity,
    chosen,
    evenly,
    joint_density,
    judged,
    log_posterior,
)
from calibayes.estimators.joint_kernel import trained_at
from calibayes.estimators.members import Path, Setting, Tried
from calibayes.kernels.density.joint_kernel import STEPS, joined

MOST_DISTANCES = 3e7
"""Distances between rows in all folds together, about; fewer held-out rows are asked where there would be more."""


@dataclass(frozen=True)
class NearPath(Path):
    """The path of kernels that become narrower, with the backing under which some of them are best."""

    backing: float = 0.0


@dataclass(frozen=True)
class Nearby:
    """Kernel densities over all columns together, as narrow as held-out rows say. Its tau is how often they were narrowed.

    Parameters
    ----------
    kept_rows : int, optional
    seed : int
        Of the rows that are kept.
    """

    kept_rows: int | None = None
    seed: int = 0

    def tried(self, setting: Setting) -> Tried:
        rows, k = setting.rows, len(setting.classes)
        found = np.full((len(rows.codes), k), np.nan)
        densities = [joint_density(training, k, self.kept_rows, self.seed) for training in setting.training]
        if not densities:
            return Tried(found, NearPath(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan), 0))
        asked = _asked(setting.splits, densities)
        told = joined(
            [density.votes(rows.table, some) for density, some in zip(densities, asked, strict=True)]
        )
        every = np.concatenate(asked)
        priors = np.repeat([density.prior for density in densities], [len(some) for some in asked], axis=0)
        losses, errors = judged(told, priors, rows.codes[every], rows.weight[every])
        place, best = chosen(losses)
        backing = float(BACKINGS[place])
        found[every] = log_posterior(told, priors, Choice(best, backing))
        path = NearPath(np.arange(float(STEPS)), losses[place], errors[place], best, backing=backing)
        setting.tell(
            f"log loss {losses[place, best]:.4f}, error {errors[place, best]:.4f} on held-out rows", 1.0
        )
        return Tried(found, path)

    def trained(self, setting: Setting, path: Path) -> Any:
        assert isinstance(path, NearPath)
        choice = Choice(int(path.stop), path.backing)
        return trained_at(setting.rows, setting.classes, choice, self.kept_rows, self.seed)


def _asked(splits: Any, densities: list[JointDensity]) -> list[Array]:
    """Positions of the rows that are asked in each fold."""
    held = [np.flatnonzero(mask) for mask in splits]
    distances = sum(
        float(len(own)) * len(density.codes) for own, density in zip(held, densities, strict=True)
    )
    share = min(MOST_DISTANCES / max(distances, 1.0), 1.0)
    return [own[evenly(len(own), int(np.ceil(share * len(own))))] for own in held]
