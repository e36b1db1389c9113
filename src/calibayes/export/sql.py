"""Fitted classifiers as one SELECT statement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

from calibayes.export import expressions as ex
from calibayes.export.model_expressions import model_expressions

try:
    from sqlglot import ErrorLevel, exp
    from sqlglot.dialects.dialect import Dialect, Dialects
except ImportError as error:
    raise ImportError("SQL is written by sqlglot: pip install sqlglot") from error

__all__ = ["dialects", "to_sql"]

# -- Differences between databases: double-precision literals, comparison of text, dates and durations, inner queries

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
CASE_SENSITIVE = {"clickhouse", "exasol", "materialize", "oracle", "postgres", "risingwave", "snowflake"}
"""Dialects in which quoted names of columns that differ only in case are different names."""
NAME_BYTES = {"postgres": 63, "redshift": 127}
"""Dialects that cut longer names at so many bytes."""


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


# -- Expressions as syntax trees of sqlglot, which quotes all names and values when it writes them as text ---

TABLE = "data"
"""The alias of the table within the statement."""
FUNCTIONS: Mapping[str, Any] = {"exp": exp.Exp, "log": exp.Ln, "sqrt": exp.Sqrt, "floor": exp.Floor}
OPERATORS: Mapping[str, Callable[..., Any]] = {"-": exp.Sub, "*": exp.Mul}
COMPARISONS: Mapping[str, Callable[..., Any]] = {"<": exp.LT, "<=": exp.LTE, "=": exp.EQ}
FEW = 4
"""Up to this many levels of text are compared one after the other, and tables up to this size are read by comparisons."""


@dataclass(frozen=True)
class Renderer:
    """Nodes as SQL of a dialect."""

    dialect: str
    names: Mapping[ex.Node, str]
    """Node -> the column of the inner query with its value; conditions are stored as 1 and 0."""

    def of(self, node: ex.Node) -> Any:
        """A node as SQL: the column of the inner query with its value if there is one, else `computed`."""
        if node not in self.names:
            return self.computed(node)
        column = exp.column(self.names[node], quoted=True)
        return exp.EQ(this=column, expression=self.number(1.0)) if isinstance(node, ex.Condition) else column

    def as_number(self, node: ex.Node) -> Any:
        """A node as a column of an inner query: conditions are 1 or 0."""
        value = self.of(node)
        is_condition = isinstance(node, ex.Condition)
        return case([(value, self.number(1.0))], self.number(0.0)) if is_condition else value

    @singledispatchmethod
    def computed(self, node: Any) -> Any:
        """A node as SQL, computed from its parts."""
        raise TypeError(f"{type(node).__name__} is not an expression or condition")

    def number(self, value: float) -> Any:
        """A double-precision literal with all digits, so that it is read as the same number; NULL for NaN."""
        if math.isnan(value):
            return exp.Null()
        digits = repr(abs(float(value)))
        literal: Any = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
        if self.dialect not in DOUBLE_LITERALS:
            literal = exp.Cast(this=literal, to=exp.DataType.build("DOUBLE"))
        return exp.Neg(this=literal) if math.copysign(1.0, value) < 0 and value != 0 else literal

    def _double(self, value: Any) -> Any:
        return exp.Cast(this=value, to=exp.DataType.build("DOUBLE"))

    def _between(self, value: Any, limit: float) -> Any:
        """Whether the absolute value of a number is at most a limit."""
        return exp.Between(this=_operand(value), low=self.number(-limit), high=self.number(limit))

    # -- columns -----------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.NumberColumn) -> Any:
        value = self._double(_column(node.name))
        return case([(self._between(value, ex.LARGEST_NUMBER), value.copy())])

    @computed.register
    def _(self, node: ex.BooleanColumn) -> Any:
        are_equal = {
            value: _compared("=", _column(node.name), exp.Boolean(this=value)) for value in (True, False)
        }
        return case([(condition, self.number(value)) for value, condition in are_equal.items()])

    @computed.register
    def _(self, node: ex.TimeColumn) -> Any:
        column = _column(node.name)
        if node.zone is not None:
            column = exp.AtTimeZone(this=column, zone=exp.Literal.string(node.zone))
        return self._double(microseconds(column, node.name, self.dialect))

    @computed.register
    def _(self, node: ex.DurationColumn) -> Any:
        return self._double(microseconds(_column(node.name), node.name, self.dialect, is_duration=True))

    @computed.register
    def _(self, node: ex.TextColumn) -> Any:
        """The cells as text that is compared by its code points, where the dialect has a collation for it."""
        cast = exp.Cast(this=_column(node.name), to=exp.DataType.build("TEXT"))
        if self.dialect not in COLLATIONS:
            return cast
        return exp.Collate(this=cast, expression=exp.to_identifier(COLLATIONS[self.dialect], quoted=True))

    @computed.register
    def _(self, node: ex.TextCode) -> Any:
        levels = sorted((level, float(code)) for code, level in enumerate(node.levels))
        other = exp.Null() if node.other is None else self.number(node.other)
        if self.dialect in ENUMERATIONS and len(levels) > FEW:
            names = list(map(exp.Literal.string, node.levels))
            kind = exp.DataType(this=exp.DataType.Type.ENUM, expressions=names)
            known = self._double(_anonymous("ENUM_CODE", exp.TryCast(this=self.of(node.column), to=kind)))
            code = known if node.other is None else exp.Coalesce(this=known, expressions=[other])
        else:
            code = self._text_code(node.column, levels, other)
        if node.other is None:
            return code
        return case([(self.of(ex.IsMissing(node.column)), exp.Null())], code)

    def _text_code(self, column: ex.TextColumn, levels: Sequence[tuple[str, float]], other: Any) -> Any:
        """The code of a text, by binary search among many levels."""
        if len(levels) <= FEW or self.dialect not in BINARY_ORDER:
            pairs = [
                (_compared("=", self.of(column), exp.Literal.string(level)), self.number(code))
                for level, code in levels
            ]
            return case(pairs, other.copy())
        middle = len(levels) // 2
        is_left = _compared("<", self.of(column), exp.Literal.string(levels[middle][0]))
        left, right = (self._text_code(column, half, other) for half in (levels[:middle], levels[middle:]))
        return case([(is_left, left)], right)

    # -- numbers -----------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.Constant) -> Any:
        return self.number(node.value)

    @computed.register
    def _(self, node: ex.Once) -> Any:
        return self.of(node.value)

    @computed.register
    def _(self, node: ex.Sum) -> Any:
        return balanced(exp.Add, [self.of(term) for term in node.terms])

    @computed.register
    def _(self, node: ex.Greatest) -> Any:
        first, *others = (self.of(term) for term in node.terms)
        if not others:
            return first
        return exp.Greatest(this=first, expressions=others, ignore_nulls=self.dialect in IGNORES_NULL)

    @computed.register
    def _(self, node: ex.Arithmetic) -> Any:
        left, right = _operand(self.of(node.left)), _operand(self.of(node.right))
        if node.operator == "/":
            return exp.Div(this=left, expression=right, typed=True, safe=False)
        result = OPERATORS[node.operator](this=left, expression=right)
        is_square = node.operator == "*" and node.left is node.right
        if not is_square or self.dialect not in RAISES_UNDERFLOW:
            return result
        underflows = self._between(self.of(node.left), LEAST_FACTOR)
        return case([(underflows, self.number(0.0))], result)

    @computed.register
    def _(self, node: ex.Function) -> Any:
        function = FUNCTIONS[node.name](this=self.of(node.value))
        if node.name != "exp":
            return function
        underflows = _compared("<", self.of(node.value), self.number(ex.LEAST_EXPONENT))
        return case([(underflows, self.number(0.0))], function)

    @computed.register
    def _(self, node: ex.Filled) -> Any:
        if isinstance(node.value, ex.TableEntry):
            return self._entry(node.value, self.of(node.default))
        return exp.Coalesce(this=self.of(node.value), expressions=[self.of(node.default)])

    @computed.register
    def _(self, node: ex.Where) -> Any:
        return case([(self.of(node.condition), self.of(node.then))], self.of(node.otherwise))

    @computed.register
    def _(self, node: ex.BinCode) -> Any:
        leaves = [self.number(code) for code in range(len(node.edges) + 1)]
        return self._unless_missing(node.value, self._leaf_at(node.value, leaves, node.edges), exp.Null())

    @computed.register
    def _(self, node: ex.NumberCode) -> Any:
        other = exp.Null() if node.other is None else self.number(node.other)
        conditions = [_compared("=", self.of(node.value), self.number(level)) for level in node.levels]
        leaves = [case([(is_level, self.number(j))], other.copy()) for j, is_level in enumerate(conditions)]
        code_at = self._leaf_at(node.value, leaves, node.levels[1:])
        return self._unless_missing(node.value, code_at, exp.Null())

    @computed.register
    def _(self, node: ex.TableEntry) -> Any:
        return self._entry(node, exp.Null())

    def _entry(self, node: ex.TableEntry, default: Any) -> Any:
        """The entry of a table, or a default if the code or the entry is missing."""
        if self.dialect in LISTS and len(node.table) > FEW:
            entries = exp.Array(expressions=[self.number(value) for value in node.table])
            code = exp.Cast(this=self.of(node.code), to=exp.DataType.build("BIGINT"))
            position = exp.Add(this=code, expression=exp.Literal.number("1"))  # lists begin at 1
            entry = _anonymous("LIST_EXTRACT", entries, position)
            return entry if isinstance(default, exp.Null) else exp.Coalesce(this=entry, expressions=[default])
        # Neighboring codes of the same entry are one leaf.
        starts = [
            i for i, value in enumerate(node.table) if i == 0 or not _are_same(value, node.table[i - 1])
        ]
        values = [node.table[i] for i in starts]
        leaves = [default.copy() if math.isnan(value) else self.number(value) for value in values]
        entry = self._leaf_at(node.code, leaves, [i - 0.5 for i in starts[1:]])
        return self._unless_missing(node.code, entry, default)

    def _unless_missing(self, value: ex.Expression, result: Any, default: Any) -> Any:
        return case([(self.of(ex.IsMissing(value)), default)], result)

    def _leaf_at(self, value: ex.Expression, leaves: Sequence[Any], edges: Sequence[float]) -> Any:
        """The leaf at the bin of a value that is not missing, by binary search."""
        if len(leaves) == 1:
            return leaves[0]
        middle = len(leaves) // 2
        left = self._leaf_at(value, leaves[:middle], edges[: middle - 1])
        right = self._leaf_at(value, leaves[middle:], edges[middle:])
        return case([(_compared("<", self.of(value), self.number(edges[middle - 1])), left)], right)

    # -- conditions --------------------------------------------------------------------------------------------------

    @computed.register
    def _(self, node: ex.Compared) -> Any:
        return _compared(node.operator, self.of(node.left), self.of(node.right))

    @computed.register
    def _(self, node: ex.IsMissing) -> Any:
        value = _column(node.value.name) if isinstance(node.value, ex.TextColumn) else self.of(node.value)
        return exp.Is(this=_operand(value), expression=exp.Null())

    @computed.register
    def _(self, node: ex.IsBeyond) -> Any:
        """-x < -limit instead of x > limit: in databases that order NaN above all numbers, the latter is true for NaN."""
        column, same = (self._double(_column(node.column.name)) for _ in range(2))
        sides = (column, exp.Neg(this=same))
        return balanced(exp.Or, [_compared("<", side, self.number(-ex.LARGEST_NUMBER)) for side in sides])

    @computed.register
    def _(self, node: ex.AllTrue | ex.AnyTrue) -> Any:
        operator = exp.And if isinstance(node, ex.AllTrue) else exp.Or
        return balanced(operator, [self.of(condition) for condition in node.conditions])


def _column(name: str) -> Any:
    return exp.column(name, table=TABLE, quoted=True)


def _are_same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def case(pairs: Sequence[tuple[Any, Any]], default: Any = None) -> Any:
    """CASE WHEN ... THEN ... ELSE ... END."""
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in pairs], default=default)


def balanced(operator: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Operands joined by an operator, halves in parentheses: nested at most log2(size) deep."""
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    left, right = (balanced(operator, half) for half in (operands[:middle], operands[middle:]))
    return operator(this=_operand(left), expression=_operand(right))


