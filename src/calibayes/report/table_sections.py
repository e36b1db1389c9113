"""Summary of the table: classes and columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from calibayes.compare import DEFAULT, DESCRIPTION
from calibayes.report import markup as html
from calibayes.report import values
from calibayes.report.drawings import dot_plot, histogram, level_bars
from calibayes.report.markup import Child, Markup
from calibayes.report.quality_sections import color_key
from calibayes.report.ranking_facts import sampling_note

LIST_BYTES = 500_000
"""Approximate limit of the size of the list of all columns, in characters."""
LIST_NAME = 60
PICTURE_BYTES = 400_000
"""Limit of the size of all pictures, in characters."""
CLASSES = 20
"""Most classes in the table of classes."""


def table_section(given: values.TableFacts, facts: values.Facts) -> Markup:
    """Rows, classes and columns."""
    size = f"{html.counts(given.rows, 'labeled row')} and {html.counts(len(given.columns), 'column')}."
    if given.duplicates:
        size += f" Exact duplicates of an earlier row, including its label: {html.counts(given.duplicates, 'row')}."
    if given.unlabeled:
        size += f" Left out: {html.counts(given.unlabeled, 'row')} without a label."
    return html.together(html.paragraph(size), _classes(given), _pictures(given), _all_columns(given))


def _classes(given: values.TableFacts) -> Markup:
    ordered = sorted(given.classes, key=lambda each: -each.rows)
    lines: list[list[Child]] = [
        [html.named(each.name), html.count(each.rows), html.percent(each.rows / given.rows)]
        for each in ordered[:CLASSES]
    ]
    more = len(ordered) - CLASSES
    table = html.table("Classes", ["class", "rows", "share"], lines, numeric=(1, 2), class_="short")
    left_out = html.note(f"Not listed: {html.counts(more, 'rarer class', 'rarer classes')}.")
    return html.together(table, left_out if more > 0 else None)


def _pictures(given: values.TableFacts) -> Markup:
    """Figures of the most informative columns, up to the limit of their size."""
    cards = (_card(column, column.picture, given) for column in given.columns if column.picture is not None)
    shown = _first(cards, PICTURE_BYTES, lambda card: len(card.html))
    rows, which = "all rows", "All columns"
    if given.read_rows < given.rows:
        rows = f"{html.count(given.read_rows)} rows drawn at random"
    if len(shown) < len(given.columns):
        which = f"The {len(shown)} most informative of {html.counts(len(given.columns), 'column')}"
    about = html.paragraph(
        f"{which}, in decreasing order of mutual information with the class (in bits, each column alone, bias-corrected; from "
        f"{rows}). Histograms show the distribution of a number within each class. Bars show the number of rows of each level, "
        "colored by class."
    )
    return html.subsection(
        "Columns by class", about, color_key(given.groups), html.figures(shown, is_small=True)
    )


def _first(items: Iterable[Any], most: int, size: Callable[[Any], int]) -> list[Any]:
    """The first items, up to a limit of their total size."""
    shown = []
    for item in items:
        most -= size(item)
        if most < 0:
            break
        shown.append(item)
    return shown


def _card(column: values.ColumnFacts, picture: values.Picture, given: values.TableFacts) -> Markup:
    missing = f", {html.percent(column.missing / given.rows)} missing" if column.missing else ""
    facts = f"{column.kind} ({html.shortened(column.reason, 80)}); {html.counts(column.distinct, 'distinct value')}{missing}"
    content = f"{column.information:.3f} bits of information about the class"
    return html.element(
        "figure",
        html.element("h4", html.named(column.name)),
        html.paragraph(facts, class_="facts"),
        _picture(column, picture),
        html.element("figcaption", content, f"; {column.range}" if column.range else None),
    )


def _picture(column: values.ColumnFacts, picture: values.Picture) -> Markup:
    title = f"Values of {html.shortened(column.name)} by class"
    if picture.edges is None:
        totals = picture.counts.sum(axis=0)
        levels = ", ".join(f"{name}: {int(size)}" for name, size in zip(picture.levels, totals, strict=True))
        description = f"Number of rows of each level: {levels}."
        return level_bars(title, description, picture.levels, picture.counts.T)
    shares = picture.counts / picture.counts.sum(axis=1, keepdims=True).clip(1)
    description = f"Share of the rows of each class in bins from {picture.ends[0]} to {picture.ends[1]}."
    return histogram(title, description, picture.edges, shares, picture.ends)


def _all_columns(given: values.TableFacts) -> Markup:
    """The list of all columns, up to the limit of its size."""
    every = (_line(column, given.rows) for column in given.columns)
    lines = _first(every, LIST_BYTES, lambda line: sum(len(str(cell)) + 30 for cell in line))
    heads = ["column", "kind", "reason", "missing", "distinct values", "information (bits)"]
    title = "All columns by decreasing information about the class"
    table = html.table(title, heads, lines, numeric=(3, 4, 5))
    listed = html.element("div", table, id="all-columns", class_="tall")
    left_out = html.counts(len(given.columns) - len(lines), "least informative column")
    remark = html.note(f"Not listed, to keep the page small: the {left_out}.")
    return html.subsection(
        "All columns", _search(), listed, remark if len(lines) < len(given.columns) else None
    )


def _line(column: values.ColumnFacts, rows: int) -> list[Child]:
    missing = html.percent(column.missing / rows) if column.missing else "0"
    return [
        html.named(column.name, LIST_NAME),
        html.shortened(column.kind, 30),
        html.shortened(column.reason, 60),
        missing,
        html.count(column.distinct),
        html.fixed(column.information, 3),
    ]


def _search() -> Markup:
    field = html.element("input", type="search", id="search", data_filters="all-columns", autocomplete="off")
    label = html.element("label", "Search the columns", for_="search")
    status = html.element("span", id="search-count", role="status")
    return html.element("div", label, field, status, class_="search", hidden=True)


# -- Models ranked by their log losses on held-out rows -------------------------------------------------------

SHOWN = 12
"""Most methods in the figure."""
NOTES = 10
"""Most warnings that are listed."""


def ranking_section(ranking: values.RankingFacts, facts: values.Facts) -> Markup:
    """The ranking with confidence intervals."""
    return html.together(
        _opening(ranking, facts.model),
        html.figures(
            _loss_picture(ranking) if math.isfinite(ranking.methods[0].log_loss.mean) else None,
            _rank_picture(ranking.ranks) if ranking.ranks else None,
        ),
        _table(ranking),
        _methods(),
        _notes(ranking),
    )


def _opening(ranking: values.RankingFacts, model: str) -> Markup:
    best, others = ranking.methods[0], len(ranking.methods) - 1
    lowest = f" has the lowest log loss, {html.fixed(best.log_loss.mean, 3)} (error {html.percent(best.error.mean)}). "
    ties = f"On these folds, {ranking.close} of the {html.counts(others, 'other method')} cannot be distinguished from it. "
    described = _described(ranking, model)
    return html.paragraph(html.element("strong", best.name), lowest, ties if others else None, described)


def _described(ranking: values.RankingFacts, model: str) -> str:
    """Which model the rest of the report describes, and why."""
    pairs = [(each.model, each.rule) for each in ranking.methods]
    text = f"The rest of this report describes {model}"
    if ranking.chosen is None:
        return f"{text}, which was not compared."
    if ranking.chosen == DEFAULT:
        return f"{text}, the default: no other model of calibayes has a lower log loss beyond doubt."
    if DEFAULT in pairs:
        return f"{text}: its log loss is lower than that of the default, {DEFAULT[0]}, beyond doubt."
    return f"{text}, which has the lowest log loss of the models of calibayes that were compared."


def _loss_picture(ranking: values.RankingFacts) -> Markup:
    shown = [each for each in ranking.methods[:SHOWN] if math.isfinite(each.log_loss.mean)]
    description = "; ".join(f"{each.name} {html.fixed(each.log_loss.mean, 3)}" for each in shown)
    more = len(ranking.methods) - len(shown)
    rest = f"; the table also lists the {more} methods with the highest log losses" if more else ""
    caption = f"Log loss on held-out rows with 95\u202f% confidence intervals{rest}."
    title, label = "Log loss of each method on held-out rows", "log loss on held-out rows"
    losses = {each.name: each.log_loss for each in shown}
    return html.figure(dot_plot(title, f"{description}.", losses, label, html.number), caption)


def _rank_picture(ranks: values.RankFacts) -> Markup:
    """A figure of the average ranks with the critical difference."""
    first, width = ranks.ranks[0], ranks.critical_difference
    named = dict(zip(ranks.names, ranks.ranks, strict=True))
    averages = {name: values.Interval(rank, math.nan, math.nan) for name, rank in named.items()}
    within = sum(rank <= first + width for rank in ranks.ranks) - 1
    description = ", ".join(f"{name} {rank:.1f}" for name, rank in named.items())
    caption = (
        f"Average rank of the log loss over {ranks.folds} folds (1 is best), each model with its best rule. The shaded band is the critical "
        f"difference of the Nemenyi test at 5\u202f%, {width:.1f} ranks: {html.counts(within, 'model')} within it "
        f"{'is' if within == 1 else 'are'} not significantly worse than the first. Friedman test: p = {html.number(ranks.friedman_p, 2)}."
    )
    described = f"{description}; critical difference {width:.2f}."
    band = (first, first + width)
    title, label = "Critical differences of average ranks", "average rank"
    picture = dot_plot(title, described, averages, label, html.number, band)
    return html.figure(picture, caption)


def _table(ranking: values.RankingFacts) -> Markup:
    interval = "95\u202f% interval"
    scores = ["log loss", interval, "difference", "error", interval, "training error", "seconds"]
    lines = [_ranked_line(each, place == 0) for place, each in enumerate(ranking.methods)]
    title = f"All methods: means over {html.counts(ranking.folds, 'fold')} of {sampling_note(ranking)}"
    return html.table(title, ["method", *scores], lines, numeric=range(1, 8))


def _ranked_line(each: values.MethodFacts, is_first: bool) -> list[Child]:
    return [
        each.name,
        html.fixed(each.log_loss.mean, 3),
        _range(each.log_loss, 3),
        html.NOTHING if is_first else f"{html.fixed(each.difference.mean, 3)} ({_range(each.difference, 3)})",
        html.percent(each.error.mean),
        _range(each.error, 1, 100),
        html.percent(each.training_error),
        html.fixed(each.seconds, 2),
    ]


def _range(interval: values.Interval, digits: int, factor: float = 1.0) -> str:
    if interval.low != interval.low:
        return html.NOTHING
    low, high = (html.fixed(factor * end, digits) for end in (interval.low, interval.high))
    return f"{low} to {high}".replace("-", html.MINUS)


def _methods() -> Markup:
    """How the numbers were computed, and their limitations."""
    return html.note(
        "All scores except the training error are of rows that the model was not trained on. Differences are log losses minus that of "
        "the first method, fold by fold. Intervals are 95\u202f% confidence intervals of the mean over folds, corrected for folds "
        "that share training rows (Nadeau and Bengio 2003); those of the differences hold for all methods together (Bonferroni), and a "
        "method is distinguished from the first one if its interval is above 0. The rank tests assume independent folds; since folds "
        "share training rows, the critical difference is too narrow and only a rough guide. The log loss of the first method is slightly "
        f"too optimistic, because it was selected by the same folds. {DESCRIPTION}"
    )


def _notes(ranking: values.RankingFacts) -> Markup | None:
    if not ranking.notes:
        return None
    ordered = sorted(ranking.notes.items(), key=lambda each: -each[1])[:NOTES]
    items = [f"{html.shortened(text, 300)} ({html.counts(times, 'fit')})" for text, times in ordered]
    messages = html.counts(len(ranking.notes), "message")
    return html.folded(f"Warnings during fitting ({messages})", html.bullets(items))


# -- The title and the most important results ----------------------------------------------------------------


def opening(facts: values.Facts) -> Markup:
    """The beginning of the page."""
    cards = [(title, (value, html.element("small", remark))) for title, value, remark in _cards(facts)]
    return html.together(
        html.element("h1", html.shortened(facts.title, 200)),
        html.paragraph(facts.about, class_="lead"),
        html.definition_list(cards, class_="cards"),
    )


def _cards(facts: values.Facts) -> Iterator[tuple[str, Child, Child]]:
    """Title, number and remark of each result."""
    name = html.element("span", html.named(facts.model, 40), class_="text")
    yield "Model", name, "described on this page"
    if (quality := facts.quality) is not None:
        low, high = html.percent(quality.error_low), html.percent(quality.error_high)
        majority = f"always predicting the most frequent class: {html.percent(quality.majority_error)}"
        yield (
            "Error on held-out rows",
            html.percent(quality.error),
            f"{html.counts(quality.rows, 'row')}, {quality.how}; 95\u202f% interval {low} to {high}; {majority}",
        )
        prior = f"predicting the class frequencies: {html.fixed(quality.prior_log_loss, 3)}"
        yield "Log loss on held-out rows", html.fixed(quality.log_loss, 3), prior
    cells = facts.table.rows * len(facts.table.columns)
    share = html.percent(facts.table.missing / cells if cells else 0.0)
    yield "Missing cells", html.count(facts.table.missing), f"{share} of {html.count(cells)} cells"
    found, passed = len(facts.findings.found), html.counts(len(facts.findings.passed), "check")
    words = html.element("a", "see the section Checks" if found else f"{passed} passed", href="#checks")
    yield "Warnings from checks", html.count(found), words
