"""How well held-out rows are predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.report.drawings.canvas import line
from calibayes.report.drawings.chart import Axis, Frame, Line, chart
from calibayes.report.drawings.matrix import matrix
from calibayes.report.facts.values import Facts, QualityFacts, Threshold, Tradeoff
from calibayes.report.page.markup import Child, Markup, together
from calibayes.report.page.parts import Section, figure, figures, folded_table, note, paragraph, subsection
from calibayes.report.page.wording import count, counts, fixed, named, number, percent, shortened
from calibayes.report.sections.keys import class_colors, color_key

LIFT_AT = (0.1, 0.2, 0.5)


def quality_section(facts: Facts) -> Section | None:
    """Reliability, confusion, trade-offs and the threshold; None without held-out rows."""
    quality = facts.quality
    if quality is None:
        return None
    colors = class_colors(facts.table.groups, [each.name for each in quality.tradeoffs])
    body = together(
        _opening(facts.model, quality),
        figures(_reliability(quality), _confusion(quality)),
        figures(_roc(quality, colors), _lift(quality, colors)),
        _costs(quality),
    )
    return Section("quality", "Quality on held-out rows", body)


def _opening(model: str, quality: QualityFacts) -> Markup:
    return paragraph(
        f"All figures of this section are of {counts(quality.rows, 'row')} that the model was not trained on "
        f"({quality.how}): {model} decides {percent(1 - quality.error)} of them rightly. Log loss {fixed(quality.log_loss, 3)}, "
        f"Brier score {fixed(quality.brier, 3)}, mean distance of probability and frequency {fixed(quality.calibration_error, 3)}."
    )


def _ideal(frame: Frame) -> list[Markup]:
    """The diagonal."""
    return [
        line(
            frame.x(frame.x.low), frame.y(frame.y.low), frame.x(frame.x.high), frame.y(frame.y.high), "dashed"
        )
    ]


def _share(label: str) -> Axis:
    return Axis(label, 0.0, 1.0, lambda value: f"{100 * value:.0f}\u202f%")


def _reliability(quality: QualityFacts) -> Markup:
    predicted = np.array([each.predicted for each in quality.bins])
    observed = np.array([each.observed for each in quality.bins])

    def whiskers(frame: Frame) -> list[Markup]:
        marks = [
            line(
                frame.x(each.predicted),
                frame.y(each.low),
                frame.x(each.predicted),
                frame.y(each.high),
                "muted-line",
            )
            for each in quality.bins
        ]
        return [*_ideal(frame), *marks]

    said = "; ".join(
        f"predicted {percent(each.predicted)}, observed {percent(each.observed)}" for each in quality.bins
    )
    about = shortened(quality.calibrated, 40)
    picture = chart(
        f"Reliability of the probability of {about}",
        f"{said}.",
        [Line(predicted, observed, has_dots=True)],
        _share(f"predicted probability of {shortened(about, 26)}"),
        _share("observed"),
        whiskers,
    )
    lines = [
        [
            percent(each.predicted),
            percent(each.observed),
            f"{percent(each.low)} to {percent(each.high)}",
            count(each.rows),
        ]
        for each in quality.bins
    ]
    numbers = folded_table("Reliability", ["predicted", "observed", "95\u202f%", "rows"], lines, (0, 1, 2, 3))
    caption = together(
        "Reliability. Rows in groups of equal size by the predicted probability of ",
        named(quality.calibrated, 40),
        ": how often it was true, with intervals of 95\u202f%. On the dashed line probabilities are right.",
    )
    return figure(picture, caption, numbers)


def _confusion(quality: QualityFacts) -> Markup:
    names = quality.classes
    right = np.diag(quality.confusion) / quality.confusion.sum(axis=1).clip(1)
    said = "; ".join(
        f"{shortened(name, 30)}: {percent(share)} decided rightly"
        for name, share in zip(names, right, strict=True)
    )
    picture = matrix("Confusion matrix", f"{said}.", names, quality.confusion)
    lines: list[list[Child]] = [
        [named(name, 40), *(count(cell) for cell in row), percent(share)]
        for name, row, share in zip(names, quality.confusion, right, strict=True)
    ]
    numbers = folded_table(
        "Rows by true and decided class",
        ["true class", *(f"decided {shortened(name, 20)}" for name in names), "right"],
        lines,
        range(1, len(names) + 2),
    )
    return figure(
        picture,
        "Confusion. Rows by true class (down) and decided class (across); colors are shares of the true class.",
        numbers,
    )


def _roc(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    lines = [
        Line(each.false_positive_rate, each.true_positive_rate, f"s{color}")
        for color, each in zip(colors, quality.tradeoffs, strict=True)
    ]
    areas = "; ".join(f"{shortened(each.name, 30)}: area {each.auc:.3f}" for each in quality.tradeoffs)
    picture = chart(
        "Receiver operating characteristic",
        f"{areas}.",
        lines,
        _share("false positive rate"),
        _share("true positive rate"),
        _ideal,
    )
    caption = together(
        "ROC. Share of a class that is found (up) against the share of the other rows that is taken for it (across)."
    )
    areas_by_class = [(each, f"area {each.auc:.3f}") for each in quality.tradeoffs]
    return figure(picture, caption, _key(areas_by_class, colors))


def _lift(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    pairs = zip(colors, quality.tradeoffs, strict=True)
    lines = [Line(each.share, each.found, f"s{color}") for color, each in pairs]
    said = "; ".join(f"{shortened(each.name, 30)}: {_lift_words(each)}" for each in quality.tradeoffs)
    picture = chart(
        "Gain", f"{said}.", lines, _share("share of rows, most probable first"), _share("found"), _ideal
    )
    caption = "Gain and lift. Share of a class that is found among the rows of highest probability; the dashed line is chance."
    heads = ["class", *(f"lift at {100 * share:.0f}\u202f%" for share in LIFT_AT)]
    numbers = folded_table(
        "Lift",
        heads,
        [
            [named(each.name, 40), *(f"{_lift_at(each, share):.2f}" for share in LIFT_AT)]
            for each in quality.tradeoffs
        ],
        range(1, len(heads)),
    )
    lifts = [(each, f"lift {_lift_at(each, 0.1):.1f} in the first 10\u202f%") for each in quality.tradeoffs]
    return figure(picture, caption, _key(lifts, colors), numbers)


def _lift_at(each: Tradeoff, share: float) -> float:
    return float(np.interp(share, each.share, each.found)) / share


def _lift_words(each: Tradeoff) -> str:
    return ", ".join(
        f"the first {100 * share:.0f}\u202f% of the rows hold {percent(float(np.interp(share, each.share, each.found)))}"
        for share in LIFT_AT
    )


def _key(entries: Sequence[tuple[Tradeoff, str]], colors: Sequence[int]) -> Markup:
    return color_key([f"{shortened(each.name, 28)}: {words}" for each, words in entries], colors)


def _costs(quality: QualityFacts) -> Markup | None:
    if quality.threshold is not None:
        return subsection("Threshold of least cost", _threshold(quality.threshold, quality.costs is not None))
    if quality.cost is None or quality.cost_of_likely is None:
        return subsection(
            "Costs",
            note(
                "No costs were given, so that every mistake counts the same, and the most probable class costs least. A threshold is shown for two classes."
            ),
        )
    return subsection(
        "Costs",
        paragraph(
            f"Average cost of a row with the given costs: {number(quality.cost)} if the class of least expected cost is decided, "
            f"{number(quality.cost_of_likely)} if the most probable one is."
        ),
    )


def _threshold(given: Threshold, has_costs: bool) -> Markup:
    known = "with the given costs" if has_costs else "if every mistake costs 1 (give costs for others)"

    def marks(frame: Frame) -> list[Markup]:
        top = frame.y.end
        return [
            line(frame.x(given.usual), frame.y.start, frame.x(given.usual), top, "dashed"),
            line(frame.x(given.best), frame.y.start, frame.x(given.best), top, "warn-line"),
        ]

    high = float(given.costs.max()) * 1.05 or 1.0
    said = f"Least cost {number(float(given.costs.min()))} at a threshold of {given.best:.2f}."
    picture = chart(
        "Average cost by threshold",
        said,
        [Line(given.thresholds, given.costs)],
        Axis(f"threshold of the probability of {shortened(given.name, 20)}"),
        Axis("cost", 0.0, high),
        marks,
    )
    caption = together(
        "Average cost of a held-out row, ",
        known,
        ", if ",
        named(given.name, 40),
        " is decided from a probability on. Dotted: least cost on these rows; dashed: "
        "the threshold that follows from the costs if probabilities are right.",
    )
    words = paragraph(
        "Deciding for ",
        named(given.name, 40),
        f" from a probability of {given.best:.2f} on costs least on these rows. Chosen on one half and measured "
        f"on the other, such a threshold costs {number(given.honest_cost)} a row; the threshold {given.usual:.2f} that follows from the costs alone costs {number(given.usual_cost)}.",
    )
    return together(words, figures(figure(picture, caption)))
