"""A law: a named check of a family, and the cases that it applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibayes.testing.laws.case import FamilyCase

Condition: TypeAlias = Callable[[FamilyCase], bool]


@dataclass(frozen=True)
class Law:
    """A property that every family must have, or every family that meets the conditions.

    Parameters
    ----------
    name : str
    assertions : callable
        Raises AssertionError if the family of a case breaks the law.
    conditions : tuple of callables
        Functions of a case; the law applies where all of them are true.

    Examples
    --------
    >>> from calibayes.testing import FAMILY_LAWS
    >>> FAMILY_LAWS[0].name
    'statistics_are_linear_in_weights'
    """

    name: str
    assertions: Callable[[FamilyCase], None]
    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return self.name

    def applies(self, case: FamilyCase) -> bool:
        """Whether the case meets all conditions of the law."""
        return all(condition(case) for condition in self.conditions)

    def check(self, case: FamilyCase) -> None:
        """Raise AssertionError if the family breaks the law, ValueError if the law does not apply to the case."""
        if not self.applies(case):
            raise ValueError(
                f"law {self.name!r} does not apply to a case of {type(case.family).__name__}; "
                "check the laws that applicable_laws(case) returns"
            )
        self.assertions(case)


def law(*conditions: Condition) -> Callable[[Callable[[FamilyCase], None]], Law]:
    """Turn a function with assertions about a case into a `Law` of the same name."""

    def decorate(assertions: Callable[[FamilyCase], None]) -> Law:
        return Law(assertions.__name__, assertions, conditions)

    return decorate


def has(*abilities: Any) -> Condition:
    """Condition: the family has all of these abilities (protocols of `calibayes.core.abilities`)."""
    return lambda case: all(isinstance(case.family, ability) for ability in abilities)


def has_support(case: FamilyCase) -> bool:
    """Condition: the case has points over which the density can be integrated."""
    return case.support is not None


def is_scale_free(case: FamilyCase) -> bool:
    """Condition: the family has no prior."""
    return case.scale_free


def maximizes_likelihood(case: FamilyCase) -> bool:
    """Condition: the parameters are those of the highest likelihood."""
    return case.scale_free and case.maximizes_likelihood


def nothing_is_hidden(case: FamilyCase) -> bool:
    """Condition: the statistics of complete rows do not depend on the parameters."""
    return not case.has_hidden
