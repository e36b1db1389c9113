"""The results as a page: a table, what it says in words, curves."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn

MARK = "<!-- What follows is written by benchmarks/speed.py. -->"


def table(results):
    head = [
        "| work | peer | ours, s | peer, s | ratio | of processor time | to reach |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(head + [_line(result) for result in results])


def _line(result):
    goal = "-" if result.goal is None else f"{result.goal:.2g} ({'reached' if result.met else 'missed'})"
    times = f"{result.ours.wall:.3g} | {result.theirs.wall:.3g}"
    ratios = f"{result.ratio:.2f} | {result.processor_ratio:.2f}"
    return f"| {result.work} | {result.peer} | {times} | {ratios} | {goal} |"


def where_peers_are_faster(results):
    """In plain words, from the numbers."""
    slower = [result for result in results if result.ratio < 1.0]
    if not slower:
        return "No peer was faster than ours in this run."
    said = [f"{1.0 / r.ratio:.2f} times as long as {r.peer} takes ({r.work})" for r in slower]
    return "Where the other side is faster, ours takes\n\n" + "\n".join(f"- {line};" for line in said)


def missed(results):
    names = [
        f"{result.work} (ratio {result.ratio:.2f}, to reach {result.goal:.2g})"
        for result in results
        if not result.met
    ]
    return "Every target was reached." if not names else "Missed: " + "; ".join(names) + "."


def exponents(curves):
    lines = ["| model | grows | sizes | exponent |", "| --- | --- | --- | --- |"]
    return "\n".join(
        lines
        + [f"| {c.model} | {c.grows} | {', '.join(map(str, c.sizes))} | {c.exponent:.2f} |" for c in curves]
    )


def figure(curves, path):
    """Times against sizes, a panel for each size, logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "speed"
    from matplotlib import pyplot

    picture, panels = pyplot.subplots(1, 3, figsize=(10, 3.8), sharey=True)
    for panel, grows in zip(panels, "ndk", strict=True):
        mine = [curve for curve in curves if curve.grows == grows]
        for curve in mine:
            panel.loglog(curve.sizes, curve.seconds, "o-", label=f"{curve.model} ({curve.exponent:.2f})")
        sizes = sorted({size for curve in mine for size in curve.sizes})
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=60, fontsize=7)
        panel.set_xticks([], minor=True)
        panel.set_xlabel({"n": "rows", "d": "columns", "k": "classes"}[grows])
        panel.legend(fontsize=6, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    panels[0].set_ylabel("processor seconds a pass")
    picture.tight_layout()
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


def versions(jobs):
    found = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    threads = "one thread" if jobs == 1 else f"{jobs} threads"
    return (
        f"{found}, scikit-learn {sklearn.__version__}; {threads} for ours, as many for the BLAS of the peers"
    )


def page(results, curves, memory, absent, jobs, rounds):
    used = (
        "not measured here" if memory is None else f"{memory:.0f} MiB at most, beyond the data (150 allowed)"
    )
    parts = [
        (
            f"Made by `python benchmarks/speed.py` with {versions(jobs)}. Every race is run in turns in one process on the same "
            f"data, best of {rounds}; a ratio above 1 says how many times as long the peer takes."
        ),
        *absent,
        table(results),
        where_peers_are_faster(results),
        missed(results),
        f"Memory of calibration over levels, the table's size as above: {used}.",
        (
            "## Growth\n\nOne pass of calibration, one thread, seconds of the processor; the exponent is the slope of the "
            "line through logarithms."
        ),
        exponents(curves),
        "![Seconds of one pass against rows, columns and classes](speed-scaling.svg)",
    ]
    return "\n\n".join(parts) + "\n"
