"""How dependent pairs of columns are, and which pairs to keep."""

from calibayes.dependence.correlation import Pearson, Spearman
from calibayes.dependence.hsic import HSIC
from calibayes.dependence.measure import Measure, Measured
from calibayes.dependence.mutual_information import MutualInformation
from calibayes.dependence.permuted import Permuted
from calibayes.dependence.procedures import benjamini_hochberg, bonferroni
from calibayes.dependence.selection import BestFraction, Selection, SignificantPairs, TopFraction
from calibayes.dependence.table import Dependence

__all__ = [
    "HSIC",
    "BestFraction",
    "Dependence",
    "Measure",
    "Measured",
    "MutualInformation",
    "Pearson",
    "Permuted",
    "Selection",
    "SignificantPairs",
    "Spearman",
    "TopFraction",
    "benjamini_hochberg",
    "bonferroni",
]
