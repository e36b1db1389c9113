"""One SELECT statement of the probabilities, with an inner query for each layer of values that are computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

from sqlglot import ErrorLevel, exp

from calibayes.export.expressions import (
    Expression,
    IsBeyond,
    IsMissing,
    Node,
    Once,
    TextCode,
    cells_within,
    is_read_from_table,
    once_in_order,
    once_within,
)
from calibayes.export.model import model_expressions
from calibayes.export.sql.render import FENCED, MATERIALIZED, TABLE, Renderer, checked_dialect

MOST_COLUMNS = {"postgres": 1600, "sqlite": 2000}
"""Largest number of columns of an inner query, where a dialect has a limit that models reach."""


def to_sql(model: Any, table: str | Sequence[str], dialect: str = "duckdb") -> str:
    """One SELECT statement that computes `predict_proba` for the rows of a table in a database.

    Parameters
    ----------
    model : classifier
        A fitted classifier of this package.
    table : str or sequence of str
        Name of the table; a dot separates a schema from a table. Names that contain dots are given as a sequence, such as
        ``("my.schema", "table")``. Names are quoted, so that they are case-sensitive in databases that distinguish the case of
        quoted names.
    dialect : str, default="duckdb"
        One of the dialects of sqlglot, such as "duckdb", "postgres" or "bigquery".

    Returns
    -------
    str
        The statement. Its columns are ``p_<class>``, in the order of ``classes_``, its rows in the order of the table.

    Raises
    ------
    TypeError
        If the model cannot be written as SQL.
    ValueError
        If there is no such dialect, or ``table`` is not a name.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.export.sql import to_sql
    >>> model = GaussianNB().fit([[1.0], [2.0], [5.0], [7.0]], ["no", "no", "yes", "yes"])
    >>> to_sql(model, "visits").rstrip().endswith('"p_yes" FROM "layer_4"')
    True
    """
    dialect = checked_dialect(dialect)
    source = _table(table)
    expressions = model_expressions(model)
    outputs = dict(zip(output_names(expressions.classes), expressions.probabilities, strict=True))
    statement = select_statement(outputs, source, dialect)
    return statement.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE)


def _table(table: str | Sequence[str]) -> Any:
    """The table as an SQL expression. Raises ValueError if ``table`` is not a name."""
    parts: Any = table.split(".") if isinstance(table, str) else table
    if (
        not isinstance(parts, list | tuple)
        or not 1 <= len(parts) <= 3
        or not all(isinstance(part, str) and part for part in parts)
    ):
        raise ValueError(
            f"table must be a name such as 'visits' or 'schema.visits', or a sequence of up to three names, got {table!r}"
        )
    names = [_quoted(part) for part in parts]
    places = dict(zip(("this", "db", "catalog"), reversed(names), strict=False))
    return exp.Table(**places, alias=exp.TableAlias(this=_quoted(TABLE)))


def output_names(classes: Sequence[str]) -> list[str]:
    """``p_<class>`` of each class; a number is added to a name that differs from an earlier one by case only."""
    names: list[str] = []
    taken: set[str] = set()
    for name in (f"p_{label}" for label in classes):
        number, unique = 2, name
        while unique.casefold() in taken:
            number, unique = number + 1, f"{name}_{number}"
        taken.add(unique.casefold())
        names.append(unique)
    return names


def select_statement(outputs: Mapping[str, Expression], source: Any, dialect: str) -> Any:
    """The outputs as columns of one SELECT over a table; each layer of values computed once is an inner query."""
    layers, names = _named_layers(list(outputs.values()))
    last_use = _last_uses([*layers, list(outputs.values())], names)
    prefix = _layer_prefix(source.name)
    sources = [source, *(exp.Table(this=_quoted(f"{prefix}{depth}")) for depth in range(len(layers)))]
    inner: dict[str, Any] = {}
    stored: dict[str, Node] = {}
    for depth, layer in enumerate(layers):
        carried = {name: node for name, node in stored.items() if last_use[name] > depth}
        stored = {**carried, **{names[node]: node for node in layer}}
        _refuse_many(len(stored), dialect)
        renderer = Renderer(dialect, names if depth else {})
        columns = [(name, renderer.of(node)) for name, node in carried.items()]
        columns += [(names[node], renderer.as_number(_value(node))) for node in layer]
        inner[f"{prefix}{depth}"] = _select(columns, sources[depth])
    renderer = Renderer(dialect, names)
    columns = [(name, renderer.of(value)) for name, value in outputs.items()]
    return _with_inner(_select(columns, sources[-1]), inner, dialect)


def _layer_prefix(table: str) -> str:
    """The beginning of the names of inner queries. The table's name begins differently: a query must not read itself."""
    prefix = "layer_"
    while table.casefold().startswith(prefix):
        prefix = f"inner_{prefix}"
    return prefix


