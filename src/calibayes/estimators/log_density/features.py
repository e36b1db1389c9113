"""Log densities as features, for any classifier of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.engines import one_thread
from calibayes.estimators.log_density.recipe import WithPairs


@dataclass(eq=False, repr=False, kw_only=True)
class LogDensityFeatures(TransformerMixin, WithPairs):  # type: ignore[misc]
    """Logarithms of class-conditional kernel densities of columns and of dependent pairs (slb-2020, Eq. 5).

    Densities have Gaussian kernels with plug-in bandwidths. Columns that are constant in training are left out. What
    is kept after `fit` does not grow with the rows: see ``kept_rows``.

    Parameters
    ----------
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
        How dependent a pair is within a class; see `calibayes.dependence`.
    selection : "significant", selection or None, default="significant"
        Which pairs are kept: "significant" is `SignificantPairs`, at level 0.05 after Benjamini and Hochberg; `TopFraction`;
        None keeps all pairs.
    max_pairs : int or None, default=10000
        Most densities of pairs over all classes, the most dependent ones; a warning says when it cuts.
    leave_one_out : bool, default=False
        Whether `fit_transform` leaves each training row out of its own densities. Without it training rows look more
        probable than new ones, and a classifier trained on them is too sure: set it where one follows in a pipeline.
        scikit-learn expects `fit_transform` to be `fit` and `transform`, hence the default.
    original_columns : bool, default=False
        Whether the columns, as densities see them, are features, too.
    normal_scores : bool, default=False
        Whether columns are made about normal by their ranks first. Ratios of densities do not change with such a map, but
        kernels of one width fit skewed and heavy-tailed columns badly without it.
    floor : float, default=1e-4
        Least density, in units of one standard deviation of each column: that of a normal one four of them out.
    kept_rows : int or None, default=2000
        Most rows of a class that densities are estimated from, a random draw; None keeps all of them.
    random_state : int or RandomState, optional
        Seed of that draw.
    verbose : bool, optional
        Whether to print progress after the first second; by default where a person watches.

    Attributes
    ----------
    dependence_ : Dependence
        The measure of every pair and class.
    densities_ : LogDensities
    classes_ : (k,) array

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

    leave_one_out: bool = False
    original_columns: bool = False
    normal_scores: bool = False
    selection: Any = "significant"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the densities of each class."""
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """The features of the training rows, (n, features), each left out of its own densities if asked for."""
        features, where, n = self._fit(X, y, sample_weight)
        if len(where) == n:
            return features
        return self._filled(X, features, where, n)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, int]:
        classes, rows, read = self._labeled(X, y, sample_weight)
        with one_thread():
            learned = self._learn(rows, read.table.names, self._seed(), self._announcer())
        if len(learned.candidates) > 1:
            raise ValueError(
                f"{self.selection!r} offers several answers and needs a classifier to choose among them"
            )
        self.densities_, self.dependence_, self.classes_ = learned.densities, learned.dependence, classes
        self._columns = tuple(read.table.names)
        return learned.features, read.where, len(np.asarray(y))

    def _filled(self, X: Any, features: Array, where: Array, n: int) -> Array:
        """Rows without weight were not in training: their features are those of new rows."""
        every = np.empty((n, features.shape[1]))
        every[:] = self.transform(X)
        every[where] = features
        return every

    def transform(self, X: Any) -> Array:
        """The features of new rows, (n, features)."""
        check_is_fitted(self)
        with one_thread():
            return self._map(self.densities_, self._numbers(X, reset=False), None, self._announcer())

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features, such as ``log p(a, b | class)``."""
        check_is_fitted(self)
        return np.array(self._names_of(self.densities_, self._columns, self.classes_), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
