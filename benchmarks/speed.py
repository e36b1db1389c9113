"""Ours beside the peers: `python benchmarks/speed.py` prints ratios and writes docs/speed.md.

Everything runs in one process on the same data, contestants in turns, the best of some rounds. `--quick` runs small races
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
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
LEVELS, NUMBERS, ELLIPSES = (70_000, 512, 10), (200_000, 50, 10), (20_000, 512, 10)
WORDS, FLAGS = (20_000, 50_000, 20), (70_000, 256, 10)


def everything(rounds, jobs, share):
    """The races by name, with a share of the rows."""
    satellite, numbers = gaussians.satellite(), some(NUMBERS, share)
    drawn = f"{numbers[0]:,} x {numbers[1]}"
    races = {
        "levels": lambda: counts.levels(some(LEVELS, share), rounds, jobs),
        "flags": lambda: counts.flags(some(FLAGS, share), rounds, jobs),
        "words": lambda: counts.words(some(WORDS, share), rounds, jobs),
        "diagonal": lambda: gaussians.diagonal(numbers, rounds, jobs),
        "quadratic": lambda: gaussians.quadratic(some(ELLIPSES, max(share, 0.5)), rounds, jobs),
        "linear": lambda: gaussians.linear(numbers, rounds, jobs),
        "logistic": lambda: gaussians.logistic(drawn, data.numbers(*numbers), rounds, jobs),
        "satellite": lambda: gaussians.logistic("satellite", satellite, rounds, jobs),
        "imports": lambda: processes.imports(5),
    }
    return {name: run for name, run in races.items() if name != "satellite" or satellite is not None}


def some(sizes, share):
    """The same columns and classes with a share of the rows."""
    return (int(sizes[0] * share), *sizes[1:])


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
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows, nothing written below 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence: races take as many updates as they say
    if given.quick:
        sys.exit(guard.main())
    results = []
    for name, run in everything(given.rounds, given.jobs, given.share).items():
        if not given.only or name in given.only:
            with threadpool_limits(given.jobs):
                found = run()
            print(
                page.table(found) if not results else "\n".join(page.table(found).splitlines()[2:]),
                flush=True,
            )
            results += found
    if not given.only and given.share == 1.0:
        write(results, given.jobs, given.rounds)


def write(results, jobs, rounds):
    curves = scaling.measured()
    page.figure(curves, ROOT / "docs" / "speed-scaling.svg")
    path = ROOT / "docs" / "speed.md"
    text = path.read_text(encoding="utf-8").split(page.MARK)[0]
    made = page.page(results, curves, processes.memory(LEVELS, jobs), absent(), jobs, rounds)
    path.write_text(f"{text}{page.MARK}\n\n{made}", encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
