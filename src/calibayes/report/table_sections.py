"""Summary of the table: classes and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibayes.compare import DESCRIPTION, NO_RULE
from calibayes.report import markup
from calibayes.report.drawings import Estimate, dot_plot, histogram, level_bars
from calibayes.report.markup import Child, Markup
from calibayes.report.quality_sections import color_key
from calibayes.report.ranking_facts import sampling_note
from calibayes.report.values import (
    ColumnFacts,
    Facts,
    Interval,
    MethodFacts,
    RankFacts,
    RankingFacts,
    TableFacts,
)

LIST_BYTES = 500_000
"""Approximate limit of the size of the list of all columns, in characters."""
LIST_NAME = 60
PICTURE_BYTES = 400_000
"""Limit of the size of all pictures, in characters."""
CLASSES = 20
"""Most classes in the table of classes."""


def table_section(given: TableFacts, facts: Facts) -> Markup:
    """Rows, classes and columns."""
    size = f"{markup.counts(given.rows, 'labeled row')} and {markup.counts(len(given.columns), 'column')}."
    if given.duplicates:
        size += f" Exact duplicates of an earlier row, including its label: {markup.counts(given.duplicates, 'row')}."
    if given.unlabeled:
        size += f" Left out: {markup.counts(given.unlabeled, 'row')} without a label."
    return markup.together(markup.paragraph(size), _classes(given), _pictures(given), _all_columns(given))


def _classes(given: TableFacts) -> Markup:
    ordered = sorted(given.classes, key=lambda each: -each.rows)
    lines: list[list[Child]] = [
        [markup.named(each.name), markup.count(each.rows), markup.percent(each.rows / given.rows)]
        for each in ordered[:CLASSES]
    ]
    more = len(ordered) - CLASSES
    left_out = (
        markup.note(f"Not listed: {markup.counts(more, 'rarer class', 'rarer classes')}.")
        if more > 0
        else None
    )
    return markup.together(
        markup.table("Classes", ["class", "rows", "share"], lines, numeric=(1, 2), class_="short"), left_out
    )


def _pictures(given: TableFacts) -> Markup:
    """Figures of the most informative columns, up to the limit of their size."""
    shown: list[Markup] = []
    size = 0
    for column in (each for each in given.columns if each.picture is not None):
        card = _card(column, given)
        size += len(card.html)
        if size > PICTURE_BYTES:
            break
        shown.append(card)
    rows = (
        "all rows"
        if given.read_rows == given.rows
        else f"{markup.count(given.read_rows)} rows drawn at random"
    )
    which = (
        "All columns"
        if len(shown) == len(given.columns)
        else f"The {len(shown)} most informative of {markup.counts(len(given.columns), 'column')}"
    )
    about = markup.paragraph(
        f"{which}, in decreasing order of mutual information with the class (in bits, each column alone, bias-corrected; from "
        f"{rows}). Histograms show the distribution of a number within each class. Bars show the number of rows of each level, "
        "colored by class."
    )
    return markup.subsection(
        "Columns by class",
        about,
        color_key(given.groups),
        markup.element("div", shown, class_="figures small"),
    )


def _card(column: ColumnFacts, given: TableFacts) -> Markup:
    missing = f", {markup.percent(column.missing / given.rows)} missing" if column.missing else ""
    facts = f"{column.kind} ({markup.shortened(column.reason, 80)}); {markup.counts(column.distinct, 'distinct value')}{missing}"
    return markup.element(
        "figure",
        markup.element("h4", markup.named(column.name)),
        markup.element("p", facts, class_="facts"),
        _picture(column),
        markup.element(
            "figcaption",
            f"{column.information:.3f} bits of information about the class",
            f"; {column.range}" if column.range else None,
        ),
    )


def _picture(column: ColumnFacts) -> Markup | None:
    if (picture := column.picture) is None:
        return None
    title = f"Values of {markup.shortened(column.name)} by class"
    if picture.edges is None:
        totals = picture.counts.sum(axis=0)
        levels = ", ".join(f"{name}: {int(size)}" for name, size in zip(picture.levels, totals, strict=True))
        description = f"Number of rows of each level: {levels}."
        return level_bars(title, description, picture.levels, picture.counts.T)
    shares = picture.counts / picture.counts.sum(axis=1, keepdims=True).clip(1)
    description = f"Share of the rows of each class in bins from {picture.ends[0]} to {picture.ends[1]}."
    return histogram(title, description, picture.edges, shares, picture.ends)


def _all_columns(given: TableFacts) -> Markup:
    """The list of all columns, up to the limit of its size."""
    lines: list[list[Child]] = []
    size = 0
    for column in given.columns:
        line = _line(column, given.rows)
        size += sum(len(str(cell)) + 30 for cell in line)
        if size > LIST_BYTES:
            break
        lines.append(line)
    left_out = len(given.columns) - len(lines)
    heads: list[Child] = ["column", "kind", "reason", "missing", "distinct values", "information (bits)"]
    listed = markup.element(
        "div",
        markup.table(
            "All columns by decreasing information about the class", heads, lines, numeric=(3, 4, 5)
        ),
        id="all-columns",
        class_="tall",
    )
    remark = markup.note(
        f"Not listed, to keep the page small: the {markup.counts(left_out, 'least informative column')}."
    )
    return markup.subsection("All columns", _search(), listed, remark if left_out else None)


def _line(column: ColumnFacts, rows: int) -> list[Child]:
    missing = markup.percent(column.missing / rows) if column.missing else "0"
    return [
        markup.named(column.name, LIST_NAME),
        markup.shortened(column.kind, 30),
        markup.shortened(column.reason, 60),
        missing,
        markup.count(column.distinct),
        markup.fixed(column.information, 3),
    ]


def _search() -> Markup:
    field = markup.element(
        "input", type="search", id="search", data_filters="all-columns", autocomplete="off"
    )
    label = markup.element("label", "Search the columns", for_="search")
    return markup.element(
        "div",
        label,
        field,
        markup.element("span", id="search-count", role="status"),
        class_="search",
        hidden=True,
    )


# -- Models ranked by their errors on held-out rows ----------------------------------------------------------

SHOWN = 12
"""Most methods in the markup.figure."""
NOTES = 10
"""Most warnings that are listed."""


def ranking_section(ranking: RankingFacts, facts: Facts) -> Markup:
    """The ranking with confidence intervals."""
    return markup.together(
        _opening(ranking, facts.model),
        markup.figures(_error_picture(ranking), _rank_picture(ranking.ranks) if ranking.ranks else None),
        _table(ranking),
        _methods(),
        _notes(ranking),
    )


def _opening(ranking: RankingFacts, model: str) -> Markup:
    best, *others = ranking.methods
    own = next((each for each in ranking.methods if each.rule != NO_RULE), None)
    lead = markup.together(
        markup.element("strong", best.name), f" has the lowest error, {markup.percent(best.error.mean)}. "
    )
    described = None
    if own is None:
        described = f"The rest of this report describes {model}, which was not compared."
    elif own is not best:
        described = f"The rest of this report describes {own.name}, the best model of calibayes."
    return markup.paragraph(lead, _ties(others), described)


def _ties(others: Sequence[MethodFacts]) -> str | None:
    """How many methods are not significantly worse than the best one."""
    if not others:
        return None
    if not (close := sum(each.difference.low <= 0.0 for each in others)):
        return "All other methods have a significantly higher error on these folds. "
    return f"On these folds, {markup.counts(close, 'other method')} cannot be distinguished from it (95\u202f% interval of the difference). "


def _error_picture(ranking: RankingFacts) -> Markup:
    shown = ranking.methods[:SHOWN]
    estimates = [
        Estimate(each.name, each.error.mean, each.error.low, each.error.high, place == 0)
        for place, each in enumerate(shown)
    ]
    description = "; ".join(f"{each.name} {markup.percent(each.error.mean)}" for each in shown)
    more = len(ranking.methods) - len(shown)
    caption = "Error on held-out rows with 95\u202f% confidence intervals" + (
        f"; the table also lists the {more} methods with the highest errors." if more > 0 else "."
    )
    title = "Error of each method on held-out rows"
    return markup.figure(
        dot_plot(title, f"{description}.", estimates, "error on held-out rows", markup.short_percent), caption
    )


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
        f"difference of the Nemenyi test at 5\u202f%, {width:.1f} ranks: {markup.counts(within, 'model')} within it "
        f"{'is' if within == 1 else 'are'} not significantly worse than the first. Friedman test: p = {markup.number(ranks.friedman_p, 2)}."
    )
    picture = dot_plot(
        "Critical differences of average ranks",
        f"{description}; critical difference {width:.2f}.",
        estimates,
        "average rank",
        markup.number,
        (first, first + width),
    )
    return markup.figure(picture, caption)


def _table(ranking: RankingFacts) -> Markup:
    scores = [
        "error",
        "95\u202f% interval",
        "log loss",
        "95\u202f% interval",
        "difference",
        "training error",
        "seconds",
    ]
    lines = [_ranked_line(each, place == 0) for place, each in enumerate(ranking.methods)]
    title = f"All methods: means over {markup.counts(ranking.folds, 'fold')} of {sampling_note(ranking)}"
    return markup.table(title, ["method", *scores], lines, numeric=range(1, 8))


def _ranked_line(each: MethodFacts, is_first: bool) -> list[Child]:
    return [
        each.name,
        markup.percent(each.error.mean),
        _range(each.error, 1, 100),
        markup.fixed(each.log_loss.mean, 3),
        _range(each.log_loss, 3),
        markup.NOTHING
        if is_first
        else f"{100 * each.difference.mean:.1f} ({_range(each.difference, 1, 100)})",
        markup.percent(each.training_error),
        markup.fixed(each.seconds, 2),
    ]


def _range(interval: Interval, digits: int, factor: float = 1.0) -> str:
    if interval.low != interval.low:
        return markup.NOTHING
    return f"{markup.fixed(factor * interval.low, digits)} to {markup.fixed(factor * interval.high, digits)}".replace(
        "-", markup.MINUS
    )


def _methods() -> Markup:
    """How the numbers were computed, and their limitations."""
    return markup.note(
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
    items = [f"{markup.shortened(text, 300)} ({markup.counts(times, 'fit')})" for text, times in ordered]
    return markup.folded(
        f"Warnings during fitting ({markup.counts(len(ranking.notes), 'message')})", markup.bullets(items)
    )


# -- The title and the most important results ----------------------------------------------------------------


def opening(facts: Facts) -> Markup:
    """The beginning of the page."""
    return markup.together(
        markup.element("h1", markup.shortened(facts.title, 200)),
        markup.paragraph(facts.about, class_="lead"),
        markup.definition_list(
            [
                (title, markup.together(value, markup.element("small", remark)))
                for title, value, remark in _cards(facts)
            ],
            class_="cards",
        ),
    )


def _cards(facts: Facts) -> Iterator[tuple[str, Child, Child]]:
    """Title, number and remark of each result."""
    name = markup.element("span", markup.named(facts.model, 40), class_="text")
    yield "Model" if facts.ranking is None else "Best model", name, "described on this page"
    if (quality := facts.quality) is not None:
        interval = (
            f"95\u202f% interval {markup.percent(quality.error_low)} to {markup.percent(quality.error_high)}"
        )
        majority = f"always predicting the most frequent class: {markup.percent(quality.majority_error)}"
        yield "Error on held-out rows", markup.percent(quality.error), f"{interval}; {majority}"
        prior = f"predicting the class frequencies: {markup.fixed(quality.prior_log_loss, 3)}"
        yield "Log loss on held-out rows", markup.fixed(quality.log_loss, 3), prior
    cells = facts.table.rows * len(facts.table.columns)
    share = markup.percent(facts.table.missing / cells if cells else 0.0)
    yield "Missing cells", markup.count(facts.table.missing), f"{share} of {markup.count(cells)} cells"
    found, passed = len(facts.findings.found), markup.counts(len(facts.findings.passed), "check")
    words = markup.element("a", "see the section Checks" if found else f"{passed} passed", href="#checks")
    yield "Warnings from checks", markup.count(found), words
