"""Classifiers of sequences, by maximum likelihood and trained to classify: writes the second part of docs/how-to/sequences.md.

Markov chains of several orders, hidden Markov models, and naive Bayes over positions and over short substrings, on halves of
each table, with differences paired by split.
"""

from __future__ import annotations

import argparse
import ast
import platform
import sys
import sysconfig
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit

from calibayes import CategoricalNB, MultinomialNB, TrainingOptions
from calibayes.datasets import is_local, load
from calibayes.rules import GDT
from calibayes.sequences import HiddenMarkov, MarkovChain, SequenceClassifier

ROOT = Path(__file__).parents[1]


# -- tables ------------------------------------------------------------------------------------------------------------


class Sequences(NamedTuple):
    """A table of sequences."""

    name: str
    what: str
    X: list[list[str]]
    y: np.ndarray
    positions: int = 0
    """Length of aligned sequences; 0 if positions mean nothing."""


def distinct(X, y):
    """Each sequence once, with the label of its first occurrence: a copy of a training row is no new row."""
    first = {}
    for sequence, label in zip(X, y, strict=True):
        first.setdefault(tuple(sequence), label)
    return [list(sequence) for sequence in first], np.array(list(first.values()))


def splice():
    """Windows of 60 nucleotides around splice junctions (UCI); None without the file."""
    if not is_local("splice-uci"):
        return None
    data = load("splice-uci")
    X, y = distinct(np.asarray(data.data, dtype=str).tolist(), np.asarray(data.target, dtype=str))
    what = "windows of 60 nucleotides around a junction (EI, IE) or not (N), UCI, each distinct sequence once"
    return Sequences("splice", what, X, y, 60)


MOTIFS, CONSERVED, BEFORE, LENGTH = ("TTGACA", "TATAAT"), 0.75, 10, 57
FOLLOWS = np.array(
    [[0.35, 0.15, 0.2, 0.3], [0.3, 0.25, 0.2, 0.25], [0.25, 0.3, 0.25, 0.2], [0.2, 0.2, 0.25, 0.35]]
)
"""Probability of A, C, G, T after each of them."""


def promoters(n=1200, seed=0):
    """Simulated promoters: two conserved motifs at varying distances in DNA of a Markov chain; in the others no motifs."""
    rng, letters = np.random.default_rng(seed), np.array(list("ACGT"))
    X, y = [], np.arange(n) % 2
    for label in y:
        codes = [int(rng.integers(4))]
        while len(codes) < LENGTH:
            codes.append(int(rng.choice(4, p=FOLLOWS[codes[-1]])))
        sequence, start = letters[codes], BEFORE + int(rng.integers(5))
        for motif in MOTIFS if label else ():
            kept = rng.random(6) < CONSERVED
            sequence[start : start + 6] = np.where(kept, list(motif), sequence[start : start + 6])
            start += 6 + int(rng.integers(15, 20))
        X.append(sequence.tolist())
    what = (
        f"{LENGTH} simulated nucleotides of a Markov chain of order 1; in half of the rows the motifs {MOTIFS[0]} (from position "
        f"{BEFORE} to {BEFORE + 4} on) and {MOTIFS[1]} (15 to 19 positions after it), each letter kept with probability {CONSERVED}"
    )
    return Sequences("promoters", what, X, y, LENGTH)


