"""A member whose calibration is stopped early, at the lowest held-out log loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Engine, Model, ModelArrays
from calibayes.core.verify import require, require_array, require_number, require_positions
from calibayes.encoders.encoder import Encoder
from calibayes.estimators import joint_kernel
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.joint_kernel import JointDensity, Smoothing, joint_density
from calibayes.families import Gaussian, Product
from calibayes.kernels.joint_density import STEPS, concatenate
from calibayes.kernels.posterior import best_temperature, held_out_scores, is_lower, log_normalize
from calibayes.learn import TOTAL_STEPS, follow_path
from calibayes.learn.train import fold_runs, held_out_predictions, path_run, prepare_folds, train_along
from calibayes.model.binding import every
from calibayes.model.checked_rows import Rows, TrainingRows
from calibayes.model.decision import tempered
from calibayes.model.estimator import GenerativeEstimator, holding, recipe_of
from calibayes.model.fitted import LOG_TEMPERATURES, begin, fit
from calibayes.model.recipe import assemble, shared_folds
from calibayes.tables.summary import TableSummary

EnsembleLoss = Callable[[Array], float | None]
"""Held-out log loss of an ensemble with a further member, from its predictions; None without other members."""


@dataclass(frozen=True)
class CalibrationPath:
    """Held-out log loss and error along the path of a member, averaged over the rows of all folds.

    Attributes
    ----------
    total_step : array
        Sums of calibration steps (for a kernel member, bandwidth steps) at which the path was evaluated.
    log_loss, error : arrays
    best : int
        Position of the lowest log loss, which is used.
    ended : str
        Why the path was not followed further, if that was to save time.
    temperature : float
        Divides the log probabilities of the member; 1 unless the table has more columns than rows.
    """

    total_step: Array
    log_loss: Array
    error: Array
    best: int
    ended: str = ""
    temperature: float = 1.0

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        steps = len(require_array("total_step", self.total_step, (None,)))
        require_array("log_loss", self.log_loss, (steps,))
        require_array("error", self.error, (steps,))
        require(not (self.total_step < 0).any(), "total_step contains negative numbers")
        require_positions("best", [self.best], steps)
        require_number("temperature", self.temperature, 1e-12, 1e12)

    @classmethod
    def unevaluated(cls, total_step: float = 0.0) -> Self:
        """A path of one step without scores."""
        return cls(np.full(1, total_step), np.full(1, np.nan), np.full(1, np.nan), 0)

    @property
    def stop(self) -> float:
        """The sum of steps that is used."""
        return float(self.total_step[self.best])


NO_PATH = CalibrationPath.unevaluated()
"""The path of a member that no fold was held out for."""


class MemberResult(NamedTuple):
    """Predictions of a member for rows that it was not trained on."""

    out_of_fold: Array
    """log p(class | x) of each row, (n, k); NaN for a row in no fold, or one that was left out to save time."""
    path: CalibrationPath


@dataclass(frozen=True)
class FoldContext:
    """What all members of an ensemble share.

    Attributes
    ----------
    rows, classes, labels
        The rows, the classes, and the label of each row.
    held_out : sequence of (n,) booleans
        The rows that each fold holds out.
    training : iterable of Rows
        The training rows of each fold; it ends with an exception at the time limit.
    constant : (n, k) array
        Log class frequencies in the training rows of each row's fold; NaN for a row in no fold.
    engine : Engine
    n_jobs : int or None
    report : callable
        Progress: a message, and the share of the member's work that is done.
    is_late : callable
        Whether the time limit is reached: then a path ends.
    ensemble_loss : callable
        The loss of the ensemble of all members so far and a further one, from its held-out predictions; None for the
        first member.
    """

    rows: Rows
    classes: Array
    held_out: Sequence[Array]
    training: Iterable[Rows]
    constant: Array
    engine: Engine
    n_jobs: int | None = None
    report: Callable[[str, float], None] = lambda text, share: None
    is_late: Callable[[], bool] = lambda: False
    ensemble_loss: EnsembleLoss = lambda out_of_fold: None
    everything: TrainingRows | None = None
    """All rows of a source of which ``rows`` are a sample; None if they are all."""

    @property
    def summed_rows(self) -> TrainingRows:
        """The rows for models that learn from sums over rows: all of them."""
        return self.rows if self.everything is None else self.everything

    @property
    def labels(self) -> Array:
        return self.classes[self.rows.codes]


class Member(Protocol):
    """A model that can be part of an ensemble."""

    def evaluate(self, context: FoldContext) -> MemberResult:
        """Predictions for the held-out rows of each fold, and how far it was trained for them."""

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator trained on all rows, as far as the path says."""

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator trained on all rows for its density, without calibration."""


@dataclass(frozen=True)
class RefitMember:
    """An estimator that is fitted once per fold and once on all rows."""

    estimator: Any

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, labels = context.rows, context.labels
        out_of_fold = np.full((len(rows.codes), len(context.classes)), np.nan)
        for mask, training in zip(context.held_out, context.training, strict=True):
            model = self._fitted(training, labels[~mask], context.engine)
            out_of_fold[mask] = model.predict_log_proba(rows.table.rows(mask))
        loss, error = held_out_scores(out_of_fold, rows.codes, rows.weight)
        path = CalibrationPath(np.array([np.nan]), np.array([loss]), np.array([error]), 0)
        return MemberResult(out_of_fold, path)

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        return self._fitted(context.rows, context.labels, context.engine)

    train_density = train

    def _fitted(self, rows: Rows, labels: Array, engine: Engine) -> Any:
        model = clone(self.estimator)
        if model.get_params(deep=False).get("engine", engine) is None:
            model.set_params(engine=engine)
        return model.fit(rows.table, labels, sample_weight=rows.weight)


# -- Members with a path of calibration steps ------------------------------------------------------------------

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
        recipe = recipe_of(self.estimator, context.engine)
        source, folds = shared_folds(recipe, rows, context.classes, context.held_out, context.training)
        runs = fold_runs(folds, source, context.engine, recipe.rule, self.passes, k)
        stopping = PathStopping(context.ensemble_loss, self.is_costly)
        evaluated: list[tuple[float, float, float, float]] = []
        ends_late = [lambda progress: context.is_late()]
        for total_step in follow_path(runs, source, context.engine, self.total_steps, ends_late):
            if evaluated and context.is_late():  # some folds may not have reached this total step
                break
            predictions = held_out_predictions(folds, runs, source, context.engine, k)
            temperature = 1.0
            if self.is_tempered:
                temperature = best_temperature(predictions, rows.codes, rows.weight, LOG_TEMPERATURES)
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

    def train(self, context: FoldContext, path: CalibrationPath) -> GenerativeEstimator:
        rows, engine = context.summed_rows, context.engine
        recipe = recipe_of(self.estimator, engine)
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
        holder = holding(self.estimator, fitted, rows.summary.head, training_table_=rows.described())
        holder.engine = engine
        return holder

    def train_density(self, context: FoldContext, path: CalibrationPath) -> GenerativeEstimator:
        """The estimator before calibration: calibration improves decisions and impairs densities."""
        start = CalibrationPath(np.zeros(1), np.zeros(1), np.zeros(1), 0)
        return self.uncalibrated(self.train(context, start))

    def uncalibrated(self, trained: GenerativeEstimator) -> GenerativeEstimator:
        """A trained estimator where its path began."""
        return holding(trained, trained.fitted_.uncalibrated())


# -- A kernel classifier over all columns as a member, with bandwidth and smoothing chosen on held-out rows

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
    columns : function of the summary of a table that returns the positions of the columns
    """

    kept_rows: int | None = None
    seed: int = 0
    columns: Callable[[TableSummary], Sequence[int]] = every

    def evaluate(self, context: FoldContext) -> MemberResult:
        rows, k = context.rows, len(context.classes)
        out_of_fold = np.full((len(rows.codes), k), np.nan)
        densities = [
            joint_density(training, k, self.kept_rows, self.seed, self.columns(training.summary))
            for training in context.training
        ]
        if not densities:
            return MemberResult(out_of_fold, KernelPath.unevaluated())
        by_fold = _evaluated_rows(context.held_out, densities)
        parts = zip(densities, by_fold, strict=True)
        votes = concatenate([density.votes(rows.table, positions) for density, positions in parts])
        positions = np.concatenate(by_fold)
        sizes = [len(fold_positions) for fold_positions in by_fold]
        priors = np.repeat([density.prior for density in densities], sizes, axis=0)
        codes, weight = rows.codes[positions], rows.weight[positions]
        losses, errors = joint_kernel.smoothing_scores(votes, priors, codes, weight)
        place, best = joint_kernel.best_smoothing(losses)
        smoothing = Smoothing(best, float(joint_kernel.PRIOR_ROWS[place]))
        out_of_fold[positions] = joint_kernel.log_posterior(votes, priors, smoothing)
        steps = np.arange(float(STEPS))
        path = KernelPath(steps, losses[place], errors[place], best, prior_rows=smoothing.prior_rows)
        loss, error = losses[place, best], errors[place, best]
        context.report(f"log loss {loss:.4f}, error {error:.4f} on held-out rows", 1.0)
        return MemberResult(out_of_fold, path)

    def train(self, context: FoldContext, path: CalibrationPath) -> Any:
        assert isinstance(path, KernelPath)
        smoothing = Smoothing(int(path.stop), path.prior_rows)
        rows, classes, columns = context.rows, context.classes, self.columns(context.rows.summary)
        model = joint_kernel.trained_at(rows, classes, smoothing, self.kept_rows, self.seed, columns)
        model.n_jobs = context.n_jobs
        return model

    train_density = train


