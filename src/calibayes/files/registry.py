"""The closed list of what a model file can hold, by name. Loading looks names up here, and never imports by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from sklearn import covariance, model_selection

import calibayes as cb
from calibayes import dependence, encoders, engines, families, learn, rules
from calibayes.analysis import cell_scores, column_cells, prior_shift, privacy, receipts
from calibayes.core.protocols import Layout
from calibayes.encoders import by_column_type, dense, leaves, numbers, schema, sequence_codes
from calibayes.ensemble import fitted_ensemble, grown_trees, path_members, standard_members
from calibayes.estimators import class_densities, joint_kernel, sequence_classifier, tabular
from calibayes.families import class_centers, covariance_shapes, hidden_markov, markov_chain, priors
from calibayes.files.value_objects import OlderFields, Written
from calibayes.kernels import forests, joint_density, tree_growth
from calibayes.model import fitted, training_rows
from calibayes.model.binding import ColumnBinding
from calibayes.model.delegates import EXTRAS
from calibayes.tables import conversion, dates, kept_sums, origin, summary_sums, table

VALUES: Final[Mapping[str, type]] = {
    cls.__name__: cls
    for cls in (
        # what is fitted
        *(fitted.Fitted, fitted_ensemble.FittedEnsemble, grown_trees.GrownTrees, ColumnBinding, Layout),
        *(joint_kernel.JointDensity, class_densities.LogDensities, joint_density.KernelRows),
        *(joint_density.NormalScores, joint_density.ProductKernel, dependence.Dependence),
        *(path_members.CalibrationPath, path_members.KernelPath, path_members.ShrinkagePath),
        *(table.TrainingTable, kept_sums.KeptSums, summary_sums.DistinctSums, training_rows.HeldOut),
        *(receipts.ForgettingReceipt, privacy.Privacy, privacy.PrivacyAccount, prior_shift.PriorShift),
        *(column_cells.ColumnCells, column_cells.DriftReference, cell_scores.SurpriseReference),
        # tables and encoders
        *(encoders.Schema, schema.Column, conversion.ColumnConversion, dates.Dates, dates.DateFormat),
        *(dates.Durations, origin.FromArray, origin.FromFrame, encoders.AdaptiveBins, encoders.InformedBins),
        *(encoders.KMeansBins, encoders.MDLBins, encoders.PairBins, encoders.QuantileBins),
        *(encoders.UniformBins, encoders.Grid, encoders.ByColumnType, encoders.Clusters, encoders.Dense),
        *(encoders.Flags, numbers.Counts, encoders.Numbers, encoders.Levels, encoders.MissingAsLevel),
        *(encoders.PrincipalComponents, encoders.Leaves, leaves.OrderedBytes, forests.Forest),
        *(tree_growth.GrowthSettings, dense.AsinhScaled, dense.Indicators, dense.MissingIndicator),
        *(tabular.OfKind, sequence_codes.Sequences, markov_chain.MarkovChain),
        hidden_markov.HiddenMarkov,
        # families
        *(families.Product, families.ClassPrior, families.Bernoulli, families.Categorical),
        *(families.Complement, families.Multinomial, families.Poisson, families.Gaussian, families.Mixture),
        *(families.KernelDensity, families.KernelPair, families.Tree, families.AveragedOneDependence),
        *(families.KDependence, families.Diagonal, families.Full, families.Spherical, families.Tied),
        *(families.TiedDiagonal, families.TiedSpherical, families.TreeCovariance),
        *(
            covariance_shapes.FixedCovariance,
            covariance_shapes.WeightedTied,
            covariance_shapes.Plain,
            covariance_shapes.Ridge,
        ),
        *(
            covariance_shapes.TowardsIdentity,
            covariance_shapes.TowardsSphere,
            covariance_shapes.VarianceSmoothing,
        ),
        *(families.Exponential, families.GammaDensity, families.GammaByMoments, families.LogNormal),
        *(families.NegativeBinomial, families.VonMises, families.DirichletDensity),
        *(families.Inflated, class_centers.AsEstimated, families.SoftThreshold, families.OneTree),
        *(families.PerClass, families.AllEdges, families.InformativeEdges, families.SignificantEdges),
        *(families.GivenTree, families.Information, families.ConditionalLikelihood, families.SoftError),
        *(families.FixedWidth, families.InCells, families.NormalReference, families.OverBins),
        *(families.SheatherJones, families.Silverman, families.Dirichlet, families.Gamma),
        *(families.NormalInverseWishart, families.WithinClasses, priors.ResolvedPrior),
        # rules and training
        *(rules.DFE, rules.EM, rules.GD, rules.GDT, rules.MAP, rules.ML, rules.RC, rules.TM),
        *(rules.Backtracking, rules.Fixed, rules.Schedule, learn.AnyOf, learn.LastState, learn.MaxPasses),
        *(learn.Never, learn.NoGain, learn.Patience, learn.SoftErrorRises, learn.TimeLimit),
        *(learn.ValidationLoss, learn.Bootstrap, learn.Data, learn.EvenWeights, learn.Likelihood),
        *(learn.RandomLabels, learn.RandomParameters, learn.SeveralStarts, engines.Serial, engines.Threads),
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


_NAMES = {
    "feature_names_in_": np.ndarray,
    "held_out_": training_rows.HeldOut,
    "drift_reference_": column_cells.DriftReference,
    "surprise_reference_": cell_scores.SurpriseReference,
    "adapted_priors_": np.ndarray,
    "adapted_priors_interval_": np.ndarray,
    "prior_shift_": prior_shift.PriorShift,
}
"""Attributes of some fitted models."""
_TABLE = {"n_features_in_": int, "training_table_": table.TrainingTable}
_COLUMNS = {**_TABLE, "conversion_": conversion.ColumnConversion}
_GENERATIVE = {"fitted_": fitted.Fitted, **_COLUMNS}
_ENSEMBLE = {"fitted_": fitted_ensemble.FittedEnsemble, **_COLUMNS}
_DENSITIES = {
    "classes_": np.ndarray,
    "densities_": class_densities.LogDensities,
    "feature_names_": list[str],
    **_COLUMNS,
}
_LINEAR = {**_DENSITIES, "coef_": np.ndarray, "intercept_": np.ndarray, "C_": float}
_JOINT_KERNEL = {
    "classes_": np.ndarray,
    "schema_": encoders.Schema,
    "density_": joint_kernel.JointDensity,
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
            *(cb.GenerativeClassifier, cb.MixtureDiscriminantAnalysis, cb.TreeAugmentedNB),
            *(cb.CalibratedTrees, cb.AODE, cb.KDependenceBayes, cb.BernoulliNB, cb.CategoricalNB),
            *(cb.GaussianNB, cb.ComplementNB, cb.MultinomialNB, cb.PoissonNB, cb.KernelNB, cb.NaiveBayes),
            *(cb.GenerativeLogisticRegression, cb.LinearDiscriminantAnalysis),
            *(cb.QuadraticDiscriminantAnalysis, sequence_classifier.SequenceClassifier),
        )
    ),
    *(EstimatorEntry(cls, _ENSEMBLE, _NAMES) for cls in (cb.BayesClassifier, cb.PosteriorMixture)),
    EstimatorEntry(cb.JointKernelClassifier, _JOINT_KERNEL, {**_NAMES, "left_out_log_loss_": np.ndarray}),
    EstimatorEntry(cb.LogUnivariateClassifier, _LINEAR, _CHOICE),
    EstimatorEntry(cb.SparseLogBivariateClassifier, _LINEAR, {**_CHOICE, **_PAIRS}),
    EstimatorEntry(cb.LogDensityFeatures, _DENSITIES, {**_NAMES, **_PAIRS}),
    EstimatorEntry(cb.TradeOffCV, _TRADE_OFF, _NAMES),
    EstimatorEntry(cb.TrainingOptions, local=("checkpoint",)),
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
        *(cb.every, cb.numeric, cb.categorical, by_column_type.numeric_columns, standard_members.varying),
        *(dependence.bonferroni, dependence.benjamini_hochberg),
    )
}


def _with_extras(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Fitted`; in format 1, each extra was a field of its own, None or empty if there was none."""
    older = {name: fields.pop(name) for name in EXTRAS if name in fields}
    extras = {name: value for name, value in older.items() if value is not None and value != ()}
    return {**fields, "extras": extras} if older else fields


OLDER_FIELDS: Final[Mapping[str, OlderFields]] = {"Fitted": (tuple(EXTRAS), _with_extras)}
"""Class -> its fields in files of older formats."""


def _without_times(history: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The measurements of a training, without how long it took."""
    return history and {name: values for name, values in history.items() if name != "seconds"}


SHORTENED: Final[Mapping[tuple[str, str], Written]] = {("Fitted", "history"): _without_times}
"""Class and field -> what is written of it: times are left out, so that equal fits write equal files."""
