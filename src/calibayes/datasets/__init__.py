"""Load data sets by name or from a file, and convert them to the numeric matrices that the papers use."""

from calibayes.datasets.loading import (
    Dataset,
    find_file,
    is_local,
    list_datasets,
    load,
    load_file,
    load_penguins,
    numeric_matrix,
)

__all__ = [
    "Dataset",
    "find_file",
    "is_local",
    "list_datasets",
    "load",
    "load_file",
    "load_penguins",
    "numeric_matrix",
]
