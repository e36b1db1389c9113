"""Differences between databases: double-precision literals, comparison of text, dates and durations, inner queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, Dialects

DOUBLE_LITERALS = {
    "bigquery",
    "clickhouse",
    "databricks",
    "duckdb",
    "mysql",
    "presto",
    "spark",
    "sqlite",
    "trino",
}
"""Dialects in which a number with an exponent, such as 1.5e0, is of double precision; elsewhere it is cast."""
LISTS = {"duckdb"}
"""Dialects in which the entry of a list at a position is found faster than by comparisons."""
ENUMERATIONS = {"duckdb"}
"""Dialects in which a cast to an enumeration (ENUM) is the fastest way to the position of a text among many."""
BINARY_ORDER = {"bigquery", "databricks", "postgres", "snowflake", "spark", "sqlite"}
"""Dialects in which text is compared by its code points, by default or by `COLLATIONS`: levels are found by binary search."""
COLLATIONS = {"duckdb": "C", "postgres": "C", "sqlite": "BINARY"}
"""Dialect -> the collation that compares code points; a column may have another one, such as NOCASE."""
FENCED = {"postgres", "materialize", "risingwave"}
"""Dialects whose planner replaces columns of an inner query by their expressions, unless the query has OFFSET 0."""
MATERIALIZED = {"sqlite"}
"""Dialects whose planner does the same unless a common table expression is MATERIALIZED."""
RAISES_UNDERFLOW = {"postgres", "materialize", "redshift", "risingwave"}
"""Dialects that raise an error if a product of numbers other than 0 underflows to 0."""
LEAST_FACTOR = 1e-100
"""In these dialects, the square of a number of smaller absolute value is 0."""
IGNORES_NULL = {"duckdb", "postgres", "redshift", "sqlite", "tsql"}
"""Dialects whose GREATEST ignores NULL; sqlglot would replace it by a CASE expression that does not, which is not needed."""


def dialects() -> list[str]:
    """Names of the dialects of SQL that can be rendered.

    Examples
    --------
    >>> from calibayes.export.sql import dialects
    >>> {"bigquery", "duckdb", "postgres", "snowflake", "sqlite"} <= set(dialects())
    True
    """
    return sorted(dialect.value for dialect in Dialects if dialect.value)


def checked_dialect(dialect: Any) -> str:
    """The dialect. Raises ValueError, with the names of all dialects, if there is none of this name."""
    if not isinstance(dialect, str) or dialect not in dialects():
        raise ValueError(f"unknown dialect {dialect!r}; the dialects are {', '.join(dialects())}")
    Dialect.get_or_raise(dialect)
    return dialect


def _anonymous(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _from_epoch(column: exp.Expression) -> exp.Expression:
    """Microseconds from EXTRACT(EPOCH FROM ...), whose seconds are decimal numbers with six digits."""
    seconds = exp.Extract(this=exp.var("EPOCH"), expression=column)
    return exp.Mul(this=seconds, expression=exp.Literal.number("1000000"))


def _unix_micros(column: exp.Expression) -> exp.Expression:
    return _anonymous("UNIX_MICROS", exp.Cast(this=column, to=exp.DataType.build("TIMESTAMPTZ")))


MICROSECONDS: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {
    "bigquery": _unix_micros,
    "databricks": _unix_micros,
    "duckdb": lambda column: _anonymous("EPOCH_US", column),
    "postgres": _from_epoch,
    "snowflake": lambda column: exp.Extract(this=exp.var("EPOCH_MICROSECOND"), expression=column),
    "spark": _unix_micros,
}
"""Dialect -> microseconds since 1970 of a column of dates or timestamps, as a number."""
INTERVALS = {"duckdb", "postgres"}
"""Dialects with a type of durations, whose microseconds are found like those of timestamps."""


def microseconds(
    column: exp.Expression, name: str, dialect: str, *, is_duration: bool = False
) -> exp.Expression:
    """Microseconds of a column of dates or durations. Raises TypeError if the dialect is not supported."""
    supported = INTERVALS if is_duration else MICROSECONDS
    if dialect not in supported:
        kind = "durations" if is_duration else "dates"
        raise TypeError(
            f"column {name!r} holds {kind}, which are exported for {', '.join(sorted(supported))}, not for {dialect}"
        )
    return MICROSECONDS[dialect](column)


def list_entry(entries: list[Any], code: Any) -> exp.Expression:
    """The entry of a list at a code; NULL if the code is NULL."""
    position = exp.Add(
        this=exp.Cast(this=code, to=exp.DataType.build("BIGINT")), expression=exp.Literal.number("1")
    )
    return _anonymous("LIST_EXTRACT", exp.Array(expressions=entries), position)


def enumeration_code(column: exp.Expression, levels: list[str]) -> exp.Expression:
    """The position of a text among levels; NULL for other texts and for NULL."""
    kind = exp.DataType(
        this=exp.DataType.Type.ENUM, expressions=[exp.Literal.string(level) for level in levels]
    )
    return _anonymous("ENUM_CODE", exp.TryCast(this=column, to=kind))


def text(column: exp.Expression, dialect: str) -> exp.Expression:
    """A column as text, which is compared by code points in the dialects of `COLLATIONS`."""
    cast = exp.Cast(this=column, to=exp.DataType.build("TEXT"))
    if dialect not in COLLATIONS:
        return cast
    return exp.Collate(this=cast, expression=exp.to_identifier(COLLATIONS[dialect], quoted=True))


def in_zone(column: exp.Expression, zone: str) -> exp.Expression:
    """A timestamp with a time zone as the date and time of a clock in a time zone."""
    return exp.AtTimeZone(this=column, zone=exp.Literal.string(zone))
