"""The facts about a table or about a fitted model, computed in stages; what cannot be shown is recorded with the reason."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis.held_out import GIVEN_ROWS
from calibayes.checks import Findings
from calibayes.checks.run import known_codes, run_on
from calibayes.checks.subject import subject_of
from calibayes.compare import DEFAULT, MODELS, FoldResult, method_name
from calibayes.core.notices import listed
from calibayes.core.protocols import Array
from calibayes.estimators.tabular import NaiveBayes
from calibayes.model.decision import checked_costs
from calibayes.model.training_rows import HeldOut
from calibayes.report import ranking_facts, reason_facts
from calibayes.report.markup import count, counts, shortened
from calibayes.report.python_code import GIVEN, NotExpressible, code_of
from calibayes.report.quality_facts import quality_facts
from calibayes.report.ranking_facts import Progress
from calibayes.report.table_facts import ReportRows, labeled_rows, table_facts
from calibayes.report.values import CurveFacts, Facts, RankingFacts, Skipped, SurpriseFacts, TableFacts


@dataclass(frozen=True)
class ReportOptions:
    """Parameters of `calibayes.report.report_on_table`; those of a comparison have no effect on a report on a model."""

    ignore: Sequence[str]
    costs: Array | None
    progress: Progress | None
    title: str | None
    source: str | None
    models: Sequence[str] | None = None
    rules: Sequence[str] | None = None
    folds: int = 5
    seed: int = 0
    n_jobs: int | None = 1
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}")
        if self.max_rows is not None and self.max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {self.max_rows}")


STAGES = {
    "reading the table": 0.02,
    "comparing models": 0.6,
    "training the model on all rows": 0.8,
    "predicting held-out rows": 0.84,
    "explaining decisions": 0.88,
    "looking for wrong labels": 0.89,
    "computing learning curves": 0.92,
    "looking for surprising rows": 0.96,
    "running checks": 0.99,
    "writing the page": 1.0,
}
"""Stage -> approximate share of the work that is done at its end."""


class Stages:
    """Reports progress and measures the time of the stages; collects what was skipped."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}
        self.skipped: list[Skipped] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Report the beginning of a stage and measure its time."""
        self.report(name, 0.0)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - begin

    def report(self, name: str, share: float, text: str | None = None) -> None:
        """Report how much of a stage is done."""
        if self._progress is None:
            return
        ends = [0.0, *STAGES.values()]
        place = list(STAGES).index(name)
        self._progress(text or name, ends[place] + share * (ends[place + 1] - ends[place]))

    def skip(self, what: str, why: str) -> None:
        """Record something that the report does not show, and the reason."""
        self.skipped.append(Skipped(what, why))


def refuse_early(options: ReportOptions, k: int) -> None:
    """Raise ValueError for unknown checks and for costs that do not match the number of classes, before any long work."""
    known_codes(options.ignore)
    if options.costs is not None:
        checked_costs(options.costs, k)


def predicted_facts(
    model: Any, rows: ReportRows, record: HeldOut | None, costs: Array | None, stages: Stages
) -> dict[str, Any]:
    """Quality, reasons and suspicious labels, from the predictions for held-out rows.

    Single rows are explained by a model that was not trained on them: this one, or the same without these rows.
    """
    if record is None:
        why = f"{type(model).__name__} predicts no probabilities (it has no method predict_proba)"
        for what in ("Quality on held-out rows", "Reasons for predictions", "Labels that look wrong"):
            stages.skip(what, why)
        return {}
    with stages.stage("predicting held-out rows"):
        made: dict[str, Any] = {"quality": quality_facts(record, model.classes_, costs)}
    refused = reason_facts.why_not_explained(model, rows)
    with stages.stage("explaining decisions"):
        judge = None if refused else _judge(model, rows, record, stages)
        if refused:
            stages.skip("Reasons for predictions", refused)
        else:
            made["reasons"] = reason_facts.reason_facts(model, judge, rows, record)
    with stages.stage("looking for wrong labels"):
        made["labels"] = reason_facts.label_facts(judge, model.classes_, rows, record)
    return made


def _judge(model: Any, rows: ReportRows, record: HeldOut, stages: Stages) -> Any:
    """A model that was not trained on the rows that are explained one by one; None if it cannot be trained."""
    if record.how == GIVEN_ROWS:
        return model
    try:
        return reason_facts.without_rows(model, rows, reason_facts.rows_to_explain(record, model.classes_))
    except ranking_facts.REFUSALS as refused:
        stages.skip("Reasons for single rows", f"the model cannot be trained without them: {refused}")
        return None


def python_facts(model: Any, source: str | None, stages: Stages) -> str | None:
    """Python code that creates the model; None if a parameter cannot be written as code."""
    try:
        return code_of(model, source)
    except NotExpressible as refused:
        stages.skip("Python code for this model", str(refused))
        return None


# -- The numbered checks of `calibayes.checks` ---------------------------------------------------------------


def findings_of(
    rows: ReportRows,
    model: Any,
    record: HeldOut | None,
    ignore: Sequence[str],
    stages: Stages,
    results: Sequence[FoldResult] | None = None,
    compared_rows: int | None = None,
) -> Findings:
    """Findings about the rows, the held-out predictions of a model, and the results of a comparison on some of the rows."""
    known = model if record is not None else None
    with stages.stage("running checks"):
        subject = subject_of(
            rows.frame, rows.labels, known, results, held_out=record, compared_rows=compared_rows
        )
        return run_on(subject, known_codes(ignore))


# -- The facts about a table: a comparison of models, and a description of one of them ------------------------

LISTED_COLUMNS = 10
"""Most columns without enough values that are listed by name."""


def facts_of_table(X: Any, y: Any, options: ReportOptions) -> tuple[Facts, Any]:
    """The facts, and the model that they describe."""
    stages = Stages(options.progress)
    with stages.stage("reading the table"):
        rows = labeled_rows(X, y)
        refuse_early(options, len(set(rows.labels.tolist())))
    everything, rows = rows, _learnable(rows, options, stages)
    sample = ranking_facts.compared_rows(rows, options.max_rows, options.seed)
    results, predictions, ranking = _compared(rows, sample, options, stages)
    pair = (ranking.chosen if ranking is not None else None) or DEFAULT
    with stages.stage("training the model on all rows"):
        model = _trained(rows, pair, options)
        if pair in predictions and len(sample) == len(rows):
            model.held_out_ = ranking_facts.record_of_folds(predictions[pair], rows.labels)
        record = model.held_out_
    table = table_facts(everything, model)
    made = predicted_facts(model, rows, record, options.costs, stages)
    facts = Facts(
        title=options.title or "Report on a table",
        about=f"{counts(len(rows), 'row')}, {counts(len(table.columns), 'column')}, {counts(len(table.classes), 'class', 'classes')}",
        model=method_name(*pair),
        table=table,
        ranking=ranking,
        curves=_curves(sample, ranking, model, options, stages),
        surprise=_surprise(rows, table, options.seed, stages),
        findings=findings_of(everything, model, record, options.ignore, stages, results, len(sample)),
        code=python_facts(model, _source(options.source, everything, rows), stages),
        skipped=tuple(stages.skipped),
        seconds=stages.seconds,
        **made,
    )
    stages.report("writing the page", 1.0)
    return facts, model


def _learnable(rows: ReportRows, options: ReportOptions, stages: Stages) -> ReportRows:
    """The rows, without columns that have too few values. Raises ValueError if no column has enough values."""
    empty = ranking_facts.empty_columns(ranking_facts.compared_rows(rows, options.max_rows, options.seed))
    if len(empty) == rows.frame.shape[1]:
        raise ValueError("no column has enough values to learn from: nearly all cells are missing")
    for name, known in list(empty.items())[:LISTED_COLUMNS]:
        why = f"it has too few values in the rows that models are compared on ({count(known)})"
        stages.skip(f"Column {shortened(name)} in all models", why)
    if (more := len(empty) - LISTED_COLUMNS) > 0:
        stages.skip(f"{counts(more, 'further column')} in all models", "they have too few values")
    kept = [name for name in rows.frame.columns if name not in empty]
    return rows.with_columns(kept) if empty else rows


def _source(source: str | None, everything: ReportRows, rows: ReportRows) -> str | None:
    """The code that creates X and y, without the columns that were left out."""
    left_out = [name for name in everything.frame.columns if name not in set(rows.frame.columns)]
    return f"{source or GIVEN}\nX = X.drop(columns={left_out!r})" if left_out else source


def _compared(
    rows: ReportRows, sample: ReportRows, options: ReportOptions, stages: Stages
) -> tuple[list[FoldResult] | None, ranking_facts.Predictions, RankingFacts | None]:
    """Results and predictions of the comparison on a sample of the rows; None if a class is too small for folds."""
    if not (folds := ranking_facts.fold_count(sample.labels, options.folds)):
        why = "a class has only one row, which cannot be both held out and used for training"
        stages.skip("Models compared", why)
        return None, {}, None
    pairs, skipped = ranking_facts.chosen_pairs(rows.frame, options.models, options.rules)
    stages.skipped.extend(skipped)

    def report(text: str, share: float) -> None:
        stages.report("comparing models", share, text)

    given = (sample, pairs, folds, options.seed, options.n_jobs, report)
    with stages.stage("comparing models"):
        results, predictions, refused = ranking_facts.fold_results(*given)
    stages.skipped.extend(refused)
    return results, predictions, ranking_facts.ranking_facts(results, len(sample), len(rows))


def _trained(rows: ReportRows, pair: tuple[str, str], options: ReportOptions) -> Any:
    """The model trained on all rows. The comparison lists its warnings."""
    name, rule = pair
    model = MODELS[name]()
    model.set_params(random_state=options.seed, **({} if pair == DEFAULT else {"rule": rule}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(n_jobs=options.n_jobs).fit(rows.frame, rows.labels)
    return model.set_params(n_jobs=None)


def _curves(
    sample: ReportRows, ranking: RankingFacts | None, model: Any, options: ReportOptions, stages: Stages
) -> CurveFacts | None:
    """Learning curves of the best model that is trained by one rule, on the rows of the comparison."""
    name = None if ranking is None else ranking_facts.curve_model(ranking)
    curves: CurveFacts | None = None
    with stages.stage("computing learning curves"):
        if name is not None:
            curves, refused = ranking_facts.curves_of_rules(sample, name, options.seed, options.n_jobs)
            stages.skipped.extend(refused)
        made = curves if curves is not None and curves.curves else ranking_facts.curves_of_model(model)
    if made is None:
        why = "no rule with iterations trained a model; closed-form fits have no curve"
        stages.skip("Learning curves", why)
    return made


def _surprise(rows: ReportRows, table: TableFacts, seed: int, stages: Stages) -> SurpriseFacts | None:
    """Surprising rows under naive Bayes, in the columns that are most informative about the class."""
    learnable = set(rows.frame.columns)
    varying = [each for each in table.columns if each.kind != "identifier" and each.distinct > 1]
    usable = [column.name for column in varying if column.name in learnable]
    chosen = usable[: reason_facts.SURPRISING_COLUMNS]
    if not chosen:
        stages.skip("Surprising rows", "no column has two distinct values")
        return None
    part = reason_facts.scored_rows(rows, len(chosen), seed).with_columns(chosen)
    halves = reason_facts.halves_of(part, seed)
    if (scored := int((halves >= 0).sum())) < reason_facts.FEWEST_SCORED:
        why = f"{counts(scored, 'row')} of classes with two or more rows; at least {reason_facts.FEWEST_SCORED} are needed to estimate densities"
        stages.skip("Surprising rows", why)
        return None
    with stages.stage("looking for surprising rows"):
        return reason_facts.surprise_by_halves(NaiveBayes(rule="ml"), part, halves, len(usable) - len(chosen))


# -- The facts about a fitted model, from labeled rows that it was not trained on ----------------------------

SURPRISE_COLUMNS = 200
"""Most columns of a table whose cells are scored one by one."""


def facts_of_model(model: Any, X: Any, y: Any, options: ReportOptions) -> Facts:
    """The facts about a fitted model. Raises NotFittedError if it is not fitted."""
    check_is_fitted(model)
    stages = Stages(options.progress)
    with stages.stage("reading the table"):
        rows = labeled_rows(X, y, as_frame=hasattr(model, "feature_names_in_"))
        refuse_early(options, len(model.classes_))
        table = table_facts(rows, model)
    record = _record(model, rows)
    stages.skip("Models compared", "this report describes one fitted model; report_on_table compares models")
    made = predicted_facts(model, rows, record, options.costs, stages)
    name = type(model).__name__
    if (curves := ranking_facts.curves_of_model(model)) is None:
        why = f"this {name} has no record of iterations: it was trained in one step"
        stages.skip("Learning curves", why)
    return Facts(
        title=options.title or f"Report on a {name}",
        about=f"{counts(len(rows), 'row')} that the model was not trained on, {counts(rows.frame.shape[1], 'column')}, "
        f"{counts(len(table.classes), 'class', 'classes')}",
        model=name,
        table=table,
        curves=curves,
        surprise=_model_surprise(model, rows, stages),
        findings=findings_of(rows, model, record, options.ignore, stages),
        code=python_facts(model, options.source, stages),
        skipped=tuple(stages.skipped),
        seconds=stages.seconds,
        **made,
    )


def _record(model: Any, rows: ReportRows) -> HeldOut | None:
    """The predictions of the model for the rows; None if it predicts no probabilities.

    Raises ValueError if a label is not among the model's classes.
    """
    if not hasattr(model, "predict_proba"):
        return None
    classes = np.asarray(model.classes_).tolist()
    codes = {label: code for code, label in enumerate(classes)}
    if unknown := sorted({str(label) for label in rows.labels.tolist() if label not in codes}):
        raise ValueError(
            f"the label {unknown[0]!r} is not among the model's classes {listed([repr(name) for name in classes])}: give rows of "
            "classes that the model was trained on"
        )
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            predicted = model.predict_log_proba(rows.given)
        else:
            predicted = np.log(model.predict_proba(rows.given))
    log_posterior = np.maximum(np.asarray(predicted), np.log(np.finfo(float).tiny))
    true_codes = np.array([codes[label] for label in rows.labels.tolist()])
    return HeldOut(log_posterior, true_codes, np.ones(len(rows)), np.arange(len(rows)), GIVEN_ROWS)


def _model_surprise(model: Any, rows: ReportRows, stages: Stages) -> SurpriseFacts | None:
    d = rows.frame.shape[1]
    if not (hasattr(model, "score_samples") and hasattr(model, "surprise")):
        why = f"{type(model).__name__} has no density p(x); a generative model such as NaiveBayes has one"
    elif not hasattr(model, "predict_log_proba"):
        why = f"{type(model).__name__} predicts no probabilities, which a record of rows for comparison needs"
    elif d > SURPRISE_COLUMNS:
        why = f"each of the {d} columns takes one prediction of every row, which is slow; call model.surprise(X) for a few rows"
    else:
        with stages.stage("looking for surprising rows"):
            return reason_facts.surprise_of_model(model, rows)
    stages.skip("Surprising rows", why)
    return None
