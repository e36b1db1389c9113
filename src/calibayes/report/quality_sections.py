"""Quality of the predictions for held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.report import markup
from calibayes.report.drawings import SMALL, Axis, Frame, Line, around, chart, line, matrix, swatch
from calibayes.report.markup import Child, Markup
from calibayes.report.values import Curve, CurveFacts, Facts, QualityFacts, Threshold, Tradeoff

# -- Color keys: the colors of the classes and their names ---------------------------------------------------

OTHER = 6
"""The color of classes that have no separate color."""


def color_key(names: Sequence[str], codes: Sequence[int] | None = None) -> Markup:
    """A list of names with their colors, by default in the order of the colors."""
    pairs = zip(range(len(names)) if codes is None else codes, names, strict=True)
    return markup.element(
        "ul", [markup.element("li", swatch(code), markup.named(name)) for code, name in pairs], class_="key"
    )


# -- Quality of the predictions for held-out rows ------------------------------------------------------------

LIFT_AT = (0.1, 0.2, 0.5)
"""Shares of the rows at which the lift is shown."""


def quality_section(quality: QualityFacts, facts: Facts) -> Markup:
    """Reliability, confusion matrix, ROC and gain curves, and the threshold."""
    groups = facts.table.groups  # a class has the same color in all figures of the page
    colors = [groups.index(each.name) if each.name in groups else OTHER for each in quality.tradeoffs]
    return markup.together(
        markup.paragraph(
            f"All results in this section are for {markup.counts(quality.rows, 'row')} that the model was not trained on "
            f"({quality.how}). {facts.model} predicts {markup.percent(1 - quality.error)} of them correctly. Log loss: "
            f"{markup.fixed(quality.log_loss, 3)}; Brier score: {markup.fixed(quality.brier, 3)}; expected calibration error: "
            f"{markup.fixed(quality.calibration_error, 3)}."
        ),
        markup.figures(_reliability(quality), _confusion(quality)),
        markup.figures(_roc(quality, colors), _lift(quality, colors)) if quality.tradeoffs else None,
        _costs(quality),
    )


def _ideal(frame: Frame) -> list[Markup]:
    """The diagonal."""
    return [line(frame.x.start, frame.y.start, frame.x.end, frame.y.end, "dashed")]


def _share(label: str) -> Axis:
    return Axis(label, 0.0, 1.0, lambda value: f"{100 * value:.0f}\u202f%")


def _reliability(quality: QualityFacts) -> Markup:
    predicted = np.array([each.predicted for each in quality.bins])
    observed = np.array([each.observed for each in quality.bins])

    def whiskers(frame: Frame) -> list[Markup]:
        ends = [(frame.x(each.predicted), frame.y(each.low), frame.y(each.high)) for each in quality.bins]
        return [*_ideal(frame), *(line(x, low, x, high, "muted-line") for x, low, high in ends)]

    description = "; ".join(
        f"predicted {markup.percent(each.predicted)}, observed {markup.percent(each.observed)}"
        for each in quality.bins
    )
    about = markup.shortened(quality.calibrated, 40)
    picture = chart(
        f"Reliability diagram of the probability of {about}",
        f"{description}.",
        [Line(predicted, observed, has_dots=True)],
        _share(f"predicted probability of {markup.shortened(about, 26)}"),
        _share("observed frequency"),
        whiskers,
    )
    caption = markup.together(
        "Reliability diagram. Rows in groups of equal size by the predicted probability of ",
        markup.named(quality.calibrated, 40),
        "; observed frequency with 95\u202f% intervals. On the dashed line, predicted probabilities equal observed frequencies.",
    )
    lines = [
        [
            markup.percent(each.predicted),
            markup.percent(each.observed),
            f"{markup.percent(each.low)} to {markup.percent(each.high)}",
            markup.count(each.rows),
        ]
        for each in quality.bins
    ]
    heads = ["predicted", "observed", "95\u202f% interval", "rows"]
    return markup.figure(
        picture, caption, markup.folded_table("Reliability", heads, lines, range(len(heads)))
    )


def _confusion(quality: QualityFacts) -> Markup:
    names = quality.classes
    right = np.diag(quality.confusion) / quality.confusion.sum(axis=1).clip(1)
    description = "; ".join(
        f"{markup.shortened(name, 30)}: {markup.percent(share)} predicted correctly"
        for name, share in zip(names, right, strict=True)
    )
    picture = matrix("Confusion matrix", f"{description}.", names, quality.confusion)
    lines: list[list[Child]] = [
        [markup.named(name, 40), *(markup.count(cell) for cell in row), markup.percent(share)]
        for name, row, share in zip(names, quality.confusion, right, strict=True)
    ]
    numbers = markup.folded_table(
        "Number of rows by true and predicted class",
        ["true class", *(f"predicted {markup.shortened(name, 20)}" for name in names), "correct"],
        lines,
        range(1, len(names) + 2),
    )
    return markup.figure(
        picture,
        "Confusion matrix. Number of rows by true class (vertical) and predicted class (horizontal); the color is the share of the "
        "true class.",
        numbers,
    )


def _roc(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    lines = [
        Line(each.false_positive_rate, each.true_positive_rate, f"s{color}")
        for color, each in zip(colors, quality.tradeoffs, strict=True)
    ]
    areas = "; ".join(
        f"{markup.shortened(each.name, 30)}: area under the curve {each.auc:.3f}"
        for each in quality.tradeoffs
    )
    picture = chart(
        "Receiver operating characteristic",
        f"{areas}.",
        lines,
        _share("false positive rate"),
        _share("true positive rate"),
        _ideal,
    )
    caption = "ROC curve of a class against all others, with the area under the curve (AUC). The dashed line is a random ranking."
    return markup.figure(
        picture, caption, _key(quality, [f"AUC {each.auc:.3f}" for each in quality.tradeoffs], colors)
    )


def _lift(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    pairs = zip(colors, quality.tradeoffs, strict=True)
    lines = [Line(each.share, each.found, f"s{color}") for color, each in pairs]
    description = "; ".join(
        f"{markup.shortened(each.name, 30)}: {_lift_words(each)}" for each in quality.tradeoffs
    )
    picture = chart(
        "Cumulative gain",
        f"{description}.",
        lines,
        _share("share of all rows, most probable first"),
        _share("share of the class"),
        _ideal,
    )
    caption = (
        "Cumulative gain: share of the rows of a class among the rows with the highest predicted probability of it. Lift is the ratio "
        "to a random selection, which is the dashed line."
    )
    heads = ["class", *(f"lift at {100 * share:.0f}\u202f%" for share in LIFT_AT)]
    lifts: list[list[Child]] = [
        [markup.named(each.name, 40), *(f"{_found(each, share) / share:.2f}" for share in LIFT_AT)]
        for each in quality.tradeoffs
    ]
    numbers = markup.folded_table("Lift", heads, lifts, range(1, len(heads)))
    words = [f"lift {_found(each, 0.1) / 0.1:.1f} in the first 10\u202f%" for each in quality.tradeoffs]
    return markup.figure(picture, caption, _key(quality, words, colors), numbers)


def _found(each: Tradeoff, share: float) -> float:
    """Share of the rows of a class that are among the first rows."""
    return float(np.interp(share, each.share, each.found))


def _lift_words(each: Tradeoff) -> str:
    return ", ".join(
        f"the first {100 * share:.0f}\u202f% of the rows contain {markup.percent(_found(each, share))} of the class"
        for share in LIFT_AT
    )


def _key(quality: QualityFacts, words: Sequence[str], colors: Sequence[int]) -> Markup:
    pairs = zip(quality.tradeoffs, words, strict=True)
    return color_key([f"{markup.shortened(each.name, 28)}: {text}" for each, text in pairs], colors)


def _costs(quality: QualityFacts) -> Markup | None:
    if quality.threshold is not None:
        return markup.subsection(
            "Threshold of least cost", _threshold(quality.threshold, quality.costs is not None)
        )
    if quality.cost is None or quality.cost_of_likely is None:
        return markup.subsection(
            "Costs",
            markup.note(
                "No costs were given: every mistake costs the same, and predicting the most probable class has the least expected cost. "
                "For two classes, this section shows the threshold of least cost."
            ),
        )
    return markup.subsection(
        "Costs",
        markup.paragraph(
            f"Average cost of a held-out row with the given costs: {markup.number(quality.cost)} if the class of least expected cost is "
            f"predicted, {markup.number(quality.cost_of_likely)} if the most probable class is predicted."
        ),
    )


def _threshold(given: Threshold, has_costs: bool) -> Markup:
    known = "with the given costs" if has_costs else "if every mistake costs 1 (pass costs to change this)"

    def marks(frame: Frame) -> list[Markup]:
        top = frame.y.end
        return [
            line(frame.x(given.usual), frame.y.start, frame.x(given.usual), top, "dashed"),
            line(frame.x(given.best), frame.y.start, frame.x(given.best), top, "warn-line"),
        ]

    high = float(given.costs.max()) * 1.05 or 1.0
    description = (
        f"Average cost {markup.number(float(given.costs[0]))} at threshold 0, {markup.number(float(given.costs[-1]))} at threshold 1; lowest at "
        f"{given.best:.2f}."
    )
    picture = chart(
        "Average cost by threshold",
        description,
        [Line(given.thresholds, given.costs)],
        Axis(f"threshold on the probability of {markup.shortened(given.name, 20)}"),
        Axis("average cost", 0.0, high),
        marks,
    )
    caption = markup.together(
        "Average cost of a held-out row, ",
        known,
        ", if ",
        markup.named(given.name, 40),
        " is predicted whenever its probability is at least the threshold. Dotted line: threshold of least cost on these rows; dashed "
        "line: optimal threshold for calibrated probabilities.",
    )
    text = markup.paragraph(
        "The average cost on these rows is lowest if ",
        markup.named(given.name, 40),
        f" is predicted from a probability of {given.best:.2f}. A threshold that is chosen on one half of the rows and evaluated on the "
        f"other half costs {markup.number(given.honest_cost)} per row. The threshold {given.usual:.2f}, which is optimal for calibrated "
        f"probabilities, costs {markup.number(given.usual_cost)} per row.",
    )
    return markup.together(text, markup.figures(markup.figure(picture, caption)))


# -- Learning curves of the training rules, or of a fitted model ---------------------------------------------

TRAINING, HELD_OUT = "s0", "s1"
NAMES = {
    "rc": "RC, risk-based calibration",
    "gdt": "GDT, generative-discriminative trade-off",
    "tm": "TM algorithm (Edwards and Lauritzen)",
    "dfe": "DFE, discriminative frequency estimate",
    "gd": "GD, gradient descent",
}


def curves_section(curves: CurveFacts, facts: Facts) -> Markup:
    """Errors by iteration."""
    has_training = any(len(each.error) for each in curves.curves)
    has_held_out = any(len(each.held_out_error) for each in curves.curves)
    return markup.together(
        markup.paragraph(
            f"Error by {curves.label}: {curves.about}. The dashed vertical line marks the lowest log loss on "
            f"{'held-out' if has_held_out else 'training'} rows.",
        ),
        color_key(["training rows", "held-out rows"]) if has_training and has_held_out else None,
        markup.element("div", [_picture(each, curves) for each in curves.curves], class_="figures small"),
        markup.note(_reading(has_training, has_held_out, curves)),
    )


def _reading(has_training: bool, has_held_out: bool, curves: CurveFacts) -> str:
    if has_training and has_held_out:
        return (
            "Update 0 is maximum likelihood. If the held-out error rises while the training error falls, the rule overfits. Early "
            "stopping is turned off here; a curve is shorter if the rule converged or diverged."
        )
    if has_held_out:
        return "Total step 0 is maximum likelihood. Training stops at the step of lowest held-out log loss."
    return "These are errors on training rows; errors on new rows are usually higher."


def _picture(each: Curve, curves: CurveFacts) -> Markup:
    steps = np.log2(1.0 + each.steps) if curves.label == "total step" else each.steps.astype(float)
    lines = [
        Line(steps, scores, style)
        for scores, style in ((each.error, TRAINING), (each.held_out_error, HELD_OUT))
        if len(scores)
    ]
    span = around(np.concatenate([each.error, each.held_out_error]), 0, 1, floor=0.0)
    written = (lambda step: markup.number(2.0**step - 1.0)) if curves.label == "total step" else markup.number
    name = markup.shortened(NAMES.get(each.name, each.name))

    def mark(frame: Frame) -> list[Markup]:
        place = frame.x(float(steps[min(each.best, len(steps) - 1)]))
        return [line(place, frame.y.start, place, frame.y.end, "dashed")]

    picture = chart(
        f"Learning curve of {name}",
        _description(each),
        lines,
        Axis(curves.label, 0.0, float(steps[-1]) or 1.0, written),
        Axis("error", span.low, span.high, markup.short_percent),
        mark,
        SMALL,
    )
    return markup.element("figure", markup.element("h3", name), picture, _numbers(each, curves))


def _description(each: Curve) -> str:
    parts = (
        f"{name} error from {markup.percent(scores[0])} to {markup.percent(scores[-1])}"
        for name, scores in (("training", each.error), ("held-out", each.held_out_error))
        if len(scores)
    )
    return f"{'; '.join(parts)}."


def _numbers(each: Curve, curves: CurveFacts) -> Markup:
    kinds = {
        "training error": each.error,
        "held-out error": each.held_out_error,
        "training log loss": each.log_loss,
        "held-out log loss": each.held_out_log_loss,
    }
    known = {name: scores for name, scores in kinds.items() if len(scores)}
    heads: list[Child] = [curves.label, *known]
    lines = [
        [markup.number(step), *(markup.fixed(scores[j], 4) for scores in known.values())]
        for j, step in enumerate(each.steps)
    ]
    return markup.folded_table(f"Scores of {markup.shortened(each.name)}", heads, lines, range(len(heads)))
