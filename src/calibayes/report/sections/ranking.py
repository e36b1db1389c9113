"""Models ranked by their errors on held-out folds."""

from __future__ import annotations

from calibayes.compare.baselines import DESCRIPTION, NO_RULE
from calibayes.report.drawings.dots import Estimate, dot_plot
from calibayes.report.facts.ranking import sampling_note
from calibayes.report.facts.values import Facts, Interval, MethodFacts, RankFacts, RankingFacts
from calibayes.report.page.markup import Child, Markup, together
from calibayes.report.page.parts import (
    Section,
    bullets,
    figure,
    figures,
    folded,
    note,
    paragraph,
    strong,
    table,
)
from calibayes.report.page.wording import MINUS, NOTHING, counts, fixed, number, percent, shortened

SHOWN = 12
"""Methods in the picture."""
NOTES = 10


def ranking_section(facts: Facts) -> Section | None:
    """The ranking, with its uncertainty; None if models were not compared."""
    ranking = facts.ranking
    if ranking is None:
        return None
    body = together(
        _opening(ranking),
        figures(_error_picture(ranking), _rank_picture(ranking.ranks) if ranking.ranks else None),
        _table(ranking),
        _honesty(ranking),
        _notes(ranking),
    )
    return Section("models", "Models compared", body)


def _opening(ranking: RankingFacts) -> Markup:
    best = ranking.methods[0]
    own = next((each for each in ranking.methods if each.rule != NO_RULE), best)
    close = [each for each in ranking.methods[1:] if each.difference.low <= 0.0]
    lead = together(strong(best.name), f" has the lowest error, {percent(best.error.mean)}. ")
    ties = (
        f"{counts(len(close), 'other method')} cannot be told from it by these folds. "
        if close
        else "All others are clearly worse on these folds. "
    )
    mine = (
        f"The best of this package, which the rest of the report is about, is {own.name}."
        if own is not best
        else None
    )
    return paragraph(lead, ties, mine)


def _error_picture(ranking: RankingFacts) -> Markup:
    shown = ranking.methods[:SHOWN]
    estimates = [
        Estimate(each.name, each.error.mean, each.error.low, each.error.high, place == 0)
        for place, each in enumerate(shown)
    ]
    said = "; ".join(f"{each.name} {percent(each.error.mean)}" for each in shown)
    more = len(ranking.methods) - len(shown)
    caption = "Error on held-out rows with intervals of 95\u202f%" + (
        f"; the {more} worst are in the table only." if more > 0 else "."
    )
    return figure(
        dot_plot(
            "Error of each method on held-out rows", f"{said}.", estimates, "error on held-out rows", _percent
        ),
        caption,
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g}\u202f%"


def _rank_picture(ranks: RankFacts) -> Markup:
    """Average ranks with the critical difference."""
    first, width = ranks.ranks[0], ranks.critical_difference
    estimates = [
        Estimate(name, rank, is_chosen=place == 0)
        for place, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True))
    ]
    within = sum(rank <= first + width for rank in ranks.ranks) - 1
    said = ", ".join(f"{name} {rank:.1f}" for name, rank in zip(ranks.names, ranks.ranks, strict=True))
    caption = (
        f"Average rank over {ranks.folds} folds, each model with its best rule. The shaded band is the critical difference of "
        f"{width:.1f} ranks (Nemenyi, 5\u202f%) from the first: {counts(within, 'model')} inside it "
        f"{'is' if within == 1 else 'are'} not significantly worse. Friedman's test: p = {number(ranks.friedman_p, 2)}."
    )
    picture = dot_plot(
        "Critical differences of average ranks",
        f"{said}; critical difference {width:.2f}.",
        estimates,
        "average rank",
        number,
        (first, first + width),
    )
    return figure(picture, caption)


def _table(ranking: RankingFacts) -> Markup:
    heads: list[Child] = [
        "method",
        "error",
        "95\u202f% interval",
        "log loss",
        "95\u202f% interval",
        "difference",
        "training",
        "seconds",
    ]
    lines = [_line(each, place == 0) for place, each in enumerate(ranking.methods)]
    return table(
        f"All methods on {counts(ranking.folds, 'fold')} of {sampling_note(ranking)}",
        heads,
        lines,
        numeric=range(1, 8),
    )


def _line(each: MethodFacts, is_first: bool) -> list[Child]:
    return [
        each.name,
        percent(each.error.mean),
        _range(each.error, 1, 100),
        fixed(each.log_loss.mean, 3),
        _range(each.log_loss, 3),
        NOTHING if is_first else f"{100 * each.difference.mean:.1f} ({_range(each.difference, 1, 100)})",
        percent(each.training_error),
        fixed(each.seconds, 2),
    ]


def _range(interval: Interval, digits: int, factor: float = 1.0) -> str:
    if interval.low != interval.low:
        return NOTHING
    return f"{fixed(factor * interval.low, digits)} to {fixed(factor * interval.high, digits)}".replace(
        "-", MINUS
    )


def _honesty(ranking: RankingFacts) -> Markup:
    return note(
        "Errors are of rows that a model was not trained on, except in the column of training errors; differences are from the first method, in "
        "percentage points. Intervals are of the mean over folds, with the correction of Nadeau "
        "and Bengio for folds that share training rows. The rank tests take folds as independent, which they are not: the "
        "critical difference is too narrow, so take it as a rough guide, on this table only. The first of many methods looks "
        f"a little better than it is. {DESCRIPTION}"
    )


def _notes(ranking: RankingFacts) -> Markup | None:
    if not ranking.notes:
        return None
    ordered = sorted(ranking.notes.items(), key=lambda each: -each[1])[:NOTES]
    items = [f"{shortened(text, 300)} ({counts(times, 'fit')})" for text, times in ordered]
    return folded(f"{counts(len(ranking.notes), 'kind')} of warnings while fitting", bullets(items))
