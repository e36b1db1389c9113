"""Ours beside the peers: `python benchmarks/speed.py` prints ratios and writes docs/speed.md.

Everything runs in one process on the same data, contestants in turns, the best of three. `--quick` runs small races
with ratios of processor time on one thread, writes nothing, and fails where one falls below its floor: the guard against
getting slower. Ratios are compared, never seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

from races import counts, data, gaussians, guard, page, peers, processes, scaling

ROOT = Path(__file__).parents[1]
LEVELS, NUMBERS, ELLIPSES = (70_000, 512, 10), (200_000, 50, 10), (20_000, 512, 10)
WORDS, FLAGS = (20_000, 50_000, 20), (70_000, 256, 10)


def everything(rounds, jobs):
    """The races, each announced as its result comes in."""
    satellite = gaussians.satellite()
    races = {
        "levels": lambda: counts.levels(LEVELS, rounds, jobs),
        "flags": lambda: counts.flags(FLAGS, rounds, jobs),
        "words": lambda: counts.words(WORDS, rounds, jobs),
        "diagonal": lambda: gaussians.diagonal(NUMBERS, rounds, jobs),
        "quadratic": lambda: gaussians.quadratic(ELLIPSES, rounds, jobs),
        "linear": lambda: gaussians.linear(NUMBERS, rounds, jobs),
        "logistic": lambda: gaussians.logistic("200,000 x 50", data.numbers(*NUMBERS), rounds, jobs),
        "satellite": lambda: gaussians.logistic("satellite", satellite, rounds, jobs),
        "imports": lambda: processes.imports(5),
    }
    return {name: run for name, run in races.items() if name != "satellite" or satellite is not None}


def absent():
    """A line for each peer that is not here."""
    names = {"skbn": "scikit-bayes", "pomegranate": "pomegranate"}
    return [
        f"{named} was not installed, and is left out."
        for module, named in names.items()
        if not peers.optional(module)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small races with floors, nothing written")
    parser.add_argument("--only", nargs="*", help="names of races, nothing written")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence: races take as many updates as they say
    if given.quick:
        sys.exit(guard.main())
    results = []
    for name, run in everything(given.rounds, given.jobs).items():
        if not given.only or name in given.only:
            found = run()
            print(
                page.table(found) if not results else "\n".join(page.table(found).splitlines()[2:]),
                flush=True,
            )
            results += found
    if not given.only:
        write(results, given.jobs)


def write(results, jobs):
    curves = scaling.measured()
    page.figure(curves, ROOT / "docs" / "speed-scaling.svg")
    path = ROOT / "docs" / "speed.md"
    text = path.read_text(encoding="utf-8").split(page.MARK)[0]
    made = page.page(results, curves, processes.memory(LEVELS, jobs), absent(), jobs)
    path.write_text(f"{text}{page.MARK}\n\n{made}", encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
