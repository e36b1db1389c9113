"""Log densities as features, for any classifier of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Array
from calibayes.engines import one_thread
from calibayes.estimators.interface.parameters import adopt, estimator, seed_of, unfitted_copy
from calibayes.estimators.log_density.numeric_rows import labeled_numbers
from calibayes.estimators.log_density.recipe import WithPairs, new_features, training_features
from calibayes.estimators.log_density.report import progress_reports


@estimator
class LogDensityFeatures(TransformerMixin, WithPairs):  # type: ignore[misc]
    """Log class-conditional kernel densities of columns and of dependent pairs of columns (slb-2020, Eq. 5).

    Kernels are Gaussian with plug-in bandwidths. Columns that are constant in training are not used. The size of the
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
    floor : float, default=1e-4
        Least density, in units of one standard deviation of each column: about that of a normal distribution at four
        standard deviations.
    kept_rows : int or None, default=2000
        Largest number of rows of a class that densities are estimated from, a random subset; None keeps all of them.
    random_state : int or RandomState, optional
        Seed of the random subset.
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

    always_fitted: ClassVar[tuple[str, ...]] = ("dependence_",)

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
        all_features = new_features(self, X)
        all_features[positions] = features
        return all_features

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Features of the rows with positive weight, and their positions among all rows."""
        reader, seed = unfitted_copy(self), seed_of(self.random_state)
        with (
            collected_warnings(),
            one_thread(),
            progress_reports(type(self).__name__, self.verbose) as report,
        ):
            classes, rows, table_rows = labeled_numbers(reader, X, y, sample_weight)
            names = table_rows.table.names
            densities, features, candidates, dependence = training_features(self, rows, names, seed, report)
            if len(candidates) > 1:
                raise ValueError(
                    f"selection={self.selection!r} has several candidates, which only a classifier can choose from: "
                    "give a selection with one candidate, such as TopFraction(0.1)"
                )
        reader.classes_, reader.densities_, reader.dependence_ = classes, densities, dependence
        reader.feature_names_ = densities.feature_names(names, classes.tolist())
        adopt(self, vars(reader))
        return features, table_rows.positions

    def transform(self, X: Any) -> Array:
        """Features of new rows, (n, features)."""
        return new_features(self, X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features, such as ``log p(a, b | class)``."""
        check_is_fitted(self)
        return np.array(self.feature_names_, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
