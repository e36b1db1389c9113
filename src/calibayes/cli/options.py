"""Arguments and options that several commands have in common."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import calibayes
from calibayes.cli.application import note
from calibayes.cli.outputs import FORMATS, label_texts
from calibayes.streams.text_input import ExpectedColumn, ExpectedTable, holds, holds_labels
from calibayes.tables.csv_parsing import NUMBER, CsvOptions

OWN_MODELS = (
    "KernelNB",
    "BinnedNB",
    "TreeAugmentedNB",
    "GaussianNB",
    "Logistic",
    "LDA",
    "QDA",
    "Mixture",
    "BayesClassifier",
)
FURTHER_MODELS = ("NaiveBayes", "AODE", "KDependenceBayes", "CalibratedTrees", "JointKernelClassifier")
BASELINES = ("sklearn-LogReg", "sklearn-HistGB")
RULES = ("ml", "map", "rc", "tm", "gdt", "dfe", "gd")
"""Names for help and completion, as in `calibayes.compare`, which is slow to import; further models are those of `fit` only."""
TableArgument = Annotated[
    str,
    Argument(
        metavar="TABLE",
        help="CSV, Parquet or Arrow file, also compressed (gzip, zstd, bzip2, xz); - is standard input. The kind is "
        "found in the first bytes.",
    ),
]
ModelArgument = Annotated[
    Path,
    Argument(metavar="MODEL", help="Model file that calibayes fit (or calibayes.save) has written."),
]
Separator = Annotated[
    str | None,
    Option(
        metavar="CHARACTER",
        help="What separates the cells of a CSV file: a character, or tab, space, pipe. Default: found in the first rows.",
    ),
]
Decimal = Annotated[
    str | None,
    Option(
        metavar="CHARACTER",
        help="Decimal mark of a CSV file, . or a comma. Default: found in the first rows.",
    ),
]
Encoding = Annotated[
    str | None,
    Option(help="Encoding of a CSV file. Default: utf-8, or utf-16 if the file begins with its mark."),
]
MissingValue = Annotated[
    list[str] | None,
    Option(
        metavar="CELL",
        help="Cell of a CSV file that is a missing value; can be repeated. Default: those that the model was trained "
        "with, else those of pandas (NA, null, ...), and ?, - and unknown in columns whose other cells are numbers.",
    ),
]
Jobs = Annotated[
    int | None,
    Option("--jobs", "-j", min=1, help="Number of threads. Results are the same for any number."),
]
Output = Annotated[
    Path | None,
    Option("--output", "-o", help="File to write; its ending says the format. Default: standard output."),
]
Form = Annotated[str | None, Option("--format", help=f"One of {', '.join(dict.fromkeys(FORMATS.values()))}.")]
EscapeFormulas = Annotated[
    bool,
    Option(
        "--escape-formulas",
        help="Write ' before cells and headers of a CSV file that a spreadsheet would execute: text that begins with =, +, -, "
        "@, a tab or a line break.",
    ),
]
AsLines = Annotated[bool, Option("--json", help="The same as --format jsonl.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON, for programs.")]
Seed = Annotated[int, Option(help="Random seed.")]


def csv_options(
    separator: str | None, decimal: str | None, encoding: str | None, missing_values: list[str] | None
) -> CsvOptions:
    """What was said about CSV files. Raises ValueError if it is not possible."""
    missing = tuple(several(missing_values)) if missing_values else None
    return CsvOptions(separator, decimal, encoding, missing)


def several(given: Iterable[str] | None) -> list[str]:
    """Values of an option that can be repeated and have commas, each once; a value that is given twice is noted.

    As in a CSV file, a value in double quotation marks may contain commas.
    """
    texts = [io.StringIO(word, newline="") for word in given or []]
    rows = [row for text in texts for row in csv.reader(text, skipinitialspace=True)]
    values = [value.strip() for row in rows for value in row if value.strip()]
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        note(f"{', '.join(repeated)} given more than once")
    return list(dict.fromkeys(values))


def chosen(option: str, given: Iterable[str] | None, valid: Iterable[str]) -> list[str]:
    """The given names, or all where none is given. Raises ValueError if a name is unknown."""
    names, known = several(given), list(valid)
    for name in names:
        require_known(option, name, known)
    return names or known


def require_known(option: str, name: str, valid: Iterable[str]) -> str:
    """The name. Raises ValueError, with similar names first, if it is unknown."""
    known = list(valid)
    if name in known:
        return name
    similar = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f" (did you mean {similar[0]}?)" if similar else ""
    raise ValueError(f"unknown {option} {name}{meant}; choose from {', '.join(known)}")


def pairs(option: str, given: Iterable[str] | None, what: str, names: Iterable[str]) -> dict[str, str]:
    """Values of the form name=value of an option that can be repeated and have commas; ``what`` says what the names are.

    A comma ends a value only if one of the names and = follow, so that values (and names) may contain commas. Raises
    ValueError for other forms, unknown names, and names that are given twice.
    """
    names, found = list(names), dict[str, str]()
    longest_first = map(re.escape, sorted(names, key=len, reverse=True))
    name_and_equals = re.compile(rf"(?:^|,)\s*({'|'.join(longest_first)})\s*=")
    for word in given or []:
        starts = list(name_and_equals.finditer(word))
        if not starts or starts[0].start() > 0:
            name, equals, _ = word.partition("=")
            if not equals or not name.strip():
                raise ValueError(f"{option} {word!r} must have the form name=value")
            require_known(f"{what} in {option}", name.strip(), names)
        ends = [start.start() for start in starts[1:]] + [len(word)]
        for start, end in zip(starts, ends, strict=True):
            if start[1] in found:
                raise ValueError(f"{option} gives {start[1]!r} twice")
            found[start[1]] = word[start.end() : end]
    return found


def lacking(target: str | None, output: str, command: str, example: str) -> ValueError:
    """The error of a command without a target or without an output."""
    option = "--target NAME (the column to predict)" if target is None else output
    return ValueError(f"{option} is missing; for example: calibayes {command} --target y -o {example}")


def complete_models(incomplete: str) -> list[str]:
    """Names of models that begin so, for shells."""
    return _beginning([*OWN_MODELS, *BASELINES], incomplete)


def complete_fitted_models(incomplete: str) -> list[str]:
    """Names of models for `calibayes fit` that begin so, for shells."""
    return _beginning([*OWN_MODELS, *FURTHER_MODELS], incomplete)


def complete_rules(incomplete: str) -> list[str]:
    """Names of rules that begin so, for shells."""
    return _beginning(RULES, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Names of data sets that begin so, for shells."""
    return _beginning(calibayes.datasets.list_datasets(), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def class_of(model: Any, option: str, text: str) -> Any:
    """The class of a model that is written so. Raises ValueError if there is none."""
    texts = label_texts(model.classes_)
    return model.classes_[texts.index(require_known(option, text, texts))]


# -- Fitted models of files, and what they expect of a table -------------------------------------------------


def load_model(path: Path) -> Any:
    """The model of a file. Raises ValueError if there is none."""
    if not path.exists():
        raise ValueError(f"there is no model file {path}; calibayes fit writes one")
    return calibayes.load(path)


def as_in_training(model: Any, given: CsvOptions) -> CsvOptions:
    """How a CSV file is read for a model: its missing values are those of the file of the training, unless given."""
    remembered = model.training_table_.missing_values
    if given.missing_values is not None or remembered is None:
        return given
    note(f"missing values are those that the model was trained with: {', '.join(map(repr, remembered))}")
    return replace(given, missing_values=remembered)


def expected_of(
    model: Any, labels: str | None = None, weights: str | None = None, passed_on: tuple[str, ...] = ()
) -> ExpectedTable:
    """What a model reads of a table: its columns, with what they held in training, and those of labels and weights."""
    trained = model.training_table_
    features = tuple(map(ExpectedColumn, trained.columns, map(holds, trained.kinds)))
    for role, name in (("labels", labels), ("weights", weights)):
        if name in trained.columns:
            raise ValueError(
                f"column {name!r} of the {role} is one that the model predicts from; name another one"
            )
    return ExpectedTable(
        features,
        None if labels is None else ExpectedColumn(labels, holds_labels(model.classes_)),
        None if weights is None else ExpectedColumn(weights, NUMBER),
        passed_on,
        by_position=not hasattr(model, "feature_names_in_"),
    )
