"""Models ranked by their errors on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

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
"""Most methods in the figure."""
NOTES = 10
"""Most warnings that are listed."""


def ranking_section(facts: Facts) -> Section | None:
    """The ranking with confidence intervals; None if models were not compared."""
    ranking = facts.ranking
    if ranking is None:
        return None
    body = together(
        _opening(ranking, facts.model),
        figures(_error_picture(ranking), _rank_picture(ranking.ranks) if ranking.ranks else None),
        _table(ranking),
        _methods(),
        _notes(ranking),
    )
    return Section("models", "Models compared", body)


def _opening(ranking: RankingFacts, model: str) -> Markup:
    best, *others = ranking.methods
    own = next((each for each in ranking.methods if each.rule != NO_RULE), None)
    lead = together(strong(best.name), f" has the lowest error, {percent(best.error.mean)}. ")
    described = None
    if own is None:
        described = f"The rest of this report describes {model}, which was not compared."
    elif own is not best:
        described = f"The rest of this report describes {own.name}, the best model of calibayes."
    return paragraph(lead, _ties(others), described)


def _ties(others: Sequence[MethodFacts]) -> str | None:
    """How many methods are not significantly worse than the best one."""
    close = sum(each.difference.low <= 0.0 for each in others)
    if not others:
        return None
    if not close:
        return "All other methods have a significantly higher error on these folds. "
    return f"On these folds, {counts(close, 'other method')} cannot be distinguished from it (95\u202f% interval of the difference). "


def _error_picture(ranking: RankingFacts) -> Markup:
    shown = ranking.methods[:SHOWN]
    estimates = [
        Estimate(each.name, each.error.mean, each.error.low, each.error.high, place == 0)
        for place, each in enumerate(shown)
    ]
    description = "; ".join(f"{each.name} {percent(each.error.mean)}" for each in shown)
    more = len(ranking.methods) - len(shown)
    caption = "Error on held-out rows with 95\u202f% confidence intervals" + (
        f"; the table also lists the {more} methods with the highest errors." if more > 0 else "."
    )
    return figure(
        dot_plot(
            "Error of each method on held-out rows",
            f"{description}.",
            estimates,
            "error on held-out rows",
            _percent,
        ),
        caption,
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g}\u202f%"


def _rank_picture(ranks: RankFacts) -> Markup:
    """A figure of the average ranks with the critical difference."""
    first, width = ranks.ranks[0], ranks.critical_difference
    estimates = [
        Estimate(name, rank, is_chosen=place == 0)
        for place, (name, rank) in enumerate(zip(ranks.names, ranks.ranks, strict=True))
    ]
    within = sum(rank <= first + width for rank in ranks.ranks) - 1
    description = ", ".join(f"{name} {rank:.1f}" for name, rank in zip(ranks.names, ranks.ranks, strict=True))
    caption = (
        f"Average rank over {ranks.folds} folds (1 is best), each model with its best rule. The shaded band is the critical "
        f"difference of the Nemenyi test at 5\u202f%, {width:.1f} ranks: {counts(within, 'model')} within it "
        f"{'is' if within == 1 else 'are'} not significantly worse than the first. Friedman test: p = {number(ranks.friedman_p, 2)}."
    )
    picture = dot_plot(
        "Critical differences of average ranks",
        f"{description}; critical difference {width:.2f}.",
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
        "training error",
        "seconds",
    ]
    lines = [_line(each, place == 0) for place, each in enumerate(ranking.methods)]
    return table(
        f"All methods: means over {counts(ranking.folds, 'fold')} of {sampling_note(ranking)}",
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


def _methods() -> Markup:
    """How the numbers were computed, and their limitations."""
    return note(
        "All scores except the training error are of rows that the model was not trained on. Differences are errors minus the error of "
        "the first method, in percentage points. Intervals are 95\u202f% confidence intervals of the mean over folds, corrected for folds "
        "that share training rows (Nadeau and Bengio 2003). The rank tests assume independent folds; since folds share training rows, "
        "the critical difference is too narrow and only a rough guide. The error of the first method is slightly too optimistic, because "
        f"it was selected by the same folds. {DESCRIPTION}"
    )


def _notes(ranking: RankingFacts) -> Markup | None:
    if not ranking.notes:
        return None
    ordered = sorted(ranking.notes.items(), key=lambda each: -each[1])[:NOTES]
    items = [f"{shortened(text, 300)} ({counts(times, 'fit')})" for text, times in ordered]
    return folded(f"Warnings during fitting ({counts(len(ranking.notes), 'message')})", bullets(items))
