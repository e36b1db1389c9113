"""Pictures, for those who have matplotlib (``pip install 'calibayes[plots]'``)."""

from calibayes.plots.reasons import plot_overall, plot_reasons
from calibayes.plots.trade_off import plot_trade_off
from calibayes.plots.tree import plot_tree

__all__ = ["plot_overall", "plot_reasons", "plot_trade_off", "plot_tree"]
