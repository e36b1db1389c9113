"""Contributions of the columns to the predictions of a model: averaged over rows, and for single rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.analysis.explanation import OrderSampling, explanation_of
from calibayes.analysis.label_issues import Judged, judged
from calibayes.analysis.marginals import ColumnSum
from calibayes.core.protocols import Array
from calibayes.engines import computing
from calibayes.model.decision import most_probable
from calibayes.model.splits import shuffled_folds
from calibayes.model.training_rows import HeldOut
from calibayes.report import values
from calibayes.report.markup import shortened
from calibayes.report.table_facts import ReportRows

ROWS = 200
"""Most rows whose contributions are averaged."""
COLUMNS = 120
"""Most dependent columns of a model for which Shapley values are sampled."""
LISTED = 8
"""Contributions that are listed for a row."""
PERMUTATIONS = 16


def why_not_explained(model: Any, rows: ReportRows) -> str | None:
    """Why predictions of a model cannot be explained; None if they can.

    `marginals` of a model that needs all columns raises TypeError or ValueError.
    """
    name = type(model).__name__
    if not hasattr(model, "marginals"):
        return f"{name} has no method explain"
    try:
        marginals = model.marginals(rows.table_rows(np.arange(1)))
    except (TypeError, ValueError) as refused:
        return str(refused)
    sizes = [len(part.columns) for part in marginals.parts if not isinstance(part, ColumnSum)]
    if (dependent := max(sizes, default=0)) > COLUMNS:
        return (
            f"{name} has {dependent} columns that depend on each other, and sampling Shapley values of more than {COLUMNS} such "
            "columns is slow; call model.explain(X) for a few rows"
        )
    return None


def reason_facts(model: Any, judge: Any, rows: ReportRows, record: HeldOut) -> values.ReasonFacts:
    """Mean contributions over a sample of the held-out rows, and those in single rows, by a ``judge`` not trained on these."""
    order = np.random.default_rng(0).permutation(len(record.rows))
    sample = np.sort(record.rows[order[:ROWS]])
    explained = model.explain(rows.table_rows(sample), permutations=PERMUTATIONS)
    singles = () if judge is None else tuple(_singles(judge, rows, record))
    return values.ReasonFacts(explained.overall(), len(sample), explained.permutations, singles)


def rows_to_explain(record: HeldOut, classes: Array) -> Array:
    """Positions in the table of the rows that are explained one by one."""
    places = [place for place, _ in chosen_rows(record, classes)]
    return np.unique(record.rows[[*places, *suspects(record)[1]]])


def without_rows(model: Any, rows: ReportRows, left_out: Array) -> Any:
    """The model trained on all other rows. Raises ValueError if a class has no row among them."""
    kept = np.setdiff1d(np.arange(len(rows)), left_out)
    if lost := set(rows.labels.tolist()) - set(rows.labels[kept].tolist()):
        raise ValueError(f"class {lost.pop()!r} has no other rows")
    part = rows.only(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows gives the same warnings
        return clone(model).fit(part.frame, part.labels)


def _singles(judge: Any, rows: ReportRows, record: HeldOut) -> Iterator[values.RowReasons]:
    """Rows, with the prediction, its probability and its reasons all by one model that was not trained on them."""
    classes = judge.classes_
    chosen = chosen_rows(record, classes)
    given = rows.table_rows(record.rows[[place for place, _ in chosen]])
    explained = judge.explain(given, permutations=PERMUTATIONS)
    log_posterior = np.asarray(judge.predict_log_proba(given))
    for number, (place, why) in enumerate(chosen):
        row, label = int(record.rows[place]), classes[record.codes[place]]
        first, second = (explained.chosen[number], explained.other[number])
        if ("mistake" in why and first == label) or ("typical" in why and first != label):
            continue  # the folds decided otherwise
        own = log_posterior[number, [classes.tolist().index(name) for name in (first, second)]]
        log_odds, explained_odds = float(own[0] - own[1]), float(explained.log_odds[number])
        # A temperature divides all log odds, and so all contributions, by one number.
        scale = log_odds / explained_odds if np.isfinite(log_odds) and explained_odds else 1.0
        contributions = scale * explained.contributions[number]
        listed, rest = _contributions(explained.names, contributions, rows.frame, row)
        yield values.RowReasons(
            row=int(rows.positions[row]),
            why_shown=why,
            label=str(label),
            decided=str(first),
            probability=float(np.exp(own[0])),
            other=str(second),
            other_probability=float(np.exp(own[1])),
            log_odds=float(contributions.sum()),
            contributions=listed,
            rest=rest,
        )


def chosen_rows(record: HeldOut, classes: Array) -> list[tuple[int, str]]:
    """Positions in the record, and why these rows are shown: typical rows, confident mistakes, one near the boundary."""
    decided = most_probable(record.log_posterior)
    own = record.log_posterior[np.arange(len(decided)), record.codes]
    is_right, best = decided == record.codes, record.log_posterior.max(axis=1)
    chosen: list[tuple[int, str]] = []
    sizes = np.bincount(record.codes, minlength=len(classes))
    for code in np.argsort(-sizes, kind="stable")[:2]:
        rows = np.flatnonzero((record.codes == code) & is_right)
        if len(rows):
            typical = rows[np.argsort(own[rows], kind="stable")[len(rows) // 2]]
            chosen.append((int(typical), f"typical row of class {shortened(classes[code], 30)}"))
    wrong = np.flatnonzero(~is_right)
    confident = wrong[np.argsort(-best[wrong], kind="stable")].tolist()
    chosen += zip(confident, ("confident mistake", "another confident mistake"), strict=False)
    top = np.sort(record.log_posterior, axis=1)[:, -2:]
    nearest = np.argsort(top[:, 1] - top[:, 0], kind="stable")[:3].tolist()
    others = [row for row in nearest if row not in dict(chosen)]
    return chosen + [(row, "close to the boundary between two classes") for row in others[:1]]


def _contributions(
    names: Sequence[str], contributions: Array, frame: Any, row: int
) -> tuple[tuple[values.Contribution, ...], float]:
    """The largest contributions with the values of their cells, and the sum of the others."""
    order = np.argsort(-np.abs(contributions), kind="stable")
    shown = ((str(names[j]), float(contributions[j])) for j in order[:LISTED])
    listed = tuple(values.Contribution(name, cell_text(frame, row, name), size) for name, size in shown)
    return listed, float(contributions[order[LISTED:]].sum())


def cell_text(frame: Any, row: int, name: str) -> str:
    """The value of a cell as text; empty if the name is not a column, such as the class prior."""
    import pandas as pd

    if name not in frame.columns:
        return ""
    value = frame[name].iloc[row]
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "missing"
    return shortened(f"{value:.6g}" if isinstance(value, float) else value, 40)


# -- The rows of lowest density, and the cells that are least probable given the rest of their row -----------

SURPRISING_ROWS = 8
CELLS = 3
"""Most cells that are shown for a row."""
SCORED = 60_000
"""Most cells that are scored: each takes one prediction of its row."""
SURPRISING_COLUMNS = 60
"""Most columns of the density."""
FEWEST_SCORED = 20
"""Fewest rows for which densities are estimated."""
STRANGE = 0.05
"""Largest p-value of a cell that is shown besides the least probable one."""


def halves_of(rows: ReportRows, seed: int) -> Array:
    """0 or 1 for each row, (n,): stratified random halves; -1 for the only row of a class, which is not scored."""
    return shuffled_folds(np.unique(rows.labels.astype(str), return_inverse=True)[1], 2, seed)


def scored_rows(rows: ReportRows, d: int, seed: int) -> ReportRows:
    """A sample of the rows, small enough for one prediction for each cell of d columns."""
    return rows.sample(max(SCORED // d, 200), seed)


def surprise_by_halves(
    estimator: Any, rows: ReportRows, halves: Array, left_out: int
) -> values.SurpriseFacts:
    """Surprise of each half of the rows under a density that was estimated from the other rows."""
    p_value = np.ones(len(rows))
    cells = np.full(rows.frame.shape, np.nan)
    for half in (0, 1):
        part = halves == half
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fits of the comparison give the same warnings
            model = clone(estimator).fit(rows.frame[~part], rows.labels[~part])
            result = model.surprise(rows.frame[part])
        p_value[part], cells[part] = result.p_value, result.column_p_value
    about = f"{type(estimator).__name__} trained by maximum likelihood on the other half of these rows"
    scored = np.flatnonzero(halves >= 0)
    return _facts(rows.only(scored), p_value[scored], cells[scored], about, left_out)


def surprise_of_model(model: Any, rows: ReportRows) -> values.SurpriseFacts:
    """Surprise of rows that a model was not trained on, compared with each other."""
    part = scored_rows(rows, rows.frame.shape[1], seed=0)
    result = model.with_held_out(part.given, part.labels).surprise(part.given)
    about = f"this {type(model).__name__}; p-values compare these rows with each other"
    has_cells = len(result.columns) == part.frame.shape[1]
    cells = result.column_p_value if has_cells else np.full(part.frame.shape, np.nan)
    return _facts(part, result.p_value, cells, about, 0)


def _facts(rows: ReportRows, p_value: Array, cells: Array, about: str, left_out: int) -> values.SurpriseFacts:
    smallest = np.where(np.isnan(cells), 1.0, cells).min(axis=1, initial=1.0)
    order = np.lexsort([smallest, p_value])[:SURPRISING_ROWS]
    numbers, labels = rows.positions.tolist(), rows.labels
    shown = tuple(
        values.SurprisingRow(
            numbers[i], str(labels[i]), float(p_value[i]), _strangest(cells[i], rows.frame, int(i))
        )
        for i in order
    )
    return values.SurpriseFacts(shown, about, len(rows), float((p_value <= 0.01).mean()), left_out)


def _strangest(cells: Array, frame: Any, row: int) -> tuple[tuple[str, str, float], ...]:
    """The cell of smallest p-value, and further cells with a small one."""
    order = [j for j in np.argsort(cells, kind="stable") if np.isfinite(cells[j])]  # NaN is last
    chosen = [j for place, j in enumerate(order[:CELLS]) if place == 0 or cells[j] <= STRANGE]
    pairs = ((frame.columns[j], float(cells[j])) for j in chosen)
    return tuple((name, cell_text(frame, row, name), p) for name, p in pairs)


# -- Rows whose label looks wrong, by the posterior of models that were not trained on them ------------------

LABEL_ISSUES = 10
NAMED = 3
"""Most columns that are listed as reasons."""
LEAST_SHARE = 0.1
"""Columns whose contribution is below this share of the largest one are not listed."""


def suspects(record: HeldOut) -> tuple[Judged, list[int]]:
    """What the record says about the labels, and the positions in it of the most suspicious ones."""
    found = judged(record)
    first = found.order[:LABEL_ISSUES].tolist()
    return found, [place for place in first if found.suggested[place] != record.codes[place]]


def label_facts(judge: Any, classes: Array, rows: ReportRows, record: HeldOut) -> values.LabelFacts:
    """The most suspicious labels of the held-out rows, with reasons by a ``judge`` that was not trained on them, if there is one."""
    found, first = suspects(record)
    reasons = [""] * len(first)
    if judge is not None and first:
        reasons = _reasons(judge, rows, record, np.array(first), found.suggested[first])
    names = np.asarray(classes)
    columns = (
        rows.positions[record.rows[first]].tolist(),
        map(str, names[record.codes[first]]),
        map(str, names[found.suggested[first]]),
        found.probability[first].tolist(),
        found.score[first].tolist(),
        reasons,
    )
    shown = tuple(map(values.SuspectLabel, *columns))
    return values.LabelFacts(shown, int(found.issue.sum()), len(record.codes))


def _reasons(model: Any, rows: ReportRows, record: HeldOut, places: Array, suggested: Array) -> list[str]:
    """Columns with the largest contributions to the log odds of the suggested class against the label."""
    codes, classes = record.codes[places], np.asarray(model.classes_)
    with computing(getattr(model, "engine", None), model.n_jobs):
        marginals = model.marginals(rows.table_rows(record.rows[places]))
        explained = explanation_of(marginals, classes, suggested, codes, OrderSampling())
    sources = getattr(getattr(model, "conversion_", None), "sources", None)
    explained = explained.by_source(sources) if sources else explained
    return [_named(explained.names, row) for row in explained.contributions]


def _named(names: tuple[str, ...], contributions: Array) -> str:
    sizes = contributions[1:]
    largest = np.argsort(-sizes, kind="stable")[:NAMED]
    least = max(LEAST_SHARE * sizes.max(initial=0.0), np.finfo(float).tiny)
    shown = ((shortened(names[1 + j], 40), sizes[j]) for j in largest if sizes[j] >= least)
    return ", ".join(f"{name} ({size:+.2g})" for name, size in shown)
