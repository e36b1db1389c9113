"""Writes docs/accuracy.md and docs/accuracy-appendix.md from the results of benchmarks/accuracy.py.

Each group of data sets has one section on either page, between two comments; the sections of other groups, and the text
around them, stay as they are.
"""

from __future__ import annotations

import re

import numpy as np
from accuracy_tables import (
    METRICS,
    averages,
    by_size,
    each_data_set,
    image_table,
    metric_array,
    row_counts,
    separate_tables,
)
from matplotlib import rc_context

from calibayes.plots import plot_ranks
from calibayes.ranks import rank_summary

PAGE, APPENDIX = "accuracy.md", "accuracy-appendix.md"
OURS, TIMED_PEER = "BayesClassifier", "HistGB"
MIN_ERROR_GAP, MIN_LOSS_GAP = 1.0, 0.02
"""Differences that count as a loss: percentage points of error, and log loss."""


def write_pages(group, results, models, folder, separate, images):
    """Replace the group's sections on both pages in a folder, and its rank diagrams."""
    folder.mkdir(parents=True, exist_ok=True)
    complete = {data: by_model for data, by_model in results.items() if all(m in by_model for m in models)}
    if not complete:
        raise SystemExit("no data set has results of all models yet: run with the same --models first")
    arrays = {metric: metric_array(complete, models, metric) for metric in METRICS}
    extras = (separate, images) if group.has_extras else ({}, {})
    section = main_section(group, complete, arrays, models, folder, extras)
    replace_section(folder / PAGE, group, section, "# Accuracy of BayesClassifier")
    section = appendix_section(group, complete, arrays, models)
    replace_section(folder / APPENDIX, group, section, "# Accuracy: results by data set")


def replace_section(path, group, section, title):
    """Put a group's section in place of its earlier one; at the end of the page if there is none."""
    begin, end = f"<!-- begin {group.name}: by benchmarks/accuracy.py -->", f"<!-- end {group.name} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else f"{title}\n"
    new = f"{begin}\n\n{section}\n\n{end}"
    pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
    if re.search(pattern, text, flags=re.DOTALL):
        text = re.sub(pattern, lambda _: new, text, flags=re.DOTALL)
    else:
        text = f"{text.rstrip()}\n\n{new}\n"
    path.write_text(text, encoding="utf-8")


def main_section(group, results, arrays, models, folder, extras):
    parts = [f"## {group.title}", f"{len(results)} data sets, {len(models)} models. {group.note}"]
    parts += [headline(arrays, models), averages(arrays, models), fit_time(arrays, models)]
    parts += [ranks(arrays[metric], models, metric, group, folder) for metric in ("error", "log_loss")]
    parts += ["By number of rows:", by_size(results, arrays, models)]
    parts.append(losses(results, arrays, models))
    anchor = re.sub(r"[^a-z0-9 -]", "", group.title.lower()).replace(" ", "-")
    parts.append(f"[Results by data set]({APPENDIX}#{anchor}).")
    separate, images = separate_tables(extras[0], models), extras[1]
    if separate:
        parts += ["### Larger tables", "The same folds; not in the averages above.", separate]
    if images:
        parts += [
            "### Images",
            "MNIST, raw pixels: 10,000 training rows, 10,000 test rows.",
            image_table(images),
        ]
    return "\n\n".join(part for part in parts if part)


def appendix_section(group, results, arrays, models):
    parts = [f"## {group.title}", group.details]
    for metric, (title, _, _) in METRICS.items():
        parts += [f"### {group.title}: {title}", each_data_set(results, arrays, models, metric)]
    return "\n\n".join(part for part in parts if part)


def headline(arrays, models):
    """Mean error and log loss of ours, and of the best other model."""
    others = [j for j, model in enumerate(models) if model != OURS]
    if OURS not in models or not others:
        return ""
    ours, best = [], []
    for metric in ("error", "log_loss"):
        title, factor, form = METRICS[metric]
        means, unit = factor * arrays[metric].mean(axis=0), " %" if title.endswith("%") else ""
        first = others[int(np.nanargmin(means[others]))]
        ours.append(f"{title.removesuffix(' %')} {form.format(means[models.index(OURS)])}{unit}")
        best.append(f"{form.format(means[first])}{unit} ({models[first]})")
    return f"**{OURS}: {', '.join(ours)}. Best of the others: {', '.join(best)}.**"


