"""Learning curves of the training rules, or of a fitted model."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.report.drawings.canvas import line
from calibayes.report.drawings.chart import SMALL, Axis, Frame, Line, chart
from calibayes.report.drawings.scale import around
from calibayes.report.facts.values import Curve, CurveFacts, Facts
from calibayes.report.page.markup import Child, Markup, element, together
from calibayes.report.page.parts import Section, folded_table, note, paragraph
from calibayes.report.page.wording import fixed, number, percent, shortened
from calibayes.report.sections.keys import color_key

TRAINING, HELD_OUT = "s0", "s1"
NAMES = {
    "rc": "RC, risk-based calibration",
    "gdt": "GDT, generative-discriminative trade-off",
    "tm": "TM algorithm (Edwards and Lauritzen)",
    "dfe": "DFE, discriminative frequency estimate",
    "gd": "GD, gradient descent",
}


def curves_section(facts: Facts) -> Section | None:
    """Errors by iteration; None without curves."""
    curves = facts.curves
    if curves is None:
        return None
    has_training = any(len(each.error) for each in curves.curves)
    has_held_out = any(len(each.held_out_error) for each in curves.curves)
    shown = [_picture(each, curves) for each in curves.curves]
    body = together(
        paragraph(
            f"Error by {curves.label}: {curves.about}. The dashed vertical line marks the lowest log loss on "
            f"{'held-out' if has_held_out else 'training'} rows.",
        ),
        color_key(["training rows", "held-out rows"]) if has_training and has_held_out else None,
        element("div", shown, class_="figures small"),
        note(_reading(has_training, has_held_out, curves)),
    )
    return Section("curves", "Learning curves", body)


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
    values = np.concatenate([each.error, each.held_out_error])
    span = around(values, 0, 1, floor=0.0)
    x = Axis(
        curves.label, 0.0, float(steps[-1]) or 1.0, _unlogged if curves.label == "total step" else number
    )
    name = NAMES.get(each.name, each.name)

    def mark(frame: Frame) -> list[Markup]:
        place = frame.x(float(steps[min(each.best, len(steps) - 1)]))
        return [line(place, frame.y.start, place, frame.y.end, "dashed")]

    picture = chart(
        f"Learning curve of {shortened(name)}",
        _description(each),
        lines,
        x,
        Axis("error", span.low, span.high, lambda value: f"{100 * value:.3g}\u202f%"),
        mark,
        SMALL,
    )
    return element("figure", element("h3", shortened(name)), picture, _numbers(each, curves))


def _unlogged(value: float) -> str:
    return number(2.0**value - 1.0, 3)


def _description(each: Curve) -> str:
    parts = []
    for name, scores in (("training", each.error), ("held-out", each.held_out_error)):
        if len(scores):
            parts.append(f"{name} error from {percent(scores[0])} to {percent(scores[-1])}")
    return f"{'; '.join(parts)}."


def _numbers(each: Curve, curves: CurveFacts) -> Markup:
    kinds: list[tuple[str, Array]] = [
        ("training error", each.error),
        ("held-out error", each.held_out_error),
        ("training log loss", each.log_loss),
        ("held-out log loss", each.held_out_log_loss),
    ]
    known = [(name, scores) for name, scores in kinds if len(scores)]
    heads: list[Child] = [curves.label, *(name for name, _ in known)]
    lines = [
        [number(step), *(fixed(scores[j], 4) for _, scores in known)] for j, step in enumerate(each.steps)
    ]
    return folded_table(f"Scores of {shortened(each.name)}", heads, lines, range(len(heads)))
