"""The generic function of which each exported family registers an implementation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from calibayes.core.protocols import Arrays
from calibayes.export.expressions import Constant, Entry, Expression, Filled


@singledispatch
def log_densities(family: Any, parameters: Arrays, columns: Sequence[Expression]) -> list[Expression]:
    """log p(x | class) of each class, up to a term that all classes share.

    Parameters
    ----------
    family : Family
        Bound and prepared.
    parameters : mapping
        Its arrays, the argument of `Family.log_density`.
    columns : sequence of Expression
        Its encoded columns, each a `Once`: numbers or codes, missing where a value is missing.

    Raises
    ------
    TypeError
        If the family cannot be written as an expression. The message follows "<model> cannot be exported: ".
    """
    raise TypeError(f"its family {type(family).__name__} is not written as an expression")


def known(term: Expression) -> Expression:
    """A term of the log density, 0 where its column is missing: missing values are left out."""
    return Filled(term, Constant(0.0))


def entry_if_known(table: Any, code: Expression) -> Expression:
    """The entry of an array (levels,) at a code, 0 where it is missing."""
    return known(Entry(tuple(table.tolist()), code))
