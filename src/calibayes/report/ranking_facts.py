"""Models and rules ranked by their log losses on held-out folds, with confidence intervals."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from calibayes import compare
from calibayes.compare import FoldResult, method_name
from calibayes.core.protocols import Array
from calibayes.datasets import Dataset
from calibayes.model.recipe import TrainingOptions
from calibayes.model.splits import stratified_subset
from calibayes.model.training_rows import HeldOut
from calibayes.ranks import rank_summary
from calibayes.report.markup import count, counts
from calibayes.report.table_facts import ReportRows
from calibayes.report.values import Curve, CurveFacts, Interval, MethodFacts, RankFacts, RankingFacts, Skipped

RULES = ("ml", "rc")
MOST_ROWS = 5000
"""Most rows that models are compared on, by default."""
CELLS = 2_000_000
"""Most cells that models are compared on."""
FEWEST_ROWS = 400
MANY_COLUMNS = 150
"""With more columns, models that take quadratic time in their number are not compared unless they are requested."""
QUADRATIC = ("TreeAugmentedNB", "LDA", "QDA", "Mixture")

REFUSALS = (ValueError, FloatingPointError, np.linalg.LinAlgError)
"""Errors of a fit whose model cannot be estimated from a table."""
FEWEST_VALUES = 10
"""Fewest values of a column in the compared rows; models are trained without columns that have fewer."""

Progress = Callable[[str, float], None]
Predictions = dict[tuple[str, str], list[tuple[Array, Array]]]
"""(model, rule) -> rows of each fold, ascending, and log p(class | x) for them."""


def compared_rows(rows: ReportRows, most: int | None, seed: int) -> ReportRows:
    """A stratified sample of at most ``most`` rows and about `CELLS` cells."""
    d = rows.frame.shape[1]
    limit = min(MOST_ROWS if most is None else most, max(CELLS // d, FEWEST_ROWS))
    codes = np.unique(rows.labels.astype(str), return_inverse=True)[1]
    chosen = stratified_subset(codes, limit, seed)
    return rows if len(chosen) == len(rows) else rows.only(chosen)


def chosen_pairs(
    frame: Any, models: Sequence[str] | None, rules: Sequence[str] | None
) -> tuple[list[tuple[str, str]], list[Skipped]]:
    """The models and rules to compare, and the models that are too slow for a wide table.

    Raises ValueError for a model that does not exist.
    """
    known = [*compare.MODELS, *compare.BASELINES]
    if unknown := sorted(set(models or ()) - set(known)):
        raise ValueError(f"there is no model {unknown[0]!r}: choose from {', '.join(known)}")
    names, skipped, d = list(models or known), [], frame.shape[1]
    if models is None and d > MANY_COLUMNS:
        names = [name for name in names if name not in QUADRATIC]
        why = (
            f"their computing time grows with the square of the number of columns ({count(d)}); to compare them anyway, list them "
            "in models"
        )
        skipped.append(Skipped(f"Models {', '.join(QUADRATIC)}", why))
    return compare.model_rule_pairs(frame, names, tuple(rules or RULES)), skipped


def empty_columns(rows: ReportRows) -> dict[str, int]:
    """Column with too few values for every fold -> number of its values."""
    known = rows.frame.notna().sum(axis=0)
    fewest = min(FEWEST_VALUES, len(rows) // 2)
    return {str(name): int(values) for name, values in known.items() if values < fewest}


def fold_count(labels: Array, folds: int) -> int:
    """The number of folds that the smallest class allows; 0 if it has one row."""
    smallest = int(np.unique(labels.astype(str), return_counts=True)[1].min())
    return min(folds, smallest) if smallest > 1 else 0


def fold_results(
    rows: ReportRows,
    pairs: Sequence[tuple[str, str]],
    folds: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress,
) -> tuple[list[FoldResult], Predictions, list[Skipped]]:
    """Scores and predictions of each pair on each fold, and pairs that cannot be trained. Raises the first error if none can."""
    import pandas as pd

    data = Dataset("table", rows.frame.reset_index(drop=True), pd.Series(rows.labels, name="target"))
    splits = compare.stratified_folds(rows.labels, folds, seed)
    results: list[FoldResult] = []
    predictions: Predictions = {}
    refused: dict[str, Exception] = {}
    for place, (model, rule) in enumerate(pairs):
        name, jobs = method_name(model, rule), 1 if model in compare.BASELINES else n_jobs
        try:
            for number, split in enumerate(splits):
                progress(f"comparing {name}", (place + number / folds) / len(pairs))
                # A second thread hardly helps a baseline on so few rows, and costs much on a busy machine.
                with threadpool_limits(jobs):
                    result, log_posterior = compare.fold_predictions(data, model, rule, split, jobs)
                results.append(result)
                predictions.setdefault((model, rule), []).append((np.sort(split[1]), log_posterior))
        except REFUSALS as refusal:
            refused[name] = refusal
            results = [each for each in results if (each.model, each.rule) != (model, rule)]
    if not results:
        raise next(iter(refused.values()))
    return results, predictions, [Skipped(f"Model {name}", str(refusal)) for name, refusal in refused.items()]


def record_of_folds(parts: Sequence[tuple[Array, Array]], labels: Array) -> HeldOut:
    """The predictions of one model for the rows of all folds, which have equal weights: means over rows are those over folds."""
    places, log_posterior = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order, n = np.argsort(places), len(places)
    weight = np.concatenate([np.full(len(rows), n / (len(parts) * len(rows))) for rows, _ in parts])
    codes = np.unique(labels, return_inverse=True)[1]
    how = f"the {len(parts)} folds of the comparison"
    return HeldOut(log_posterior[order], codes, weight[order], np.arange(n), how)


def ranking_facts(results: Sequence[FoldResult], rows: int, all_rows: int) -> RankingFacts:
    """The methods, lowest log loss first."""
    ranked, groups = compare.rank_results(results), compare.by_model(results)
    pairs = [(each.model, each.rule) for each in ranked]
    errors = {pair: np.array([fold.error for fold in groups[pair]]) for pair in pairs}
    losses = {pair: np.array([fold.log_loss for fold in groups[pair]]) for pair in pairs}
    apart = compare.differences(results, pairs[0])
    methods = tuple(
        MethodFacts(
            method_name(*pair),
            *pair,
            interval(errors[pair], floor=0.0),
            interval(losses[pair], floor=0.0),
            each.training_error,
            each.seconds,
            Interval(*apart[pair]),
        )
        for pair, each in zip(pairs, ranked, strict=True)
    )
    notes = Counter(re.sub(r"\s+", " ", note) for result in results for note in set(result.notes))
    chosen, close = compare.recommended(results), len(compare.not_distinguishable(results))
    folds = len(groups[pairs[0]])
    return RankingFacts(methods, _ranks(methods, losses), chosen, close, folds, rows, all_rows, dict(notes))


def interval(scores: Array, floor: float) -> Interval:
    """The mean over folds with a confidence interval of 95 % that does not end below ``floor``."""
    mean, low, high = compare.fold_interval(scores)
    return Interval(mean, max(low, floor), high)


def _ranks(methods: Sequence[MethodFacts], losses: dict[tuple[str, str], Array]) -> RankFacts | None:
    """Ranks of the best rule of each model; None for fewer than three models or for folds without a difference."""
    best: dict[str, MethodFacts] = {}
    for method in methods:
        best.setdefault(method.model, method)
    if len(best) < 3 or len(next(iter(losses.values()))) < 2:
        return None
    names = [method.name for method in best.values()]
    table = np.stack([losses[method.model, method.rule] for method in best.values()], axis=1)
    summary = rank_summary(np.round(np.nan_to_num(table), 12), names)
    order = np.argsort(summary.average_ranks, kind="stable")
    ranks = tuple(summary.average_ranks[order].tolist())
    tests = (summary.critical_difference, summary.friedman_p, summary.rows)
    return RankFacts(tuple(names[j] for j in order), ranks, *tests)


def sampling_note(ranking: RankingFacts) -> str:
    """Which rows the models were compared on."""
    if ranking.rows == ranking.all_rows:
        return f"all {counts(ranking.rows, 'row')}"
    return f"a stratified random sample of {count(ranking.rows)} of the {counts(ranking.all_rows, 'row')}"


# -- Learning curves: errors on training and held-out rows by iteration of a rule, or along the paths of ensemble members

CURVE_RULES = ("rc", "gdt", "tm", "dfe", "gd")
"""Rules that iterate."""
UPDATES = 24
VALIDATION = 0.25
"""Share of the rows that is held out."""
NOTHING = np.zeros(0)
"""Scores that are not known."""


def curves_of_rules(
    rows: ReportRows, model: str, seed: int, n_jobs: int | None
) -> tuple[CurveFacts, list[Skipped]]:
    """Training and held-out scores of every rule that can train a model, and the rules that cannot train it on these rows.

    A quarter of the rows is held out.
    """
    curves: list[Curve] = []
    refused: list[Skipped] = []
    for _, rule in compare.model_rule_pairs(rows.frame, [model], CURVE_RULES):
        try:
            curves.append(_curve_of_rule(rows, model, rule, seed, n_jobs))
        except REFUSALS as refusal:
            refused.append(Skipped(f"Learning curve of {model} with rule {rule!r}", str(refusal)))
    about = f"{model} trained by each rule, with {100 * VALIDATION:.0f}\u202f% of {counts(len(rows), 'row')} held out"
    return CurveFacts(tuple(curves), "update", about), refused


def curve_model(ranking: RankingFacts) -> str | None:
    """The best model that is trained by one rule."""
    own = (each.model for each in ranking.methods if each.rule != compare.NO_RULE)
    return next((name for name in own if name not in compare.ENSEMBLES), None)


def _curve_of_rule(rows: ReportRows, model: str, rule: str, seed: int, n_jobs: int | None) -> Curve:
    options = TrainingOptions(validation_fraction=VALIDATION, refit=False)
    estimator = compare.MODELS[model]()
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
        about = "the ensemble members, on the folds that were held out in training"
        return CurveFacts(curves, "total step", about) if curves else None
    history = getattr(getattr(model, "estimator_", model), "history_", None)
    if history is None or len(history["error"]) < 2:
        return None
    curve = curve_of_history(history, type(model).__name__)
    return CurveFacts((curve,), "update", "the training of this model")


def curve_of_path(name: str, path: Any) -> Curve:
    """The held-out scores of an ensemble member."""
    steps, error, loss = (np.asarray(part, float) for part in (path.total_step, path.error, path.log_loss))
    return Curve(name, steps, NOTHING, error, NOTHING, loss, int(path.best))
