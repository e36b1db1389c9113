"""Training of an ensemble: evaluate the members on held-out rows, weigh them, train them on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibayes.core.notices import ProgressReporter, counted, warn
from calibayes.core.protocols import Array, Engine
from calibayes.encoders.leaves import OrderedBytes, ordered_rows
from calibayes.encoders.schema import column_types
from calibayes.engines.serial_and_threads import local_engine
from calibayes.ensemble.fitted_ensemble import FREQUENCIES, FURTHER_TREES, TREES, FittedEnsemble
from calibayes.ensemble.grown_trees import GrownTrees
from calibayes.ensemble.path_members import EnsembleLoss, FoldContext, Member, MemberResult
from calibayes.kernels import posterior, tree_growth
from calibayes.kernels.growth_rows import GrowthBlocks, RowMarks
from calibayes.kernels.moments import RowCounts
from calibayes.kernels.posterior import held_out_scores, log_loss, mixture_weights
from calibayes.kernels.row_keys import Keys, keys_of
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.kernels.tree_nodes import packed_classes
from calibayes.model.checked_rows import Rows, TrainingRows, class_frequencies
from calibayes.model.parameters import number
from calibayes.model.splits import LEAST_OF_CLASS, Division, EvaluationFolds, some_of_each_class, unit_weight
from calibayes.model.training_rows import HELD_OUT_ROWS, HeldOut

if TYPE_CHECKING:
    from calibayes.ensemble.many_rows import ManyRows

SHARE = 0.5
"""Of the members' log posterior in the start of the growth."""
JEFFREYS = 0.5
"""Pseudo-rows per member, or trees, of the Dirichlet prior of the weights."""
LEAST_WEIGHT = 0.5
"""The members' average has a weight beside the trees if it is at least this. The weights are those of held-out rows, whose
predictions are those of one forest, and the average of the forests is better."""
MOST_WORK = 2e10
"""Largest number of sums that splits are chosen from: those of all forests, trees, leaves, bins and classes. They take some
minutes, and growth is limited to fewer trees if there would be more, with a warning."""
WEAKEST = 0.2
"""Trees of a smaller weight are left out."""


BEYOND = -1
"""Position of a held-out row that is not among those in memory."""


class GrowthTask(NamedTuple):
    """What trees are grown on.

    Attributes
    ----------
    rows : Rows
        Rows in memory, with those that are held out.
    log_members : (n, k) array
        log p(class | x) of the members' average, for each of these rows from members that were not trained on it.
    blocks : GrowthBlocks
        All rows, with their folds and the log scores that growth begins with.
    keys : Keys
        Of columns and classes.
    encoder : OrderedBytes
    held_out : sequence of integer arrays
        Positions, among ``rows``, of those that each forest is not grown on, in the order of the blocks; `BEYOND` for others.
    report : callable
        Progress; a true result ends the growth.
    """

    rows: Rows
    log_members: Array
    blocks: GrowthBlocks
    keys: Keys
    encoder: OrderedBytes
    held_out: Sequence[Array]
    report: tree_growth.Report = lambda rounds, loss: False


def growth_task(
    rows: Rows, log_members: Array, held_out: Sequence[Array], report: tree_growth.Report
) -> GrowthTask:
    """The task of growing a forest on all rows in memory but those of each fold, (n,) booleans."""
    k, encoder = log_members.shape[1], OrderedBytes().fit(rows.summary, rows.table.used)
    blocks = rows.summary.blocks(encoder, RowCounts(unit_weight(rows)))  # priors of trees are in rows
    keys = keys_of(blocks, k)
    order = np.argsort(keys.classes, kind="stable")
    log_start, places = (
        np.ascontiguousarray(SHARE * log_members[:, order]),
        np.argsort(order).astype(np.int32),
    )
    marks = RowMarks(log_start, places, ordered_rows(blocks, keys).fractions, np.stack(held_out))
    positions = [np.flatnonzero(mask) for mask in held_out]
    return GrowthTask(rows, log_members, blocks.marked(marks), keys, encoder, positions, report)


