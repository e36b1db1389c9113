"""Arguments and options that several commands have in common."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from calibayes.cli.application import note
from calibayes.compare import BASELINES, MODELS, RULES
from calibayes.datasets import list_datasets
from calibayes.tables.input.csv_format import CsvOptions

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, Parquet or Arrow file, also compressed (gzip, zstd, bzip2, xz); - is standard input. The kind is "
        "found in the first bytes.",
    ),
]
ModelArgument = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model file that calibayes fit (or calibayes.save) has written."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What separates the cells of a CSV file: a character, or tab, space, pipe. Default: found in the first rows.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Decimal mark of a CSV file, . or a comma. Default: found in the first rows.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a CSV file. Default: utf-8, or utf-16 if the file begins with its mark."),
]
MissingValue = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CELL",
        help="Cell of a CSV file that is a missing value; can be repeated. Default: those of pandas (NA, null, ...), "
        "and ?, - and unknown in columns whose other cells are numbers.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Number of threads. Results are the same for any number."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]


def csv_options(
    separator: str | None, decimal: str | None, encoding: str | None, missing_values: list[str] | None
) -> CsvOptions:
    """What was said about CSV files. Raises ValueError if it is not possible."""
    return CsvOptions(separator, decimal, encoding, tuple(missing_values) if missing_values else None)


def several(given: Iterable[str] | None) -> list[str]:
    """Values of an option that can be repeated and have commas, each once; a value that is given twice is noted."""
    values = [value.strip() for word in given or [] for value in word.split(",") if value.strip()]
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


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """Values of the form name=value of an option that can be repeated. Raises ValueError for others and repeated names."""
    found: dict[str, str] = {}
    for word in given or []:
        name, equals, value = word.partition("=")
        if not name.strip() or not equals:
            raise ValueError(f"{option} {word!r} must have the form name=value")
        if name.strip() in found:
            raise ValueError(f"{option} gives {name.strip()!r} twice")
        found[name.strip()] = value
    return found


def complete_models(incomplete: str) -> list[str]:
    """Names of models that begin so, for shells."""
    return _beginning([*MODELS, *BASELINES], incomplete)


def complete_rules(incomplete: str) -> list[str]:
    """Names of rules that begin so, for shells."""
    return _beginning(RULES, incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Names of data sets that begin so, for shells."""
    return _beginning(list_datasets(), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
