"""Time of calibayes compared with other packages: `python benchmarks/speed.py` prints ratios and writes docs/speed.md.

All contestants of a race run in turns in one process on the same data, and their best times count. `--quick` runs small races
on one thread, writes nothing, and fails if a ratio falls below its minimum, to detect slowdowns. Only ratios are compared,
never seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

from races import counts, data, gaussians, guard, page, partitions, peers, processes, scaling
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
LEVELS, NUMBERS, ELLIPSES = (70_000, 512, 10), (200_000, 50, 10), (20_000, 512, 10)
TREES = (100_000, 50)
WORDS, FLAGS = (20_000, 50_000, 20), (70_000, 256, 10)


def all_races(rounds, jobs, share):
    """Name -> function that runs the race, with a share of the rows."""
    satellite, numbers = gaussians.satellite(), fewer_rows(NUMBERS, share)
    shape = f"{numbers[0]:,} x {numbers[1]}"
    races = {
        "levels": lambda: counts.levels(fewer_rows(LEVELS, share), rounds, jobs),
        "flags": lambda: counts.flags(fewer_rows(FLAGS, share), rounds, jobs),
        "words": lambda: counts.words(fewer_rows(WORDS, share), rounds, jobs),
        "diagonal": lambda: gaussians.diagonal(numbers, rounds, jobs),
        "quadratic": lambda: gaussians.quadratic(fewer_rows(ELLIPSES, max(share, 0.5)), rounds, jobs),
        "linear": lambda: gaussians.linear(numbers, rounds, jobs),
        "logistic": lambda: gaussians.logistic(shape, data.numbers(*numbers), rounds, jobs),
        "satellite": lambda: gaussians.logistic("satellite", satellite, rounds, jobs),
        "trees": lambda: partitions.trees(fewer_rows(TREES, share), rounds, jobs),
        "imports": lambda: processes.imports(5),
    }
    return {name: run for name, run in races.items() if name != "satellite" or satellite is not None}


def fewer_rows(sizes, share):
    """Sizes with a share of the rows."""
    return (int(sizes[0] * share), *sizes[1:])


def missing_peers():
    """A sentence for each peer that is not installed."""
    packages = {"skbn": "scikit-bayes", "pomegranate": "pomegranate", "lightgbm": "LightGBM"}
    return [
        f"{package} was not installed and is left out."
        for module, package in packages.items()
        if not peers.optional(module)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small races with minimum ratios; print only")
    parser.add_argument("--only", nargs="*", help="names of races; print only")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows; print only below 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of convergence: races have a fixed number of updates
    if given.quick:
        sys.exit(guard.main())
    results = []
    for name, run in all_races(given.rounds, given.jobs, given.share).items():
        if not given.only or name in given.only:
            with threadpool_limits(given.jobs):
                race_results = run()
            print(
                page.table(race_results)
                if not results
                else "\n".join(page.table(race_results).splitlines()[2:]),
                flush=True,
            )
            results += race_results
    if not given.only and given.share == 1.0:
        write(results, given.jobs, given.rounds)


def write(results, jobs, rounds):
    """Measure scaling and memory, and write the lower part of docs/speed.md."""
    curves = scaling.measure_all()
    scaling.write_curves(curves, ROOT / "docs" / "results" / "speed-scaling.csv")
    path = ROOT / "docs" / "speed.md"
    text = path.read_text(encoding="utf-8").split(page.MARK)[0]
    section = page.page(results, curves, processes.memory(LEVELS, jobs), missing_peers(), jobs, rounds)
    path.write_text(f"{text}{page.MARK}\n\n{section}", encoding="utf-8")
    print(section)


if __name__ == "__main__":
    main()
