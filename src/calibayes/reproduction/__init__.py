"""The experiments of the papers, compared with the published numbers.

`papers` has one module per paper, `tables_and_figures` the kinds of tables and figures they consist of, `procedures`
the computations behind them (how rows are split, which data are used), `published` the printed numbers as CSV files.
"""

from calibayes.reproduction.catalog import PAPERS, select_experiments
from calibayes.reproduction.experiment import Experiment, Paper, Settings
from calibayes.reproduction.result_tables import Figure, NumberPair, Report, TableRow
from calibayes.reproduction.run import reproduce

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
