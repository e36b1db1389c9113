"""The closed list of what a model file can hold, by name. Loading looks names up here, and never imports by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from sklearn import covariance, model_selection

from calibayes import dependence, encoders, engines, families, learn, rules
from calibayes.analysis.cell_scores import SurpriseReference
from calibayes.analysis.column_cells import ColumnCells, DriftReference
from calibayes.analysis.prior_shift import PriorShift
from calibayes.analysis.privacy import Privacy, PrivacyAccount
from calibayes.analysis.receipts import ForgettingReceipt
from calibayes.core.protocols import Layout
from calibayes.encoders.by_column_type import numeric_columns
from calibayes.encoders.dense import AsinhScaled, Indicators, MissingIndicator
from calibayes.encoders.leaves import OrderedBytes
from calibayes.encoders.numbers import Counts
from calibayes.encoders.schema import Column
from calibayes.ensemble.bayes import BayesClassifier, PosteriorMixture
from calibayes.ensemble.fitted_ensemble import FittedEnsemble
from calibayes.ensemble.grown_trees import GrownTrees
from calibayes.ensemble.member import CalibrationPath
from calibayes.ensemble.path_members import KernelPath, ShrinkagePath
from calibayes.estimators import count_models, discriminant_analysis, naive_bayes, tabular
from calibayes.estimators.aode import AODE, KDependenceBayes
from calibayes.estimators.calibrated_trees import CalibratedTrees
from calibayes.estimators.column_kinds import OfKind
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.joint_kernel import JointDensity, JointKernelClassifier
from calibayes.estimators.log_densities import LogDensities
from calibayes.estimators.log_density import (
    LogDensityFeatures,
    LogUnivariateClassifier,
    SparseLogBivariateClassifier,
)
from calibayes.estimators.mixture_analysis import MixtureDiscriminantAnalysis
from calibayes.estimators.trade_off import TradeOffCV
from calibayes.estimators.tree_augmented import TreeAugmentedNB
from calibayes.families.class_centers import AsEstimated
from calibayes.families.covariances import (
    FixedCovariance,
    Plain,
    Ridge,
    TowardsIdentity,
    TowardsSphere,
    VarianceSmoothing,
    WeightedTied,
)
from calibayes.families.priors import ResolvedPrior
from calibayes.files.value_objects import OlderFields
from calibayes.kernels.forests import Forest
from calibayes.kernels.joint_density import KernelRows, NormalScores, ProductKernel
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.model.binding import ColumnBinding, categorical, every, numeric
from calibayes.model.delegates import EXTRAS
from calibayes.model.fitted import Fitted
from calibayes.model.recipe import TrainingOptions
from calibayes.model.remembered import HeldOut
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.dates import DateFormat, Dates, Durations
from calibayes.tables.kept_sums import KeptSums
from calibayes.tables.origin import FromArray, FromFrame
from calibayes.tables.summary_sums import DistinctSums
from calibayes.tables.training_table import TrainingTable

VALUES: Final[Mapping[str, type]] = {
    cls.__name__: cls
    for cls in (
        # what is fitted
        *(Fitted, FittedEnsemble, GrownTrees, ColumnBinding, Layout, JointDensity, LogDensities),
        *(KernelRows, NormalScores, ProductKernel, dependence.Dependence),
        *(CalibrationPath, KernelPath, ShrinkagePath, TrainingTable, KeptSums, DistinctSums, HeldOut),
        *(ForgettingReceipt, Privacy, PrivacyAccount),
        PriorShift,
        *(ColumnCells, DriftReference, SurpriseReference),
        # tables and encoders
        *(encoders.Schema, Column, ColumnConversion, Dates, DateFormat, Durations, FromArray, FromFrame),
        *(encoders.AdaptiveBins, encoders.InformedBins, encoders.KMeansBins, encoders.MDLBins),
        *(encoders.PairBins, encoders.QuantileBins, encoders.UniformBins, encoders.Grid),
        *(encoders.ByColumnType, encoders.Clusters, encoders.Dense, encoders.Flags, Counts, encoders.Numbers),
        *(encoders.Levels, encoders.MissingAsLevel, encoders.PrincipalComponents),
        *(encoders.Leaves, OrderedBytes, Forest, GrowthSettings),
        *(AsinhScaled, Indicators, MissingIndicator, OfKind),
        # families
        *(families.Product, families.ClassPrior, families.Bernoulli, families.Categorical),
        *(families.Complement, families.Multinomial, families.Poisson, families.Gaussian, families.Mixture),
        *(families.KernelDensity, families.KernelPair, families.Tree),
        *(families.AveragedOneDependence, families.KDependence),
        *(families.Diagonal, families.Full, families.Spherical, families.Tied, families.TiedDiagonal),
        *(families.TiedSpherical, families.TreeCovariance, FixedCovariance, WeightedTied),
        *(Plain, Ridge, TowardsIdentity, TowardsSphere, VarianceSmoothing, families.Inflated),
        *(AsEstimated, families.SoftThreshold, families.OneTree, families.PerClass),
        *(families.AllEdges, families.InformativeEdges, families.SignificantEdges),
        *(families.FixedWidth, families.InCells, families.NormalReference, families.OverBins),
        *(families.SheatherJones, families.Silverman),
        *(families.Dirichlet, families.Gamma, families.NormalInverseWishart, families.WithinClasses),
        ResolvedPrior,
        # rules and training
        *(rules.DFE, rules.EM, rules.GD, rules.GDT, rules.MAP, rules.ML, rules.RC, rules.TM),
        *(rules.Backtracking, rules.Fixed, rules.Schedule),
        *(learn.AnyOf, learn.LastState, learn.MaxPasses, learn.Never, learn.NoGain),
        *(learn.Patience, learn.SoftErrorRises, learn.TimeLimit, learn.ValidationLoss),
        *(learn.Bootstrap, learn.Data, learn.EvenWeights, learn.Likelihood, learn.RandomLabels),
        *(engines.Serial, engines.Threads),
        # dependence of columns
        *(dependence.HSIC, dependence.MutualInformation, dependence.Pearson, dependence.Spearman),
        *(dependence.Permuted, dependence.BestFraction, dependence.SignificantPairs, dependence.TopFraction),
    )
}
"""Name -> frozen dataclass, named tuple or class without fields: made by calling it with its fields."""


@dataclass(frozen=True)
class EstimatorEntry:
    """An estimator, and the types of the attributes that `fit` sets."""

    cls: type
    attributes: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    """Parameters that name files of the machine of the training: a model file does not hold them."""


_ADAPTED = {
    "adapted_priors_": np.ndarray,
    "adapted_priors_interval_": np.ndarray,
    "prior_shift_": PriorShift,
}
_NAMES = {
    "feature_names_in_": np.ndarray,
    "held_out_": HeldOut,
    "drift_reference_": DriftReference,
    "surprise_reference_": SurpriseReference,
    **_ADAPTED,
}
"""Attributes of some fitted models."""
_TABLE = {"n_features_in_": int, "training_table_": TrainingTable}
_COLUMNS = {**_TABLE, "conversion_": ColumnConversion}
_GENERATIVE = {"fitted_": Fitted, **_COLUMNS}
_ENSEMBLE = {"fitted_": FittedEnsemble, **_COLUMNS}
_DENSITIES = {
    "classes_": np.ndarray,
    "densities_": LogDensities,
    "feature_names_": list[str],
    **_COLUMNS,
}
_LINEAR = {**_DENSITIES, "coef_": np.ndarray, "intercept_": np.ndarray, "C_": float}
_JOINT_KERNEL = {
    "classes_": np.ndarray,
    "schema_": encoders.Schema,
    "density_": JointDensity,
    "bandwidth_step_": int,
    "prior_rows_": float,
    "relevance_": Mapping[str, float],
    **_COLUMNS,
}
_TRADE_OFF = {"cv_results_": Mapping[str, Any], "lam_": float, "estimator_": Any, **_TABLE}
_CHOICE = {"cv_results_": Mapping[str, Any], **_NAMES}
_PAIRS = {"dependence_": dependence.Dependence}

_ENTRIES = (
    *(
        EstimatorEntry(cls, _GENERATIVE, _NAMES)
        for cls in (
            *(GenerativeClassifier, MixtureDiscriminantAnalysis, TreeAugmentedNB, CalibratedTrees),
            *(AODE, KDependenceBayes),
            *(naive_bayes.BernoulliNB, naive_bayes.CategoricalNB, naive_bayes.GaussianNB),
            *(
                count_models.ComplementNB,
                count_models.MultinomialNB,
                count_models.PoissonNB,
                tabular.KernelNB,
                tabular.NaiveBayes,
            ),
            discriminant_analysis.GenerativeLogisticRegression,
            discriminant_analysis.LinearDiscriminantAnalysis,
            discriminant_analysis.QuadraticDiscriminantAnalysis,
        )
    ),
    *(EstimatorEntry(cls, _ENSEMBLE, _NAMES) for cls in (BayesClassifier, PosteriorMixture)),
    EstimatorEntry(JointKernelClassifier, _JOINT_KERNEL, {**_NAMES, "left_out_log_loss_": np.ndarray}),
    EstimatorEntry(LogUnivariateClassifier, _LINEAR, _CHOICE),
    EstimatorEntry(SparseLogBivariateClassifier, _LINEAR, {**_CHOICE, **_PAIRS}),
    EstimatorEntry(LogDensityFeatures, _DENSITIES, {**_NAMES, **_PAIRS}),
    EstimatorEntry(TradeOffCV, _TRADE_OFF, _NAMES),
    EstimatorEntry(TrainingOptions, local=("checkpoint",)),
)
ESTIMATORS: Final[Mapping[str, EstimatorEntry]] = {entry.cls.__name__: entry for entry in _ENTRIES}

FOREIGN: Final[Mapping[str, type]] = {
    cls.__name__: cls
    for cls in (
        *(model_selection.KFold, model_selection.StratifiedKFold, model_selection.GroupKFold),
        *(model_selection.StratifiedGroupKFold, model_selection.ShuffleSplit, model_selection.LeaveOneOut),
        *(model_selection.StratifiedShuffleSplit, model_selection.RepeatedKFold),
        model_selection.RepeatedStratifiedKFold,
        *(covariance.EmpiricalCovariance, covariance.ShrunkCovariance, covariance.LedoitWolf, covariance.OAS),
    )
}
"""Classes of scikit-learn that parameters may hold: made by calling them with their parameters."""

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        *(every, numeric, categorical, numeric_columns),
        *(dependence.bonferroni, dependence.benjamini_hochberg),
    )
}


def _with_extras(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Fitted`; in format 1, each extra was a field of its own, None or empty if there was none."""
    older = {name: fields.pop(name) for name in EXTRAS if name in fields}
    extras = {name: value for name, value in older.items() if value is not None and value != ()}
    return {**fields, "extras": extras} if older else fields


OLDER_FIELDS: Final[Mapping[str, OlderFields]] = {"Fitted": OlderFields(tuple(EXTRAS), _with_extras)}
"""Class -> its fields in files of older formats."""
