"""A member whose calibration is stopped early, at the lowest held-out log loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.block import Block
from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Engine, Model, Rule, Source, State
from calibayes.estimators.ensemble.member import NO_PATH, FoldContext, MemberResult, Path
from calibayes.estimators.ensemble.path_stopping import PathStopping
from calibayes.estimators.generative.assemble import assemble
from calibayes.estimators.generative.estimator import GenerativeEstimator
from calibayes.estimators.generative.fitted import begin
from calibayes.estimators.generative.folds import Fold, prepare_folds, shared_folds
from calibayes.learn import (
    TOTAL_STEPS,
    AnyOf,
    LastState,
    MaxPasses,
    Run,
    as_arrays,
    data_sums,
    follow_path,
    problem_of,
)
from calibayes.learn.train import prepared
from calibayes.posterior import held_out_scores, log_normalize


@dataclass(frozen=True)
class PathMember:
    """A generative estimator whose path of calibration steps is stopped at the lowest held-out log loss.

    All folds follow the path together, so that a pass over the data serves them all.

    Parameters
    ----------
    estimator : GenerativeEstimator
    passes : int
        Largest number of passes over the data on the whole path.
    total_steps : sequence
        Sums of steps at which the path is evaluated.
    is_costly : bool
        Whether passes take so long that the path is followed only while the ensemble improves.
    """

    estimator: GenerativeEstimator
    passes: int = 120
    total_steps: Sequence[float] = TOTAL_STEPS
    is_costly: bool = False

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, k = context.rows, len(context.classes)
        best_predictions = np.full((len(rows.codes), k), np.nan)
        if not context.held_out:
            return MemberResult(best_predictions, NO_PATH)
        recipe = self.estimator.recipe()
        source, folds = shared_folds(recipe, rows, context.classes, context.held_out, context.training)
        models, states = prepare_folds(folds, source, context.engine, k)
        runs = [
            path_run(model, recipe.rule, recipe.rule.begin(model, state), self.passes, fold.view)
            for model, state, fold in zip(models, states, folds, strict=True)
        ]
        stopping = PathStopping(context.ensemble_loss, self.is_costly)
        evaluated: list[tuple[float, float, float]] = []
        for total_step in follow_path(runs, source, context.engine, self.total_steps):
            predictions = _held_out_predictions(folds, runs, source, context.engine, best_predictions.shape)
            loss, error = held_out_scores(predictions, rows.codes, rows.weight)
            if not evaluated or loss < min(entry[1] for entry in evaluated):
                best_predictions = predictions
            evaluated.append((total_step, loss, error))
            text = f"total step {total_step:g}: log loss {loss:.4f}, error {error:.4f} on held-out rows"
            context.report(text, len(evaluated) / len(self.total_steps))
            if stopping.is_over(total_step, loss, predictions) or context.is_late():
                break
        steps, losses, errors = np.array(evaluated).T
        best = int(np.argmin(losses))
        return MemberResult(best_predictions, Path(steps, losses, errors, best, stopping.reason))

    def train(self, context: FoldContext, path: Path) -> GenerativeEstimator:
        recipe, rows, engine = self.estimator.recipe(), context.rows, context.engine
        k = len(context.classes)
        assembly = assemble(recipe, rows, context.classes)
        source = assembly.source(rows)
        data = data_sums(assembly.model, source, engine, k)
        model: Any = prepared(assembly.model, data, source, engine, k)
        state = recipe.rule.begin(model, model.statistics_of(data.statistics))
        run = path_run(model, recipe.rule, state, self.passes)
        for _ in follow_path([run], source, engine, [t for t in self.total_steps if t <= path.stop]):
            pass
        if problem := problem_of(run):
            warn(problem, ConvergenceWarning)
        fitted = begin(
            assembly._replace(model=model),
            recipe.rule,
            data.statistics,
            n_iter=max(run.updates, 1),
            history=as_arrays(run.history),
            best_iter=run.best_iter,
        ).after(run)
        holder = self.estimator.holding(fitted, rows.table)
        return holder.set_params(engine=engine)  # type: ignore[no-any-return]

    def train_density(self, context: FoldContext, path: Path) -> GenerativeEstimator:
        """The estimator before calibration: calibration improves decisions and impairs densities."""
        start = Path(np.zeros(1), np.zeros(1), np.zeros(1), 0)
        return self.uncalibrated(self.train(context, start))

    def uncalibrated(self, trained: GenerativeEstimator) -> GenerativeEstimator:
        """A trained estimator where its path began."""
        return trained.holding(trained.fitted_.uncalibrated())


def path_run(
    model: Model, rule: Rule, state: State, passes: int, view: Callable[[Block], Block] = lambda block: block
) -> Run:
    """A run at the beginning of a path."""
    stop = AnyOf((LastState(), MaxPasses(passes)))
    return Run(model, rule, state, stop=stop, limit=passes, horizon=0.0, view=view)


def _held_out_predictions(
    folds: Sequence[Fold], runs: Sequence[Run], source: Source, engine: Engine, shape: tuple[int, ...]
) -> Array:
    """log p(class | x) of the held-out rows under the current state of their fold, (n, k); NaN for a row in no fold."""

    def of_block(shared: Block) -> tuple[int, Array]:
        predictions = np.full((len(shared.weight), shape[1]), np.nan)
        for fold, run in zip(folds, runs, strict=True):
            positions = np.flatnonzero(fold.held_out[shared.first : shared.first + len(shared.weight)])
            if len(positions):
                block = fold.view(shared)
                columns = {name: array[positions] for name, array in block.columns.items()}
                held_out = replace(block, columns=columns, weight=block.weight[positions])
                # A posterior needs the joint density only up to a term that all classes share.
                contrast = run.model.contrast(held_out, run.accepted.parameters)
                predictions[positions] = log_normalize(contrast)[0]
        return shared.first, predictions

    return np.concatenate([part for _, part in sorted(engine.each(of_block, source), key=lambda p: p[0])])