class HeldOutScores(NamedTuple):
    """Log loss and error on held-out rows, and log p(class | x), (n, k), NaN for the other rows."""

    log_loss: float
    error: float
    out_of_fold: Array


def grown_trees(task: GrowthTask, settings: GrowthSettings) -> tuple[GrownTrees, HeldOutScores] | None:
    """Trees grown on half of the members' log posterior, and the scores of the whole on held-out rows.

    None if the members alone are better on held-out rows, or no tree gains.
    """
    rows, folds = task.rows, len(task.held_out)
    place = np.argsort(np.argsort(task.keys.classes, kind="stable"))
    most = replace(settings, trees=most_trees(settings, task.encoder.sizes, task))
    grown = tree_growth.grow_forests(task.blocks, folds, most, task.keys, report=task.report)
    if not any(part.forest.count for part in grown.forests):
        return None
    out_of_fold = np.full(task.log_members.shape, np.nan)
    for fold, (positions, part) in enumerate(zip(task.held_out, grown.forests, strict=True)):
        scores = np.concatenate(task.blocks.each(partial(tree_growth.held_out_scores, part, fold)))
        known = positions != BEYOND
        out_of_fold[positions[known]] = posterior.log_normalize(scores[known])[0][:, place]
    of_trees = _weight(task, out_of_fold)
    if of_trees == 0.0:
        return None
    predicted = ~np.isnan(out_of_fold).any(axis=1)
    average = np.full(out_of_fold.shape, np.nan)
    average[predicted] = np.logaddexp(
        np.log(of_trees) + out_of_fold[predicted],
        np.log(max(1.0 - of_trees, np.finfo(np.float64).tiny)) + task.log_members[predicted],
    )
    held_out = held_out_scores(average[predicted], rows.codes[predicted], rows.weight[predicted])
    trees = GrownTrees(
        share=SHARE,
        weight=of_trees,
        bytes=task.encoder,
        forests=tuple(part.forest for part in grown.forests),
        log_factors=tuple(part.log_factor[place] for part in grown.forests),
        masses=tuple(part.mass.sum(axis=0) for part in grown.forests),
        losses=grown.losses,
    )
    return trees, HeldOutScores(*held_out, average)


def most_trees(settings: GrowthSettings, sizes: Array, task: GrowthTask) -> int:
    """As many trees as may be grown: fewer if there are so many bins and classes that growth would take too long.

    The bound counts sums, not seconds, so that it is the same on every computer.
    """
    sums = int(sizes.sum()) * packed_classes(task.log_members.shape[1])
    bound = int(MOST_WORK / max(len(task.held_out) * settings.leaves * sums, 1))
    return min(settings.trees, max(bound, 1))


def _early_end(trees: GrownTrees, task: GrowthTask, settings: GrowthSettings, is_late: bool) -> str:
    """Why growth has ended before held-out rows said so; empty if it has not."""
    rounds, bins = len(trees.losses) - 1, int(trees.bytes.sizes.sum())
    if is_late:
        return f"{NO_TIME} after {counted(rounds, 'tree')}"
    if not most_trees(settings, trees.bytes.sizes, task) == rounds < settings.trees:
        return ""
    table = f"with {bins:,} bins and {task.log_members.shape[1]} classes"
    more = f"more would take over {MOST_WORK:.0e} sums; CalibratedTrees has no such bound"
    return f"growth ended after {counted(rounds, 'tree')}: {table} {more}"


def _weight(task: GrowthTask, out_of_fold: Array) -> float:
    """The weight of the trees beside the members' average: 1 unless that is at least as good, 0 if it is much better."""
    rows, own = task.rows, np.arange(len(task.rows.codes))
    log_true = np.stack([part[own, rows.codes] for part in (task.log_members, out_of_fold)], axis=1)
    predicted, prior = ~np.isnan(log_true).any(axis=1), JEFFREYS * unit_weight(rows)
    of_members, of_trees = mixture_weights(log_true[predicted], rows.weight[predicted], prior)
    if of_trees < WEAKEST:
        return 0.0
    return float(of_trees) if of_members >= LEAST_WEIGHT else 1.0


