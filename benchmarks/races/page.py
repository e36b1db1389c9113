"""The results as a Markdown page: table, summary in words, scaling curves."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn

from calibayes.versions import DOCUMENTATION
from races.processes import MAX_MEMORY

MARK = "<!-- What follows is written by benchmarks/speed.py. -->"
PICTURE = f"{DOCUMENTATION}/speed.html#picture-speed-scaling"
"""The documentation site draws it from docs/results/speed-scaling.csv."""


def table(results):
    """Results as a Markdown table."""
    head = [
        "| work | peer | ours, s | peer, s | ratio | ratio of processor time | target |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(head + [_line(result) for result in results])


def _line(result):
    goal = "-" if result.goal is None else f"{result.goal:.2g} ({'reached' if result.met else 'missed'})"
    times = f"{result.ours.wall:.3g} | {result.theirs.wall:.3g}"
    ratios = f"{result.ratio:.2f} | {result.processor_ratio:.2f}"
    return f"| {result.work} | {result.peer} | {times} | {ratios} | {goal} |"


def where_peers_are_faster(results):
    """A list of the races that the peer wins."""
    slower = [result for result in results if result.ratio < 1.0]
    if not slower:
        return "No peer was faster than calibayes in this run."
    items = [f"{1.0 / r.ratio:.2f} times as long as {r.peer} takes ({r.work})" for r in slower]
    return "Where the peer is faster, calibayes takes\n\n" + "\n".join(f"- {item}" for item in items)


def missed(results):
    """A sentence on targets that were not reached."""
    names = [
        f"{result.work} (ratio {result.ratio:.2f}, target {result.goal:.2g})"
        for result in results
        if not result.met
    ]
    return "Every target was reached." if not names else "Targets missed: " + "; ".join(names) + "."


def exponents(curves):
    """Scaling exponents as a Markdown table."""
    lines = ["| model | varied | sizes | exponent |", "| --- | --- | --- | --- |"]
    return "\n".join(
        lines
        + [f"| {c.model} | {c.grows} | {', '.join(map(str, c.sizes))} | {c.exponent:.2f} |" for c in curves]
    )


def figure(curves, path):
    """Log-log plot of times against sizes, one panel per varied size."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "speed"
    from matplotlib import pyplot

    picture, panels = pyplot.subplots(1, 3, figsize=(10, 3.8), sharey=True)
    for panel, grows in zip(panels, "ndk", strict=True):
        panel_curves = [curve for curve in curves if curve.grows == grows]
        for curve in panel_curves:
            panel.loglog(curve.sizes, curve.seconds, "o-", label=f"{curve.model} ({curve.exponent:.2f})")
        sizes = sorted({size for curve in panel_curves for size in curve.sizes})
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=60, fontsize=7)
        panel.set_xticks([], minor=True)
        panel.set_xlabel({"n": "rows", "d": "columns", "k": "classes"}[grows])
        panel.legend(fontsize=6, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    panels[0].set_ylabel("processor seconds per pass")
    picture.tight_layout()
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def versions(jobs):
    """Versions of the packages and number of threads, in words."""
    packages = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    threads = "one thread" if jobs == 1 else f"{jobs} threads"
    return f"{packages}, scikit-learn {sklearn.__version__}; {threads} for calibayes and for the BLAS of the peers"


def page(results, curves, memory, missing, jobs, rounds):
    """The part of the page that is written by benchmarks/speed.py."""
    used = "not measured here" if memory is None else f"{memory:.0f} MiB (limit: {MAX_MEMORY:.0f})"
    parts = [
        (
            f"Made by `python benchmarks/speed.py` with {versions(jobs)}. The contestants of a race run in turns in one process "
            f"on the same data; times are the best of {rounds}. A ratio is the peer's time divided by ours: above 1, calibayes "
            "is faster."
        ),
        *missing,
        table(results),
        where_peers_are_faster(results),
        missed(results),
        f"Peak memory of calibration over levels beyond the data, for the table size above: {used}.",
        (
            "## Scaling\n\nProcessor time of one calibration pass with one thread. The exponent is the slope of the regression line in "
            "log-log scale; n are\nrows, d columns and k classes."
        ),
        exponents(curves),
        f"[Picture: Processor time of one pass against rows, columns and classes]({PICTURE})",
    ]
    return "\n\n".join(parts) + "\n"
