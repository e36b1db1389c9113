"""Training on encoded blocks: from a bound model and a source to statistics and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from calibayes.core.named_arrays import add
from calibayes.core.protocols import Array, Block, Engine, Model, ModelArrays, Rule, Source, State
from calibayes.kernels.dispatch import hosted
from calibayes.kernels.posterior import indicators, label_weights, log_normalize
from calibayes.learn.checkpoint import training_fingerprints
from calibayes.learn.run import Run, as_arrays, follow_path, learn, learn_recorded, mini_batches, problem_of
from calibayes.learn.starts_and_stops import (
    AnyOf,
    Data,
    EvenWeights,
    LastState,
    Likelihood,
    MaxPasses,
    NoGainBeforeTraining,
    Plan,
    RandomParameters,
    SeveralStarts,
    Start,
    ValidationLoss,
    start_named,
    stop_named,
)

LABELS = Data()


class DataSums(NamedTuple):
    """Sums of one pass over the data."""

    statistics: ModelArrays
    """Statistics with the labels as weights (structure statistics, for families that find a structure)."""
    unlabeled: float
    """Number of rows without a label."""
    hidden: float
    """Number of blocks whose statistics depend on the parameters."""
    held_out: float
    """Weight of the held-out rows."""


AnyModel = TypeVar("AnyModel", bound=Model)


class Trained(NamedTuple, Generic[AnyModel]):
    """The result of training."""

    model: AnyModel
    """The prepared model."""
    data: DataSums
    run: Run
    is_closed_form: bool
    """Whether the statistics are plain sums over rows."""
    updates: int
    history: Mapping[str, Array] | None
    """Name -> array over the states; None if they were not measured."""
    problem: str = ""
    """Why training ended before its stopping criterion was met, and what to do; empty if it was met."""


def data_sums(model: Model, source: Source, engine: Engine, k: int) -> DataSums:
    """The first pass of every training."""

    def of_block(block: Block) -> Mapping[str, Any]:
        rows = {"unlabeled": int((block.labels < 0).sum()), "held_out": float(block.held_out.sum())}
        return {**model.data_sums(block, label_weights(block.labels, block.weight, k)), **rows}

    sums = DataSums(**engine.total(of_block, source))
    return sums._replace(statistics=hosted(sums.statistics))


def accurate_sums(
    model: AnyModel,
    source: Source,
    engine: Engine,
    k: int,
    earlier: ModelArrays | None = None,
    *,
    more_to_come: bool = False,
) -> tuple[AnyModel, DataSums]:
    """The first pass, and a second one about the class means if variances lost digits in it; the model to go on with.

    ``earlier`` are the sums of rows that cannot be read again, to which those of the source will be added.
    """
    data = data_sums(model, source, engine, k)
    closer = model.recentered(_with_earlier(model, model, earlier, data.statistics))
    if closer is model:
        return model, data
    again = data_sums(closer, source, engine, k)
    total = _with_earlier(model, closer, earlier, again.statistics)
    return (closer, again) if closer.gains(total, more_to_come=more_to_come) else (model, data)


def _with_earlier(
    before: Model, after: Model, earlier: ModelArrays | None, statistics: ModelArrays
) -> ModelArrays:
    """The statistics of a model with those of earlier rows, which were summed about the points of the model before."""
    return statistics if earlier is None else add(before.moved(earlier, after), statistics)


def start_statistics(model: Model, source: Source, engine: Engine, start: Start, k: int) -> ModelArrays:
    """Statistics of the rows with the weights of a start."""
    if isinstance(start, RandomParameters):
        random = start

        def sums(block: Block) -> Mapping[str, Any]:
            return {"totals": random.weights(block, k).sum(axis=0), "size": float(block.weight.sum())}

        start = random.scaled(**hosted(engine.total(sums, source)))
    return engine.total(lambda block: model.statistics(block, start.weights(block, k)), source)


def prepared(model: AnyModel, data: DataSums, source: Source, engine: Engine, k: int) -> AnyModel:
    """The model with what stays fixed found in all rows, labeled or not."""
    pooled = None
    if data.unlabeled:
        weights = EvenWeights().weights
        sums = engine.total(lambda block: model.structure_statistics(block, weights(block, k)), source)
        pooled = hosted(sums)
    return model.prepare(data.statistics, pooled)


def train(
    model: AnyModel, source: Source, engine: Engine, plan: Plan, k: int, horizon: float = math.inf
) -> Trained[AnyModel]:
    """Train a bound model.

    The model is prepared on the data, whatever the start. With held-out rows the state of least held-out log loss is the
    best one. ``horizon`` is the largest sum of steps; 0 returns the start.
    """
    if isinstance(plan.start, SeveralStarts):
        return _best_training(model, source, engine, plan, plan.start, k, horizon)
    model, data = accurate_sums(model, source, engine, k)
    closed = plan.rule.is_closed_form and not data.hidden
    model = prepared(model, data, source, engine, k)
    if plan.recorder is not None:
        plan.recorder.begin(training_fingerprints(model, source, engine))
    start, stop = start_named(plan.start, plan.seed), stop_named(plan.stop, plan.rule)
    from_data = isinstance(start, Data)
    most = int(not from_data) if closed else plan.max_iter
    stop = ValidationLoss(stop) if data.held_out else stop
    statistics = _initial_statistics(model, data, start, source, engine, plan, k)
    run = Run(
        model,
        plan.rule,
        plan.rule.begin(model, statistics),
        stop=LastState() if closed else stop,
        limit=min(most, plan.max_iter) if horizon else 0,
        horizon=horizon or math.inf,
        sweep=None if plan.batch_size is None else mini_batches(source, plan.batch_size, plan.seed),
    )
    # The scores of a closed form cost one more pass: only if someone wants them.
    if not (closed and from_data) or plan.callbacks or data.held_out:
        learn_recorded(run, "training", statistics, source, engine, plan)
    history = as_arrays(run.history) if run.history else None
    return Trained(model, data, run, closed, run.updates, history, problem_of(run))


def _best_training(
    model: AnyModel,
    source: Source,
    engine: Engine,
    plan: Plan,
    several: SeveralStarts,
    k: int,
    horizon: float,
) -> Trained[AnyModel]:
    """The training from the best of several starts."""
    plans = [replace(plan, start=start) for start in several.starts]
    trainings = [train(model, source, engine, one, k, horizon) for one in plans]
    if not all(trained.run.history for trained in trainings):
        raise ValueError(
            f"several starts need a rule with steps: rule {plan.rule.name!r} has the same result from each. "
            "Give one start, or another rule such as RC()"
        )
    return min(trainings, key=lambda trained: trained.run.best_score)


def _initial_statistics(
    model: Model, data: DataSums, start: Start, source: Source, engine: Engine, plan: Plan, k: int
) -> ModelArrays:
    """The statistics of the labels; with `Likelihood` and something hidden, or labels missing, after maximum likelihood (EM).

    With another start they are those of other weights. Raises ValueError if these have no valid parameters.
    """
    if not isinstance(start, Data):
        statistics = start_statistics(model, source, engine, start, k)
        if model.keep_valid(statistics, statistics)[1]:
            raise ValueError(
                f"start={plan.start!r} gives statistics without valid parameters: give the families a prior, "
                "or start from the data"
            )
        return statistics
    statistics, rule = model.statistics_of(data.statistics), plan.likelihood
    if rule is None or not isinstance(start, Likelihood):
        return statistics
    if not (data.hidden or (data.unlabeled and rule.uses_unlabeled)):
        return statistics
    run = Run(model, rule, rule.begin(model, statistics), stop=NoGainBeforeTraining(), limit=plan.max_iter)
    learn_recorded(run, "start", statistics, source, engine, plan)
    return run.best.state.value


def step_on_new_rows(
    model: Model,
    source: Source,
    engine: Engine,
    plan: Plan,
    before: State | None,
    closed: bool,
    data: ModelArrays,
) -> Run:
    """One step of the rule on further rows, from the state ``before``.

    A closed form, and a state that cannot be continued (None), begins from the statistics of all data so far.
    """
    rule = plan.rule
    if before is None or closed:
        added, state = None, rule.begin(model, model.statistics_of(data))
    else:
        added = entry_statistics(model, source, engine, rule, before.parameters)
        state = rule.absorb(model, before, added)
    run = Run(model, rule, state, stop=LastState(), limit=int(not closed), added=added)
    if not closed:
        learn([run], source, engine, plan.callbacks)
    return run


def entry_statistics(
    model: Model, source: Source, engine: Engine, rule: Rule, parameters: ModelArrays
) -> ModelArrays:
    """Statistics with which further rows enter a state: by their labels, or by their posterior without one."""

    def of_block(block: Block) -> ModelArrays:
        log_joint = model.log_joint(block, parameters)
        onehot = indicators(block.labels, log_joint.shape[1])
        weights = rule.entry_weights(onehot, np.exp(log_normalize(log_joint)[0]))
        return model.statistics(block, weights * block.weight[:, None], parameters)

    return engine.total(of_block, source)


@dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation: its model, and its view of the blocks that all folds share."""

    model: Model
    view: Callable[[Block], Block]
    """The block with the fold's columns, training weights and held-out rows."""
    held_out: Array
    """The rows it holds out, (n,) booleans."""


