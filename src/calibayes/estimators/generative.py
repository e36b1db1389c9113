"""The general estimator: any families, any rule, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array, Family, Sampling
from calibayes.decision import log_odds, most_probable
from calibayes.engines.blas import one_thread
from calibayes.estimators.checks import whole_number
from calibayes.estimators.columns import Selection, categorical, numeric, read_sparse
from calibayes.estimators.training import Training
from calibayes.families import Categorical, Diagonal, Gaussian
from calibayes.families.product import PRIOR
from calibayes.posterior import log_normalise
from calibayes.tables.sources import ArraySource


@dataclass(eq=False, repr=False, kw_only=True)
class Generative(Training):
    """What a trained model is asked: decisions, probabilities, densities, new rows."""

    def predict(self, X: Any) -> Array:
        """The most probable class of each row, (n,)."""
        log_joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[most_probable(log_joint)])

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return log_normalise(self.predict_joint_log_proba(X))[0]

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k)."""
        self._check_learned()
        table = self._read(X, reset=False)
        nothing = np.zeros(table.n)
        source = ArraySource(self._encode(table), nothing, nothing, nothing, k=len(self.classes_))
        with one_thread():
            return np.concatenate(
                [self._model.log_joint(load(), self.parameters_) for load in source.parts()]
            )

    def _check_learned(self) -> None:
        check_is_fitted(self)
        if self.parameters_ is None:
            raise ValueError(f"not enough rows have been seen yet: {self._unready}")

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes; else log p(x, class), (n, k)."""
        joint = self.predict_joint_log_proba(X)
        return log_odds(joint) if joint.shape[1] == 2 else joint

    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,): low for rows unlike those of training."""
        return log_normalise(self.predict_joint_log_proba(X))[1]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """New rows and their classes, drawn from the model.

        Columns that no family models come back as NaN.
        """
        self._check_learned()
        n_samples = whole_number("n_samples", n_samples, 1)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        probability = np.exp(self.parameters_[PRIOR]["log_probability"])
        codes = np.sort(rng.choice(len(self.classes_), size=n_samples, p=probability / probability.sum()))
        columns: list[Array] = [np.full(n_samples, np.nan)] * self.n_features_in_
        for name, family in self._model.families.items():
            if not isinstance(family, Sampling):
                raise ValueError(f"family {name!r} ({type(family).__name__}) cannot be sampled")
            drawn = family.sample(self.parameters_[name], codes, rng)
            decoded = self._bound.encoders[name].decode(drawn, rng)
            for j, column in zip(self._bound.chosen[name], decoded, strict=True):
                columns[j] = column
        return _side_by_side(columns), self.classes_[codes]


def _side_by_side(columns: list[Array]) -> Array:
    """Columns as one array: of numbers where all are numbers, else of objects."""
    if all(column.dtype.kind in "fiub" for column in columns):
        return np.stack(columns, axis=1)
    return np.stack([column.astype(object) for column in columns], axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeClassifier(Generative):
    """A class prior times families over their own columns, learned by any rule.

    Parameters
    ----------
    families : list of (name, family, columns) or (name, family, columns, encoder), optional
        As in scikit-learn's ColumnTransformer: ``columns`` are names, positions, a slice, or one of
        `calibayes.numeric`, `calibayes.categorical`, `calibayes.every`. Columns that no family is bound to are not
        used. By default numbers are independent Gaussians and all else is categorical with one pseudo-count a level.
    priors : (k,) array, optional
        Class probabilities that stay fixed under every rule.
    rule : str or rule, default="rc"
        "ml", "map", "rc", "tm", "dfe", "gdt", "em", "gd", or an object of `calibayes.rules`.
    start : {"data", "random", "bootstrap"} or start, default="data"
        Statistics to begin with: of the labels, of random labels, of randomly weighted rows.
    max_iter : int, default=64
        Most updates. With mini-batches, most passes.
    stop : {"objective", "soft_error", None} or stop, or several, default="objective"
        When the objective gains no more than 1e-4 a row; when the soft error rises (as in the papers); never; or an
        object of `calibayes.learn`. It also says which state is the best: that of the highest objective, or of the
        least soft error. Where it has no opinion (None, a limit of time) the rule has one: the highest objective for
        "ml", "map", "gdt" and "em", the least soft error for the others.
    batch_size : int, optional
        Rows of a mini-batch; 1 is a stochastic pass. By default an update sees all rows.
    validation_fraction : float, optional
        Share of each class's rows held out inside `fit`: their log loss says which state is the best.
    refit : bool, default=True
        Whether to train again on all rows, as far as the best state had come, after a validation.
    class_alpha : float, default=0
        Pseudo-count per class in the class probabilities; 1 is the papers' maximum a posteriori.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    callbacks : list of functions, optional
        Called after each update with a `calibayes.learn.Progress`; a true answer stops.
    random_state : int or RandomState, optional
    engine : Engine, optional
        Where sums over blocks run, such as those of `calibayes.engines`; by default ``n_jobs`` decides.
    n_jobs : int, optional
        Threads over blocks of rows. The result is the same for any number, bit for bit.
    verbose : int, default=0
        Whether to print a line for each update.

    Attributes
    ----------
    classes_ : (k,) array
    data_statistics_ : mapping
        Family -> name -> array: sums over the data. They add up over any split of the rows.
    statistics_ : mapping or None
        The same, as the rule has left them; None for gradient descent, which moves parameters.
    parameters_ : mapping
        Family -> name -> array, in the columns' own units.
    history_ : mapping
        "soft_error", "error", "log_loss", "objective", "step", "tau", "frozen", "passes", "seconds" (and
        "validation_error", "validation_log_loss") -> array; entry 0 is the start, entry t the state after t updates.
    best_iter_ : int
        The entry that was kept.
    n_iter_ : int
        Number of updates, at least 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Full, Gaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GenerativeClassifier(families=[("flower", Gaussian(Full()), every)]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    families: Sequence[tuple[str, Family, Selection]] | None = None
    priors: Array | None = None

    @property
    def _sparse(self) -> bool:
        return read_sparse(self.specifications())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        if self.families is not None:
            return self.families
        return [
            ("numbers", Gaussian(Diagonal(), prior="auto"), numeric),
            ("levels", Categorical(alpha=1.0), categorical),
        ]

    def _fixed_priors(self, k: int) -> Array | None:
        return self.priors
