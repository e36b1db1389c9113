"""Discriminant analysis with several Gaussian components per class."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibayes import families
from calibayes.core.protocols import Array, Engine, Layout, resolve
from calibayes.encoders.numbers import Clusters
from calibayes.engines import chosen_engine
from calibayes.estimators.discriminant_analysis import GaussianPreset
from calibayes.families import Gaussian, Mixture
from calibayes.families.covariance_shapes import Plain, Ridge
from calibayes.kernels.posterior import held_out_scores
from calibayes.learn import data_sums, learn
from calibayes.learn.run import Run
from calibayes.learn.starts_and_stops import NoGainBeforeTraining
from calibayes.model.attributes import Note
from calibayes.model.binding import every
from calibayes.model.checked_rows import Rows, TrainingRows
from calibayes.model.estimator import Traits
from calibayes.model.parameters import WHOLE, estimator, number, seed_of, unfitted_copy, whole_number
from calibayes.model.recipe import Specification
from calibayes.model.splits import held_out_masks
from calibayes.rules import ML
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.row_blocks import ArraySource

# -- The number of components of a mixture: by information criterion or by cross-validation ------------------

FOLDS = 5
FEWEST = 2.0
"""Least number of rows in the penalty; with fewer it would be negative."""


def information_criterion(
    family: Gaussian, rows: Rows, classes: Sequence[str], most: int, seed: int, updates: int, engine: Engine
) -> Array:
    """BIC of each class's mixture with 1, 2, ... components, (k, most); inf if there are too few rows.

    A tied covariance is tied within the class here, since the classes are fitted one by one.
    """
    criteria = np.full((len(classes), most), np.inf)
    for c, name in enumerate(classes):
        class_rows = rows.only(rows.codes == c)
        for count in range(1, most + 1):
            if len(class_rows.codes) > count:
                encoder = Clusters(count, seed)
                criteria[c, count - 1] = _of_class(family, class_rows, name, encoder, updates, engine)
    return criteria


def _of_class(family: Gaussian, rows: Rows, name: str, encoder: Clusters, most: int, engine: Engine) -> float:
    """-2 log likelihood + log n times the number of free parameters, of a mixture for one class."""
    try:
        one_class = summary_of(rows.table, rows.weight, np.zeros_like(rows.codes))
        fitted = encoder.fit(one_class, range(len(rows.table.names)))
    except ValueError:  # a column is all missing in this class
        return np.inf
    columns = fitted.encode(rows.table)
    source = ArraySource({"columns": columns}, np.zeros_like(rows.codes), rows.weight, np.zeros(len(columns)))
    layout = Layout((name,), rows.table.names, **fitted.layout())
    product = families.Product(families.ClassPrior(), {"columns": Mixture(family)})
    model = product.bind({"columns": layout}, (name,))
    start = data_sums(model, source, engine, 1).statistics
    try:
        model = model.prepare(start)
    except ValueError:
        return np.inf
    run = Run(model, ML(), ML().begin(model, start), stop=NoGainBeforeTraining(), limit=most)
    learn([run], source, engine)
    mixture, parameters = model.families["columns"], run.best.parameters["columns"]
    likelihood = rows.weight @ mixture.log_density(columns, parameters)[:, 0]
    freedom = degrees_of_freedom(family, len(layout.seeds[0]), columns.shape[1])
    return float(-2.0 * likelihood + np.log(max(rows.weight.sum(), FEWEST)) * freedom)


def degrees_of_freedom(family: Gaussian, components: int, d: int) -> int:
    """Number of free parameters of one class's mixture: weights, means, covariances."""
    covariances = 1 if family.shape.tied else components
    return components - 1 + components * d + covariances * family.shape.freedom(d)


def validation_scores(estimator: Any, rows: Rows, labels: Array, most: int, seed: int) -> dict[str, Array]:
    """Held-out log loss and error of 1, 2, ... components in every class, (most, folds), under the estimator's rule.

    Raises ValueError if a class has one row only.
    """
    if np.bincount(rows.codes[rows.codes >= 0]).min() < 2:
        problem = "a class has one row only, so the number of components cannot be chosen by cross-validation"
        raise ValueError(f"{problem}: give n_components as a number")
    folds = held_out_masks(FOLDS, rows._replace(positions=np.arange(len(rows.codes))), len(labels), seed)
    scores = np.empty((2, most, len(folds)))
    for count, place in itertools.product(range(1, most + 1), range(len(folds))):
        worker = clone(estimator).set_params(n_components=count)
        scores[:, count - 1, place] = _fold_scores(worker, rows, labels, folds[place])
    return {"n_components": np.arange(1, most + 1), "log_loss": scores[0], "error": scores[1]}


def _fold_scores(estimator: Any, rows: Rows, labels: Array, held_out: Array) -> tuple[float, float]:
    estimator.fit(rows.table.rows(~held_out), labels[~held_out], rows.weight[~held_out])
    known = held_out & (rows.codes >= 0)
    log_posterior = estimator.predict_log_proba(rows.table.rows(known))
    return held_out_scores(log_posterior, rows.codes[known], rows.weight[known])


# -- Discriminant analysis with several Gaussian components per class ----------------------------------------

SHAPES: dict[str, Callable[[], families.Full]] = {
    "full": families.Full,
    "diagonal": families.Diagonal,
    "spherical": families.Spherical,
    "tied": families.Tied,
    "tied_diagonal": families.TiedDiagonal,
    "tied_spherical": families.TiedSpherical,
    "tree": families.TreeCovariance,
}
"""Short name -> shape of the covariances."""


