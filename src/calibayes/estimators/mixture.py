"""Discriminant analysis with several Gaussian components a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.protocols import Array, Rule
from calibayes.encoders.clusters import Clusters
from calibayes.estimators import components
from calibayes.estimators.checks import WHOLE, number, whole_number
from calibayes.estimators.columns import every
from calibayes.estimators.discriminant_analysis import Discriminant
from calibayes.estimators.reading import Rows
from calibayes.families import (
    Diagonal,
    Full,
    Gaussian,
    Mixture,
    NormalInverseWishart,
    Spherical,
    Tied,
    TiedDiagonal,
    TiedSpherical,
)
from calibayes.families.gaussian.regularizers import Plain, Ridge
from calibayes.families.gaussian.shapes import Shape
from calibayes.learn import Start

SHAPES: dict[str, Shape] = {
    "full": Full(),
    "diagonal": Diagonal(),
    "spherical": Spherical(),
    "tied": Tied(),
    "tied_diagonal": TiedDiagonal(),
    "tied_spherical": TiedSpherical(),
}
"""Short name -> shape of the covariances."""


@dataclass(eq=False, repr=False, kw_only=True)
class MixtureDiscriminantAnalysis(Discriminant):
    """Each class a mixture of Gaussian components, begun by k-means within the class.

    Maximum likelihood (``rule="ml"``) is expectation maximization; other rules start where it ends, unless ``start``
    says otherwise. The defaults, three components and one covariance that all of them share, are those of Hastie and
    Tibshirani (1996). One component a class is discriminant analysis with a covariance of the same shape. The models of
    gdt-2004 are ``covariance="spherical"`` with ``rule=GDT(lam)``: Balls1 with one component, Balls2 with two.

    Parameters
    ----------
    n_components : int, sequence of int, "bic" or "cv", default=3
        Number of components of every class, or of each class in the order of ``classes_``. "bic" takes for each class
        the number, up to ``max_components``, whose maximum likelihood has the least Bayesian information criterion;
        "cv" the one number for all classes whose held-out log loss under the rule is least, over five stratified
        folds. A class with fewer distinct rows than components gets one component a row, with a warning; one that
        `partial_fit` meets later than its first call has a single component.
    covariance : {"full", "diagonal", "spherical", "tied", "tied_diagonal", "tied_spherical"} or shape, default="tied"
        Shape of the components' covariances; a tied one is shared by all components of all classes.
    max_components : int, default=5
        Most components that "bic" and "cv" try.
    reg : float, default=0
        Share of each column's training variance that is added to the covariances: scikit-learn's ``reg_covar``, in the
        columns' units. It keeps "auto" from finding a covariance singular, and one far value widens it for all.
    priors : (k,) array, optional
        Class probabilities that stay fixed.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of each component's mean and covariance; "auto" puts one on components with a singular covariance, None is
        strict maximum likelihood. The weights of components have none.
    random_state : int or RandomState, optional
        Also seeds k-means and the folds of "cv"; by default they are the same every time.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Attributes
    ----------
    n_components_ : (k,) integers
    weights_, means_, covariances_ : lists of arrays
        Of each class's components: (m,), (m, d), (m, d, d).
    bic_ : (k, max_components) array
        With "bic": inf where a class has too few rows, or no known cell of a column. Weights count rows.
    cv_results_ : mapping
        With "cv": "n_components", and "log_loss" and "error" of shape (max_components, folds).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> from calibayes.rules import GDT
    >>> X, y = load_iris(return_X_y=True)
    >>> balls2 = MixtureDiscriminantAnalysis(n_components=2, covariance="spherical", rule=GDT(lam=0.25)).fit(X, y)
    >>> [means.shape for means in balls2.means_]
    [(2, 4), (2, 4), (2, 4)]
    """

    n_components: int | Sequence[int] | Literal["bic", "cv"] = 3
    covariance: str | Shape = "tied"
    max_components: int = 5
    reg: float = 0.0
    prior: NormalInverseWishart | Literal["auto"] | None = "auto"
    start: str | Start = "likelihood"

    def _family(self) -> Gaussian:
        share = number("reg", self.reg, 0.0, 1.0)
        return Gaussian(
            _shape_named(self.covariance), prior=self.prior, regularizer=Ridge(share) if share else Plain()
        )

    def _seed(self) -> int:
        if "_drawn" in self.__dict__:
            return self._drawn
        if self.random_state is None or isinstance(self.random_state, WHOLE):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        counts = self.__dict__.get("_counts", self.n_components)
        return [("columns", Mixture(self._family()), every, Clusters(counts, self._seed()))]

    def _bind(self, rule: Rule, rows: Rows) -> None:
        self.__dict__.pop("_drawn", None)
        self._drawn = self._seed()  # once: the clusters that were judged are those that are used
        self._counts: Any = self._chosen(rows)
        super()._bind(rule, rows)

    def _chosen(self, rows: Rows) -> int | tuple[int, ...]:
        """Number of components, found in the rows where it is not given."""
        given = self.n_components
        if isinstance(given, WHOLE):
            return whole_number("n_components", given, 1)
        if not isinstance(given, str):
            return self._listed(given)
        most = whole_number("max_components", self.max_components, 1)
        if given == "bic":
            return self._by_information(rows, most)
        if given == "cv":
            return self._by_validation(rows, most)
        raise ValueError(f"n_components must be a number, one for each class, 'bic' or 'cv', got {given!r}")

    def _listed(self, given: Any) -> tuple[int, ...]:
        counts = tuple(whole_number("n_components", count, 1) for count in np.atleast_1d(given).tolist())
        if len(counts) != len(self.classes_):
            raise ValueError(
                f"n_components has {len(counts)} numbers, but there are {len(self.classes_)} classes"
            )
        return counts

    def _by_information(self, rows: Rows, most: int) -> tuple[int, ...]:
        names = [str(name) for name in self.classes_]
        self.bic_ = components.information(
            self._family(), rows, names, most, self._seed(), self.max_iter, self._engine()
        )
        return tuple(int(count) for count in np.argmin(self.bic_, axis=1) + 1)

    def _by_validation(self, rows: Rows, most: int) -> int:
        labels = np.where(rows.codes < 0, None, self.classes_[rows.codes])
        worker = self._blank().set_params(class_weight=None, verbose=0, callbacks=None)
        self.cv_results_ = components.validated(worker, rows, labels, most, self._seed())
        return int(np.argmin(self.cv_results_["log_loss"].mean(axis=1))) + 1

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def n_components_(self) -> Array:
        return np.bincount(self._mixture.owner)

    @property
    def _mixture(self) -> Any:
        return self._model.families["columns"]

    def _by_class(self, per_component: Array) -> list[Array]:
        return np.split(np.asarray(per_component), np.cumsum(self.n_components_)[:-1])

    @property
    def weights_(self) -> list[Array]:
        return self._by_class(np.exp(self.parameters_["columns"]["log_weight"]))

    @property
    def means_(self) -> list[Array]:
        return self._by_class(self.parameters_["columns"]["mean"])

    @property
    def covariances_(self) -> list[Array]:
        shape = self._mixture.family.shape
        form = shape.covariance(self.parameters_["columns"])
        matrices = np.stack([own if own.ndim == 2 else np.diag(own) for own in form])
        return self._by_class(np.broadcast_to(matrices, (len(self._mixture.owner), *matrices.shape[1:])))


def _shape_named(shape: str | Shape) -> Shape:
    """The shape of that name, or the shape itself."""
    if isinstance(shape, str) and shape in SHAPES:
        return SHAPES[shape]
    if isinstance(shape, str | type) or not hasattr(shape, "settle"):
        names = ", ".join(repr(name) for name in SHAPES)
        raise ValueError(f"covariance must be one of {names}, or a shape such as Full(), got {shape!r}")
    return shape