def _evaluated_rows(held_out: Sequence[Array], densities: list[JointDensity]) -> list[Array]:
    """Positions of the held-out rows that are evaluated in each fold."""
    positions = [np.flatnonzero(mask) for mask in held_out]
    pairs = zip(positions, densities, strict=True)
    distances = sum(float(len(fold)) * len(density.codes) for fold, density in pairs)
    share = min(MOST_DISTANCES / max(distances, 1.0), 1.0)
    return [joint_kernel.evenly_spaced(fold, share) for fold in positions]


# -- A Gaussian member for tables with more columns than rows: its shrinkage is chosen on held-out rows ------

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


Evaluated = tuple[Array, list[tuple[float, float]]]
"""Held-out predictions of an amount of shrinkage, and their log loss and error for each factor."""


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
            strongest = ShrinkagePath.unevaluated(self.amounts[0])
            return MemberResult(np.full((len(rows.codes), k), np.nan), strongest)
        recipe = recipe_of(self._estimator(self.amounts[0]), context.engine)
        source, folds = shared_folds(recipe, rows, context.classes, context.held_out, context.training)
        rule, (models, sums) = recipe.rule, prepare_folds(folds, source, context.engine, k)
        evaluated: list[Evaluated] = []
        for amount in self.amounts:
            runs = []
            for fold, model, total in zip(folds, models, sums, strict=True):
                shrunk = self._shrunk(model, total, amount)
                runs.append(path_run(shrunk, rule, rule.begin(shrunk, total), 0, fold.view))
            predictions = held_out_predictions(folds, runs, source, context.engine, k)
            inflated = (_inflated(predictions, context.constant, factor) for factor in FACTORS)
            scores = [held_out_scores(posterior, rows.codes, rows.weight) for posterior in inflated]
            evaluated.append((predictions, scores))
            if context.is_late():
                break
        return self._chosen(evaluated, context)

    def _chosen(self, evaluated: list[Evaluated], context: FoldContext) -> MemberResult:
        """The strongest shrinkage, and for it the largest factor, whose loss is within the slack of the lowest."""
        slack = SLACK / max(len(context.rows.codes), 1)
        losses, errors = np.moveaxis(np.array([scores for _, scores in evaluated]), 2, 0)
        best = int(np.argmax(losses.min(axis=1) <= losses.min() + slack))
        place = len(FACTORS) - 1 - int(np.argmax((losses[best] <= losses[best].min() + slack)[::-1]))
        factor, lowest = FACTORS[place], np.argmin(losses, axis=1)
        lowest[best] = place
        at, amounts = (np.arange(len(evaluated)), lowest), np.array(self.amounts[: len(evaluated)])
        path = ShrinkagePath(amounts, losses[at], errors[at], best, factor=factor)
        text = f"shrinkage {path.stop:g}, factor {factor:g}: log loss {losses[best, place]:.4f}, "
        context.report(f"{text}error {errors[best, place]:.4f} on held-out rows", 1.0)
        return MemberResult(_inflated(evaluated[best][0], context.constant, factor), path)

    def train_density(self, context: FoldContext, path: CalibrationPath) -> Any:
        """The estimator with the covariance as estimated: a factor improves the posterior, not the density."""
        return self.train(context, replace(cast(ShrinkagePath, path), factor=1.0))

    def train(self, context: FoldContext, path: CalibrationPath) -> GenerativeClassifier:
        assert isinstance(path, ShrinkagePath)
        estimator = self._estimator(path.stop, path.factor)
        fitted = fit(recipe_of(estimator, context.engine), context.classes, context.rows)
        holder = holding(estimator, fitted, context.rows.table)
        holder.engine = context.engine
        return holder

    def _estimator(self, amount: float, factor: float = 1.0) -> GenerativeClassifier:
        family = self.family(amount, factor)
        return GenerativeClassifier(families=[(self.name, family, every, self.encoder)], rule="ml")

    def _shrunk(self, model: Model, sums: ModelArrays, amount: float) -> Product:
        """A fold's model with another amount of shrinkage."""
        product = cast(Product, model)
        layout = cast(Gaussian, product.families[self.name]).layout
        family = self.family(amount, 1.0).bind(layout).prepare(sums[self.name])
        return replace(product, families={self.name: family})


def _inflated(log_posterior: Array, log_prior: Array, factor: float) -> Array:
    """The log posterior when a tied covariance is multiplied by a factor, for class frequencies (n, k)."""
    return log_normalize(log_prior + (log_posterior - log_prior) / factor)[0]
