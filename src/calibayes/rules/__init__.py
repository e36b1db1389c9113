"""Learning rules: which weights, which step. All but gradient descent are the one update of `Update`."""

from calibayes.rules.discriminative_frequency import DFE
from calibayes.rules.expectation_maximisation import EM
from calibayes.rules.gradient_descent import GD
from calibayes.rules.maximum_likelihood import MAP, ML
from calibayes.rules.named import NAMES, rule_named
from calibayes.rules.risk_based_calibration import RC
from calibayes.rules.steps import Backtracking, Fixed, Schedule
from calibayes.rules.tm import TM
from calibayes.rules.trade_off import GDT

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
