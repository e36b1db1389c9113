"""A member whose calibration is stopped early, at the lowest held-out log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.decision import tempered
from calibayes.estimators.ensemble.member import (
    NO_PATH,
    CalibrationPath,
    EnsembleLoss,
    FoldContext,
    MemberResult,
)
from calibayes.estimators.generative.estimator import GenerativeEstimator
from calibayes.estimators.generative.fitted import begin
from calibayes.estimators.generative.recipe import assemble, shared_folds
from calibayes.estimators.generative.temperature import LOG_TEMPERATURES
from calibayes.estimators.interface.input import Rows
from calibayes.kernels.posterior.averaging import is_lower
from calibayes.kernels.posterior.logspace import best_temperature, held_out_scores
from calibayes.learn import TOTAL_STEPS, follow_path
from calibayes.learn.train import fold_runs, held_out_predictions, train_along

EARLY, PATIENCE, SLOW = 4.0, 2, 0.1
"""From the first total step on, a path ends if at two values in a row its log loss fell by less than a tenth and the
ensemble did not improve. Earlier, or while its loss falls fast, a member may still become useful."""
COSTLY_FROM = 1.0
"""From this total step on, a member with slow passes must improve the ensemble at each value."""


@dataclass
class PathStopping:
    """Whether to follow a path further, decided at each total step.

    Parameters
    ----------
    ensemble_loss : callable
    is_costly : bool
        Whether passes take so long that the path is followed only while the ensemble improves.
    """

    ensemble_loss: EnsembleLoss
    is_costly: bool = False
    least: float = np.inf
    """Lowest log loss of the member so far."""
    ensemble: float = field(default=np.inf, init=False)
    """Log loss of the ensemble at the total step before."""
    idle: int = field(default=0, init=False)
    reason: str = field(default="", init=False)
    """Why the path ended before its lowest loss."""

    def is_over(self, total_step: float, loss: float, out_of_fold: Array) -> bool:
        """Whether the path ends here: losses fall and then rise, and the next value costs as much as all before."""
        if not is_lower(loss, self.least):
            return True
        is_slow = total_step >= EARLY and not loss < (1.0 - SLOW) * self.least
        is_useless = (self.is_costly or total_step >= EARLY / 2) and not self._improves(out_of_fold)
        self.idle = self.idle + 1 if is_useless and is_slow else 0
        self.least = loss
        if is_useless and self.is_costly and total_step >= COSTLY_FROM:
            self.reason = "its passes are slow and the ensemble did not improve"
        elif self.idle >= PATIENCE:
            self.reason = "its log loss fell slowly and the ensemble did not improve"
        return bool(self.reason)

    def _improves(self, out_of_fold: Array) -> bool:
        """Whether the ensemble is better than at the total step before."""
        loss = self.ensemble_loss(out_of_fold)
        if loss is None:
            return True
        before, self.ensemble = self.ensemble, loss
        return bool(is_lower(loss, before))


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
    is_tempered : bool
        Whether held-out predictions are divided by the temperature of lowest log loss, and those of the trained member by
        the one that was chosen with the sum of steps.
    """

    estimator: GenerativeEstimator
    passes: int = 120
    total_steps: Sequence[float] = TOTAL_STEPS
    is_costly: bool = False
    is_tempered: bool = False

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, k = context.rows, len(context.classes)
        best_predictions = np.full((len(rows.codes), k), np.nan)
        if not context.held_out:
            return MemberResult(best_predictions, NO_PATH)
        recipe = self.estimator.recipe(context.engine)
        source, folds = shared_folds(recipe, rows, context.classes, context.held_out, context.training)
        runs = fold_runs(folds, source, context.engine, recipe.rule, self.passes, k)
        stopping = PathStopping(context.ensemble_loss, self.is_costly)
        evaluated: list[tuple[float, float, float, float]] = []
        for total_step in follow_path(runs, source, context.engine, self.total_steps):
            predictions = held_out_predictions(folds, runs, source, context.engine, k)
            temperature = self._temperature(predictions, rows)
            predictions = predictions if temperature == 1.0 else tempered(predictions, temperature)
            loss, error = held_out_scores(predictions, rows.codes, rows.weight)
            if not evaluated or loss < min(entry[1] for entry in evaluated):
                best_predictions = predictions
            evaluated.append((total_step, loss, error, temperature))
            text = f"total step {total_step:g}: log loss {loss:.4f}, error {error:.4f} on held-out rows"
            context.report(text, len(evaluated) / len(self.total_steps))
            if stopping.is_over(total_step, loss, predictions) or context.is_late():
                break
        steps, losses, errors, temperatures = np.array(evaluated).T
        best = int(np.argmin(losses))
        path = CalibrationPath(steps, losses, errors, best, stopping.reason, float(temperatures[best]))
        return MemberResult(best_predictions, path)

    def _temperature(self, predictions: Array, rows: Rows) -> float:
        if not self.is_tempered:
            return 1.0
        return best_temperature(predictions, rows.codes, rows.weight, LOG_TEMPERATURES)

    def train(self, context: FoldContext, path: CalibrationPath) -> GenerativeEstimator:
        rows, engine = context.summed_rows, context.engine
        recipe = self.estimator.recipe(engine)
        assembly = assemble(recipe, rows, context.classes)
        steps = [total_step for total_step in self.total_steps if total_step <= path.stop]
        k, source = len(context.classes), assembly.source(rows)
        trained = train_along(assembly.model, source, engine, recipe.rule, steps, self.passes, k)
        if trained.problem:
            warn(trained.problem, ConvergenceWarning)
        fitted = begin(
            assembly._replace(model=trained.model),
            recipe.rule,
            trained.data.statistics,
            n_iter=max(trained.updates, 1),
            history=trained.history,
            best_iter=trained.run.best_iter,
            temperature=path.temperature,
        ).after(trained.run)
        holder = self.estimator.holding(fitted, rows.summary.head, training_table_=rows.described())
        holder.engine = engine
        return holder

    def train_density(self, context: FoldContext, path: CalibrationPath) -> GenerativeEstimator:
        """The estimator before calibration: calibration improves decisions and impairs densities."""
        start = CalibrationPath(np.zeros(1), np.zeros(1), np.zeros(1), 0)
        return self.uncalibrated(self.train(context, start))

    def uncalibrated(self, trained: GenerativeEstimator) -> GenerativeEstimator:
        """A trained estimator where its path began."""
        return trained.holding(trained.fitted_.uncalibrated())
