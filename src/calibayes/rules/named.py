"""Short names for rules, accepted wherever a person would type one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibayes.core.protocols import Rule
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
    if not isinstance(rule, str):
        if isinstance(rule, type) or not hasattr(rule, "weights"):
            raise ValueError(f"rule must be a name or a rule such as RC(), got {rule!r}")
        return rule
    if rule not in NAMES:
        raise ValueError(f"unknown rule {rule!r}; the rules are {', '.join(NAMES)}")
    return NAMES[rule]()