# -- The posteriors of held-out rows that the training of an ensemble makes, as the record `held_out_` -------


def out_of_fold_record(
    log_p: Array, rows: Rows, everything: TrainingRows, most: int = HELD_OUT_ROWS
) -> HeldOut:
    """The record of rows (n, k), NaN for rows that were not held out; about ``most`` of them, all classes in proportion.

    Class weights do not count. Small classes have up to 50 rows, and weights are multiplied so that each class has the
    weight that it has among all training rows.
    """
    held_out = np.flatnonzero(~np.isnan(log_p).any(axis=1))
    shares = np.bincount(everything.codes) / len(everything.codes)
    of_class = np.maximum(np.ceil(most * shares), LEAST_OF_CLASS)
    kept = np.sort(held_out[some_of_each_class(rows.codes[held_out], of_class, seed=0)])
    codes, weight = rows.codes[kept], (rows.weight / rows.factor)[kept]
    if len(kept) < len(everything.codes):
        total = np.bincount(everything.codes, everything.weight / everything.factor)
        of_kept = np.bincount(codes, weight, minlength=len(total))
        weight = weight * (total / np.maximum(of_kept, 1e-300))[codes]
    how = f"the inner folds of the training, {len(kept):,} of {len(everything.codes):,} rows"
    return HeldOut(log_p[kept], codes, weight, rows.positions[kept], how)


# -- Training of an ensemble: evaluate the members on held-out rows, weigh them, train them on all rows ------

LEAST_SHARE = 0.4
"""Members below this part of an equal share are dropped, and need not be trained on all rows."""
MEMBER_ROWS = 10_000
"""Rows from which the members learn what trees are grown on, if there are more."""
ONE_FOREST = 100_000
"""Rows from which on one forest is grown on all of them, wherever they lie, and a tenth is held out, the members' rows among
them (of a small class some only), instead of one for each fold."""
LONGEST = 1e300
"""Seconds of a fit without a limit."""
TIME_TO_BEGIN = 0.2
"""Share of the time limit that must be left to begin with a member, or with trees: columns are encoded first."""
NO_GAIN, NO_TIME = "no gain on held-out rows", "the time limit was reached"
"""Why trees, or members, are left out."""


class Weighting(NamedTuple):
    """Weights of the members, and the held-out scores of the ensemble."""

    weights: dict[str, float]
    out_of_fold: Array
    """log p(class | x) of the ensemble for held-out rows, (n, k); NaN for rows in no fold."""
    log_loss: float
    error: float


def weigh(results: Mapping[str, MemberResult], context: FoldContext) -> Weighting:
    """Weights of all members and of the class frequencies."""
    rows = context.rows
    predictions = np.stack([*(result.out_of_fold for result in results.values()), context.constant])
    log_true = _of_true_class(predictions, rows)
    predicted = ~np.isnan(log_true).any(axis=1)
    weights = sparse_weights(log_true[predicted], rows.weight[predicted], unit_weight(rows))
    average = np.full(predictions.shape[1:], np.nan)
    average[predicted] = posterior.mix(predictions[:, predicted], weights)
    scores = held_out_scores(average[predicted], rows.codes[predicted], rows.weight[predicted])
    return Weighting(dict(zip([*results, FREQUENCIES], weights.tolist(), strict=True)), average, *scores)


