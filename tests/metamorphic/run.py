"""Try all metamorphic laws on random and real tables; what was tried before is not tried again.

python -m tests.metamorphic.run --random 200 --real 12
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

import calibayes
from calibayes.testing.random_tables import is_clear
from tests.metamorphic.laws import (
    EXCEPTIONS,
    LARGEST_ENLARGED,
    LAWS,
    TOLERANCE,
    NotApplicable,
    Trained,
    row_copies,
)
from tests.metamorphic.tables import LawTable, random_table, real_tables

COSTLY = (
    "BayesClassifier",
    "PosteriorMixture",
    "TradeOffCV",
    "SparseLogBivariateClassifier",
    "LogUnivariateClassifier",
)
"""Estimators of many models, tried on fewer tables."""
COSTLY_LAWS = ("Dask",)
SEARCHES = ("conditional_likelihood", "soft_error")
"""Structures that are searched for, tried in closed form."""


def estimators() -> dict[str, Any]:
    """Every classifier with default parameters, in closed form where its rule can be, and with structures by search."""
    found = {}
    for name in calibayes.__all__:
        kind = getattr(calibayes, name)
        if not (isinstance(kind, type) and hasattr(kind, "fit")):
            continue
        made = _made(kind)
        if not is_classifier(made):
            continue
        found[name] = made
        parameters = made.get_params(deep=False)
        if "rule" in parameters:
            found[f"{name} ml"] = clone(made).set_params(rule="ml")
        for score in SEARCHES if "structure" in parameters else ():
            found[f"{name} {score}"] = clone(made).set_params(structure=score, rule="ml")
    return found


def _families() -> list[tuple[Any, ...]]:
    from calibayes.families import Categorical, Gaussian

    return [("numbers", Gaussian(), calibayes.numeric), ("levels", Categorical(), calibayes.categorical)]


def _made(kind: type) -> Any:
    if kind is calibayes.GaussianNB:
        # Variances of scikit-learn's 1e-9, of columns that are constant within a class, enlarge rounding errors without bounds.
        return kind(var_smoothing=1e-6)
    if kind is calibayes.TradeOffCV:
        return kind(calibayes.GaussianNB(var_smoothing=1e-6))
    return kind(families=_families()) if kind is calibayes.GenerativeClassifier else kind()


def outcomes(
    name: str, estimator: Any, table: LawTable, known: dict[str, Any], laws: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """(key, largest difference or what happened instead) of each law that is not known yet."""
    keys = {law: f"{table.name} | {name} | {law}" for law in laws}
    if all(key in known for key in keys.values()):
        return
    try:
        model = clone(estimator).fit(table.training, table.labels)
        expected = model.predict_proba(table.new)
    except Exception as error:  # noqa: BLE001 - a report of what happened
        text = f"{'refused' if is_clear(error) else 'UNCLEAR'}: {type(error).__name__}: {error}"
        yield from ((key, text) for key in keys.values() if key not in known)
        return
    for law, key in keys.items():
        if key not in known:
            seed = zlib.crc32(f"{table.name}{law}".encode())
            outcome = _outcome(law, Trained(model, table), expected, np.random.default_rng(seed))
            weights = WEIGHTS.get(law, unit_weights)(table, np.random.default_rng(seed))
            yield key, enlarged_rounding(outcome, estimator, table, weights) or outcome


def _outcome(law: str, trained: Trained, expected: np.ndarray, rng: np.random.Generator) -> Any:
    try:
        found = LAWS[law](trained, rng)
    except NotApplicable:
        return "not applicable"
    except Exception as error:  # noqa: BLE001 - a report of what happened
        return f"ERROR: {type(error).__name__}: {str(error)[:300]}"
    if found.shape != expected.shape:
        return f"ERROR: shape {found.shape} instead of {expected.shape}"
    return float(np.abs(found - expected).max(initial=0.0))


def is_violation(outcome: Any) -> bool:
    if isinstance(outcome, str):
        return outcome.startswith(("ERROR", "UNCLEAR"))
    return not outcome <= TOLERANCE


def unit_weights(table: LawTable, rng: np.random.Generator) -> np.ndarray:
    return np.ones(len(table.labels))


WEIGHTS = {"duplicates": row_copies}
"""Row weights with which a law fits, if they are not 1."""


def enlarged_rounding(outcome: Any, estimator: Any, table: LawTable, weights: np.ndarray) -> str | None:
    """The reason, if training itself enlarges rounding errors by as much as the law has found.

    Steps that overshoot turn an error of 1e-16 of a sum into one of 1e-5 within some forty updates. Then row weights that
    differ from the law's by one rounding error move probabilities as far as the law does, and the law says nothing of its own.
    """
    if isinstance(outcome, str) or not TOLERANCE < outcome <= LARGEST_ENLARGED:
        return None
    rng = np.random.default_rng(0)
    fits = [weights, *(weights + rng.integers(-1, 2, len(weights)) * np.spacing(weights) for _ in range(5))]
    try:
        expected, *moved = (
            clone(estimator).fit(table.training, table.labels, sample_weight=weights).predict_proba(table.new)
            for weights in fits
        )
    except TypeError:
        return None
    size = max(float(np.abs(one - expected).max()) for one in moved)
    return (
        f"enlarged rounding: {outcome:.1e}, and {size:.1e} by one rounding error of weights"
        if outcome <= 10 * size
        else None
    )


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options(arguments)
    warnings.simplefilter("ignore")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    known = dict(map(json.loads, given.out.read_text().splitlines())) if given.out.exists() else {}
    part, parts = map(int, given.part.split("/"))
    start, costly = (
        time.monotonic(),
        {f"random {number}" for number in range(given.first + given.costly, given.first + given.random)},
    )
    tables = [
        *real_tables(given.real),
        *(random_table(number) for number in range(given.first, given.first + given.random)),
    ]
    with given.out.open("a", encoding="utf-8") as file:
        for table in tables[part::parts]:
            for name, estimator in estimators().items():
                is_costly = table.name in costly and any(word in name for word in COSTLY)
                if is_costly or not any(word in name for word in given.estimator):
                    continue
                laws = [law for law in given.law or LAWS if not (table.name in costly and law in COSTLY_LAWS)]
                for key, outcome in outcomes(name, estimator, table, known, laws):
                    known[key] = outcome
                    print(json.dumps([key, outcome]), file=file, flush=True)
            if time.monotonic() - start > given.seconds:
                print("stopped after the given time: the same call goes on")
                break
    return report(known)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--random", type=int, default=200, help="random tables")
    parser.add_argument("--first", type=int, default=0, help="number of the first random table")
    parser.add_argument(
        "--costly", type=int, default=30, help="of these for estimators of many models, and for Dask"
    )
    parser.add_argument("--real", type=int, default=12, help="tables of the folder CALIBAYES_DATA")
    parser.add_argument("--law", action="append", help="only this law")
    parser.add_argument(
        "--estimator", nargs="*", default=[""], help="only estimators whose names contain one of these"
    )
    parser.add_argument("--part", default="0/1", help="this part of the tables, such as 0/2")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many seconds")
    parser.add_argument(
        "--out", type=Path, default=Path("build/laws.jsonl"), help="results, which are not computed again"
    )
    return parser.parse_args(arguments)


def report(known: dict[str, Any]) -> int:
    """Print the violations that are no listed exceptions; returns 1 if there are any."""
    counts: Counter[str] = Counter()
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for key, outcome in known.items():
        _, name, law = key.split(" | ")
        if isinstance(outcome, str) and not is_violation(outcome):
            counts[outcome.partition(":")[0]] += 1
        elif (law, name.removesuffix(" ml")) in EXCEPTIONS:
            counts["exception"] += 1
        elif is_violation(outcome):
            counts["violation"] += 1
            size = float("inf") if isinstance(outcome, str) else outcome
            worst.setdefault((law, name), (-1.0, ""))
            worst[law, name] = max(worst[law, name], (size, f"{key.split(' | ')[0]}: {outcome}"))
            counts[f"violations of {law} by {name}"] += 1
        else:
            counts["holds"] += 1
    for (law, name), (_, text) in sorted(worst.items()):
        print(f"{law} | {name} | {counts[f'violations of {law} by {name}']} | {text}")
    print(
        ", ".join(
            f"{counts[what]} {what}"
            for what in ("holds", "violation", "exception", "enlarged rounding", "refused", "not applicable")
        )
    )
    return int(counts["violation"] > 0)


if __name__ == "__main__":
    sys.exit(main())
