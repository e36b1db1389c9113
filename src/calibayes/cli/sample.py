"""``calibayes sample``: random rows that a saved model gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import narwhals.stable.v2 as nw
import numpy as np
import typer

from calibayes.cli import options
from calibayes.cli.application import examples
from calibayes.cli.models import load_model
from calibayes.cli.progress import working
from calibayes.cli.rows.outputs import FORMATS, format_of, output_file, refuse_terminal
from calibayes.cli.rows.row_formats import label_texts
from calibayes.cli.rows.tables import write_frame
from calibayes.tables.input.expected import NUMBER, holds

EXAMPLES = examples(
    "calibayes sample nb.safetensors --rows 5",
    "calibayes sample nb.safetensors --rows 100 --class Gentoo --given sex=male -o gentoos.csv",
)


def sample_command(
    model: options.ModelArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="Number of rows.")] = 10,
    label: Annotated[
        str | None, typer.Option("--class", help="Class of all rows. Default: classes are drawn.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Value of a column in all rows; the others are drawn conditional on it. Can be repeated.",
        ),
    ] = None,
    target: Annotated[str, typer.Option(help="Name of the column of classes in the output.")] = "class",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; its ending says the format. Default: standard output."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(dict.fromkeys(FORMATS.values()))}.")
    ] = None,
    seed: options.Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
) -> None:
    """Draw random rows from a saved model of p(x, class), as CSV with a header.

    Train such a model with --rule ml: other rules make the density fit less well.
    """
    kind = format_of(output, form, as_json)
    refuse_terminal(output, kind)
    fitted = load_model(model)
    if not hasattr(fitted, "sample"):
        raise TypeError(
            f"{type(fitted).__name__} cannot draw rows; train another model, such as --model NaiveBayes --rule ml"
        )
    if target in fitted.training_table_.columns:
        raise ValueError(f"the model has a column {target!r}; name the column of classes with --target NAME")
    known = None if label is None else _class(fitted, label)
    with working(f"drawing {rows} rows"):
        X, y = fitted.sample(rows, known, _cells(fitted, given), random_state=seed)
    with output_file(output) as file:
        write_frame(_frame(fitted, X, y, target), kind, file)


def _class(model: Any, text: str) -> Any:
    texts = label_texts(model.classes_)
    return model.classes_[texts.index(options.require_known("--class", text, texts))]


def _cells(model: Any, given: list[str] | None) -> dict[str, Any]:
    """Values of columns: numbers where the column held numbers. Raises ValueError if there is no such column."""
    trained = model.training_table_
    kinds = dict(zip(trained.columns, trained.kinds, strict=True))
    cells: dict[str, Any] = {}
    for name, text in options.pairs("--given", given, "column", kinds).items():
        try:
            cells[name] = float(text) if holds(kinds[name]) == NUMBER else text
        except ValueError:
            raise ValueError(f"--given {name}={text}: column {name!r} holds numbers") from None
    if not hasattr(model, "feature_names_in_"):
        return {trained.columns.index(name): cell for name, cell in cells.items()}
    return cells


def _frame(model: Any, X: Any, y: Any, target: str) -> Any:
    """The rows with their classes as a pandas data frame."""
    import pandas as pd

    if isinstance(X, np.ndarray):
        frame = pd.DataFrame(X, columns=list(model.training_table_.columns))
    else:
        frame = nw.from_native(X, eager_only=True).to_pandas()
    return frame.assign(**{target: label_texts(y)})
