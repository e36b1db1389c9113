"""docs/accuracy.md from the results of benchmarks/accuracy.py: tables, ranks, a diagram, and in words where we lose."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context

from calibayes.plots import plot_ranks
from calibayes.ranks import rank_summary

US, PEER = "BayesClassifier", "HistGB"
FEW_ROWS = 1500
METRICS = {
    "error": ("error %", 100.0, "{:.2f}"),
    "log_loss": ("log loss", 1.0, "{:.3f}"),
    "brier": ("Brier", 1.0, "{:.3f}"),
    "calibration": ("calibration error %", 100.0, "{:.2f}"),
    "seconds": ("seconds", 1.0, "{:.2f}"),
}
POINT = 1.0
CLOSE = 0.02


def write_page(results, models, page, apart, images, note=None):
    """Write the page, and beside it the diagrams."""
    page.parent.mkdir(parents=True, exist_ok=True)
    whole = {data: found for data, found in results.items() if all(model in found for model in models)}
    if not whole:
        raise SystemExit("no data set has results of all models yet")
    tables = {metric: table(whole, models, metric) for metric in METRICS}
    parts = [HEAD.format(sets=len(whole), models=len(models), page=page.name, note=note or SHAPED)]
    parts.append(averages(tables, models, len(whole)))
    parts.append(times(tables, models))
    for metric in ("error", "log_loss"):
        parts.append(ranks(tables[metric], models, metric, page))
    parts += [by_size(whole, tables, models), losses(whole, tables, models)]
    parts += [each(whole, tables, models, metric) for metric in METRICS]
    parts += [of_apart(apart, models), of_images(images)]
    page.write_text("\n\n".join(part for part in parts if part) + "\n")


HEAD = """# How accurate the default is

`BayesClassifier()` among {models} models, none of them tuned unless its name says so, on {sets} data sets: stratified
5-fold cross-validation (shuffled, seed 0), classes with fewer than 5 rows left out. Every figure is from rows that no fit,
encoder, inner fold or early stop has seen. Calibration error is the expected one, over 15 bins of the highest probability,
pooled over the folds. Seconds are processor time of fit and predict on one fold, on one thread; on a shared machine they
compare models roughly. SVC gives no probabilities.

