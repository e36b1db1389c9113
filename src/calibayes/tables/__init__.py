"""From a table as a person has it to blocks: read -> schema -> encode -> sources."""

from calibayes.tables.bins import AdaptiveBins, KMeansBins, MDLBins, QuantileBins, UniformBins
from calibayes.tables.clusters import Clusters
from calibayes.tables.dense import Dense
from calibayes.tables.encode import Flags, Numbers
from calibayes.tables.gaps import GapCells
from calibayes.tables.grid import Grid
from calibayes.tables.joined import Joined
from calibayes.tables.levels import Levels
from calibayes.tables.pair_bins import InformedBins, PairBins
from calibayes.tables.principal import Principal
from calibayes.tables.schema import Schema

__all__ = [
    "AdaptiveBins",
    "Clusters",
    "Dense",
    "Flags",
    "GapCells",
    "Grid",
    "InformedBins",
    "Joined",
    "KMeansBins",
    "Levels",
    "MDLBins",
    "Numbers",
    "PairBins",
    "Principal",
    "QuantileBins",
    "Schema",
    "UniformBins",
]
