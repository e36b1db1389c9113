"""The facts about a table: models compared, the best one trained on all rows and examined."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.compare.cross_validation import FoldResult
from calibayes.compare.models import ENSEMBLES, MODELS
from calibayes.core.protocols import Array
from calibayes.estimators.presets.tabular import NaiveBayes
from calibayes.report.facts.curves import curve_model, curves_of_rules, with_members
from calibayes.report.facts.gather import Progress, Stages, predicted_facts, python_facts, refuse_early
from calibayes.report.facts.numbered import findings_of
from calibayes.report.facts.python import GIVEN
from calibayes.report.facts.ranking import (
    best_own,
    chosen_pairs,
    compared_rows,
    empty_columns,
    fold_count,
    fold_results,
    ranking_facts,
)
from calibayes.report.facts.rows import LabeledRows, labeled_rows, without_columns
from calibayes.report.facts.surprise import COLUMNS, density_rows, surprise_by_halves
from calibayes.report.facts.table import table_facts
from calibayes.report.facts.values import CurveFacts, Facts, RankingFacts, SurpriseFacts, TableFacts
from calibayes.report.page.wording import counts, shortened

LISTED_COLUMNS = 10
"""Columns without enough values that are named."""
DEFAULT = ("BayesClassifier", "rc")
"""The model of a report without a comparison."""


class TableOptions:
    """Parameters of `calibayes.report.report_on_table`."""

    def __init__(
        self,
        models: Sequence[str] | None,
        rules: Sequence[str] | None,
        folds: int,
        seed: int,
        n_jobs: int | None,
        max_rows: int | None,
    ) -> None:
        if folds < 2:
            raise ValueError(f"folds must be 2 at least, got {folds}")
        self.models, self.rules, self.folds, self.seed = models, rules, folds, seed
        self.n_jobs, self.max_rows = n_jobs, max_rows


def facts_of_table(
    X: Any,
    y: Any,
    options: TableOptions,
    *,
    ignore: Sequence[str],
    costs: Array | None,
    progress: Progress | None,
    title: str | None,
    source: str | None,
) -> tuple[Facts, Any]:
    """The facts, and the model that they are about."""
    stages = Stages(progress)
    with stages.stage("reading the table"):
        rows = labeled_rows(X, y)
        refuse_early(ignore, costs, len(set(rows.labels.tolist())))
    everything, rows = rows, _learnable(rows, options, stages)
    results, ranking = _compared(rows, options, stages)
    pair = DEFAULT if ranking is None else _best_pair(ranking)
    with stages.stage("training the best model on all rows"):
        model = _trained(rows, pair, options)
        record = model.held_out_
    table = table_facts(everything, model)
    made = predicted_facts(model, rows, record, costs, stages)
    facts = Facts(
        title=title or "Report on a table",
        about=f"{counts(len(rows), 'row')}, {counts(len(table.columns), 'column')}, {counts(len(table.classes), 'class', 'classes')}",
        model=pair[0] if pair[0] in ENSEMBLES else f"{pair[0]}, rule {pair[1]}",
        table=table,
        ranking=ranking,
        curves=_curves(rows, ranking, model, options, stages),
        surprise=_surprise(rows, table, options.seed, stages),
        findings=findings_of(everything, model, record, results, ignore, stages),
        code=python_facts(model, _source(source, everything, rows), stages),
        skipped=tuple(stages.skipped),
        seconds=stages.seconds,
        **made,
    )
    stages.report("writing the page", 1.0)
    return facts, model


def _learnable(rows: LabeledRows, options: TableOptions, stages: Stages) -> LabeledRows:
    """The rows without columns that have too few values. Raises ValueError if no column has enough."""
    empty = empty_columns(compared_rows(rows, options.max_rows, options.seed))
    if len(empty) == rows.frame.shape[1]:
        raise ValueError("no column has enough values to learn from: nearly all cells are missing")
    for name, known in list(empty.items())[:LISTED_COLUMNS]:
        stages.skip(
            f"column {shortened(name)} in all models",
            f"{counts(known, 'value')} in the rows that are compared are too few",
        )
    if len(empty) > LISTED_COLUMNS:
        stages.skip(
            f"{counts(len(empty) - LISTED_COLUMNS, 'further column')} in all models", "too few values"
        )
    return without_columns(rows, list(empty)) if empty else rows


def _source(source: str | None, everything: LabeledRows, rows: LabeledRows) -> str | None:
    """The code that makes X and y, without the columns that were left out."""
    left_out = [name for name in everything.frame.columns if name not in set(rows.frame.columns)]
    return f"{source or GIVEN}\nX = X.drop(columns={left_out!r})" if left_out else source


def _compared(
    rows: LabeledRows, options: TableOptions, stages: Stages
) -> tuple[list[FoldResult] | None, RankingFacts | None]:
    """Results of the comparison; None if a class is too small for folds."""
    sample = compared_rows(rows, options.max_rows, options.seed)
    folds = fold_count(sample.labels, options.folds)
    if not folds:
        stages.skip(
            "Models compared",
            "a class has one row only, so that it cannot be held out and be trained on, too",
        )
        return None, None
    pairs, skipped = chosen_pairs(rows.frame, options.models, options.rules)
    stages.skipped.extend(skipped)

    def report(words: str, share: float) -> None:
        stages.report("comparing models", share, words)

    with stages.stage("comparing models"):
        results, refused = fold_results(sample, pairs, folds, options.seed, options.n_jobs, report)
    stages.skipped.extend(refused)
    return results, ranking_facts(results, len(sample), len(rows))


def _best_pair(ranking: RankingFacts) -> tuple[str, str]:
    best = best_own(ranking)
    return (best.model, best.rule) if best.model in MODELS else DEFAULT


def _trained(rows: LabeledRows, pair: tuple[str, str], options: TableOptions) -> Any:
    """The best model, trained on all rows. Its warnings are in the comparison already."""
    name, rule = pair
    model = MODELS[name]()
    model.set_params(random_state=options.seed, **({} if name in ENSEMBLES else {"rule": rule}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(n_jobs=options.n_jobs).fit(rows.frame, rows.labels)
    return model.set_params(n_jobs=None)


def _curves(
    rows: LabeledRows, ranking: RankingFacts | None, model: Any, options: TableOptions, stages: Stages
) -> CurveFacts | None:
    """Learning curves of the best model that one rule trains, on the rows of the comparison."""
    name = None if ranking is None else curve_model(ranking)
    sample = compared_rows(rows, options.max_rows, options.seed)
    with stages.stage("following the rules"):
        curves = None if name is None else curves_of_rules(sample, name, options.seed, options.n_jobs)
        made = with_members(curves, model)
    if made is None:
        stages.skip("Learning curves", "the model is a closed form: it has no iterations")
    return made


def _surprise(rows: LabeledRows, table: TableFacts, seed: int, stages: Stages) -> SurpriseFacts | None:
    """Surprising rows under naive Bayes, in the columns that say most about the class."""
    usable = [column for column in table.columns if column.kind != "identifier" and column.distinct > 1]
    chosen = [column.name for column in usable[:COLUMNS]]
    if not chosen:
        stages.skip("Surprising rows", "no column has two distinct values")
        return None
    part = density_rows(rows, chosen, seed)
    halves = np.unique(part.labels.astype(str), return_counts=True)[1]
    if len(part) < 20 or len(halves) < 2:
        stages.skip(
            "Surprising rows",
            f"{counts(len(part), 'row')} are too few for a density of the other half of the rows",
        )
        return None
    with stages.stage("looking for surprising rows"):
        return surprise_by_halves(NaiveBayes(rule="ml"), part, len(usable) - len(chosen), seed)