def _operand(value: Any) -> Any:
    """A value in parentheses, if it is an operation."""
    return exp.Paren(this=value) if isinstance(value, exp.Binary | exp.Unary | exp.Between) else value


def _compared(operator: str, left: Any, right: Any) -> Any:
    return COMPARISONS[operator](this=_operand(left), expression=_operand(right))


# -- Statements: one SELECT, with an inner query for each layer of values that are computed once --------------

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
        If the model cannot be written as SQL, or only as a statement of more than half a million numbers, or if the database would take
        two of its columns for the same one, such as "c" and "C" in DuckDB.
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
    _refuse_equal_names(model, ex.column_names(expressions.probabilities), dialect)
    _refuse_large(expressions.probabilities)
    outputs = dict(zip(output_names(expressions.classes, dialect), expressions.probabilities, strict=True))
    statement = select_statement(outputs, source, dialect)
    return str(statement.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE))


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


def _refuse_equal_names(model: Any, read: Sequence[str], dialect: str) -> None:
    """Raises TypeError if the database takes a column that is read for another one of the training table."""
    by_name: dict[str, list[str]] = {}
    for name in model.training_table_.columns:
        by_name.setdefault(stored_name(name, dialect), []).append(name)
    for name in read:
        one, *others = by_name.get(stored_name(name, dialect), [name])
        if others:
            how = "ignores the case of names" if one.casefold() == others[0].casefold() else "cuts long names"
            raise TypeError(
                f"{type(model).__name__} cannot be exported: columns {one!r} and {others[0]!r} have the same name in {dialect}, "
                f"which {how}: rename one of them, in the table of the database, too, and train again"
            )


