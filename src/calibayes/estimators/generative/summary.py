"""A plain-text summary of a fitted generative model."""

from __future__ import annotations

from calibayes.encoders.schema import Column, Schema
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.interface.kept_rows import kept_rows_line
from calibayes.families.model import PRIOR
from calibayes.tables.text import PlainText, counted, listed, shortened
from calibayes.tables.training_table import TrainingTable


def summary(name: str, fitted: Fitted, table: TrainingTable) -> PlainText:
    """Classes, columns and training of a fitted model; ``name`` is that of its estimator."""
    k, d = (
        counted(len(fitted.classes), "class", "classes"),
        counted(len(fitted.binding.conversion.names), "column"),
    )
    lines = [
        f"{name}: {k}, {d}, rule {fitted.rule.name}, {counted(fitted.n_iter, 'update')}",
        _class_table(fitted),
        _family_table(fitted.binding) if fitted.schema is None else _column_table(fitted.schema),
        *_training_lines(fitted),
        *([] if fitted.privacy is None else [f"privacy: {fitted.privacy}"]),
        f"training table: {table}",
        kept_rows_line({}),
    ]
    return PlainText("\n".join(lines))


def _class_table(fitted: Fitted) -> str:
    counts = fitted.data_statistics[PRIOR]["count"]
    cells = zip(fitted.classes.tolist(), counts, counts / max(counts.sum(), 1e-300), strict=True)
    rows = [(str(label), f"{count:.6g}", f"{share:.3f}") for label, count, share in cells]
    return shortened([("class", "weight of rows", "share"), *rows])


def _column_table(schema: Schema) -> str:
    return shortened([Column._fields, *(tuple(str(cell) for cell in column) for column in schema.columns)])


def _family_table(binding: ColumnBinding) -> str:
    rows = [
        (name, type(family).__name__, listed(binding.columns(name)))
        for name, family in binding.families.items()
    ]
    return shortened([("family", "model", "columns"), *rows])


def _training_lines(fitted: Fitted) -> list[str]:
    """Error and log loss on the training rows, where training has computed them, and what is lacking."""
    lacking = [f"no parameters yet: {fitted.lacking}"] if fitted.lacking else []
    if fitted.history is None or fitted.best_iter is None:
        return lacking
    error, loss = (float(fitted.history[name][fitted.best_iter]) for name in ("error", "log_loss"))
    return [*lacking, f"training error {error:.4g}, log loss {loss:.4g}"]
