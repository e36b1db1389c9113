"""Estimators that decide the kind of each column, unless a person says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibayes.core.protocols import Rule
from calibayes.encoders.schema import Schema, schema
from calibayes.estimators.kinds import Choices, Given, check_kinds, given_kinds, specifications
from calibayes.estimators.reading import Rows
from calibayes.estimators.training import Training


@dataclass(eq=False, repr=False, kw_only=True)
class Mixed(Training):
    """The kinds of columns, and the schema that comes of them."""

    kinds: Given | None = None

    numeric_kind: ClassVar[str] = "gaussian"
    """The kind of numbers that nobody gave another one."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def _choices(self) -> Choices:
        """What the parameters say to all kinds."""
        return Choices()

    def _decides_kinds(self) -> bool:
        return True

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return specifications(check_kinds(self.kinds), self.numeric_kind, self._choices())

    def _bind(self, rule: Rule, rows: Rows) -> None:
        super()._bind(rule, rows)
        if not self._decides_kinds():
            return
        given = frozenset(given_kinds(check_kinds(self.kinds), rows.table))
        self.schema_: Schema = schema(rows.table, self._bound.encoders, self._bound.chosen, given)
