"""Learning rules: which weights and which step. All but gradient descent are the one update of `Update`."""

from calibayes.rules.other_rules import DFE, EM, GD, NAMES, rule_named
from calibayes.rules.update import GDT, MAP, ML, RC, TM, Backtracking, Fixed, Schedule

__all__ = [
    "DFE",
    "EM",
    "GD",
    "GDT",
    "MAP",
    "ML",
    "NAMES",
    "RC",
    "TM",
    "Backtracking",
    "Fixed",
    "Schedule",
    "rule_named",
]
