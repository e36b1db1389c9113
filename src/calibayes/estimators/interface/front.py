"""Methods of classifiers that other packages of calibayes implement, which are imported when a method is called.

Exports and reports are built on estimators, so that estimators cannot import them as they are imported themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
