"""``calibayes explain``: what each column contributes to the predictions of a saved model."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from calibayes.cli import options
from calibayes.cli.application import examples, note
from calibayes.cli.models import as_in_training, expected_of, load_model
from calibayes.cli.predict import default_jobs
from calibayes.cli.printing import print_json, print_table, print_text, printable, result_table
from calibayes.cli.progress import working
from calibayes.cli.rows.reading import each_block
from calibayes.cli.rows.row_formats import label_texts
from calibayes.estimators.interface.explanation import Explanation
from calibayes.tables.input.open import open_table
from calibayes.tables.streams.concatenated import concatenated
from calibayes.tables.streams.types import as_types, column_types
from calibayes.tables.table import Table

EXPLAINED_ROWS = 1000
EXAMPLES = examples(
    "calibayes explain penguins.safetensors penguins.csv",
    "calibayes explain penguins.safetensors penguins.csv --row 1 --row 200,301",
    "calibayes explain penguins.safetensors penguins.csv --row 1 --against Gentoo --json",
)
console = Console()


def explain_command(
    model: options.ModelArgument,
    table: options.TableArgument,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Number of a row below the header, from 1, to explain; can be repeated."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Class to compare with. Default: the second most probable one of each row."),
    ] = None,
    max_rows: Annotated[
        int,
        typer.Option(min=1, help="Largest number of rows for the overall contributions, drawn at random."),
    ] = EXPLAINED_ROWS,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Print what each column contributes to the predictions: over all rows, or for single rows (--row).

    A contribution is a Shapley value of the log odds of the most probable class against another one: the change when
    the value of the column becomes known. Those of a row sum to its log odds.
    """
    fitted = load_model(model)
    expected = expected_of(fitted)
    given = as_in_training(fitted, options.csv_options(separator, decimal, encoding, missing_value))
    numbers = _row_numbers(row)
    label = None if against is None else _class(fitted, against)
    opened = open_table(table, expected, given)
    with working(f"reading {opened.where}") as work:
        pieces = [piece for _, piece in each_block(opened, expected, lambda piece: piece.table, 1)]
        if not pieces:
            raise ValueError(f"{opened.where} has no rows below its header")
        rows = _joined(pieces)
        chosen = _chosen(rows.n, numbers, max_rows, seed)
        work.update(f"explaining {len(chosen)} rows")
        fitted.set_params(n_jobs=jobs or default_jobs())
        explanation = fitted.explain(rows.rows(chosen), label, random_state=seed)
    if numbers:
        _print_rows(explanation, numbers, as_json)
    else:
        if len(chosen) < rows.n:
            note(f"{len(chosen)} of {rows.n} rows are explained, drawn at random; --max-rows sets how many")
        _print_overall(explanation, as_json)


def _row_numbers(given: list[str] | None) -> list[int]:
    texts = options.several(given)
    wrong = [text for text in texts if not text.isdecimal() or int(text) < 1]
    if wrong:
        raise ValueError(f"--row {wrong[0]} is no number of a row; the first row below the header is 1")
    return list(map(int, texts))


def _class(model: Any, text: str) -> Any:
    """The class that is written so. Raises ValueError if there is none."""
    texts = label_texts(model.classes_)
    return model.classes_[texts.index(options.require_known("--against", text, texts))]


def _joined(pieces: list[Table]) -> Table:
    """All rows as one table; columns have the type that all of their blocks have in common."""
    types = column_types(pieces[0])
    for piece in pieces[1:]:
        types = types + column_types(piece)
    return concatenated([as_types(piece, types.types) for piece in pieces])


def _chosen(n: int, numbers: list[int], most: int, seed: int) -> Any:
    beyond = [number for number in numbers if number > n]
    if beyond:
        raise ValueError(f"--row {beyond[0]} does not exist: the table has {n} rows")
    if numbers:
        return np.array(numbers) - 1
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def _print_overall(explanation: Explanation, as_json: bool) -> None:
    overall = explanation.overall()
    if as_json:
        print_json({"rows": len(explanation.chosen), "mean_absolute_contribution": overall})
        return
    table = result_table("column", "mean absolute contribution")
    for name, size in overall.items():
        table.add_row(Text(printable(name)), f"{size:.4f}")
    print_table(console, table)


def _print_rows(explanation: Explanation, numbers: list[int], as_json: bool) -> None:
    chosen, other = label_texts(explanation.chosen), label_texts(explanation.other)
    if as_json:
        print_json([_row(explanation, i, number, chosen[i], other[i]) for i, number in enumerate(numbers)])
        return
    for i, number in enumerate(numbers):
        found = _row(explanation, i, number, chosen[i], other[i])
        print_text(console, f"row {number}: {chosen[i]} against {other[i]}, log odds {found['log_odds']:.4f}")
        table = result_table("column", "contribution")
        for name, size in sorted(found["contributions"].items(), key=lambda pair: -abs(pair[1])):
            table.add_row(Text(printable(name)), f"{size:+.4f}")
        print_table(console, table)


def _row(explanation: Explanation, i: int, number: int, chosen: str, other: str) -> dict[str, Any]:
    sizes = explanation.contributions[i].tolist()
    return {
        "row": number,
        "class": chosen,
        "against": other,
        "log_odds": float(explanation.log_odds[i]),
        "contributions": dict(zip(explanation.names, sizes, strict=True)),
    }