def fit_time(arrays, models):
    """Our time relative to that of one other model."""
    if OURS not in models or TIMED_PEER not in models:
        return ""
    ours, theirs = (arrays["seconds"][:, models.index(name)] for name in (OURS, TIMED_PEER))
    ratios = ours / theirs
    return (
        f"{OURS} takes {np.mean(ratios):.1f} times as long as {TIMED_PEER} on average over the data sets "
        f"(median {np.median(ratios):.1f}, at most {np.max(ratios):.0f})."
    )


def ranks(values, models, metric, group, folder):
    """Average ranks of the models that have the metric, tests, and the rank diagram; empty for few models or data sets."""
    complete = ~np.isnan(values).any(axis=0)
    names = [model for model, has_metric in zip(models, complete, strict=True) if has_metric]
    if len(names) < 3 or len(values) < 2:
        return ""
    title = f"Average ranks by {METRICS[metric][0].removesuffix(' %')}"
    summary = rank_summary(values[:, complete], names)
    picture = folder / f"{group.picture}-{metric.replace('_', '-')}.svg"
    with rc_context({"svg.hashsalt": "ranks"}):  # the same picture every time
        plot_ranks(summary).figure.savefig(picture, metadata={"Date": None})
    order = np.argsort(summary.average_ranks, kind="stable")
    listed = "; ".join(f"{names[j]} {summary.average_ranks[j]:.2f}" for j in order)
    return "\n\n".join([f"{title}: {listed}. {rank_tests(summary)}", f"![{title}]({picture.name})"])


def rank_tests(summary):
    """Friedman's test over all models, and Wilcoxon's tests of ours against each other one."""
    ours = [(pair, p) for pair, p in zip(summary.pairs, summary.pair_p, strict=True) if OURS in pair]
    differing = [next(name for name in pair if name != OURS) for pair, p in ours if p < summary.level]
    return (
        f"Friedman test: p = {summary.friedman_p:.2g}; critical difference {summary.critical_difference:.2f}. "
        "Significantly different from BayesClassifier (Wilcoxon tests with Holm correction): "
        f"{'; '.join(differing) or 'none'}."
    )


def losses(results, arrays, models):
    """On which data sets another model is clearly better."""
    if OURS not in models:
        return ""
    ours, rows, lines = models.index(OURS), row_counts(results, models), []
    for number, data in enumerate(results):
        error, loss = arrays["error"][number] * 100, arrays["log_loss"][number]
        best_error, best_loss = int(np.nanargmin(error)), int(np.nanargmin(loss))
        gaps = []
        if error[ours] - error[best_error] > MIN_ERROR_GAP:
            gaps.append(f"error {error[ours]:.1f} % against {error[best_error]:.1f} % ({models[best_error]})")
        if loss[ours] - loss[best_loss] > MIN_LOSS_GAP:
            gaps.append(f"log loss {loss[ours]:.3f} against {loss[best_loss]:.3f} ({models[best_loss]})")
        if gaps:
            lines.append(
                (error[ours] - error[best_error], f"- {data} ({rows[number]} rows): {'; '.join(gaps)}")
            )
    lines.sort(key=lambda line: -line[0])
    wins = [
        int(np.sum(arrays[name][:, ours] <= np.nanmin(arrays[name], axis=1)))
        for name in ("error", "log_loss")
    ]
    text = (
        f"**Where it loses.** {OURS} has the lowest error (ties included) on {wins[0]} of {len(results)} data sets, "
        f"and the lowest log loss on {wins[1]}. The best other model is better by more than {MIN_ERROR_GAP:g} percentage "
        f"point of error or {MIN_LOSS_GAP:g} of log loss on {len(lines)}"
    )
    if not lines:
        return f"{text}."
    return "\n".join([f"{text}, largest differences in error first:", "", *(line for _, line in lines)])
