"""Fitted classifiers as one SELECT statement."""

try:
    import sqlglot  # noqa: F401
except ImportError as error:
    raise ImportError("SQL is written by sqlglot: pip install 'calibayes[sql]'") from error

from calibayes.export.sql.render import dialects
from calibayes.export.sql.statement import to_sql

__all__ = ["dialects", "to_sql"]
