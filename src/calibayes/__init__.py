"""Generative classifiers that are trained to decide well."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes import families, learn, rules
from calibayes._version import __version__
from calibayes.encoders.clusters import FewRowsWarning
from calibayes.estimators.columns import categorical, every, numeric
from calibayes.estimators.counts import ComplementNB, MultinomialNB, PoissonNB
from calibayes.estimators.discriminant_analysis import (
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, NaiveBayes
from calibayes.families.gaussian.singular import SingularCovarianceWarning
from calibayes.versions import show_versions

if TYPE_CHECKING:
    from calibayes import datasets, dependence
    from calibayes.estimators.bayes import BayesClassifier
    from calibayes.estimators.closed_form import cross_validate_closed_form
    from calibayes.estimators.joint_kernel import JointKernelClassifier
    from calibayes.estimators.kernel_naive_bayes import KernelNB
    from calibayes.estimators.log_density_features import LogDensityFeatures
    from calibayes.estimators.measuring import measure_dependence
    from calibayes.estimators.mixing import SkippedMemberWarning
    from calibayes.estimators.mixture import MixtureDiscriminantAnalysis
    from calibayes.estimators.posterior_mixture import PosteriorMixture
    from calibayes.estimators.sparse_log_bivariate import (
        LogUnivariateClassifier,
        SparseLogBivariateClassifier,
    )
    from calibayes.estimators.trade_off import TradeOffCV
    from calibayes.estimators.tree import TreeAugmentedNB

_LATER = {
    "BayesClassifier": "estimators.bayes",
    "JointKernelClassifier": "estimators.joint_kernel",
    "KernelNB": "estimators.kernel_naive_bayes",
    "LogDensityFeatures": "estimators.log_density_features",
    "LogUnivariateClassifier": "estimators.sparse_log_bivariate",
    "MixtureDiscriminantAnalysis": "estimators.mixture",
    "PosteriorMixture": "estimators.posterior_mixture",
    "SkippedMemberWarning": "estimators.mixing",
    "SparseLogBivariateClassifier": "estimators.sparse_log_bivariate",
    "TradeOffCV": "estimators.trade_off",
    "TreeAugmentedNB": "estimators.tree",
    "cross_validate_closed_form": "estimators.closed_form",
    "measure_dependence": "estimators.measuring",
}
"""Where names are that are loaded when they are first asked for: most programs use few of them."""

__all__ = [
    "BayesClassifier",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "FewRowsWarning",
    "GaussianNB",
    "GenerativeClassifier",
    "GenerativeLogisticRegression",
    "JointKernelClassifier",
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


if not TYPE_CHECKING:  # a checker of types would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name in ("datasets", "dependence"):
            return import_module(f"calibayes.{name}")
        if name not in _LATER:
            raise AttributeError(f"module 'calibayes' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(f"calibayes.{_LATER[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