def sparse_weights(log_true: Array, weight: Array, unit: float = 1.0) -> Array:
    """Weights of members, class frequencies last, without members below 40 % of an equal share.

    They maximize the likelihood of the true classes with a Dirichlet(1/2) prior, in rows of weight ``unit``: a few rows
    hardly distinguish good members, and the class frequencies always keep some weight, so that no class is impossible. If
    the ensemble is no better than the class frequencies, these have all the weight.
    """
    weights = mixture_weights(log_true, weight, JEFFREYS * unit)
    used = weights >= LEAST_SHARE / len(weights)
    used[-1] = True
    sparse = np.zeros(len(weights))
    sparse[used] = mixture_weights(log_true[:, used], weight, JEFFREYS * unit)
    frequencies = np.eye(len(weights))[-1]
    loss, even = (log_loss(log_true, shares, weight) for shares in (sparse, frequencies))
    is_better = posterior.is_lower(loss, even)
    return sparse if is_better or not weight.any() else frequencies


def loss_with(results: Mapping[str, MemberResult], rows: Rows) -> EnsembleLoss:
    """The held-out loss of the ensemble of these members and a further one, as a function of its predictions."""
    before = [result.out_of_fold for result in results.values()]

    def ensemble_loss(out_of_fold: Array) -> float | None:
        log_true = _of_true_class(np.stack([*before, out_of_fold]), rows)
        predicted = ~np.isnan(log_true).any(axis=1)
        weights = mixture_weights(log_true[predicted], rows.weight[predicted])
        return log_loss(log_true[predicted], weights, rows.weight[predicted])

    return ensemble_loss if before else lambda out_of_fold: None


def _of_true_class(predictions: Array, rows: Rows) -> Array:
    """Log probabilities (members, n, k) of the true class of each row, (n, members)."""
    return np.asarray(predictions[:, np.arange(len(rows.codes)), rows.codes].T)


class SkippedMemberWarning(UserWarning):
    """A member of an ensemble was left out.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", SkippedMemberWarning)  # an error instead of a warning
    """


class Deadline:
    """Whether a time limit, the parameter of an ensemble, has passed, or will have when what must follow is done.

    Raises ValueError if it is no number of seconds.
    """

    def __init__(self, time_limit: Any) -> None:
        seconds = np.inf if time_limit is None else number("time_limit", time_limit, 0.0, 1e300)
        self.is_limited, self._seconds = seconds < np.inf, min(seconds, LONGEST)
        self._end = time.monotonic() + seconds
        self.planned = 0.0
        """Seconds that work will take which must follow."""

    def is_late(self, further: float = 0.0, share: float = 0.0) -> bool:
        """Whether no more than a share of the time is left besides what is planned, and so many seconds further."""
        return self._end - time.monotonic() - self.planned - further <= share * self._seconds


class TimeIsOver(Exception):
    """The time limit was reached before a member was evaluated."""


def until_late(training: Iterable[Rows], is_late: Callable[[], bool]) -> Iterator[Rows]:
    """The training rows of one fold after another. Raises TimeIsOver if it is late before the next one."""
    for rows in training:
        if is_late():
            raise TimeIsOver
        yield rows