def names_of(tree):
    """Lower-case names of classes, functions and constants of a module, without underscores."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, "class"
        elif isinstance(node, ast.FunctionDef):
            yield node.name, "function"
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        yield from ((target.id, "constant") for target in targets if isinstance(target, ast.Name))


def identifiers(most=3000, seed=0):
    """Names in Python's standard library, by letters; None if its sources are not installed."""
    kinds = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if {"site-packages", "test", "tests", "idlelib"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for name, kind in names_of(tree):
            text = name.lower().replace("_", "")
            if len(text) > 2 and text.isascii():
                kinds.setdefault(text, set()).add(kind)
    unique = sorted((text, *kind) for text, kind in kinds.items() if len(kind) == 1)
    if len(unique) < 1000:
        return None
    chosen = np.sort(np.random.default_rng(seed).permutation(len(unique))[:most])
    X, y = [list(unique[i][0]) for i in chosen], np.array([unique[i][1] for i in chosen])
    what = (
        f"letters of names in the standard library of Python {platform.python_version()} (lower case, without underscores): is it "
        "a class, a function or a constant?"
    )
    return Sequences("names", what, X, y)


GAPS, AMOUNTS = (7, 28, 84), (15.0, 30.0, 60.0)
"""Edges of the bins of days since the purchase before, and of dollars."""


def purchases(folder, most=3000, seed=0):
    """Purchases of customers of CDNOW in the order of time, as lists; None without the folder."""
    if folder is None:
        return None
    users, events = (pd.read_csv(folder / "cdnow" / f"{table}.csv.gz") for table in ("users", "purchases"))
    events = events.assign(date=pd.to_datetime(events["date"])).sort_values(["date", "purchase_id"])
    days = events.groupby("users_id")["date"].diff().dt.days
    gap = np.where(days.isna(), "first", np.char.add("gap", np.digitize(days.fillna(0), GAPS).astype(str)))
    events["event"] = np.char.add(
        np.char.add(gap.astype(str), " "), np.digitize(events["amt"], AMOUNTS).astype(str)
    )
    lists = events.groupby("users_id")["event"].agg(list)
    last = (pd.Timestamp("1997-09-30") - events.groupby("users_id")["date"].max()).dt.days
    chosen = np.sort(np.random.default_rng(seed).permutation(len(users))[:most])
    users = users.iloc[chosen]
    X = [[*lists[user], f"quiet {np.digitize(last[user], (28, 84, 140, 196))}"] for user in users["users_id"]]
    what = (
        "purchases of a customer of CDNOW in the order of time, a list of symbols (bins of days since the one before and of the "
        "amount, then of the days without one): does he or she buy again?"
    )
    return Sequences("purchases", what, X, users["buys_again"].to_numpy())


# -- models ------------------------------------------------------------------------------------------------------------


class NaiveBayes(NamedTuple):
    """Naive Bayes over a table that is made of sequences."""

    estimator: object
    counts_substrings: bool

    def tables(self, *parts):
        if not self.counts_substrings:
            return [np.array(part, dtype=object) for part in parts]
        counter = CountVectorizer(analyzer=_substrings, min_df=2)
        return [counter.fit_transform(parts[0]), *map(counter.transform, parts[1:])]

    def fit_predict(self, X, y, new):
        train, held_out = self.tables(X, new)
        return self.estimator.fit(train, y).predict_log_proba(held_out)


class OfSequences(NamedTuple):
    """A classifier that reads sequences."""

    estimator: object

    def fit_predict(self, X, y, new):
        return self.estimator.fit(X, y).predict_log_proba(new)


def _substrings(sequence):
    return [" ".join(sequence[t : t + size]) for size in (1, 2, 3) for t in range(len(sequence) - size + 1)]


EARLY = TrainingOptions(validation_fraction=0.2)
RULES = {
    "ML": {"rule": "ml"},
    "RC": {"rule": "rc"},
    "RC, early": {"rule": "rc", "training": EARLY},
    "GDT": {"rule": GDT(lam=0.2)},
}


MOST_COUNTS = 500_000
"""Chains with more counts for a class are left out: they take minutes."""


def models(table, quick):
    """Name -> rule -> model. Without pseudo-counts "ML" is maximum likelihood, with them "MAP"."""
    found = {}
    orders, states = ((0, 1), 2) if quick else ((0, 1, 2, 3), 4)
    if table.positions:
        found["naive Bayes, positions"] = {
            smoothed(rule): NaiveBayes(CategoricalNB(random_state=0, **options), counts_substrings=False)
            for rule, options in RULES.items()
        }
    found["naive Bayes, substrings"] = {
        smoothed(rule): NaiveBayes(MultinomialNB(random_state=0, **options), counts_substrings=True)
        for rule, options in RULES.items()
    }
    symbols = len({symbol for sequence in table.X for symbol in sequence})
    for order in orders:
        if (symbols + 1) ** order * symbols > MOST_COUNTS:
            continue
        found[f"chain of order {order}"] = of_family(
            MarkovChain(order, back_off=5.0, alpha=1.0), MarkovChain(order)
        )
    for order in orders[1:3] if table.positions else ():
        chain = MarkovChain(order, back_off=5.0, alpha=1.0, positions=table.positions)
        found[f"chain of order {order}, positions"] = of_family(chain)
    if not quick:
        found["chain, chosen by inner folds"] = {
            rule: OfSequences(chosen_chain(table, RULES[name]))
            for rule, name in (("MAP", "ML"), ("RC", "RC"))
        }
    hidden = of_family(HiddenMarkov(states, alpha=1.0))
    return {**found, f"{states} hidden states": {rule: hidden[rule] for rule in ("MAP", "RC", "GDT")}}


def chosen_chain(table, options):
    """The order, the pseudo-rows and, if sequences are aligned, positions, of lowest log loss in three inner folds."""
    model = SequenceClassifier(family=MarkovChain(alpha=1.0), random_state=0, **options)
    grid = {"family__order": [0, 1, 2], "family__back_off": [5.0, 50.0]}
    if table.positions:
        grid["family__positions"] = [0, table.positions]
    return GridSearchCV(
        model, grid, scoring="neg_log_loss", cv=StratifiedKFold(3, shuffle=True, random_state=0)
    )


def smoothed(rule):
    return "MAP" if rule == "ML" else rule


def of_family(family, plain=None):
    """The rules for a family with pseudo-counts and, if given, maximum likelihood for one without."""
    classified = {} if plain is None else {"ML": OfSequences(SequenceClassifier(family=plain, rule="ml"))}
    for rule, options in RULES.items():
        classified[smoothed(rule)] = OfSequences(SequenceClassifier(family=family, random_state=0, **options))
    return classified


# -- results -----------------------------------------------------------------------------------------------------------


def results(table, quick, seeds):
    """One line for each model, rule and split: error, log loss, seconds."""
    splits = StratifiedShuffleSplit(seeds, test_size=0.5, random_state=0)
    classes, lines = np.unique(table.y), []
    for seed, (train, held_out) in enumerate(splits.split(np.zeros(len(table.y)), table.y)):
        codes = np.searchsorted(classes, table.y[held_out])
        X, new = ([table.X[i] for i in rows] for rows in (train, held_out))
        for name, by_rule in models(table, quick).items():
            for rule, model in by_rule.items():
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    log_posterior = model.fit_predict(X, table.y[train], new)
                seconds = time.perf_counter() - start
                error = 100 * np.mean(log_posterior.argmax(axis=1) != codes)
                loss = -np.mean(log_posterior[np.arange(len(codes)), codes])
                lines.append((name, rule, seed, error, loss, seconds))
        print(f"{table.name}: split {seed + 1} of {seeds}", file=sys.stderr, flush=True)
    return pd.DataFrame(lines, columns=["model", "rule", "split", "error", "log loss", "seconds"])


def section(table, found):
    """The results of a table as Markdown."""
    lengths = [len(sequence) for sequence in table.X]
    symbols = len({symbol for sequence in table.X for symbol in sequence})
    what = f"{table.what[0].upper()}{table.what[1:]}{'' if table.what.endswith('?') else '.'}"
    size = f"{len(table.y)} sequences of {min(lengths)} to {max(lengths)} of {symbols} symbols, {len(np.unique(table.y))} classes"
    lines = [
        f"### {table.name.capitalize()}",
        "",
        f"{what} {size}, {found['split'].nunique()} random halves.",
        "",
        "| model | ML | MAP | RC | RC, early | GDT | RC - MAP: error | log loss |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in found["model"].unique():
        by_rule = dict(list(found[found["model"] == name].groupby("rule")))
        cells = [
            f"{by_rule[rule]['error'].mean():.1f} / {by_rule[rule]['log loss'].mean():.3f}"
            if rule in by_rule
            else ""
            for rule in ("ML", "MAP", "RC", "RC, early", "GDT")
        ]
        changes = [
            difference(by_rule, measure, digits) for measure, digits in (("error", 1), ("log loss", 3))
        ]
        lines.append(f"| {' | '.join([name, *cells, *changes])} |")
    return [*lines, ""]


def difference(by_rule, measure, digits):
    """Mean of RC - MAP over the splits, its standard error, and in how many splits RC was better."""
    changes = by_rule["RC"][measure].to_numpy() - by_rule["MAP"][measure].to_numpy()
    error = changes.std(ddof=1) / np.sqrt(len(changes)) if len(changes) > 1 else np.nan
    return f"{changes.mean():+.{digits}f} ± {error:.{digits}f} ({np.sum(changes < 0)} of {len(changes)})"


MARK = "<!-- What follows is written by benchmarks/sequences.py. -->"
HOW = (
    "Made by `python benchmarks/sequences.py{}` with Python {}. Cells are held-out error in percent and log loss, means over random "
    "halves: half of the rows train, the others are held out. ML has no pseudo-counts; all others have `alpha=1` and, for chains, "
    '`back_off=5`; "RC, early" stops by a validation of a fifth of the training rows; GDT has `lam=0.2`. Substrings are those of 1 to 3 symbols '
    "that occur in two training rows. The last columns are the mean paired difference between RC and MAP, its standard error, and the "
    "number of splits in which RC was better. The last but one line has the order (0 to 2), the pseudo-rows (5 or 50) and, for aligned "
    "sequences, whether positions have distributions of their own, chosen by the log loss of three inner folds."
)


def page(quick, relational):
    """The part of the page that is written by this script."""
    if quick:
        tables = [promoters(200), identifiers(300), purchases(relational, 300)]
    else:
        tables = [splice(), promoters(), identifiers(), purchases(relational)]
    lines = [HOW.format(" --quick" if quick else "", platform.python_version()), ""]
    for table in tables:
        if table is not None:
            lines += section(table, results(table, quick, 2 if quick else 5))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small tables, two splits, few models; print only"
    )
    parser.add_argument(
        "--relational",
        type=Path,
        help="folder with the tables of CDNOW, cdnow/users.csv.gz and purchases.csv.gz",
    )
    given = parser.parse_args()
    if given.quick:
        print(page(True, given.relational))
        return
    target = ROOT / "docs" / "how-to" / "sequences.md"
    text = target.read_text(encoding="utf-8") if target.exists() else f"# Sequences\n\n{MARK}\n"
    target.write_text(f"{text.split(MARK)[0]}{MARK}\n\n{page(False, given.relational)}", encoding="utf-8")


if __name__ == "__main__":
    main()
