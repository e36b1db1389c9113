"""Pictures, for those who have matplotlib (``pip install 'calibayes[plots]'``)."""

from calibayes.plots.components import plot_components
from calibayes.plots.reasons import plot_overall, plot_reasons
from calibayes.plots.trade_off import plot_trade_off

__all__ = ["plot_components", "plot_overall", "plot_reasons", "plot_trade_off"]