def stored_name(name: str, dialect: str) -> str:
    """A text that is equal for names of columns that a database takes for the same one."""
    cut = _cut(name, NAME_BYTES.get(dialect))
    return cut if dialect in CASE_SENSITIVE else cut.casefold()


def _cut(name: str, size: int | None) -> str:
    """The characters of a name that lie within so many bytes; all of them if there is no limit."""
    return name.encode()[:size].decode(errors="ignore")


def output_names(classes: Sequence[str], dialect: str = "duckdb") -> list[str]:
    """``p_<class>`` of each class; a number is added to a name that differs from an earlier one by case only, or beyond a cut."""
    names: list[str] = []
    taken: set[str] = set()
    most = NAME_BYTES.get(dialect)
    for name in (f"p_{label}" for label in classes):
        number, unique = 2, _cut(name, most)
        while unique.casefold() in taken:
            end = f"_{number}"
            number, unique = number + 1, _cut(name, most and most - len(end)) + end
        taken.add(unique.casefold())
        names.append(unique)
    return names


def select_statement(outputs: Mapping[str, ex.Expression], source: Any, dialect: str) -> Any:
    """The outputs as columns of one SELECT over a table; each layer of values computed once is an inner query."""
    layers, names = ex.named_layers(list(outputs.values()))
    last_use = ex.last_uses([*layers, list(outputs.values())], names)
    prefix = _layer_prefix(source.name)
    sources = [source, *(exp.Table(this=_quoted(f"{prefix}{depth}")) for depth in range(len(layers)))]
    inner: dict[str, Any] = {}
    stored: dict[str, ex.Node] = {}
    for depth, layer in enumerate(layers):
        carried = {name: node for name, node in stored.items() if last_use[name] > depth}
        stored = {**carried, **{names[node]: node for node in layer}}
        _refuse_many(len(stored), dialect)
        renderer = Renderer(dialect, names if depth else {})
        columns = [(name, exp.column(name, quoted=True)) for name in carried]
        columns += [(names[node], renderer.as_number(ex.value_of(node))) for node in layer]
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


def _refuse_many(count: int, dialect: str) -> None:
    most = MOST_COLUMNS.get(dialect, count)
    if count > most:
        raise TypeError(
            f"the statement would need an inner query of {count} columns, but {dialect} allows at most {most}: export a model "
            "of fewer columns, classes or levels"
        )


MOST_NUMBERS = 500_000
"""Most numbers of the tables of a statement: of 227,000, in 10 MB, DuckDB takes 4.5 GB."""


def _refuse_large(probabilities: Sequence[ex.Expression]) -> None:
    tables = (node.table for node in ex.nodes_within(probabilities) if isinstance(node, ex.TableEntry))
    count = sum(map(len, tables))
    if count > MOST_NUMBERS:
        raise TypeError(
            f"the statement would hold tables of {count:,} numbers, more than the {MOST_NUMBERS:,} that databases can be expected "
            "to read: export a model of fewer columns, bins or levels, use to_onnx, or predict in Python"
        )


def _select(columns: Sequence[tuple[str, Any]], source: Any) -> Any:
    named = [exp.Alias(this=value, alias=_quoted(name)) for name, value in columns]
    return exp.Select(expressions=named).from_(source, copy=False)


def _quoted(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)
