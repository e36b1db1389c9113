"""``calibayes predict``: the classes of the rows of a table, by a saved model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from calibayes.cli import options
from calibayes.cli.application import examples, note
from calibayes.cli.models import as_in_training, expected_of, load_model
from calibayes.cli.progress import Work, working
from calibayes.cli.rows.outputs import FORMATS, format_of, output_file, refuse_terminal
from calibayes.cli.rows.reading import each_block
from calibayes.cli.rows.row_formats import Columns, Labels, RowWriter, label_texts, row_writer
from calibayes.core.protocols import Array
from calibayes.decision import checked_costs, least_cost, most_probable
from calibayes.tables.input.expected import Piece
from calibayes.tables.input.open import BLOCK_BYTES, OpenTable, open_table

PARTS = ("prediction", "probabilities")
MOST_JOBS = 4
"""Threads by default: reading, predicting and writing are shared by no more."""
EXAMPLES = examples(
    "calibayes predict penguins.safetensors penguins.csv -o predictions.csv",
    "cat penguins.csv | calibayes predict penguins.safetensors - > predictions.csv",
    "calibayes predict penguins.safetensors penguins.csv --only prediction --id year",
    "calibayes predict penguins.safetensors penguins.csv -o predictions.parquet",
)


def predict_command(
    model: options.ModelArgument,
    table: options.TableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; its ending says the format. Default: standard output."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(dict.fromkeys(FORMATS.values()))}.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Write the prediction or the probabilities only. Default: both.")
    ] = None,
    identifier: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column of the table to write first, as it is; can be repeated."),
    ] = None,
    digits: Annotated[
        int | None, typer.Option(min=1, max=17, help="Decimal places of probabilities. Default: all.")
    ] = None,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    block_bytes: Annotated[int, typer.Option(min=1, hidden=True)] = BLOCK_BYTES,
) -> None:
    """Predict the class of each row of a table with a saved model.

    Writes one line per row: the column "prediction", then "p_CLASS" for each class, in the order of the model's
    classes. Rows are read, predicted and written in blocks, so a table of any size takes little memory. The columns of
    the table may be in any order, and further ones are not used.
    """
    kind = format_of(output, form, as_json)
    refuse_terminal(output, kind)
    if only is not None:
        options.require_known("--only", only, PARTS)
    identifiers = tuple(options.several(identifier))
    fitted = load_model(model).set_params(n_jobs=1)
    expected = expected_of(fitted, passed_on=identifiers)
    given = as_in_training(fitted, options.csv_options(separator, decimal, encoding, missing_value))
    opened = open_table(table, expected, given, block_bytes=block_bytes)
    predictor = Predictor(fitted, only, digits)
    example = {**{name: [] for name in identifiers}, **predictor.example}
    if clash := set(identifiers) & set(predictor.example):
        raise ValueError(f"--id {min(clash)} has the name of a column of the output; rename it in the table")
    with (
        working(f"predicting the rows of {opened.where}") as work,
        output_file(output) as file,
        row_writer(file, kind, example) as writer,
    ):
        rows = _write_all(opened, expected, predictor, writer, jobs or default_jobs(), work)
    if rows == 0:
        note(f"{opened.where} has no rows below its header")


def default_jobs() -> int:
    """One thread per core, up to a limit."""
    return min(os.cpu_count() or 1, MOST_JOBS)


def _write_all(
    table: OpenTable, expected: Any, predictor: Predictor, writer: RowWriter, jobs: int, work: Work
) -> int:
    """Write the predictions for all rows. Returns their number."""

    def encoded(piece: Piece) -> Any:
        return writer.encoded({**piece.passed_on, **predictor.columns(piece)})

    rows = 0
    for number, block in each_block(table, expected, encoded, jobs):
        writer.write(block)
        rows += number
        work.update(f"{rows:,} rows predicted")
    return rows


@dataclass(frozen=True)
class Predictor:
    """What is written about each row: the prediction, the probabilities, or both."""

    model: Any
    only: str | None
    digits: int | None

    @property
    def example(self) -> Columns:
        """The columns of no rows."""
        k = len(self.model.classes_)
        return self._columns(np.zeros(0, dtype=np.int64), np.zeros((0, k)))

    def columns(self, piece: Piece) -> Columns:
        """The columns of some rows. Raises ValueError if probabilities are asked for and the model has none."""
        if self.only == "prediction":
            labels = self.model.predict(piece.table)
            return self._columns(np.searchsorted(self.model.classes_, labels), None)
        codes, posterior = decisions(self.model, piece.table)
        return self._columns(codes, posterior)

    def _columns(self, codes: Array, posterior: Array | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.only != "probabilities":
            found["prediction"] = Labels(np.asarray(self.model.classes_), codes)
        if self.only != "prediction" and posterior is not None:
            shown = posterior if self.digits is None else posterior.round(self.digits)
            names = [f"p_{label}" for label in label_texts(self.model.classes_)]
            found.update({name: np.ascontiguousarray(shown[:, j]) for j, name in enumerate(names)})
        return found


def decisions(model: Any, table: Any) -> tuple[Array, Array]:
    """The code of the decided class, as `predict` decides, and p(class | x) of each row.

    Raises TypeError if the model has no probabilities.
    """
    try:
        log_posterior = np.asarray(model.predict_log_proba(table))
    except (TypeError, AttributeError) as error:
        if "no probabilities" not in str(error) and "predict_log_proba" not in str(error):
            raise
        raise TypeError(f"{type(model).__name__} has no probabilities; give --only prediction") from error
    posterior = np.exp(log_posterior)
    if getattr(model, "costs", None) is None:
        return most_probable(log_posterior), posterior
    return least_cost(posterior, checked_costs(model.costs, posterior.shape[1])), posterior
