"""Fit estimators with random parameters to random tables; what was tried before is not tried again.

    python -m tests.contract.random_fits --fits 100000 --part 0/2

Number i draws everything from a seed of its own. Its outcome must be a valid posterior, the same for a row alone as among
others, or an error that names what was given: a column, a class, a parameter or a value. Warnings other than the documented
ones are errors. Prints the number of each outcome and what was found; the status is 1 if anything was.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import calibayes
from calibayes.tables.table import AllMissingError
from calibayes.testing.random_tables import _check_posterior, is_clear
from tests.contract.quick_tables import QuickTable, chosen, quick_table
from tests.contract.random_parameters import random_parameters
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.seeds import SEED

CLASSIFIERS = {type(one).__name__: one for one in ESTIMATORS if hasattr(one, "predict_proba")}
COSTLY = (
    *("BayesClassifier", "PosteriorMixture", "TradeOffCV", "JointKernelClassifier"),
    *("SparseLogBivariateClassifier", "LogUnivariateClassifier"),
)
"""Estimators of many fits, which are tried less often."""
COSTLY_SHARE = 0.03
CLEAR = (ValueError, AllMissingError, TypeError, NotImplementedError)
"""Classes of errors; the last one is scikit-learn's for combinations of solver and shrinkage."""
MOST_SECONDS = 120
TOLERANCE = 1e-6
FLOAT32_TOLERANCE = 1e-3
"""Rows of float32 are multiplied in float32 (`calibayes.kernels.gaussian_density.FLOAT32_ERROR`), one row by another routine."""
DOCUMENTED = (
    ConvergenceWarning,
    calibayes.ColumnWarning,
    calibayes.FewRowsWarning,
    calibayes.SingularCovarianceWarning,
    calibayes.SkippedMemberWarning,
)
DOCUMENTED_TEXTS = (
    "The number of unique classes is greater",
    "The least populated class in y has only",
    "alpha too small will result in numeric errors",
    r"of [\d,]+ densities of pairs only the",
)
"""Beginnings of warnings of no class of their own: the first two are scikit-learn's, on many classes and small ones."""


class Attempt(NamedTuple):
    """An estimator with random parameters, and a table."""

    name: str
    parameters: dict[str, Any]
    table: QuickTable


def attempt(number: int) -> Attempt:
    """Everything of the fit with this number."""
    rng = np.random.default_rng([SEED, number])
    quick = [name for name in CLASSIFIERS if name not in COSTLY]
    name = chosen(rng, COSTLY if rng.random() < COSTLY_SHARE else quick)
    table = quick_table(rng)
    parameters = random_parameters(rng, CLASSIFIERS[name], table.d, len(table.classes))
    return Attempt(name, parameters, table)


