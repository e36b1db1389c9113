"""Generative classifiers that are trained to decide well."""

from calibayes import datasets, families, learn, rules
from calibayes._version import __version__
from calibayes.estimators.bayes import BayesClassifier
from calibayes.estimators.closed_form import cross_validate_closed_form
from calibayes.estimators.columns import categorical, every, numeric
from calibayes.estimators.counts import ComplementNB, MultinomialNB, PoissonNB
from calibayes.estimators.discriminant_analysis import (
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.kernel_naive_bayes import KernelNB
from calibayes.estimators.mixing import SkippedMemberWarning
from calibayes.estimators.mixture import MixtureDiscriminantAnalysis
from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, NaiveBayes
from calibayes.estimators.posterior_mixture import PosteriorMixture
from calibayes.estimators.trade_off import TradeOffCV
from calibayes.estimators.tree import TreeAugmentedNB
from calibayes.families.singular import SingularCovarianceWarning
from calibayes.tables.clusters import FewRowsWarning

__all__ = [
    "BayesClassifier",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "FewRowsWarning",
    "GaussianNB",
    "GenerativeClassifier",
    "GenerativeLogisticRegression",
    "KernelNB",
    "LinearDiscriminantAnalysis",
    "MixtureDiscriminantAnalysis",
    "MultinomialNB",
    "NaiveBayes",
    "PoissonNB",
    "PosteriorMixture",
    "QuadraticDiscriminantAnalysis",
    "SingularCovarianceWarning",
    "SkippedMemberWarning",
    "TradeOffCV",
    "TreeAugmentedNB",
    "__version__",
    "categorical",
    "cross_validate_closed_form",
    "datasets",
    "every",
    "families",
    "learn",
    "numeric",
    "rules",
]
