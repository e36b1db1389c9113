"""A kernel classifier over all columns as a member, with bandwidth and smoothing chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_number
from calibayes.estimators.ensemble.member import CalibrationPath, FoldContext, MemberResult
from calibayes.estimators.joint_kernel.classifier import trained_at
from calibayes.estimators.joint_kernel.density import (
    PRIOR_ROWS,
    JointDensity,
    Smoothing,
    best_smoothing,
    evenly_spaced,
    joint_density,
    log_posterior,
    smoothing_scores,
)
from calibayes.kernels.density.joint_kernel import STEPS, concatenate

MOST_DISTANCES = 1e8
"""Approximate number of distances between rows in all folds together; fewer held-out rows are evaluated beyond it."""


@dataclass(frozen=True)
class KernelPath(CalibrationPath):
    """The path of decreasing bandwidths, with the number of pseudo-rows that is used."""

    prior_rows: float = 0.0

    def verify(self) -> None:
        super().verify()
        require_number("prior_rows", self.prior_rows, 0.0, 1e9)


@dataclass(frozen=True)
class KernelMember:
    """Kernel densities over all columns jointly. Its path are the bandwidth steps.

    Parameters
    ----------
    kept_rows : int, optional
    seed : int
        Seed of the rows that are kept.
    """

    kept_rows: int | None = None
    seed: int = 0

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, k = context.rows, len(context.classes)
        out_of_fold = np.full((len(rows.codes), k), np.nan)
        densities = [joint_density(training, k, self.kept_rows, self.seed) for training in context.training]
        if not densities:
            return MemberResult(
                out_of_fold, KernelPath(np.zeros(1), np.full(1, np.nan), np.full(1, np.nan), 0)
            )
        by_fold = _evaluated_rows(context.held_out, densities)
        parts = zip(densities, by_fold, strict=True)
        votes = concatenate([density.votes(rows.table, positions) for density, positions in parts])
        positions = np.concatenate(by_fold)
        sizes = [len(fold_positions) for fold_positions in by_fold]
        priors = np.repeat([density.prior for density in densities], sizes, axis=0)
        losses, errors = smoothing_scores(votes, priors, rows.codes[positions], rows.weight[positions])
        place, best = best_smoothing(losses)
        smoothing = Smoothing(best, float(PRIOR_ROWS[place]))
        out_of_fold[positions] = log_posterior(votes, priors, smoothing)
        steps = np.arange(float(STEPS))
        path = KernelPath(steps, losses[place], errors[place], best, prior_rows=smoothing.prior_rows)
        loss, error = losses[place, best], errors[place, best]
        context.report(f"log loss {loss:.4f}, error {error:.4f} on held-out rows", 1.0)
        return MemberResult(out_of_fold, path)

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        assert isinstance(path, KernelPath)
        smoothing = Smoothing(int(path.stop), path.prior_rows)
        model = trained_at(context.rows, context.classes, smoothing, self.kept_rows, self.seed)
        model.n_jobs = context.n_jobs
        return model

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        return self.train(context, path)


def _evaluated_rows(held_out: Sequence[Array], densities: list[JointDensity]) -> list[Array]:
    """Positions of the held-out rows that are evaluated in each fold."""
    positions = [np.flatnonzero(mask) for mask in held_out]
    distances = sum(
        float(len(fold)) * len(density.codes) for fold, density in zip(positions, densities, strict=True)
    )
    share = min(MOST_DISTANCES / max(distances, 1.0), 1.0)
    return [fold[evenly_spaced(len(fold), int(np.ceil(share * len(fold))))] for fold in positions]
