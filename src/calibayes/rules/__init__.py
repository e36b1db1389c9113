"""Learning rules: which weights and which step. All but gradient descent are the one update of `Update`."""

from calibayes.rules.discriminative_frequency import DFE
from calibayes.rules.expectation_maximization import EM
from calibayes.rules.gradient_descent import GD
from calibayes.rules.named import NAMES, rule_named
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
