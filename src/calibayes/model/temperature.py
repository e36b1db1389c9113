"""The temperature of a model of more columns than rows, chosen by inner folds.

Such training rows are separated without errors by almost any model. A rule that learns from errors on the training rows has
nothing to learn from then, and the sum of the log densities of so many columns makes every posterior extreme.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.posterior import best_temperature, log_normalize
from calibayes.learn import train
from calibayes.model.input import Rows, TrainingRows
from calibayes.model.recipe import Recipe, assemble
from calibayes.model.splits import evaluation_folds

LOG_TEMPERATURES = (0.0, 16.0)
"""Bounds of the logarithm of the temperature: posteriors do not become more extreme."""


def needs_temperature(recipe: Recipe, rows: TrainingRows) -> bool:
    """Whether inner folds choose the temperature: not for closed forms, which must stay sums over rows."""
    is_calibrated = not (recipe.rule.is_closed_form or recipe.rule.uses_unlabeled)
    return recipe.is_tempered_if_wide and is_calibrated and len(rows.summary.names) > len(rows.codes)


def fold_temperature(recipe: Recipe, classes: Array, rows: Rows) -> float:
    """The temperature of lowest log loss on the held-out rows of inner folds; 1 if no row can be held out."""
    rows, masks = evaluation_folds(None, rows, len(rows.codes), 0)
    log_posterior = np.full((len(rows.codes), len(classes)), np.nan)
    for mask in masks:
        log_posterior[mask] = _held_out_posterior(recipe, classes, rows.only(~mask), rows.only(mask))
    return best_temperature(log_posterior, rows.codes, rows.weight, LOG_TEMPERATURES) if masks else 1.0


def _held_out_posterior(recipe: Recipe, classes: Array, training: Rows, held_out: Rows) -> Array:
    """log p(class | x) of held-out rows, (n, k), under the model of the training rows."""
    assembly = assemble(recipe, training, classes)
    plan = replace(recipe.plan(), callbacks=())
    trained = train(assembly.model, assembly.source(training), recipe.engine, plan, len(classes))
    parameters = trained.run.best.parameters
    joint = recipe.engine.each(
        lambda block: trained.model.contrast(block, parameters), assembly.source(held_out)
    )
    return log_normalize(np.concatenate(joint))[0]
