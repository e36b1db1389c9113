"""The way from the model to what lies above it: modules that are imported when a method or an option asks for them.

The model, the estimators and the ensemble import nothing of the packages above them. `feature` returns a module of `FEATURES`, and
`delegate` (`calibayes.model.attributes`) makes a method of a function of such a package; both import it at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

FEATURES = {
    "checkpoint": "files.checkpoint",
    "dask": "backends.dask.predictions",
    "device": "backends.device.input",
    "device_support": "backends.device.support",
    "drift": "analysis.column_cells",
    "forget": "analysis.forget",
    "held_out": "analysis.held_out",
    "keep_summary": "analysis.keep_summary",
    "marginals": "analysis.marginals",
    "merging": "analysis.merging",
    "prior_shift": "analysis.prior_shift",
    "privacy": "analysis.private_training",
    "privacy_account": "analysis.privacy",
    "receipts": "analysis.receipts",
    "streams": "streams.stream_input",
    "surprise": "analysis.cell_scores",
}
"""Name -> module of what options, fitted attributes and methods need."""


EXTRAS = {"kept": "keep_summary", "privacy": "privacy_account", "receipts": "receipts"}
"""Name in `Fitted.extras` -> feature, whose ``verify_extra(fitted, value)`` checks a value that comes from a file."""


def feature(name: str) -> Any:
    """The module of a feature."""
    return import_module(f"calibayes.{FEATURES[name]}")


def report(self: Any, X: Any, y: Any, **options: Any) -> Any:
    """A page about this model and labeled rows that it was not trained on; see `calibayes.report.report_on_model`.

    Parameters
    ----------
    X, y
        Rows that the model was not trained on, and their labels.
    **options
        Options of `calibayes.report.report_on_model`, such as ``costs``.

    Returns
    -------
    calibayes.report.Report
        It is shown in a notebook; ``report.save("report.html")`` writes one file.
    """
    from calibayes.report import report_on_model

    return report_on_model(self, X, y, **options)


def to_sql(self: Any, table: str | Sequence[str], dialect: str = "duckdb") -> str:
    """One SELECT statement that computes `predict_proba` for the rows of a table in a database.

    Parameters
    ----------
    table : str or sequence of str
        Name of the table; a dot separates a schema from a table. Names that contain dots are given as a sequence, such as
        ``("my.schema", "table")``.
    dialect : str, default="duckdb"
        One of the dialects of sqlglot, such as "duckdb", "postgres" or "bigquery".

    Returns
    -------
    str
        The statement. Its columns are ``p_<class>``, in the order of ``classes_``, its rows in the order of the table.

    Raises
    ------
    TypeError
        If the model cannot be written as SQL; docs/exports.md says which can.
    ValueError
        If there is no such dialect.
    """
    from calibayes.export.sql import to_sql as exported

    return exported(self, table, dialect)


def to_onnx(self: Any, missing: str = "") -> Any:
    """The model as an ONNX graph that computes the label and `predict_proba` (docs/onnx.md).

    Parameters
    ----------
    missing : str, default=""
        The text that means a missing value in inputs of text; missing numbers are NaN.

    Returns
    -------
    onnx.ModelProto
        Its inputs are "X" (n, d), float64, for a model that was fitted to an array of numbers; otherwise one (n, 1) for
        each column that the model reads, of float64 or strings. Its outputs are "label" (n,) and "probabilities" (n, k), in
        the order of ``classes_``.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    TypeError
        If the model cannot be written as ONNX; docs/exports.md says which can.
    ValueError
        If a level of a column is the text that means a missing value.
    """
    from calibayes.export.onnx import to_onnx as exported

    return exported(self, missing)
