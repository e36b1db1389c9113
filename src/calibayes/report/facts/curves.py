"""Learning curves: errors on training and held-out rows by iteration of a rule, or along the paths of ensemble members."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from calibayes.compare.baselines import NO_RULE
from calibayes.compare.models import ENSEMBLES, MODELS, model_rule_pairs
from calibayes.core.protocols import Array
from calibayes.estimators.generative.recipe import TrainingOptions
from calibayes.report.facts.ranking import REFUSALS
from calibayes.report.facts.rows import LabeledRows
from calibayes.report.facts.values import Curve, CurveFacts, RankingFacts, Skipped
from calibayes.report.page.wording import counts

RULES = ("rc", "gdt", "tm", "dfe", "gd")
"""Rules that iterate."""
UPDATES = 24
VALIDATION = 0.25
"""Share of the rows that is held out."""
NOTHING = np.zeros(0)
"""Scores that are not known."""


def curves_of_rules(
    rows: LabeledRows, model: str, seed: int, n_jobs: int | None
) -> tuple[CurveFacts, list[Skipped]]:
    """Training and held-out scores of every rule that can train a model, and the rules that cannot train it on these rows.

    A quarter of the rows is held out.
    """
    curves: list[Curve] = []
    refused: list[Skipped] = []
    for _, rule in model_rule_pairs(rows.frame, [model], RULES):
        try:
            curves.append(_curve_of_rule(rows, model, rule, seed, n_jobs))
        except REFUSALS as refusal:
            refused.append(Skipped(f"Learning curve of {model} with rule {rule!r}", str(refusal)))
    about = f"{model} trained by each rule, with {100 * VALIDATION:.0f}\u202f% of {counts(len(rows), 'row')} held out"
    return CurveFacts(tuple(curves), "update", about), refused


def curve_model(ranking: RankingFacts) -> str | None:
    """The best model that is trained by one rule."""
    own = (each.model for each in ranking.methods if each.rule != NO_RULE and each.model not in ENSEMBLES)
    return next(own, None)


def _curve_of_rule(rows: LabeledRows, model: str, rule: str, seed: int, n_jobs: int | None) -> Curve:
    options = TrainingOptions(validation_fraction=VALIDATION, refit=False)
    estimator = MODELS[model]()
    if (start := getattr(estimator, "training", None)) is not None:
        options.start = start.start
    estimator.set_params(
        rule=rule, training=options, stop=None, max_iter=UPDATES, random_state=seed, n_jobs=n_jobs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a stop, a fit ends before it has converged
        estimator.fit(rows.frame, rows.labels)
    return curve_of_history(estimator.history_, rule)


def curve_of_history(history: Any, name: str) -> Curve:
    """The curve of a fitted model's history."""

    def scores(key: str) -> Array:
        values = np.asarray(history.get(key, NOTHING), dtype=float)
        return values if np.isfinite(values).any() else NOTHING

    held_out = scores("validation_log_loss")
    losses = held_out if len(held_out) else scores("log_loss")
    return Curve(
        name,
        np.arange(len(history["error"])),
        scores("error"),
        scores("validation_error"),
        scores("log_loss"),
        held_out,
        int(np.nanargmin(losses)) if len(losses) else 0,
    )


def curves_of_model(model: Any) -> CurveFacts | None:
    """The curves of a fitted model: held-out scores along the paths of its ensemble members, or its history of training.

    None if it has neither, for example after a closed-form fit.
    """
    if paths := getattr(model, "paths_", None):
        curves = tuple(curve_of_path(name, path) for name, path in paths.items() if len(path.error) > 1)
        return (
            CurveFacts(
                curves, "total step", "the ensemble members, on the folds that were held out in training"
            )
            if curves
            else None
        )
    history = getattr(getattr(model, "estimator_", model), "history_", None)
    if history is None or len(history["error"]) < 2:
        return None
    return CurveFacts(
        (curve_of_history(history, type(model).__name__),), "update", "the training of this model"
    )


def curve_of_path(name: str, path: Any) -> Curve:
    """The held-out scores of an ensemble member."""
    return Curve(
        name,
        np.asarray(path.total_step, dtype=float),
        NOTHING,
        np.asarray(path.error, dtype=float),
        NOTHING,
        np.asarray(path.log_loss, dtype=float),
        int(path.best),
    )


def with_members(curves: CurveFacts | None, model: Any) -> CurveFacts | None:
    """The curves of the rules; if there are none, those of the model itself."""
    return curves if curves is not None and curves.curves else curves_of_model(model)
