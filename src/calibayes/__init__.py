"""Generative classifiers that are trained to decide well."""

from calibayes import datasets, dependence, families, learn, rules
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
from calibayes.estimators.log_density_features import LogDensityFeatures
from calibayes.estimators.measuring import measure_dependence
from calibayes.estimators.mixing import SkippedMemberWarning
from calibayes.estimators.mixture import MixtureDiscriminantAnalysis
from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, NaiveBayes
from calibayes.estimators.posterior_mixture import PosteriorMixture
from calibayes.estimators.sparse_log_bivariate import LogUnivariateClassifier, SparseLogBivariateClassifier
from calibayes.estimators.trade_off import TradeOffCV
from calibayes.estimators.tree import TreeAugmentedNB
from calibayes.families.singular import SingularCovarianceWarning
from calibayes.tables.clusters import FewRowsWarning
from calibayes.versions import show_versions

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
    "LogDensityFeatures",
    "LogUnivariateClassifier",
    "MixtureDiscriminantAnalysis",
    "MultinomialNB",
    "NaiveBayes",
    "PoissonNB",
    "PosteriorMixture",
    "QuadraticDiscriminantAnalysis",
    "SingularCovarianceWarning",
    "SkippedMemberWarning",
    "SparseLogBivariateClassifier",
    "TradeOffCV",
    "TreeAugmentedNB",
    "__version__",
    "categorical",
    "cross_validate_closed_form",
    "datasets",
    "dependence",
    "every",
    "families",
    "learn",
    "measure_dependence",
    "numeric",
    "rules",
    "show_versions",
]
