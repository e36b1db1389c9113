"""Plots of models, explanations and comparisons; need matplotlib (``pip install 'calibayes[plots]'``)."""

from calibayes.plots.boundaries import plot_boundaries
from calibayes.plots.boxes import boxes
from calibayes.plots.components import plot_components
from calibayes.plots.coverage import CoverageDisplay
from calibayes.plots.curves import panels
from calibayes.plots.dependence import plot_dependence
from calibayes.plots.drift_columns import DriftDisplay
from calibayes.plots.expected_cost import CostDisplay
from calibayes.plots.history import HistoryDisplay
from calibayes.plots.lift import LiftDisplay
from calibayes.plots.members import MembersDisplay, plot_members
from calibayes.plots.ranks import RankDisplay, plot_ranks
from calibayes.plots.reasons import ReasonsDisplay, plot_overall, plot_reasons
from calibayes.plots.reliability import ReliabilityDisplay
from calibayes.plots.surprise import SurpriseDisplay
from calibayes.plots.trade_off import TradeOffDisplay, plot_trade_off
from calibayes.plots.tree import TreeDisplay, plot_tree

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
