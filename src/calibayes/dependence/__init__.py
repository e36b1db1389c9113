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
    Selection,
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
