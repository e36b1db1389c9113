"""Generative classifiers that are trained to decide well."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes._version import __version__

if TYPE_CHECKING:
    from calibayes import compare as compare
    from calibayes import datasets, dependence, families, learn, rules
    from calibayes import files as files
    from calibayes.analysis.cross_validation import cross_validate_closed_form
    from calibayes.encoders.numbers import FewRowsWarning
    from calibayes.ensemble.bayes import BayesClassifier, PosteriorMixture
    from calibayes.ensemble.training import SkippedMemberWarning
    from calibayes.estimators.aode import AODE, KDependenceBayes
    from calibayes.estimators.calibrated_trees import CalibratedTrees
    from calibayes.estimators.count_models import ComplementNB, MultinomialNB, PoissonNB
    from calibayes.estimators.discriminant_analysis import (
        GenerativeLogisticRegression,
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from calibayes.estimators.from_sklearn import from_sklearn
    from calibayes.estimators.generative import GenerativeClassifier
    from calibayes.estimators.joint_kernel import JointKernelClassifier
    from calibayes.estimators.log_kernel_densities import measure_dependence
    from calibayes.estimators.mixture_analysis import MixtureDiscriminantAnalysis
    from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
    from calibayes.estimators.sparse_log_density import (
        LogDensityFeatures,
        LogUnivariateClassifier,
        SparseLogBivariateClassifier,
    )
    from calibayes.estimators.tabular import KernelNB, NaiveBayes
    from calibayes.estimators.trade_off import TradeOffCV
    from calibayes.estimators.tree_augmented import TreeAugmentedNB
    from calibayes.families.gaussian import SingularCovarianceWarning
    from calibayes.files.container import ModelFileError
    from calibayes.files.model_file import load, save
    from calibayes.model.binding import categorical, every, numeric
    from calibayes.model.pickles import PickledByAnotherVersionWarning
    from calibayes.model.recipe import TrainingOptions
    from calibayes.tables.dates import ColumnWarning
    from calibayes.versions import show_versions

_LATER = {
    "analysis.cross_validation": ("cross_validate_closed_form",),
    "encoders.numbers": ("FewRowsWarning",),
    "ensemble.bayes": ("BayesClassifier", "PosteriorMixture"),
    "ensemble.training": ("SkippedMemberWarning",),
    "estimators.aode": ("AODE", "KDependenceBayes"),
    "estimators.calibrated_trees": ("CalibratedTrees",),
    "estimators.count_models": ("ComplementNB", "MultinomialNB", "PoissonNB"),
    "estimators.discriminant_analysis": (
        "GenerativeLogisticRegression",
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "estimators.from_sklearn": ("from_sklearn",),
    "estimators.generative": ("GenerativeClassifier",),
    "estimators.joint_kernel": ("JointKernelClassifier",),
    "estimators.log_kernel_densities": ("measure_dependence",),
    "estimators.sparse_log_density": (
        "LogDensityFeatures",
        "LogUnivariateClassifier",
        "SparseLogBivariateClassifier",
    ),
    "estimators.mixture_analysis": ("MixtureDiscriminantAnalysis",),
    "estimators.naive_bayes": ("BernoulliNB", "CategoricalNB", "GaussianNB"),
    "estimators.tabular": ("KernelNB", "NaiveBayes"),
    "estimators.trade_off": ("TradeOffCV",),
    "estimators.tree_augmented": ("TreeAugmentedNB",),
    "families.gaussian": ("SingularCovarianceWarning",),
    "files.container": ("ModelFileError",),
    "files.model_file": ("load", "save"),
    "model.binding": ("categorical", "every", "numeric"),
    "model.pickles": ("PickledByAnotherVersionWarning",),
    "model.recipe": ("TrainingOptions",),
    "tables.dates": ("ColumnWarning",),
    "versions": ("show_versions",),
}
"""Module -> names that are imported from it at first use: ``calibayes --version`` needs none, most programs need few."""
_MODULES = {name: f"calibayes.{module}" for module, names in _LATER.items() for name in names}
_PACKAGES = {"compare", "core", "datasets", "dependence", "engines", "kernels", "learn", "rules"}
_PACKAGES |= {module.partition(".")[0] for module in _LATER}
"""Packages that ``import calibayes`` makes available, imported at first use, too."""

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
        if name in _PACKAGES:
            return import_module(f"calibayes.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module 'calibayes' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_MODULES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
