"""Measures of dependence between pairs of columns, and selections of the most dependent pairs."""

from calibayes.dependence.measures import (
    HSIC,
    Measure,
    MutualInformation,
    PairStatistics,
    Pearson,
    Permuted,
    Spearman,
)
from calibayes.dependence.pairs import (
    BestFraction,
    Dependence,
    PairSelection,
    SignificantPairs,
    TopFraction,
    benjamini_hochberg,
    bonferroni,
)

__all__ = [
    "HSIC",
    "BestFraction",
    "Dependence",
    "Measure",
    "MutualInformation",
    "PairSelection",
    "PairStatistics",
    "Pearson",
    "Permuted",
    "SignificantPairs",
    "Spearman",
    "TopFraction",
    "benjamini_hochberg",
    "bonferroni",
]
