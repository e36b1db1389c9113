"""Fitted models of files, and what they expect of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from calibayes.cli.application import note
from calibayes.files import load
from calibayes.tables.input.csv_format import CsvOptions
from calibayes.tables.input.expected import NUMBER, Expected, ExpectedColumn, holds, holds_labels


def load_model(path: Path) -> Any:
    """The model of a file. Raises ValueError if there is none."""
    if not path.exists():
        raise ValueError(f"there is no model file {path}; calibayes fit writes one")
    return load(path)


def as_in_training(model: Any, given: CsvOptions) -> CsvOptions:
    """How a CSV file is read for a model: its missing values are those of the file of the training, unless given."""
    remembered = model.training_table_.missing_values
    if given.missing_values is not None or remembered is None:
        return given
    note(f"missing values are those that the model was trained with: {', '.join(map(repr, remembered))}")
    return replace(given, missing_values=remembered)


def expected_of(
    model: Any, labels: str | None = None, weights: str | None = None, passed_on: tuple[str, ...] = ()
) -> Expected:
    """What a model reads of a table: its columns, with what they held in training, and those of labels and weights."""
    trained = model.training_table_
    features = tuple(
        ExpectedColumn(name, holds(kind)) for name, kind in zip(trained.columns, trained.kinds, strict=True)
    )
    for role, name in (("labels", labels), ("weights", weights)):
        if name in trained.columns:
            raise ValueError(
                f"column {name!r} of the {role} is one that the model predicts from; name another one"
            )
    return Expected(
        features,
        None if labels is None else ExpectedColumn(labels, holds_labels(model.classes_)),
        None if weights is None else ExpectedColumn(weights, NUMBER),
        passed_on,
        by_position=not hasattr(model, "feature_names_in_"),
    )
