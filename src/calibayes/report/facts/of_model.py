"""The facts about a fitted model, from labeled rows that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.interface.trust.held_out import GIVEN_ROWS, HeldOut
from calibayes.report.facts.curves import curves_of_model
from calibayes.report.facts.gather import Progress, Stages, predicted_facts, python_facts, refuse_early
from calibayes.report.facts.numbered import findings_of
from calibayes.report.facts.rows import LabeledRows, labeled_rows
from calibayes.report.facts.surprise import surprise_of_model
from calibayes.report.facts.table import table_facts
from calibayes.report.facts.values import CurveFacts, Facts, SurpriseFacts
from calibayes.report.page.wording import counts
from calibayes.tables.text import listed

SURPRISE_COLUMNS = 200
"""Most columns of a table whose cells are scored one by one."""


def facts_of_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    ignore: Sequence[str],
    costs: Array | None,
    progress: Progress | None,
    title: str | None,
    source: str | None,
) -> Facts:
    """The facts about a fitted model. Raises NotFittedError if it is not fitted."""
    check_is_fitted(model)
    stages = Stages(progress)
    with stages.stage("reading the table"):
        rows = labeled_rows(X, y, as_frame=hasattr(model, "feature_names_in_"))
        refuse_early(ignore, costs, len(model.classes_))
        table = table_facts(rows, model)
    record = _record(model, rows)
    stages.skip("Models compared", "this report describes one fitted model; report_on_table compares models")
    made = predicted_facts(model, rows, record, costs, stages)
    name = type(model).__name__
    return Facts(
        title=title or f"Report on a {name}",
        about=f"{counts(len(rows), 'row')} that the model was not trained on, {counts(rows.frame.shape[1], 'column')}, "
        f"{counts(len(table.classes), 'class', 'classes')}",
        model=name,
        table=table,
        curves=_curves(model, stages),
        surprise=_surprise(model, rows, stages),
        findings=findings_of(rows, model, record, ignore, stages),
        code=python_facts(model, source, stages),
        skipped=tuple(stages.skipped),
        seconds=stages.seconds,
        **made,
    )


def _record(model: Any, rows: LabeledRows) -> HeldOut | None:
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
        log_posterior = (
            np.asarray(model.predict_log_proba(rows.given))
            if hasattr(model, "predict_log_proba")
            else np.log(model.predict_proba(rows.given))
        )
    log_posterior = np.maximum(log_posterior, np.log(np.finfo(float).tiny))
    n = len(rows)
    return HeldOut(
        log_posterior,
        np.array([codes[label] for label in rows.labels.tolist()]),
        np.ones(n),
        np.arange(n),
        GIVEN_ROWS,
    )


def _curves(model: Any, stages: Stages) -> CurveFacts | None:
    curves = curves_of_model(model)
    if curves is None:
        stages.skip(
            "Learning curves",
            f"this {type(model).__name__} has no record of iterations: it was trained in one step",
        )
    return curves


def _surprise(model: Any, rows: LabeledRows, stages: Stages) -> SurpriseFacts | None:
    d = rows.frame.shape[1]
    if not (hasattr(model, "score_samples") and hasattr(model, "surprise")):
        why = f"{type(model).__name__} has no density p(x); a generative model such as NaiveBayes has one"
    elif d > SURPRISE_COLUMNS:
        why = f"each of the {d} columns takes one prediction of every row, which is slow; call model.surprise(X) for a few rows"
    else:
        with stages.stage("looking for surprising rows"):
            return surprise_of_model(model, rows)
    stages.skip("Surprising rows", why)
    return None