def _with_inner(select: Any, inner: Mapping[str, Any], dialect: str) -> Any:
    """A query with common table expressions, whose columns the database must compute once."""
    for name, query in inner.items():
        fenced = query.offset(0, copy=False) if dialect in FENCED else query
        alias = exp.TableAlias(this=_quoted(name))
        select = select.with_(alias, as_=fenced, materialized=dialect in MATERIALIZED or None, copy=False)
    return select


def _value(node: Node) -> Node:
    return node.value if isinstance(node, Once) else node


def _named_layers(outputs: Sequence[Expression]) -> tuple[list[list[Node]], dict[Node, str]]:
    """The nodes that are columns of inner queries, layer by layer, and the name of the column of each node.

    Cells are read in the first layer: those that a later layer needs are columns of it, once for each cell. There are no layers
    if the outputs are constant.
    """
    first, *others = once_in_order(outputs) or [[]]
    later = [once.value for layer in others for once in layer]
    alone = [once.value for once in first if is_read_from_table(once.value)]
    cells = {_cell_key(cell): cell for node in (*alone, *later, *outputs) for cell in cells_within(node)}
    computed = [once for once in first if not is_read_from_table(once.value)]
    layers: list[list[Node]] = [[*cells.values(), *computed], *([*layer] for layer in others)]
    names: dict[Node, str] = {node: f"v{i}" for i, node in enumerate(chain.from_iterable(layers))}
    for node in (*alone, *later, *outputs):
        names |= {cell: names[cells[_cell_key(cell)]] for cell in cells_within(node)}
    names |= {once: names[once.value] for once in first if is_read_from_table(once.value)}
    return (layers if names else []), names


def _cell_key(node: Node) -> Any:
    """A key that is equal for nodes of the same value of the same cell."""
    if isinstance(node, TextCode):
        return node
    column: Any = (
        node.value if isinstance(node, IsMissing) else node.column if isinstance(node, IsBeyond) else node
    )
    return type(node), type(column), tuple(getattr(column, field.name) for field in fields(column))


def _last_uses(layers: Sequence[Sequence[Node]], names: Mapping[Node, str]) -> dict[str, int]:
    """Column -> the last layer that reads it; the outputs are the last of the layers."""
    uses = dict.fromkeys(names.values(), 0)
    for depth, layer in enumerate(layers):
        for node in layer:
            direct = [*once_within(node), *cells_within(_value(node))]
            direct += [node] if depth == len(layers) - 1 and isinstance(node, Once) else []
            uses |= {names[part]: depth for part in direct if part in names}
    return uses


def _refuse_many(count: int, dialect: str) -> None:
    most = MOST_COLUMNS.get(dialect, count)
    if count > most:
        raise TypeError(
            f"the statement would need an inner query of {count} columns, but {dialect} allows at most {most}: export a model "
            "of fewer columns, classes or levels"
        )


def _select(columns: Sequence[tuple[str, Any]], source: Any) -> Any:
    named = [exp.Alias(this=value, alias=_quoted(name)) for name, value in columns]
    return exp.Select(expressions=named).from_(source, copy=False)


def _quoted(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)