class TooLong(BaseException):
    """A call takes longer than any should."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raises TooLong inside after so many seconds, where the system can."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TooLong(f"more than {seconds} s")

    earlier = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


@contextmanager
def only_documented_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in DOCUMENTED:
            warnings.simplefilter("ignore", kind)
        for text in DOCUMENTED_TEXTS:
            warnings.filterwarnings("ignore", text)
        yield


def outcome(case: Attempt) -> str:
    """ "posterior", "refused", or what is wrong."""
    try:
        with time_limit(MOST_SECONDS), only_documented_warnings():
            return _fitted_and_predicted(case)
    except TooLong as error:
        return f"HANG: {error}"
    except Warning as warning:
        return f"WARNING: {type(warning).__name__}: {_first_line(warning)}"
    except Exception as error:  # noqa: BLE001 - a report of what happened
        if (
            not is_clear(ValueError(*error.args).with_traceback(error.__traceback__))
            or type(error) not in CLEAR
        ):
            return f"UNCLEAR: {type(error).__name__}: {_first_line(error)}"
        return "refused" if names_what_was_given(str(error), case) else f"NAMES NOTHING: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]


def _fitted_and_predicted(case: Attempt) -> str:
    model = clone(CLASSIFIERS[case.name]).set_params(**case.parameters)
    weighted = {} if case.table.weight is None else {"sample_weight": case.table.weight}
    model.fit(case.table.training, case.table.labels, **weighted)
    if not set(model.classes_.tolist()) <= set(case.table.classes):
        return f"CLASSES: {model.classes_.tolist()}"
    if case.parameters.get("loss") == "hinge":  # has no probabilities
        return (
            "posterior"
            if np.isin(model.predict(case.table.new), model.classes_).all()
            else "PREDICTED: no class"
        )
    for rows in (case.table.training, case.table.new):
        if problem := _problem_of_rows(model, rows):
            return problem
    return "posterior"


def _problem_of_rows(model: Any, rows: Any) -> str | None:
    n = len(rows) if isinstance(rows, list) else rows.shape[0]
    posterior = model.predict_proba(rows)
    try:
        _check_posterior(posterior, (n, len(model.classes_)))
    except AssertionError as error:
        return f"POSTERIOR: {_first_line(error)}"
    alone = model.predict_proba(rows[n - 1 :])
    tolerance = FLOAT32_TOLERANCE if getattr(rows, "dtype", None) == np.float32 else TOLERANCE
    if not np.allclose(alone, posterior[n - 1 :], rtol=0.0, atol=tolerance):
        return f"ALONE: {alone.tolist()} for a row alone, {posterior[n - 1 :].tolist()} among others"
    if not np.isin(model.predict(rows), model.classes_).all():
        return "PREDICTED: no class"
    return None


PARTS = r"\b[Xy]\b|[Ss]ample[ _]weights?|\b(columns?|class|classes|rows?|samples?|features?|labels?)\b|got .+"
"""Messages that name an argument of `fit` or a part of it, or what they got."""


def names_what_was_given(text: str, case: Attempt) -> bool:
    """Whether a message names a column, a class, a parameter or a value."""
    parameters = [*case.parameters, *CLASSIFIERS[case.name].get_params(deep=True), "sample_weight"]
    columns = [*case.table.names, *(f"column {j}" for j in range(case.table.d)), *(f"x{j}" for j in range(9))]
    names = {name.rpartition("__")[2] for name in parameters} | set(columns)
    classes = {text_of for one in case.table.classes for text_of in (repr(one), str(one)) if text_of.strip()}
    words = "|".join(re.escape(word) for word in sorted(names | classes, key=len, reverse=True))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)|{PARTS}", text) is not None


def _numbers(given: argparse.Namespace, known: set[int]) -> Iterator[int]:
    part, parts = map(int, given.part.split("/"))
    return (
        number for number in range(given.first + part, given.first + given.fits, parts) if number not in known
    )


def _known(file: Path) -> list[dict[str, Any]]:
    """What the file holds; a last line that was cut off is dropped."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def tried(numbers: Iterator[int], found: Callable[[int, str], None]) -> Counter[str]:
    """The number of each outcome."""
    counts: Counter[str] = Counter()
    for number in numbers:
        case = attempt(number)
        result = outcome(case)
        counts[result.partition(":")[0]] += 1
        found(number, result if result in ("posterior", "refused") else f"{result} | {case.name}")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / f"part-{given.part.replace('/', '-of-')}.jsonl"
    known = _known(file)
    with file.open("a", encoding="utf-8") as stream:

        def write(number: int, result: str) -> None:
            stream.write(json.dumps({"number": number, "outcome": result}) + "\n")
            stream.flush()

        tried(_numbers(given, {line["number"] for line in known}), write)
    every = _known(file)
    print(Counter(line["outcome"].partition(":")[0] for line in every))
    wrong = [line for line in every if line["outcome"] not in ("posterior", "refused")]
    for line in wrong:
        print(line["number"], line["outcome"])
    return 1 if wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fits", type=int, default=10_000, help="number of fits of all parts")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument(
        "--part", default="0/1", help="PART/PARTS: every so many fits, for one of several processes"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/random-fits"), help="folder of what was tried"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
