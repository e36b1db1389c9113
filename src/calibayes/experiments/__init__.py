"""The papers' tables and figures, runnable: ours beside what was published."""

from calibayes.experiments.catalog import PAPERS, chosen
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.experiment import Experiment, Paper
from calibayes.experiments.reproducing import reproduce
from calibayes.experiments.settings import Settings

__all__ = [
    "PAPERS",
    "Experiment",
    "Figure",
    "Pair",
    "Paper",
    "Report",
    "Row",
    "Settings",
    "chosen",
    "reproduce",
]