def prepare_folds(
    folds: Sequence[Fold], source: Source, engine: Engine, k: int, *, unlabeled: bool = False
) -> tuple[list[Model], list[ModelArrays]]:
    """The prepared models of all folds and their initial statistics, from one pass or, if digits are lost, two.

    A further pass sums all rows if some are ``unlabeled``.
    """
    models = [fold.model for fold in folds]
    totals = _fold_totals(folds, models, source, engine, k)
    closer = [model.recentered(total) for model, total in zip(models, totals, strict=True)]
    if any(other is not model for model, other in zip(models, closer, strict=True)):
        again = zip(closer, _fold_totals(folds, closer, source, engine, k), strict=True)
        before = zip(models, totals, strict=True)
        chosen = [new if new[0].gains(new[1]) else old for old, new in zip(before, again, strict=True)]
        models, totals = [model for model, _ in chosen], [total for _, total in chosen]
    pooled: Sequence[ModelArrays | None] = [None] * len(folds)
    if unlabeled:
        pooled = _fold_totals(folds, models, source, engine, k, EvenWeights())
    triples = zip(models, totals, pooled, strict=True)
    models = [model.prepare(total, of_all) for model, total, of_all in triples]
    return models, [model.statistics_of(total) for model, total in zip(models, totals, strict=True)]


