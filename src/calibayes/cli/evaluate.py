"""``calibayes evaluate``: how well a saved model predicts the rows of a labeled table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from calibayes.cli import options
from calibayes.cli.application import examples, note
from calibayes.cli.models import as_in_training, expected_of, load_model
from calibayes.cli.predict import decisions, default_jobs
from calibayes.cli.printing import print_json, print_table, print_text, printable, result_table
from calibayes.cli.progress import working
from calibayes.cli.rows.reading import each_block
from calibayes.cli.rows.row_formats import label_texts
from calibayes.core.protocols import Array
from calibayes.tables.coded_column import as_array
from calibayes.tables.input.expected import Piece
from calibayes.tables.input.open import open_table
from calibayes.tables.table import missing_mask
from calibayes.tables.text import counted

SMALLEST = np.finfo(np.float64).tiny
"""Probabilities below are taken as this in the log loss, so that it is finite."""
EXAMPLES = examples(
    "calibayes evaluate penguins.safetensors penguins.csv --target species",
    "calibayes evaluate penguins.safetensors penguins.csv --target species --json",
)
console = Console()


@dataclass(frozen=True)
class Scores:
    """Sums over rows; ``+`` adds those of further rows."""

    confusion: Array
    """Weight of the rows of each true class (last: unknown to the model) and predicted class, (k + 1, k)."""
    log_loss: float
    squares: float
    """Sums of -log p(true class) and of the squared errors of the probabilities, over rows of known classes."""
    rows: int
    unlabeled: int

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.confusion + other.confusion,
            self.log_loss + other.log_loss,
            self.squares + other.squares,
            self.rows + other.rows,
            self.unlabeled + other.unlabeled,
        )

    def summary(self, classes: list[str]) -> dict[str, Any]:
        """The scores by name, for people and programs."""
        known, weight = self.confusion[:-1], self.confusion.sum()
        right = np.diagonal(known)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = right / self.confusion.sum(axis=0), right / known.sum(axis=1)
            f1 = 2 * right / (self.confusion.sum(axis=0) + known.sum(axis=1))
            per_row = np.array([self.log_loss, self.squares]) / known.sum()
        by_class = zip(classes, known.sum(axis=1), precision, recall, f1, strict=True)
        return {
            "rows": self.rows,
            "rows_without_label": self.unlabeled,
            "weight": weight,
            "error": 1.0 - right.sum() / weight,
            "log_loss": per_row[0],
            "brier": per_row[1],
            "classes": [
                {"class": name, "weight": total, "precision": p, "recall": r, "f1": f}
                for name, total, p, r, f in by_class
            ],
            "confusion": {"classes": classes, "weight": known, "unknown_class": self.confusion[-1]},
        }


def evaluate_command(
    model: options.ModelArgument,
    table: options.TableArgument,
    target: Annotated[str | None, typer.Option(help="Column of the true classes.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of the weights of the rows.")] = None,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the predictions of a saved model with the true classes of a table.

    Prints the error (share of rows whose class is not predicted), the log loss (mean of -log p(true class)), the Brier
    score (mean over rows of the summed squared errors of the probabilities, from 0 to 2), precision, recall and F1 of
    each class, and the confusion matrix. Give rows that the model was not trained on. Rows without a label are left out.
    """
    if target is None:
        raise ValueError("no target given: name the column of the true classes with --target NAME")
    fitted = load_model(model).set_params(n_jobs=1)
    expected = expected_of(fitted, target, weights)
    given = as_in_training(fitted, options.csv_options(separator, decimal, encoding, missing_value))
    opened = open_table(table, expected, given)
    classes, scores = np.asarray(fitted.classes_), None
    with working(f"predicting the rows of {opened.where}") as work:
        for _, more in each_block(
            opened, expected, lambda piece: scores_of(fitted, piece), jobs or default_jobs()
        ):
            scores = more if scores is None else scores + more
            work.update(f"{scores.rows:,} rows predicted")
    if scores is None or scores.confusion.sum() == 0:
        raise ValueError(f"{opened.where} has no row with a label in column {target!r}")
    _print(scores, label_texts(classes), as_json)


def scores_of(model: Any, piece: Piece) -> Scores:
    """The sums over some rows."""
    classes, labels = np.asarray(model.classes_), as_array(piece.labels)
    labeled = ~missing_mask(labels)
    weight = np.ones(len(labels)) if piece.weight is None else np.asarray(piece.weight, dtype=np.float64)
    if not (weight[labeled] >= 0).all():
        raise ValueError("the weights of some rows are negative or missing; they must be numbers from 0 on")
    codes, posterior = decisions(model, piece.table)
    truth = _codes(labels, classes)
    k, known = len(classes), labeled & (truth < len(classes))
    confusion = np.zeros((k + 1, k))
    np.add.at(confusion, (truth[labeled], codes[labeled]), weight[labeled])
    p, hot = posterior[known], np.eye(k)[truth[known]]
    losses = -np.log(np.maximum(p[np.arange(len(p)), truth[known]], SMALLEST))
    squares = ((p - hot) ** 2).sum(axis=1)
    return Scores(
        confusion,
        float(losses @ weight[known]),
        float(squares @ weight[known]),
        int(labeled.sum()),
        int((~labeled).sum()),
    )


def _codes(labels: Array, classes: Array) -> Array:
    """Position of each label among the classes; k for one that is no class, or missing."""
    place = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([place.get(label, len(classes)) for label in labels.tolist()], dtype=np.int64)


def _print(scores: Scores, classes: list[str], as_json: bool) -> None:
    summary = scores.summary(classes)
    shown = [printable(name) for name in classes]
    if unknown := scores.confusion[-1].sum():
        note(
            f"rows with a weight of {unknown:g} have a class that the model does not know: they count as errors, and log "
            "loss and Brier score are those of the others"
        )
    if as_json:
        print_json(summary)
        return
    left_out = f"; {counted(scores.unlabeled, 'row')} without a label left out" if scores.unlabeled else ""
    print_text(
        console, f"{counted(scores.rows, 'row')}, {counted(len(classes), 'class', 'classes')}{left_out}"
    )
    print_text(
        console,
        f"error {100 * summary['error']:.2f} %, log loss {summary['log_loss']:.4f}, Brier score {summary['brier']:.4f}\n",
    )
    print_table(console, _class_table(summary))
    print_text(console, "\nconfusion: true class in rows, predicted class in columns")
    print_table(console, _confusion_table(scores.confusion, shown))


def _class_table(summary: dict[str, Any]) -> RichTable:
    table = result_table("class", "weight", "precision", "recall", "F1")
    for one in summary["classes"]:
        shares = (one["precision"], one["recall"], one["f1"])
        table.add_row(
            Text(printable(one["class"])),
            f"{one['weight']:g}",
            *("" if np.isnan(share) else f"{share:.4f}" for share in shares),
        )
    return table


def _confusion_table(confusion: Array, classes: list[str]) -> RichTable:
    table = result_table("", *classes)
    rows = [*classes, "(unknown)"] if confusion[-1].any() else classes
    for name, weights in zip(rows, confusion, strict=False):
        table.add_row(Text(name), *(f"{weight:g}" for weight in weights))
    return table
