"""Sparse log-bivariate densities (SLB) and log-univariate densities (LU): linear classifiers on log densities."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array, Engine
from calibayes.dependence import BestFraction
from calibayes.estimators import log_kernel_densities as log_densities
from calibayes.estimators.density_columns import labeled_numbers
from calibayes.estimators.linear_model import LogDensityClassifier
from calibayes.model.attributes import on_one_state
from calibayes.model.parameters import adopt, estimator, seed_of, unfitted_copy
from calibayes.model.table_inputs import open_rows
from calibayes.tables.table import Table


@estimator
class SparseLogBivariateClassifier(log_densities.WithPairs, LogDensityClassifier):
    """SLB: a linear classifier on class-conditional log densities of columns and of dependent pairs (slb-2020).

    By default each training row is left out of its own densities, the linear classifier is logistic regression, and
    cross-validation chooses the share of pairs and the cost. `paper` has the parameters of the paper instead.

    Parameters
    ----------
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
        Dependence of a pair within a class; see `calibayes.dependence`.
    selection : "cv", "significant", selection or None, default="cv"
        Pairs to use: "cv" is `BestFraction`, a share chosen by cross-validation; "significant" is `SignificantPairs`;
        `TopFraction`; None uses all pairs (the paper's SLB-).
    max_pairs : int or None, default=10000
        Largest number of densities of pairs over all classes; beyond it the most dependent ones are used, with a warning.
    pair_bandwidths : {"product", "full"}, default="product"
        Kernels of pairs: products of kernels of the columns, or kernels with a full bandwidth matrix, whose bandwidths
        along the principal components of the pair are those of the plug-in rule. The latter takes about five times as long.
    loss : {"log", "hinge"}, default="log"
        Logistic regression, which has probabilities, or a linear support vector machine, one class against the others
        if there are more than two.
    penalty : {"l2", "l1"}, default="l2"
        "l1" makes coefficients sparse; the hinge loss is then squared.
    C : float or sequence of floats, default=(1e-4, ..., 1)
        Cost (inverse regularization) as in scikit-learn; of several values one is chosen by cross-validation.
    class_weight : dict or "balanced", optional
        Weights of classes in the linear classifier; densities do not depend on them.
    standardize : bool, default=True
        Whether features are standardized for the linear classifier.
    cv : int, splitter or list of splits, default=3
        Number of stratified folds, or splits as in scikit-learn.
    scoring : {"loss", "error", "balanced_error"}, default="loss"
        What the choice minimizes; "loss" is the log loss, for "hinge" the error. Rows count by their weights.
    choice_rows : int or None, default=2000
        Largest number of rows, a random subset, that pairs and cost are chosen on if ``leave_one_out`` is set and ``cv``
        is a number.
    nested : bool, default=False
        Whether each split of the cross-validation estimates densities anew, on its training rows. With ``leave_one_out`` all
        splits otherwise use the same densities, which is faster and too optimistic where columns tell little about the class
        (docs/slb.md).
    leave_one_out : bool, default=True
        Whether training rows are left out of their own densities. Otherwise (as in the paper) their densities are larger
        than those of new rows, and each split of the cross-validation estimates densities anew.
    original_columns : bool, default=True
        Whether the standardized columns are features, too.
    normal_scores : bool, default=True
        Whether columns are first transformed to normal scores by their ranks. Ratios of densities do not depend on such
        a transformation, but kernels of one bandwidth fit skewed and heavy-tailed columns badly without it.
    floor : float, default=1e-4
        Least density, in units of one standard deviation of each column: about that of a normal distribution at four
        standard deviations.
    kept_rows : int or None, default=2000
        Largest number of rows of a class that densities are estimated from, a random subset, so that the size of the
        model does not grow with the number of rows; None keeps all of them.
    bandwidths : {"plug_in", "normal"}, default="plug_in"
        Bandwidths of single columns: direct plug-in rule (Sheather and Jones 1991), or normal reference rule.
    random_state : int or RandomState, optional
        Seed of random subsets and folds.
    n_jobs : int, optional
        Threads over rows. The result is the same for any number.
    verbose : bool, optional
        Whether to report progress on the standard error stream after the first second; by default on a terminal only.

    Attributes
    ----------
    classes_ : (k,) array
    coef_, intercept_ : (1 or k, features) and (1 or k,) arrays
        Coefficients of the features before standardization. Lemma 1 of the paper gives the coefficients with which the
        scores are those of a tree-structured model.
    feature_names_ : list of str
    C_ : float
        The cost used.
    cv_results_ : mapping
        "features" (selections,), "C" (costs,) and "loss" (selections, costs); absent without cross-validation.
    dependence_ : Dependence
        The measure of every pair and class (classes by their position).
    densities_ : LogDensities
        The densities that the features are computed from.
    kept_rows_ : int
        Number of training rows in the fitted model.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Notes
    -----
    The fitted model, and a file that it is saved to, contains training rows (``kept_rows``).

    Missing values, and columns of text or categories, are accepted (docs/slb.md); constant columns are not used. Time and
    memory of `fit` are proportional to the number of pairs of columns. A class needs two rows, or one if nothing is chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import SparseLogBivariateClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseLogBivariateClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """A classifier with the parameters of slb-2020, as far as its text and its Table 4 give them.

        Densities are evaluated on their own training rows; a linear support vector machine with C = 1 is fitted to the
        log densities without standardization; the share of pairs is chosen by the balanced error of three folds.
        """
        parameters: dict[str, Any] = {
            "measure": "hsic",
            "selection": BestFraction((0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)),
            "loss": "hinge",
            "penalty": "l2",
            "C": 1.0,
            "leave_one_out": False,
            "original_columns": False,
            "normal_scores": False,
            "standardize": False,
            "floor": 1e-10,
            "kept_rows": 2000,
            "cv": 3,
            "scoring": "balanced_error",
        }
        return cls(**{**parameters, **changes})


@estimator
class LogUnivariateClassifier(LogDensityClassifier):
    """LU: a linear classifier on class-conditional log densities of columns (slb-2020, section 5; Fan et al. 2016).

    The fitted model, and a file that it is saved to, contains training rows (``kept_rows``).

    Parameters
    ----------
    loss, penalty, C, class_weight, standardize, cv, scoring, choice_rows, nested, leave_one_out, original_columns, \
normal_scores, floor, kept_rows, bandwidths, random_state, n_jobs, verbose
        See `SparseLogBivariateClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LogUnivariateClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LogUnivariateClassifier().fit(X, y).coef_.shape
    (3, 16)
    """


# -- Log densities as features, for any classifier of scikit-learn -------------------------------------------


@estimator
class LogDensityFeatures(TransformerMixin, log_densities.WithPairs):  # type: ignore[misc]
    """Log class-conditional kernel densities of columns and of dependent pairs of columns (slb-2020, Eq. 5).

    Kernels are Gaussian with plug-in bandwidths; columns of text or categories have tables of probabilities. Missing values are
    accepted (docs/slb.md). Columns that are constant in training are not used. The size of the
    fitted transformer does not grow with the number of rows: see ``kept_rows``. It contains these training rows, as does a
    file that it is saved to.

    Parameters
    ----------
    selection : "significant", selection or None, default="significant"
        Pairs to use: "significant" is `SignificantPairs`, at level 0.05 after Benjamini and Hochberg; `TopFraction`;
        None uses all pairs.
    leave_one_out : bool, default=False
        Whether `fit_transform` leaves each training row out of its own densities. Otherwise densities of training rows
        are larger than those of new rows, and a classifier trained on them is overconfident: set it if a classifier
        follows in a pipeline. The default is False since scikit-learn expects `fit_transform` to equal `fit` and
        `transform`.
    original_columns : bool, default=False
        Whether the standardized columns are features, too.
    normal_scores : bool, default=False
        Whether columns are first transformed to normal scores by their ranks. Ratios of densities do not depend on such
        a transformation, but kernels of one bandwidth fit skewed and heavy-tailed columns badly without it.
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
        Dependence of a pair within a class; see `calibayes.dependence`.
    max_pairs : int or None, default=10000
        Largest number of densities of pairs over all classes; beyond it the most dependent ones are used, with a warning.
    pair_bandwidths : {"product", "full"}, default="product"
        Kernels of pairs; see `SparseLogBivariateClassifier`.
    floor : float, default=1e-4
        Least density, in units of one standard deviation of each column: about that of a normal distribution at four
        standard deviations.
    kept_rows : int or None, default=2000
        Largest number of rows of a class that densities are estimated from, a random subset; None keeps all of them.
    bandwidths : {"plug_in", "normal"}, default="plug_in"
        Bandwidths of single columns: direct plug-in rule (Sheather and Jones 1991), or normal reference rule.
    random_state : int or RandomState, optional
        Seed of the random subset.
    n_jobs : int, optional
        Threads over rows. The result is the same for any number.
    verbose : bool, optional
        Whether to report progress on the standard error stream after the first second; by default on a terminal only.

    Attributes
    ----------
    classes_ : (k,) array
    densities_ : LogDensities
    dependence_ : Dependence
        The measure of every pair and class (classes by their position).
    feature_names_ : list of str
    kept_rows_ : int
        Number of training rows in the fitted model.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LogDensityFeatures
    >>> from calibayes.dependence import TopFraction
    >>> X, y = load_iris(return_X_y=True)
    >>> features = LogDensityFeatures(selection=TopFraction(0.1), leave_one_out=True)
    >>> features.fit_transform(X, y).shape
    (150, 14)
    >>> features.get_feature_names_out()[-1]
    'log p(x2, x3 | 1)'
    """

    selection: Any = "significant"
    leave_one_out: bool = False
    original_columns: bool = False
    normal_scores: bool = False

    _always_fitted: ClassVar[tuple[str, ...]] = ("dependence_",)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the densities of each class. A row of weight w counts as w copies of it."""
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the features of the training rows, (n, features); see ``leave_one_out``.

        Rows of weight zero are not in training: their features are those of new rows.
        """
        features, positions = self._fit(X, y, sample_weight)
        if len(positions) == len(np.asarray(y)):
            return features
        all_features = self.transform(X)
        all_features[positions] = features
        return all_features

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Features of the rows with positive weight, and their positions among all rows."""
        reader, seed = unfitted_copy(self), seed_of(self.random_state)
        given = open_rows(X, y, sample_weight)
        with given.engine(self), log_densities.progress_reports(type(self).__name__, self.verbose) as report:
            classes, rows, table_rows = labeled_numbers(reader, given)
            names = table_rows.table.names
            estimates = log_densities.training_features(self, rows, names, seed, report)
            densities, features, candidates, dependence = estimates
            if len(candidates) > 1:
                problem = "has several candidates, which only a classifier can choose from"
                advice = "give a selection with one candidate, such as TopFraction(0.1)"
                raise ValueError(f"selection={self.selection!r} {problem}: {advice}")
        reader.classes_, reader.densities_, reader.dependence_ = classes, densities, dependence
        reader.feature_names_ = densities.feature_names(names, classes.tolist())
        adopt(self, {**vars(reader), **given.kept(table_rows)})
        return features, table_rows.positions

    @on_one_state
    def transform(self, X: Any) -> Array:
        """Features of new rows, (n, features)."""
        return open_rows(X).map(self, "transform", self._features)

    def _features(self, table: Table, engine: Engine) -> Array:
        return log_densities.new_features(self, table)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features, such as ``log p(a, b | class)``."""
        check_is_fitted(self)
        return np.array(self.feature_names_, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
