"""Plots of models, explanations and comparisons; need matplotlib (``pip install 'calibayes[plots]'``)."""

from calibayes.plots.boundaries import plot_boundaries
from calibayes.plots.boxes import boxes
from calibayes.plots.components import plot_components
from calibayes.plots.curves import panels
from calibayes.plots.dependence import plot_dependence
from calibayes.plots.members import plot_members
from calibayes.plots.ranks import plot_ranks
from calibayes.plots.reasons import plot_overall, plot_reasons
from calibayes.plots.trade_off import plot_trade_off
from calibayes.plots.tree import plot_tree

__all__ = [
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
