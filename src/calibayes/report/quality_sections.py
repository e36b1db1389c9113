"""Quality of the predictions for held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.report import markup as html
from calibayes.report.drawings import SMALL, Axis, Frame, Line, around, chart, line, matrix, swatch
from calibayes.report.markup import Child, Markup
from calibayes.report.values import Curve, CurveFacts, Facts, QualityFacts, Threshold, Tradeoff

# -- Color keys: the colors of the classes and their names ---------------------------------------------------

OTHER = 6
"""The color of classes that have no separate color."""


def color_key(names: Sequence[str], codes: Sequence[int] | None = None) -> Markup:
    """A list of names with their colors, by default in the order of the colors."""
    pairs = zip(range(len(names)) if codes is None else codes, names, strict=True)
    return html.bullets([(swatch(code), html.named(name)) for code, name in pairs], class_="key")


# -- Quality of the predictions for held-out rows ------------------------------------------------------------

LIFT_AT = (0.1, 0.2, 0.5)
"""Shares of the rows at which the lift is shown."""


def quality_section(quality: QualityFacts, facts: Facts) -> Markup:
    """Reliability, confusion matrix, ROC and gain curves, and the threshold."""
    groups = facts.table.groups  # a class has the same color in all figures of the page
    colors = [groups.index(each.name) if each.name in groups else OTHER for each in quality.tradeoffs]
    return html.together(
        html.paragraph(
            f"All results in this section are for {html.counts(quality.rows, 'row')} that the model was not trained on "
            f"({quality.how}). {facts.model} predicts {html.percent(1 - quality.error)} of them correctly. Log loss: "
            f"{html.fixed(quality.log_loss, 3)}; Brier score: {html.fixed(quality.brier, 3)}; expected calibration error: "
            f"{html.fixed(quality.calibration_error, 3)}."
        ),
        html.figures(_reliability(quality), _confusion(quality)),
        html.figures(_roc(quality, colors), _lift(quality, colors)) if quality.tradeoffs else None,
        _costs(quality),
    )


def _ideal(frame: Frame) -> list[Markup]:
    """The diagonal."""
    return [line(frame.x.start, frame.y.start, frame.x.end, frame.y.end, "dashed")]


def _vertical(frame: Frame, value: float, style: str) -> Markup:
    """A line at a value of the horizontal axis."""
    place = frame.x(value)
    return line(place, frame.y.start, place, frame.y.end, style)


def _share(label: str) -> Axis:
    return Axis(label, 0.0, 1.0, lambda value: f"{100 * value:.0f}\u202f%")


def _reliability(quality: QualityFacts) -> Markup:
    predicted = np.array([each.predicted for each in quality.bins])
    observed = np.array([each.observed for each in quality.bins])

    def whiskers(frame: Frame) -> list[Markup]:
        ends = [(frame.x(each.predicted), frame.y(each.low), frame.y(each.high)) for each in quality.bins]
        return [*_ideal(frame), *(line(x, low, x, high, "muted-line") for x, low, high in ends)]

    shares = [(html.percent(each.predicted), html.percent(each.observed)) for each in quality.bins]
    description = "; ".join(f"predicted {mean}, observed {share}" for mean, share in shares)
    about = html.shortened(quality.calibrated, 40)
    title = f"Reliability diagram of the probability of {about}"
    axes = _share(f"predicted probability of {html.shortened(about, 26)}"), _share("observed frequency")
    picture = chart(title, f"{description}.", [Line(predicted, observed, has_dots=True)], *axes, whiskers)
    caption = html.together(
        "Reliability diagram. Rows in groups of equal size by the predicted probability of ",
        html.named(quality.calibrated, 40),
        "; observed frequency with 95\u202f% intervals. On the dashed line, predicted probabilities equal observed frequencies.",
    )
    lines = [
        [*pair, f"{html.percent(each.low)} to {html.percent(each.high)}", html.count(each.rows)]
        for pair, each in zip(shares, quality.bins, strict=True)
    ]
    heads = ["predicted", "observed", "95\u202f% interval", "rows"]
    return html.figure(picture, caption, html.folded_table("Reliability", heads, lines, 0))


def _confusion(quality: QualityFacts) -> Markup:
    names = quality.classes
    right = np.diag(quality.confusion) / quality.confusion.sum(axis=1).clip(1)
    description = "; ".join(
        f"{html.shortened(name, 30)}: {html.percent(share)} predicted correctly"
        for name, share in zip(names, right, strict=True)
    )
    picture = matrix("Confusion matrix", f"{description}.", names, quality.confusion)
    lines: list[list[Child]] = [
        [html.named(name, 40), *(html.count(cell) for cell in row), html.percent(share)]
        for name, row, share in zip(names, quality.confusion, right, strict=True)
    ]
    heads = ["true class", *(f"predicted {html.shortened(name, 20)}" for name in names), "correct"]
    caption = (
        "Confusion matrix. Number of rows by true class (vertical) and predicted class (horizontal); the color is the share of the "
        "true class."
    )
    numbers = html.folded_table("Number of rows by true and predicted class", heads, lines, 1)
    return html.figure(picture, caption, numbers)


def _roc(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    lines = [
        Line(each.false_positive_rate, each.true_positive_rate, f"s{color}")
        for color, each in zip(colors, quality.tradeoffs, strict=True)
    ]
    names = [(html.shortened(each.name, 30), each.auc) for each in quality.tradeoffs]
    areas = "; ".join(f"{name}: area under the curve {area:.3f}" for name, area in names)
    axes = _share("false positive rate"), _share("true positive rate")
    picture = chart("Receiver operating characteristic", f"{areas}.", lines, *axes, _ideal)
    caption = "ROC curve of a class against all others, with the area under the curve (AUC). The dashed line is a random ranking."
    return html.figure(picture, caption, _key(quality, [f"AUC {area:.3f}" for _, area in names], colors))


def _lift(quality: QualityFacts, colors: Sequence[int]) -> Markup:
    pairs = zip(colors, quality.tradeoffs, strict=True)
    lines = [Line(each.share, each.found, f"s{color}") for color, each in pairs]
    description = "; ".join(map(_lift_words, quality.tradeoffs))
    axes = _share("share of all rows, most probable first"), _share("share of the class")
    picture = chart("Cumulative gain", f"{description}.", lines, *axes, _ideal)
    caption = (
        "Cumulative gain: share of the rows of a class among the rows with the highest predicted probability of it. Lift is the ratio "
        "to a random selection, which is the dashed line."
    )
    heads = ["class", *(f"lift at {100 * share:.0f}\u202f%" for share in LIFT_AT)]
    lifts: list[list[Child]] = [
        [html.named(each.name, 40), *(f"{_found(each, share) / share:.2f}" for share in LIFT_AT)]
        for each in quality.tradeoffs
    ]
    numbers = html.folded_table("Lift", heads, lifts, 1)
    words = [f"lift {_found(each, 0.1) / 0.1:.1f} in the first 10\u202f%" for each in quality.tradeoffs]
    return html.figure(picture, caption, _key(quality, words, colors), numbers)


def _found(each: Tradeoff, share: float) -> float:
    """Share of the rows of a class that are among the first rows."""
    return float(np.interp(share, each.share, each.found))


def _lift_words(each: Tradeoff) -> str:
    shares = ", ".join(
        f"the first {100 * share:.0f}\u202f% of the rows contain {html.percent(_found(each, share))} of the class"
        for share in LIFT_AT
    )
    return f"{html.shortened(each.name, 30)}: {shares}"


def _key(quality: QualityFacts, words: Sequence[str], colors: Sequence[int]) -> Markup:
    pairs = zip(quality.tradeoffs, words, strict=True)
    return color_key([f"{html.shortened(each.name, 28)}: {text}" for each, text in pairs], colors)


def _costs(quality: QualityFacts) -> Markup:
    if quality.threshold is not None:
        threshold = _threshold(quality.threshold, quality.costs is not None)
        return html.subsection("Threshold of least cost", threshold)
    if quality.cost is None or quality.cost_of_likely is None:
        text = html.note(
            "No costs were given: every mistake costs the same, and predicting the most probable class has the least expected cost. "
            "For two classes, this section shows the threshold of least cost."
        )
    else:
        text = html.paragraph(
            f"Average cost of a held-out row with the given costs: {html.number(quality.cost)} if the class of least expected cost is "
            f"predicted, {html.number(quality.cost_of_likely)} if the most probable class is predicted."
        )
    return html.subsection("Costs", text)


def _threshold(given: Threshold, has_costs: bool) -> Markup:
    known = "with the given costs" if has_costs else "if every mistake costs 1 (pass costs to change this)"

    def marks(frame: Frame) -> list[Markup]:
        return [_vertical(frame, given.usual, "dashed"), _vertical(frame, given.best, "warn-line")]

    description = (
        f"Average cost {html.number(float(given.costs[0]))} at threshold 0, {html.number(float(given.costs[-1]))} at threshold 1; lowest at "
        f"{given.best:.2f}."
    )
    x = Axis(f"threshold on the probability of {html.shortened(given.name, 20)}")
    y = Axis("average cost", 0.0, float(given.costs.max()) * 1.05 or 1.0)
    lines = [Line(given.thresholds, given.costs)]
    picture = chart("Average cost by threshold", description, lines, x, y, marks)
    caption = html.together(
        "Average cost of a held-out row, ",
        known,
        ", if ",
        html.named(given.name, 40),
        " is predicted whenever its probability is at least the threshold. Dotted line: threshold of least cost on these rows; dashed "
        "line: optimal threshold for calibrated probabilities.",
    )
    text = html.paragraph(
        "The average cost on these rows is lowest if ",
        html.named(given.name, 40),
        f" is predicted from a probability of {given.best:.2f}. A threshold that is chosen on one half of the rows and evaluated on the "
        f"other half costs {html.number(given.honest_cost)} per row. The threshold {given.usual:.2f}, which is optimal for calibrated "
        f"probabilities, costs {html.number(given.usual_cost)} per row.",
    )
    return html.together(text, html.figures(html.figure(picture, caption)))


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
    return html.together(
        html.paragraph(
            f"Error by {curves.label}: {curves.about}. The dashed vertical line marks the lowest log loss on "
            f"{'held-out' if has_held_out else 'training'} rows.",
        ),
        color_key(["training rows", "held-out rows"]) if has_training and has_held_out else None,
        html.figures([_picture(each, curves) for each in curves.curves], is_small=True),
        html.note(_reading(has_training, has_held_out, curves)),
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
    is_path = curves.label == "total step"
    steps = np.log2(1.0 + each.steps) if is_path else each.steps.astype(float)
    errors = ((each.error, TRAINING), (each.held_out_error, HELD_OUT))
    lines = [Line(steps, scores, style) for scores, style in errors if len(scores)]
    span = around(np.concatenate([each.error, each.held_out_error]), 0, 1)
    written = (lambda step: html.number(2.0**step - 1.0)) if is_path else html.number
    name = html.shortened(NAMES.get(each.name, each.name))

    def mark(frame: Frame) -> list[Markup]:
        return [_vertical(frame, float(steps[min(each.best, len(steps) - 1)]), "dashed")]

    x = Axis(curves.label, 0.0, float(steps[-1]) or 1.0, written)
    y = Axis("error", span.low, span.high, html.short_percent)
    picture = chart(f"Learning curve of {name}", _description(each), lines, x, y, mark, SMALL)
    return html.element("figure", html.element("h3", name), picture, _numbers(each, curves))


def _description(each: Curve) -> str:
    parts = (
        f"{name} error from {html.percent(scores[0])} to {html.percent(scores[-1])}"
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
        [html.number(step), *(html.fixed(scores[j], 4) for scores in known.values())]
        for j, step in enumerate(each.steps)
    ]
    return html.folded_table(f"Scores of {html.shortened(each.name)}", heads, lines, 0)