@estimator
class MixtureDiscriminantAnalysis(GaussianPreset):
    """Mixture discriminant analysis: each class is a mixture of Gaussian components, initialized by k-means.

    Maximum likelihood (``rule="ml"``) is expectation maximization; other rules start from its result, unless the training
    option ``start`` says otherwise. The defaults, three components and one covariance shared by all of them, are those of
    Hastie and Tibshirani (1996). One component per class is discriminant analysis with a covariance of the same shape. The
    models of gdt-2004 are ``covariance="spherical"`` with ``rule=GDT(lam)``: Balls1 with one component, Balls2 with two.

    Parameters
    ----------
    n_components : int, sequence of int, "bic" or "cv", default=3
        Number of components of every class, or of each class in the order of ``classes_``. "bic" chooses for each class
        the number, up to ``max_components``, with the lowest Bayesian information criterion at maximum likelihood; "cv"
        one number for all classes with the lowest held-out log loss under the rule, over five stratified folds. A class
        with fewer distinct rows than components gets one component per row, with a warning; a class without rows in the
        first call of `partial_fit` has a single component.
    covariance : {"full", "diagonal", "spherical", "tied", "tied_diagonal", "tied_spherical", "tree"} or shape, default="tied"
        Shape of the components' covariances; a tied one is shared by all components of all classes. "tree" is a Gaussian
        tree, in which each column is linear in one other column plus noise (with one component: Gaussian TAN).
    max_components : int, default=5
        Largest number that "bic" and "cv" try.
    reg : float, default=0
        Share of each column's training variance that is added to the covariances: scikit-learn's ``reg_covar``, relative
        to the columns' variances.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of each component's mean and covariance; "auto" is a prior for components with a singular covariance only,
        None is strict maximum likelihood. The weights of components have no prior.
    random_state : int or RandomState, optional
        Also the seed of k-means and of the folds of "cv"; None is always the same one for these.
    rule, max_iter, stop, training, class_weight, costs, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Attributes
    ----------
    n_components_ : (k,) integers
    weights_, means_, covariances_ : lists of arrays
        Of each class's components: (m,), (m, d), (m, d, d).
    bic_ : (k, max_components) array
        With "bic": inf if a class has too few rows, or no known value of a column. Weights count rows.
    cv_results_ : mapping
        With "cv": "n_components", and "log_loss" and "error" of shape (max_components, folds).
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

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
    covariance: str | families.Full = "tied"
    max_components: int = 5
    reg: float = 0.0
    priors: Any = None
    prior: families.NormalInverseWishart | Literal["auto"] | None = "auto"

    _traits = Traits(start="likelihood")

    bic_ = Note("bic", "Bayesian information criterion, (k, max_components).")
    cv_results_ = Note("cv_results", "Held-out scores of each number of components.")

    def _family(self) -> Gaussian:
        share = number("reg", self.reg, 0.0, 1.0)
        shape = resolve("covariance", self.covariance, SHAPES, ability="constrain", example="Full()")
        return Gaussian(shape, prior=self.prior, regularizer=Ridge(share) if share else Plain())

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        seed = _kmeans_seed(self.random_state)
        counts, notes = self._component_counts(rows, classes, seed)
        specified = [("columns", Mixture(self._family()), every, Clusters(counts, seed))]
        return Specification(specified, self._class_prior(len(classes)), notes)

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Mixture(self._family()), every, Clusters())]

    def _component_counts(self, rows: TrainingRows, classes: Array, seed: int) -> tuple[Any, dict[str, Any]]:
        """Number of components, chosen on the rows unless given, and the scores of the choice."""
        given = self.n_components
        if isinstance(given, WHOLE):
            return whole_number("n_components", given, 1), {}
        if not isinstance(given, str):
            return _listed(given, len(classes)), {}
        most, rows = whole_number("max_components", self.max_components, 1), rows.in_memory()
        if given == "bic":
            names, engine = [str(name) for name in classes], chosen_engine(self.engine, self.n_jobs)
            bic = information_criterion(self._family(), rows, names, most, seed, self.max_iter, engine)
            return tuple(int(count) for count in np.argmin(bic, axis=1) + 1), {"bic": bic}
        if given == "cv":
            labels = np.where(rows.codes < 0, np.array(None), classes[rows.codes])
            worker = unfitted_copy(self).set_params(class_weight=None, verbose=0)
            if self.training is not None:
                worker.training = clone(self.training).set_params(callbacks=None, checkpoint=None)
            results = validation_scores(worker, rows, labels, most, seed)
            return int(np.argmin(results["log_loss"].mean(axis=1))) + 1, {"cv_results": results}
        raise ValueError(f"n_components must be a number, one for each class, 'bic' or 'cv', got {given!r}")

    @property
    def n_components_(self) -> Array:
        return np.bincount(self._mixture().component_classes)

    def _mixture(self) -> Any:
        return self.fitted_.model.families["columns"]

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
        mixture = self._mixture()
        form = mixture.family.shape.covariance(self.parameters_["columns"])
        matrices = np.stack([matrix if matrix.ndim == 2 else np.diag(matrix) for matrix in form])
        shape = (len(mixture.component_classes), *matrices.shape[1:])
        return self._by_class(np.broadcast_to(matrices, shape))


def _listed(given: Any, k: int) -> tuple[int, ...]:
    counts = tuple(whole_number("n_components", count, 1) for count in np.atleast_1d(given).tolist())
    if len(counts) != k:
        raise ValueError(f"n_components has {len(counts)} numbers, but there are {k} classes")
    return counts


def _kmeans_seed(random_state: Any) -> int:
    """An integer is the seed itself, None is 0."""
    return int(random_state or 0) if isinstance(random_state, (*WHOLE, type(None))) else seed_of(random_state)
