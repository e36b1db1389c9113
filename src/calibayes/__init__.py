"""Generative classifiers that are trained to decide well."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes import families, learn, rules
from calibayes._version import __version__
from calibayes.encoders.numbers import FewRowsWarning
from calibayes.estimators.count_models import ComplementNB, MultinomialNB, PoissonNB
from calibayes.estimators.discriminant_analysis import (
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from calibayes.estimators.tabular import KernelNB, NaiveBayes
from calibayes.families.gaussian import SingularCovarianceWarning
from calibayes.model.binding import categorical, every, numeric
from calibayes.model.pickles import PickledByAnotherVersionWarning
from calibayes.model.recipe import TrainingOptions
from calibayes.tables.dates import ColumnWarning
from calibayes.versions import show_versions

if TYPE_CHECKING:
    from calibayes import datasets, dependence
    from calibayes.analysis.cross_validation import cross_validate_closed_form
    from calibayes.ensemble.bayes import BayesClassifier, PosteriorMixture
    from calibayes.ensemble.training import SkippedMemberWarning
    from calibayes.estimators.aode import AODE, KDependenceBayes
    from calibayes.estimators.calibrated_trees import CalibratedTrees
    from calibayes.estimators.from_sklearn import from_sklearn
    from calibayes.estimators.joint_kernel import JointKernelClassifier
    from calibayes.estimators.log_densities import measure_dependence
    from calibayes.estimators.log_density import (
        LogDensityFeatures,
        LogUnivariateClassifier,
        SparseLogBivariateClassifier,
    )
    from calibayes.estimators.mixture_analysis import MixtureDiscriminantAnalysis
    from calibayes.estimators.trade_off import TradeOffCV
    from calibayes.estimators.tree_augmented import TreeAugmentedNB
    from calibayes.files.errors import ModelFileError
    from calibayes.files.model_file import load, save

_LATER = {
    "AODE": "estimators.aode",
    "BayesClassifier": "ensemble.bayes",
    "CalibratedTrees": "estimators.calibrated_trees",
    "JointKernelClassifier": "estimators.joint_kernel",
    "KDependenceBayes": "estimators.aode",
    "LogDensityFeatures": "estimators.log_density",
    "LogUnivariateClassifier": "estimators.log_density",
    "MixtureDiscriminantAnalysis": "estimators.mixture_analysis",
    "ModelFileError": "files.errors",
    "PosteriorMixture": "ensemble.bayes",
    "SkippedMemberWarning": "ensemble.training",
    "SparseLogBivariateClassifier": "estimators.log_density",
    "TradeOffCV": "estimators.trade_off",
    "TreeAugmentedNB": "estimators.tree_augmented",
    "cross_validate_closed_form": "analysis.cross_validation",
    "from_sklearn": "estimators.from_sklearn",
    "load": "files.model_file",
    "measure_dependence": "estimators.log_densities",
    "save": "files.model_file",
}
"""Modules of names that are imported at first use, since most programs need few of them."""

__all__ = [
    "AODE",
    "BayesClassifier",
    "BernoulliNB",
    "CalibratedTrees",
    "CategoricalNB",
    "ColumnWarning",
    "ComplementNB",
    "FewRowsWarning",
    "GaussianNB",
    "GenerativeClassifier",
    "GenerativeLogisticRegression",
    "JointKernelClassifier",
    "KDependenceBayes",
    "KernelNB",
    "LinearDiscriminantAnalysis",
    "LogDensityFeatures",
    "LogUnivariateClassifier",
    "MixtureDiscriminantAnalysis",
    "ModelFileError",
    "MultinomialNB",
    "NaiveBayes",
    "PickledByAnotherVersionWarning",
    "PoissonNB",
    "PosteriorMixture",
    "QuadraticDiscriminantAnalysis",
    "SingularCovarianceWarning",
    "SkippedMemberWarning",
    "SparseLogBivariateClassifier",
    "TradeOffCV",
    "TrainingOptions",
    "TreeAugmentedNB",
    "__version__",
    "categorical",
    "cross_validate_closed_form",
    "datasets",
    "dependence",
    "every",
    "families",
    "from_sklearn",
    "learn",
    "load",
    "measure_dependence",
    "numeric",
    "rules",
    "save",
    "show_versions",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in ("datasets", "dependence"):
            return import_module(f"calibayes.{name}")
        if name not in _LATER:
            raise AttributeError(f"module 'calibayes' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(f"calibayes.{_LATER[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
