"""Data sets by name, files, and the papers' cleaning."""

from calibayes.datasets.cleaning import complete_varying_numbers
from calibayes.datasets.dataset import Dataset, load_file
from calibayes.datasets.loading import at_hand, find, list_datasets, load
from calibayes.datasets.shipped import load_penguins

__all__ = [
    "Dataset",
    "at_hand",
    "complete_varying_numbers",
    "find",
    "list_datasets",
    "load",
    "load_file",
    "load_penguins",
]
