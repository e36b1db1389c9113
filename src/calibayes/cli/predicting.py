"""``calibayes predict``: the classes of the rows of a table, by a saved model."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from typer import Option

from calibayes.analysis.explanation import Explanation
from calibayes.cli import options
from calibayes.cli.application import examples, note, print_json, print_rows, print_text, working
from calibayes.cli.options import as_in_training, expected_of, load_model
from calibayes.cli.outputs import (
    Columns,
    Labels,
    format_of,
    label_texts,
    output_file,
    require_csv,
    row_writer,
)
from calibayes.cli.rows import each_block
from calibayes.core.notices import counted, printable
from calibayes.core.protocols import Array
from calibayes.model.decision import checked_costs, least_cost, most_probable
from calibayes.streams.chunks import as_types, column_types, concatenated
from calibayes.streams.text_input import BLOCK_BYTES, Piece, open_table
from calibayes.tables.table import Table, as_array, missing_mask

PARTS = ("prediction", "probabilities")
MOST_JOBS = 4
"""Threads by default: reading, predicting and writing are shared by no more."""
PREDICT_EXAMPLES = examples(
    "calibayes predict penguins.safetensors penguins.csv -o predictions.csv",
    "cat penguins.csv | calibayes predict penguins.safetensors - > predictions.csv",
    "calibayes predict penguins.safetensors penguins.csv --only prediction --id year",
    "calibayes predict penguins.safetensors penguins.csv -o predictions.parquet",
)


def predict_command(
    model: options.ModelArgument,
    table: options.TableArgument,
    output: options.Output = None,
    form: options.Form = None,
    only: Annotated[
        str | None, Option(help="Write the prediction or the probabilities only. Default: both.")
    ] = None,
    identifier: Annotated[
        list[str] | None,
        Option("--id", help="Column of the table to write first, as it is; can be repeated."),
    ] = None,
    digits: Annotated[
        int | None, Option(min=1, max=17, help="Decimal places of probabilities. Default: all.")
    ] = None,
    jobs: options.Jobs = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_value: options.MissingValue = None,
    as_json: options.AsLines = False,
    escape: options.EscapeFormulas = False,
    block_bytes: Annotated[int, Option(min=1, hidden=True)] = BLOCK_BYTES,
) -> None:
    """Predict the class of each row of a table with a saved model.

    Writes one line per row: the column "prediction", then "p_CLASS" for each class, in the order of the model's
    classes. Rows are read, predicted and written in blocks, so a table of any size takes little memory. The columns of
    the table may be in any order, and further ones are not used.
    """
    kind = format_of(output, form, as_json)
    require_csv(kind, escape)
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
        working(f"predicting the rows of {opened.where}") as show,
        output_file(output) as file,
        row_writer(file, kind, example, escape=escape) as writer,
    ):
        encode = lambda piece: writer.encoded({**piece.passed_on, **predictor.columns(piece)})
        rows = 0
        for number, block in each_block(opened, expected, encode, jobs or default_jobs()):
            writer.write(block)
            rows += number
            show(f"{rows:,} rows predicted")
    if rows == 0:
        note(f"{opened.where} has no rows below its header")


def default_jobs() -> int:
    """One thread per core, up to a limit."""
    return min(os.cpu_count() or 1, MOST_JOBS)


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


# -- ``calibayes evaluate``: how well a saved model predicts the rows of a labeled table ---------------------

SMALLEST = np.finfo(np.float64).tiny
"""Probabilities below are taken as this in the log loss, so that it is finite."""
EVALUATE_EXAMPLES = examples(
    "calibayes evaluate penguins.safetensors penguins.csv --target species",
    "calibayes evaluate penguins.safetensors penguins.csv --target species --json",
)


@dataclass(frozen=True)
class ScoreSums:
    """Sums over rows; ``+`` adds those of further rows."""

    confusion: Array
    """Weight of the rows of each true class (last: unknown to the model) and predicted class, (k + 1, k)."""
    log_loss: float
    squares: float
    """Sums of -log p(true class) and of the squared errors of the probabilities, over rows of known classes."""
    rows: int
    unlabeled: int

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

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
    target: Annotated[str | None, Option(help="Column of the true classes.")] = None,
    weights: Annotated[str | None, Option(help="Column of the weights of the rows.")] = None,
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
    with working(f"predicting the rows of {opened.where}") as show:
        score = lambda piece: scores_of(fitted, piece)
        for _, more in each_block(opened, expected, score, jobs or default_jobs()):
            scores = more if scores is None else scores + more
            show(f"{scores.rows:,} rows predicted")
    if scores is None or scores.confusion.sum() == 0:
        raise ValueError(f"{opened.where} has no row with a label in column {target!r}")
    _print(scores, label_texts(classes), as_json)


def scores_of(model: Any, piece: Piece) -> ScoreSums:
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
    log_loss, square_sum, rows = losses @ weight[known], squares @ weight[known], int(labeled.sum())
    return ScoreSums(confusion, float(log_loss), float(square_sum), rows, len(labels) - rows)


def _codes(labels: Array, classes: Array) -> Array:
    """Position of each label among the classes; k for one that is no class, or missing."""
    place = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([place.get(label, len(classes)) for label in labels.tolist()], dtype=np.int64)


def _print(scores: ScoreSums, classes: list[str], as_json: bool) -> None:
    summary = scores.summary(classes)
    if unknown := scores.confusion[-1].sum():
        note(
            f"rows with a weight of {unknown:g} have a class that the model does not know: they count as errors, and log "
            "loss and Brier score are those of the others"
        )
    if as_json:
        print_json(summary)
        return
    left_out = f"; {counted(scores.unlabeled, 'row')} without a label left out" if scores.unlabeled else ""
    size = f"{counted(scores.rows, 'row')}, {counted(len(classes), 'class', 'classes')}"
    error = f"error {100 * summary['error']:.2f} %, log loss {summary['log_loss']:.4f}"
    print_text(f"{size}{left_out}\n{error}, Brier score {summary['brier']:.4f}\n")
    print_rows(["class", "weight", "precision", "recall", "F1"], map(_class_row, summary["classes"]))
    print_text("\nconfusion: true class in rows, predicted class in columns")
    names = [*classes, "(unknown)"] if unknown else classes
    weights = ([f"{weight:g}" for weight in row] for row in scores.confusion)
    print_rows(["", *classes], ([name, *row] for name, row in zip(names, weights, strict=False)))


def _class_row(one: dict[str, Any]) -> list[str]:
    shares = (one["precision"], one["recall"], one["f1"])
    shown = ["" if np.isnan(share) else f"{share:.4f}" for share in shares]
    return [one["class"], f"{one['weight']:g}", *shown]


# -- ``calibayes explain``: what each column contributes to the predictions of a saved model -----------------

EXPLAINED_ROWS = 1000
EXPLAIN_EXAMPLES = examples(
    "calibayes explain penguins.safetensors penguins.csv",
    "calibayes explain penguins.safetensors penguins.csv --row 1 --row 200,301",
    "calibayes explain penguins.safetensors penguins.csv --row 1 --against Gentoo --json",
)


def explain_command(
    model: options.ModelArgument,
    table: options.TableArgument,
    row: Annotated[
        list[str] | None,
        Option(
            help="Number of a row to explain, from 0 for the first one below the header; can be repeated."
        ),
    ] = None,
    against: Annotated[
        str | None,
        Option(help="Class to compare with. Default: the second most probable one of each row."),
    ] = None,
    max_rows: Annotated[
        int,
        Option(min=1, help="Largest number of rows for the overall contributions, drawn at random."),
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
    label = None if against is None else options.class_of(fitted, "--against", against)
    opened = open_table(table, expected, given)
    with working(f"reading {opened.where}") as show:
        pieces = [piece for _, piece in each_block(opened, expected, lambda piece: piece.table, 1)]
        if not pieces:
            raise ValueError(f"{opened.where} has no rows below its header")
        rows = _joined(pieces)
        chosen = _chosen(rows.n, numbers, max_rows, seed)
        show(f"explaining {len(chosen)} rows")
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
    wrong = [text for text in texts if not text.isdecimal()]
    if wrong:
        raise ValueError(f"--row {wrong[0]} is no number of a row; the first row below the header is 0")
    return list(map(int, texts))


def _joined(pieces: list[Table]) -> Table:
    """All rows as one table; columns have the type that all of their blocks have in common."""
    types = column_types(pieces[0])
    for piece in pieces[1:]:
        types = types + column_types(piece)
    return concatenated([as_types(piece, types.types) for piece in pieces])


def _chosen(n: int, numbers: list[int], most: int, seed: int) -> Any:
    beyond = [number for number in numbers if number >= n]
    if beyond:
        raise ValueError(f"--row {beyond[0]} does not exist: the table has {n} rows, from 0 to {n - 1}")
    if not numbers and n > most:
        return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    return np.array(numbers) if numbers else np.arange(n)


def _print_overall(explanation: Explanation, as_json: bool) -> None:
    overall = explanation.overall()
    if as_json:
        print_json({"rows": len(explanation.chosen), "mean_absolute_contribution": overall})
        return
    rows = [(name, f"{size:.4f}") for name, size in overall.items()]
    print_rows(["column", "mean absolute contribution"], rows)


def _print_rows(explanation: Explanation, numbers: list[int], as_json: bool) -> None:
    classes = label_texts(explanation.chosen), label_texts(explanation.other), explanation.log_odds.tolist()
    sizes = [dict(zip(explanation.names, row, strict=True)) for row in explanation.contributions.tolist()]
    names = ("row", "class", "against", "log_odds", "contributions")
    found = [dict(zip(names, row, strict=True)) for row in zip(numbers, *classes, sizes, strict=True)]
    if as_json:
        print_json(found)
        return
    for one in found:
        against = f"{printable(one['class'])} against {printable(one['against'])}"
        print_text(f"row {one['row']}: {against}, log odds {one['log_odds']:.4f}")
        ordered = sorted(one["contributions"].items(), key=lambda pair: -abs(pair[1]))
        print_rows(["column", "contribution"], [(name, f"{size:+.4f}") for name, size in ordered])
