"""The experiments of the papers, compared with the published numbers.

`papers` has one module per paper, `tables_and_figures` the kinds of tables and figures they consist of, `procedures`
the computations behind them (how rows are split, which data are used), `published` the printed numbers as CSV files.
"""

from calibayes.experiments.catalog import PAPERS, select_experiments
from calibayes.experiments.experiment import Experiment, Paper
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow
from calibayes.experiments.reproduction import reproduce
from calibayes.experiments.settings import Settings

__all__ = [
    "PAPERS",
    "Experiment",
    "Figure",
    "NumberPair",
    "Paper",
    "Report",
    "Settings",
    "TableRow",
    "reproduce",
    "select_experiments",
]
