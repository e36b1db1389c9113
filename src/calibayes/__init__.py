"""Generative classifiers that are trained to decide well."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes import families, learn, rules
from calibayes._version import __version__
from calibayes.encoders.clusters import FewRowsWarning
from calibayes.estimators.generative.binding import categorical, every, numeric
from calibayes.estimators.generative.recipe import TrainingOptions
from calibayes.estimators.interface.pickles import PickledByAnotherVersionWarning
from calibayes.estimators.presets.classifier import GenerativeClassifier
from calibayes.estimators.presets.counts import ComplementNB, MultinomialNB, PoissonNB
from calibayes.estimators.presets.discriminant_analysis import (
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.presets.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from calibayes.estimators.presets.tabular import KernelNB, NaiveBayes
from calibayes.families.gaussian.singular import SingularCovarianceWarning
from calibayes.tables.date_columns import ColumnWarning
from calibayes.versions import show_versions

if TYPE_CHECKING:
    from calibayes import datasets, dependence
    from calibayes.estimators.ensemble.bayes import BayesClassifier
    from calibayes.estimators.ensemble.fit import SkippedMemberWarning
    from calibayes.estimators.ensemble.posterior_mixture import PosteriorMixture
    from calibayes.estimators.generative.cross_validation import cross_validate_closed_form
    from calibayes.estimators.joint_kernel.classifier import JointKernelClassifier
    from calibayes.estimators.log_density.classifier import (
        LogUnivariateClassifier,
        SparseLogBivariateClassifier,
    )
    from calibayes.estimators.log_density.dependence import measure_dependence
    from calibayes.estimators.log_density.features import LogDensityFeatures
    from calibayes.estimators.presets.aode import AODE
    from calibayes.estimators.presets.from_sklearn.conversion import from_sklearn
    from calibayes.estimators.presets.k_dependence import KDependenceBayes
    from calibayes.estimators.presets.mixture import MixtureDiscriminantAnalysis
    from calibayes.estimators.presets.trade_off import TradeOffCV
    from calibayes.estimators.presets.tree import TreeAugmentedNB
    from calibayes.estimators.trees.classifier import CalibratedTrees
    from calibayes.files.model_file import load, save
    from calibayes.storage.errors import ModelFileError

_LATER = {
    "AODE": "estimators.presets.aode",
    "BayesClassifier": "estimators.ensemble.bayes",
    "CalibratedTrees": "estimators.trees.classifier",
    "JointKernelClassifier": "estimators.joint_kernel.classifier",
    "KDependenceBayes": "estimators.presets.k_dependence",
    "LogDensityFeatures": "estimators.log_density.features",
    "LogUnivariateClassifier": "estimators.log_density.classifier",
    "MixtureDiscriminantAnalysis": "estimators.presets.mixture",
    "ModelFileError": "storage.errors",
    "PosteriorMixture": "estimators.ensemble.posterior_mixture",
    "SkippedMemberWarning": "estimators.ensemble.fit",
    "SparseLogBivariateClassifier": "estimators.log_density.classifier",
    "TradeOffCV": "estimators.presets.trade_off",
    "TreeAugmentedNB": "estimators.presets.tree",
    "cross_validate_closed_form": "estimators.generative.cross_validation",
    "from_sklearn": "estimators.presets.from_sklearn.conversion",
    "load": "files.model_file",
    "measure_dependence": "estimators.log_density.dependence",
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
