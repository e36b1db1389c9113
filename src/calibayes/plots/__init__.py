"""Plots of models, explanations and comparisons; need matplotlib (``pip install matplotlib``)."""

from calibayes.plots.costs import CostDisplay, LiftDisplay
from calibayes.plots.figures import boxes, panels
from calibayes.plots.new_rows import DriftDisplay, SurpriseDisplay
from calibayes.plots.probabilities import CoverageDisplay, ReliabilityDisplay
from calibayes.plots.rank_diagram import RankDisplay, plot_ranks
from calibayes.plots.reasons import ReasonsDisplay, plot_overall, plot_reasons
from calibayes.plots.structure import (
    TreeDisplay,
    plot_boundaries,
    plot_components,
    plot_dependence,
    plot_tree,
)
from calibayes.plots.training import (
    HistoryDisplay,
    MembersDisplay,
    TradeOffDisplay,
    plot_members,
    plot_trade_off,
)

__all__ = [
    "CostDisplay",
    "CoverageDisplay",
    "DriftDisplay",
    "HistoryDisplay",
    "LiftDisplay",
    "MembersDisplay",
    "RankDisplay",
    "ReasonsDisplay",
    "ReliabilityDisplay",
    "SurpriseDisplay",
    "TradeOffDisplay",
    "TreeDisplay",
    "boxes",
    "panels",
    "plot_boundaries",
    "plot_components",
    "plot_dependence",
    "plot_members",
    "plot_overall",
    "plot_ranks",
    "plot_reasons",
    "plot_trade_off",
    "plot_tree",
]
