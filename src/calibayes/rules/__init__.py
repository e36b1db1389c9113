"""Learning rules: which weights and which step. All but gradient descent are the one update of `Update`."""

from calibayes.rules.weights_and_steps import (
    DFE,
    EM,
    GD,
    GDT,
    MAP,
    ML,
    NAMES,
    RC,
    TM,
    Backtracking,
    Fixed,
    Schedule,
    rule_named,
)

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
