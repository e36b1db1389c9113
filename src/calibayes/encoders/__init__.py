"""Encoders: convert columns of a table into the matrix that a family reads; fitted to training rows, then immutable.

Examples
--------
Naive Bayes over bins of each kind:

>>> from calibayes import GenerativeClassifier, NaiveBayes, every
>>> X, y = [[1.0], [2.0], [5.0], [6.0]] * 5, [0, 0, 1, 1] * 5
>>> bounded = (KMeansBins(2), QuantileBins(2), UniformBins(2))
>>> for bins in (*bounded, AdaptiveBins(), PairBins(), InformedBins(), MDLBins()):
...     print(f"{type(bins).__name__}: {NaiveBayes(discretize=bins).fit(X, y).score(X, y)}")
KMeansBins: 1.0
QuantileBins: 1.0
UniformBins: 1.0
AdaptiveBins: 1.0
PairBins: 1.0
InformedBins: 1.0
MDLBins: 1.0

Kernel densities on a grid, for which a bandwidth is in the units of the column:

>>> from calibayes.families import FixedWidth, KernelDensity
>>> families = [("numbers", KernelDensity(FixedWidth(0.5)), every, Grid(points=64))]
>>> GenerativeClassifier(families=families).fit(X, y).score(X, y)
1.0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes.encoders.bins import (
    AdaptiveBins,
    Grid,
    InformedBins,
    KMeansBins,
    MDLBins,
    PairBins,
    QuantileBins,
    UniformBins,
)
from calibayes.encoders.by_column_type import ByColumnType, MissingAsLevel
from calibayes.encoders.dense import Dense, PrincipalComponents
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Clusters, Flags, Numbers
from calibayes.encoders.schema import Schema

if TYPE_CHECKING:
    from calibayes.encoders.leaves import Leaves

__all__ = [
    "AdaptiveBins",
    "ByColumnType",
    "Clusters",
    "Dense",
    "Flags",
    "Grid",
    "InformedBins",
    "KMeansBins",
    "Leaves",
    "Levels",
    "MDLBins",
    "MissingAsLevel",
    "Numbers",
    "PairBins",
    "PrincipalComponents",
    "QuantileBins",
    "Schema",
    "UniformBins",
]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """`Leaves`, imported at first use: the growth of trees is code that few models need."""
        if name != "Leaves":
            raise AttributeError(f"module 'calibayes.encoders' has no attribute {name!r}")
        return import_module("calibayes.encoders.leaves").Leaves
