"""Encoders: convert columns of a table into the matrix that a family reads; fitted to training rows, then immutable."""

from calibayes.encoders.bins import (
    AdaptiveBins,
    InformedBins,
    KMeansBins,
    MDLBins,
    PairBins,
    QuantileBins,
    UniformBins,
)
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.clusters import Clusters
from calibayes.encoders.dense import Dense
from calibayes.encoders.grid import Grid
from calibayes.encoders.leaves import Leaves
from calibayes.encoders.levels import Levels
from calibayes.encoders.missing_as_level import MissingAsLevel
from calibayes.encoders.numbers import Flags, Numbers
from calibayes.encoders.principal import PrincipalComponents
from calibayes.encoders.schema import Schema

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
