"""A Gaussian member for tables with more columns than rows: its shrinkage is chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from calibayes.core.protocols import Array, Model, Trees
from calibayes.core.verify import require_number
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.ensemble.member import CalibrationPath, FoldContext, MemberResult
from calibayes.estimators.generative.binding import every
from calibayes.estimators.generative.fit import fit
from calibayes.estimators.generative.recipe import Recipe, shared_folds
from calibayes.estimators.presets.classifier import GenerativeClassifier
from calibayes.families import Gaussian, Product
from calibayes.kernels.posterior.logspace import held_out_scores, log_normalize
from calibayes.learn.train import Fold, held_out_predictions, path_run, prepare_folds
from calibayes.tables.sources import ArraySource

FACTORS = tuple(2.0 ** (power / 2) for power in range(-12, 19))
"""Factors of the covariance that are compared, from 1/64 to 512."""
SLACK = 1.0
"""Held-out log likelihood, in nats over all rows, that stronger shrinkage or a larger factor may cost: differences of
this size between neighboring values are noise."""


@dataclass(frozen=True)
class ShrinkagePath(CalibrationPath):
    """The path of decreasing shrinkage, with the factor of the covariance that is used."""

    factor: float = 1.0

    def verify(self) -> None:
        super().verify()
        require_number("factor", self.factor, 1e-6, 1e6)


@dataclass(frozen=True)
class ShrinkageMember:
    """A Gaussian family with a tied covariance, trained by maximum likelihood. Its path are amounts of shrinkage.

    With more columns than rows the training rows are separated without errors, so that risk-based calibration has nothing
    to learn from them. Shrinkage and a factor of the covariance (`Inflated`) are chosen on held-out rows instead. The sums
    of each fold are computed once: the parameters at every amount are a closed form of them.

    Parameters
    ----------
    name : str
    family : function of the amount of shrinkage and the factor
        A Gaussian with a tied covariance.
    amounts : sequence of floats
        Amounts of shrinkage, the strongest first.
    encoder : Encoder
    """

    name: str
    family: Callable[[float, float], Gaussian]
    amounts: Sequence[float]
    encoder: Encoder

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, k = context.rows, len(context.classes)
        if not context.held_out:
            strongest = ShrinkagePath(np.array(self.amounts[:1]), np.full(1, np.nan), np.full(1, np.nan), 0)
            return MemberResult(np.full((len(rows.codes), k), np.nan), strongest)
        recipe = self._estimator(self.amounts[0]).recipe(context.engine)
        source, folds = shared_folds(recipe, rows, context.classes, context.held_out, context.training)
        models, sums = prepare_folds(folds, source, context.engine, k)
        evaluated: list[tuple[Array, list[tuple[float, float]]]] = []
        for amount in self.amounts:
            by_fold = [self._shrunk(model, total, amount) for model, total in zip(models, sums, strict=True)]
            predictions = _predictions(recipe, folds, by_fold, sums, source, k)
            inflated = [_inflated(predictions, context.constant, factor) for factor in FACTORS]
            evaluated.append(
                (predictions, [held_out_scores(posterior, rows.codes, rows.weight) for posterior in inflated])
            )
            if context.is_late():
                break
        slack = SLACK / max(len(rows.codes), 1)
        return self._chosen(evaluated, context, slack)

    def _chosen(
        self, evaluated: list[tuple[Array, list[tuple[float, float]]]], context: FoldContext, slack: float
    ) -> MemberResult:
        """The strongest shrinkage, and for it the largest factor, whose loss is within the slack of the lowest."""
        losses, errors = np.moveaxis(np.array([scores for _, scores in evaluated]), 2, 0)
        best = int(np.argmax(losses.min(axis=1) <= losses.min() + slack))
        place = len(FACTORS) - 1 - int(np.argmax((losses[best] <= losses[best].min() + slack)[::-1]))
        factor, lowest = FACTORS[place], np.argmin(losses, axis=1)
        lowest[best] = place
        at = np.arange(len(evaluated)), lowest
        path = ShrinkagePath(
            np.array(self.amounts[: len(evaluated)]), losses[at], errors[at], best, factor=factor
        )
        text = f"shrinkage {path.stop:g}, factor {factor:g}: log loss {losses[best, place]:.4f}, "
        context.report(f"{text}error {errors[best, place]:.4f} on held-out rows", 1.0)
        return MemberResult(_inflated(evaluated[best][0], context.constant, factor), path)

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        assert isinstance(path, ShrinkagePath)
        return self._trained(context, path.stop, path.factor)

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator with the covariance as estimated: a factor improves the posterior, not the density."""
        return self._trained(context, path.stop, 1.0)

    def _trained(self, context: FoldContext, amount: float, factor: float) -> GenerativeClassifier:
        estimator = self._estimator(amount, factor)
        fitted = fit(estimator.recipe(context.engine), context.classes, context.rows)
        holder = estimator.holding(fitted, context.rows.table)
        holder.engine = context.engine
        return holder

    def _estimator(self, amount: float, factor: float = 1.0) -> GenerativeClassifier:
        family = self.family(amount, factor)
        return GenerativeClassifier(families=[(self.name, family, every, self.encoder)], rule="ml")

    def _shrunk(self, model: Model, sums: Trees, amount: float) -> Product:
        """A fold's model with another amount of shrinkage."""
        product = cast(Product, model)
        layout = cast(Gaussian, product.families[self.name]).layout
        family = self.family(amount, 1.0).bind(layout).prepare(sums[self.name])
        return replace(product, families={self.name: family})


def _predictions(
    recipe: Recipe,
    folds: Sequence[Fold],
    models: list[Product],
    sums: list[Trees],
    source: ArraySource,
    k: int,
) -> Array:
    """log p(class | x) of the held-out rows of each fold, (n, k); NaN for a row in no fold."""
    rule, parts = recipe.rule, zip(folds, models, sums, strict=True)
    runs = [path_run(model, rule, rule.begin(model, total), 0, fold.view) for fold, model, total in parts]
    return held_out_predictions(folds, runs, source, recipe.engine, k)


def _inflated(log_posterior: Array, log_prior: Array, factor: float) -> Array:
    """The log posterior when a tied covariance is multiplied by a factor, for class frequencies (n, k)."""
    return log_normalize(log_prior + (log_posterior - log_prior) / factor)[0]