@dataclass
class EnsembleTraining:
    """The training of one ensemble.

    Attributes
    ----------
    members : mapping
        Name -> member, or the reason why it is left out.
    classes : (k,) array
    rows : Rows
        All training rows.
    division : Division
        All rows in the order of their content, the folds, and the rows that members are compared on.
    engine : Engine
    n_jobs : int or None
    deadline : Deadline
    progress : ProgressReporter
    growth : GrowthSettings or None
        How trees are grown on the members; None if none are. With trees the members are trained on the rows that they are
        compared on.
    everything : TrainingRows or None
        All rows of a source of which ``rows``, in memory, are a sample: members that learn from sums are trained on them.
    many : ManyRows or None
        All rows to grow trees on, if ``rows`` are those that the members learn from.
    """

    members: Mapping[str, Member | str]
    classes: Array
    rows: Rows
    division: Division
    engine: Engine
    n_jobs: int | None
    deadline: Deadline
    progress: ProgressReporter
    growth: GrowthSettings | None = None
    everything: TrainingRows | None = None
    many: ManyRows | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    results: dict[str, MemberResult] = field(default_factory=dict)
    held_out: HeldOut | None = None
    """What the ensemble predicts for held-out rows."""

    def run(self) -> FittedEnsemble:
        """Evaluate, weigh and train the members, and grow trees on them."""
        trial, rows = self.division.compared_folds(), self.rows
        grown_on = rows if self.many is None else self.many.rows
        context = self.context(trial)
        self._evaluate(context)
        if not self.results:
            raise ValueError(f"no member is left: {'; '.join(self.skipped.values())}")
        weighting = weigh(self.results, context)
        self.held_out = out_of_fold_record(weighting.out_of_fold, trial.rows, self.division.rows)
        used = [name for name in self.results if weighting.weights[name] > 0]
        share = float(trial.rows.weight.sum() / rows.weight.sum())
        self.deadline.planned, began = 0.0, time.monotonic()
        fitted = FittedEnsemble(
            classes=self.classes,
            names=rows.table.names,
            class_frequencies=class_frequencies(grown_on.codes, grown_on.weight, self.classes),
            models=self._train(used, self.member_rows),
            weights=weighting.weights,
            paths={name: result.path for name, result in self.results.items()},
            skipped=self.skipped,
            rows=len(grown_on.codes),
            tried_rows=round(len(rows.codes) * share),
            log_loss=weighting.log_loss,
            error=weighting.error,
            schema=column_types(grown_on.summary),
        )
        if self.growth is not None and self.deadline.is_late(share=TIME_TO_BEGIN):
            self._skip(TREES, NO_TIME)
        elif self.growth is not None:
            on_all_rows = (time.monotonic() - began) / share
            fitted = self._with_trees(fitted, context, self.growth, on_all_rows)
        self.progress.close()
        return fitted

    def _with_trees(
        self, fitted: FittedEnsemble, context: FoldContext, settings: GrowthSettings, seconds: float
    ) -> FittedEnsemble:
        """The ensemble with trees grown on it; if these are no better on held-out rows, with members trained on all rows.

        This takes about so many ``seconds``, and is left out if there is no time for it.
        """
        self.progress.begin_part(2 * len(self.members), TREES)
        compared = self.division.compared

        late: list[int] = []

        def report(rounds: int, loss: float) -> bool:
            self.progress.after_tree(rounds, loss, settings.trees)
            if self.deadline.is_late():
                late.append(rounds)
            return bool(late)

        task = self._growth_task(fitted, self._members_out_of_fold(fitted, context), report)
        grown = grown_trees(task, settings)
        if grown is None:
            is_trained = self.many is None and bool(compared.all())
            is_final = is_trained or self.deadline.is_late(seconds)
            models = fitted.models if is_final else self._train(list(fitted.models), self.all_rows)
            if late:
                self._skip(TREES, NO_TIME)
            reason = {} if late else {TREES: NO_GAIN}
            return replace(fitted, models=models, skipped={**self.skipped, **reason})
        trees, scores = grown
        if problem := _early_end(trees, task, settings, bool(late)):
            self.skipped[FURTHER_TREES] = problem
            warn(f"{FURTHER_TREES} are left out: {problem}", SkippedMemberWarning)
        everything = self.division.rows if self.many is None else self.many.rows
        self.held_out = out_of_fold_record(scores.out_of_fold, task.rows, everything)
        return replace(fitted, grown=trees, log_loss=scores.log_loss, error=scores.error)

    def _growth_task(
        self, fitted: FittedEnsemble, log_members: Array, report: tree_growth.Report
    ) -> GrowthTask:
        """What trees are grown on, given the members' out-of-fold predictions."""
        rows, _, _, crossing = self.division
        if self.many is None:
            return growth_task(rows, log_members, crossing, report)
        out_of_fold = np.empty((len(self.rows.codes), len(self.classes)))
        out_of_fold[np.searchsorted(self.rows.positions, rows.positions)] = log_members
        average = lambda table: fitted.average(fitted.member_predictions(table))
        return self.many.task(average, out_of_fold, report)

    def _members_out_of_fold(self, fitted: FittedEnsemble, context: FoldContext) -> Array:
        """log p(class | x) of the members' average for all rows, (n, k), each from members that have not seen it."""
        rows, compared, _, _ = self.division
        in_no_fold = np.isnan(context.constant)
        constant = np.where(in_no_fold, np.log(fitted.class_frequencies), context.constant)
        parts = np.stack([*(self.results[name].out_of_fold for name in fitted.models), constant])
        # An average of the members that have a prediction.
        out_of_fold = fitted.average(np.where(np.isnan(parts), -np.inf, parts))
        if compared.all():
            return out_of_fold
        log_members = np.empty((len(rows.codes), len(self.classes)))
        log_members[compared] = out_of_fold
        others = rows.table.rows(~compared).with_cache()
        log_members[~compared] = fitted.average(fitted.member_predictions(others))
        return log_members

    def context(self, trial: EvaluationFolds) -> FoldContext:
        """What all members share on these rows and folds."""
        rows, masks = trial
        training = [rows.only(~mask) for mask in masks]
        constant = np.full((len(rows.codes), len(self.classes)), np.nan)
        for mask, fold_rows in zip(masks, training, strict=True):
            constant[mask] = np.log(class_frequencies(fold_rows.codes, fold_rows.weight, self.classes))
        is_late = self.deadline.is_late
        # Rows in memory that members learn from are few: sending them to a cluster takes longer than to train there.
        engine = self.engine if self.many is None else local_engine(self.engine)
        return FoldContext(
            rows, self.classes, masks, training, constant, engine, self.n_jobs, is_late=is_late
        )

    @property
    def all_rows(self) -> FoldContext:
        """The context of training on all rows."""
        context = self.context(EvaluationFolds(self.rows, []))
        return replace(context, everything=self.everything, engine=self.engine)

    @property
    def member_rows(self) -> FoldContext:
        """The context of training the members: on all rows, or with trees on those that members are compared on."""
        if self.growth is None:
            return self.all_rows
        return self.context(EvaluationFolds(self.division.compared_folds().rows, []))

    def member(self, name: str) -> Member:
        """An evaluated member."""
        member = self.members[name]
        assert not isinstance(member, str)
        return member

    def _evaluate(self, context: FoldContext) -> None:
        """The predictions of the members for held-out rows; members that cannot be used are skipped.

        A member is evaluated no longer than there is time to train it afterwards.
        """
        in_folds = max(len(context.held_out) - 1, 1) * len(context.rows.codes)
        all_rows = self.rows if self.everything is None else self.everything
        share = len((all_rows if self.growth is None else context.rows).codes) / in_folds
        for part, (name, member) in enumerate(self.members.items()):
            self.progress.begin_part(part, name)
            if isinstance(member, str):
                self._skip(name, member)
                continue
            if self.results and self.deadline.is_late(share=TIME_TO_BEGIN):
                self._skip(name, NO_TIME)
                continue
            began, training = time.monotonic(), context.training
            is_late = partial(lambda start: self.deadline.is_late(share * (time.monotonic() - start)), began)
            if self.results and self.deadline.is_limited:
                training = until_late(training, is_late)
            report, loss = self.progress.report, loss_with(self.results, context.rows)
            limited = replace(context, training=training, report=report, ensemble_loss=loss, is_late=is_late)
            try:
                self.results[name] = member.evaluate(limited)
            except TimeIsOver:
                self._skip(name, NO_TIME)
                continue
            self.deadline.planned += share * (time.monotonic() - began)

    def _train(self, names: list[str], context: FoldContext) -> dict[str, Any]:
        """The members of these names, trained on the rows of a context."""
        models: dict[str, Any] = {}
        for name in names:
            self.progress.begin_part(2 * len(self.members) - len(names) + len(models), name)
            models[name] = self.member(name).train(context, self.results[name].path)
            self.progress.report(f"trained on {len(context.summed_rows.codes)} rows", 1.0)
        return models

    def _skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason
        warn(f"member {name!r} is left out: {reason}", SkippedMemberWarning)
