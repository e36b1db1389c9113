"""Rules by their short names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibayes.core.protocols import Rule
from calibayes.core.resolve import resolve
from calibayes.rules.discriminative_frequency import DFE
from calibayes.rules.expectation_maximization import EM
from calibayes.rules.gradient_descent import GD
from calibayes.rules.update import GDT, MAP, ML, RC, TM

NAMES: Mapping[str, Callable[[], Rule]] = {rule.name: rule for rule in (ML, MAP, RC, TM, DFE, GDT, EM, GD)}


def rule_named(rule: str | Rule) -> Rule:
    """The rule of that name with its defaults, or the rule itself.

    >>> rule_named("rc")
    RC(step=None)
    """
    if isinstance(rule, str) and rule in NAMES:
        return NAMES[rule]()
    given: Rule = resolve("rule", rule, NAMES, ability="entry_weights", example="RC()")
    return given
