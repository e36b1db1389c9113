"""Measures of dependence between pairs of columns, and selections of the most dependent pairs."""

from calibayes.dependence.correlation import Pearson, Spearman
from calibayes.dependence.hsic import HSIC
from calibayes.dependence.measure import Measure, PairStatistics
from calibayes.dependence.multiple_testing import benjamini_hochberg, bonferroni
from calibayes.dependence.mutual_information import MutualInformation
from calibayes.dependence.permuted import Permuted
from calibayes.dependence.selection import BestFraction, Selection, SignificantPairs, TopFraction
from calibayes.dependence.table import Dependence

__all__ = [
    "HSIC",
    "BestFraction",
    "Dependence",
    "Measure",
    "MutualInformation",
    "PairStatistics",
    "Pearson",
    "Permuted",
    "Selection",
    "SignificantPairs",
    "Spearman",
    "TopFraction",
    "benjamini_hochberg",
    "bonferroni",
]