`python benchmarks/accuracy.py --page docs/{page}` makes this page. {note}"""
SHAPED = """The defaults of `BayesClassifier` were found on
data sets that are among these, so its lead here shows that it works as it was meant to, not how far it leads elsewhere."""


def value(folds, metric):
    """One number for the folds of a data set; NaN where the model has none."""
    if metric == "seconds":
        return float(np.mean([fold["processor"] for fold in folds]))
    if metric == "calibration":
        return calibration(folds)
    return float(np.mean([fold.get(metric, np.nan) for fold in folds]))


def calibration(folds):
    if not all("bin_rows" in fold for fold in folds):
        return np.nan
    rows, sure, right = (
        np.sum([fold[name] for fold in folds], axis=0) for name in ("bin_rows", "bin_sure", "bin_right")
    )
    return float(np.abs(sure - right).sum() / rows.sum())


def table(results, models, metric):
    """(data sets, models)."""
    return np.array([[value(found[model], metric) for model in models] for found in results.values()])


def markdown(header, lines):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *lines])


def shown(number, pattern, bold=False):
    if np.isnan(number):
        return ""
    text = pattern.format(number)
    return f"**{text}**" if bold else text


def averages(tables, models, sets):
    lines = []
    for number, model in enumerate(models):
        cells = []
        for metric, (_, factor, pattern) in METRICS.items():
            means = tables[metric].mean(axis=0)
            best = not np.isnan(means[number]) and means[number] == np.nanmin(means)
            cells.append(shown(factor * means[number], pattern, best))
        lines.append([model, *cells])
    title = f"## On average over {sets} data sets"
    return f"{title}\n\n{markdown(['model', *(METRICS[m][0] for m in METRICS)], lines)}"


def times(tables, models):
    """How long we take, in terms of a peer."""
    if US not in models or PEER not in models:
        return ""
    ours, theirs = (tables["seconds"][:, models.index(name)] for name in (US, PEER))
    ratios = ours / theirs
    return (
        f"{US} takes {np.mean(ratios):.1f} times as long as {PEER} on average over the data sets "
        f"(median {np.median(ratios):.1f}, at most {np.max(ratios):.0f})."
    )


def ranks(values, models, metric, page):
    """Average ranks of the models that have the metric, and their diagram."""
    there = ~np.isnan(values).any(axis=0)
    names = [model for model, yes in zip(models, there, strict=True) if yes]
    title = f"## Ranks by {METRICS[metric][0].removesuffix(' %')}"
    if len(names) < 3 or len(values) < 2:
        return ""
    summary = rank_summary(values[:, there], names)
    picture = page.with_name(f"{page.stem}-{metric.replace('_', '-')}.svg")
    with rc_context({"svg.hashsalt": "ranks"}):  # the same picture every time
        plot_ranks(summary).figure.savefig(picture, metadata={"Date": None})
    order = np.argsort(summary.average_ranks, kind="stable")
    told = ", ".join(f"{names[j]} {summary.average_ranks[j]:.2f}" for j in order)
    test = f"Friedman's test: p = {summary.friedman_p:.2g}; critical difference {summary.critical_difference:.2f}."
    ours = [p for pair, p in zip(summary.pairs, summary.pair_p, strict=True) if US in pair]
    others = [next(n for n in pair if n != US) for pair in summary.pairs if US in pair]
    clear = [name for name, p in zip(others, ours, strict=True) if p < summary.level]
    wilcoxon = (
        f"By Wilcoxon's test with Holm's correction {US} differs from {', '.join(clear) or 'none of them'}."
    )
    return f"{title}\n\n{told}. {test} {wilcoxon}\n\n![{title.removeprefix('## ')}]({picture.name})"


def sizes(results, models):
    """Rows of each data set: every row is held out once."""
    return np.array([sum(fold["rows"] for fold in found[models[0]]) for found in results.values()])


def by_size(results, tables, models):
    rows = sizes(results, models)
    lines = []
    for title, chosen in (
        (f"up to {FEW_ROWS}", rows <= FEW_ROWS),
        (f"more than {FEW_ROWS}", rows > FEW_ROWS),
    ):
        for metric in ("error", "log_loss"):
            if chosen.any():
                _, factor, pattern = METRICS[metric]
                means = tables[metric][chosen].mean(axis=0)
                cells = [shown(factor * mean, pattern, mean == np.nanmin(means)) for mean in means]
                lines.append([f"{title} rows ({int(chosen.sum())}), {METRICS[metric][0]}", *cells])
    return f"## By number of rows\n\n{markdown(['data sets', *models], lines)}"


def losses(results, tables, models):
    """In words: where a peer is clearly better."""
    if US not in models:
        return ""
    ours, said = models.index(US), []
    rows = sizes(results, models)
    for number, data in enumerate(results):
        error, loss = tables["error"][number] * 100, tables["log_loss"][number]
        best, sharpest = int(np.nanargmin(error)), int(np.nanargmin(loss))
        parts = []
        if error[ours] - error[best] > POINT:
            parts.append(f"{models[best]} errs less, {error[best]:.1f} % against {error[ours]:.1f} %")
        if loss[ours] - loss[sharpest] > CLOSE:
            parts.append(
                f"{models[sharpest]} has the lower log loss, {loss[sharpest]:.3f} against {loss[ours]:.3f}"
            )
        if parts:
            said.append((error[ours] - error[best], f"- {data} ({rows[number]} rows): {'; '.join(parts)}."))
    said.sort(key=lambda pair: -pair[0])
    lead = (
        f"It is behind the best of the others by more than {POINT:g} point of error or {CLOSE:g} of log loss on "
        f"{len(said)} of {len(results)} data sets, the largest gaps in error first:"
    )
    first = int(np.sum(tables["error"][:, ours] <= np.nanmin(tables["error"], axis=1)))
    sharp = int(np.sum(tables["log_loss"][:, ours] <= np.nanmin(tables["log_loss"], axis=1)))
    wins = f"It has the least error, alone or with others, on {first} data sets, and the least log loss on {sharp}."
    return "\n\n".join(["## Where it loses", wins, lead, "\n".join(line for _, line in said)])


def each(results, tables, models, metric):
    name, factor, pattern = METRICS[metric]
    lines = []
    for number, data in enumerate(results):
        line = tables[metric][number]
        lines.append([data, *(shown(factor * v, pattern, v == np.nanmin(line)) for v in line)])
    return f"## Each data set: {name}\n\n{markdown(['data', *models], lines)}"


def of_apart(results, models):
    """Large tables by themselves, with the models that have been run on them."""
    lines = []
    for data, found in results.items():
        for model in (name for name in models if name in found):
            cells = [shown(f * value(found[model], metric), p) for metric, (_, f, p) in METRICS.items()]
            lines.append([data, model, *cells])
    if not lines:
        return ""
    return f"## Larger tables\n\n{markdown(['data', 'model', *(METRICS[m][0] for m in METRICS)], lines)}"


def of_images(results):
    if not results:
        return ""
    lines = []
    for model, result in results.items():
        cells = [shown(f * value([result], metric), p) for metric, (_, f, p) in METRICS.items()]
        lines.append([model, *cells])
    text = "MNIST, raw pixels: 10,000 training rows, 10,000 test rows."
    return f"## Images\n\n{text}\n\n{markdown(['model', *(METRICS[m][0] for m in METRICS)], lines)}"
