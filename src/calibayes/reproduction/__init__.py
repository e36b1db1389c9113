"""The experiments of the papers, compared with the published numbers.

`papers` has one module per paper, `tables_and_figures` the kinds of tables and figures they consist of, `procedures`
the computations behind them (how rows are split, which data are used), `published` the printed numbers as CSV files.
"""

from calibayes.reproduction.catalog import PAPERS, reproduce, select_experiments
from calibayes.reproduction.experiment import Experiment, Paper, Settings
from calibayes.reproduction.result_tables import ExperimentReport, Figure, NumberPair, TableRow

__all__ = [
    "PAPERS",
    "Experiment",
    "ExperimentReport",
    "Figure",
    "NumberPair",
    "Paper",
    "Settings",
    "TableRow",
    "reproduce",
    "select_experiments",
]