def _fold_totals(
    folds: Sequence[Fold],
    models: Sequence[Model],
    source: Source,
    engine: Engine,
    k: int,
    start: Start = LABELS,
) -> list[ModelArrays]:
    """The sums over the training rows of each fold, from one pass."""

    def of_block(block: Block) -> Mapping[str, Any]:
        views = [fold.view(block) for fold in folds]
        return {
            str(number): model.data_sums(view, start.weights(view, k))["statistics"]
            for number, (model, view) in enumerate(zip(models, views, strict=True))
        }

    return list(engine.total(of_block, source).values())


def fold_runs(
    folds: Sequence[Fold], source: Source, engine: Engine, rule: Rule, passes: int, k: int
) -> list[Run]:
    """A run for each fold, at the beginning of a path of calibration steps."""
    models, starts = prepare_folds(folds, source, engine, k)
    return [
        path_run(model, rule, rule.begin(model, statistics), passes, fold.view)
        for model, statistics, fold in zip(models, starts, folds, strict=True)
    ]


def path_run(
    model: Model, rule: Rule, state: State, passes: int, view: Callable[[Block], Block] = lambda block: block
) -> Run:
    """A run at the beginning of a path of at most so many passes."""
    stop = AnyOf((LastState(), MaxPasses(passes)))
    return Run(model, rule, state, stop=stop, limit=passes, horizon=0.0, view=view)


def held_out_predictions(
    folds: Sequence[Fold], runs: Sequence[Run], source: Source, engine: Engine, k: int
) -> Array:
    """log p(class | x) of the held-out rows under the current state of their fold, (n, k); NaN for a row in no fold."""

    def of_block(shared: Block) -> Array:
        predictions = np.full((len(shared.weight), k), np.nan)
        for fold, run in zip(folds, runs, strict=True):
            positions = np.flatnonzero(fold.held_out[shared.first : shared.first + len(shared.weight)])
            if len(positions):
                block = fold.view(shared)
                columns = {name: array[positions] for name, array in block.columns.items()}
                held_out = replace(block, columns=columns, weight=block.weight[positions])
                # A posterior needs the joint density only up to a term that all classes share.
                contrast = run.model.contrast(held_out, run.accepted.parameters)
                predictions[positions] = log_normalize(contrast)[0]
        return predictions

    return np.concatenate(engine.each(of_block, source))


def train_along(
    model: AnyModel,
    source: Source,
    engine: Engine,
    rule: Rule,
    total_steps: Sequence[float],
    passes: int,
    k: int,
) -> Trained[AnyModel]:
    """Train a bound model along a path of calibration steps, to the last of the given sums of steps."""
    model, data = accurate_sums(model, source, engine, k)
    model = prepared(model, data, source, engine, k)
    run = path_run(model, rule, rule.begin(model, model.statistics_of(data.statistics)), passes)
    for _ in follow_path([run], source, engine, total_steps):
        pass
    return Trained(model, data, run, False, run.updates, as_arrays(run.history), problem_of(run))
