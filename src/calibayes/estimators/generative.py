"""The general estimator: any families, any rule, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibayes.core.protocols import Array, Family
from calibayes.decision import log_odds
from calibayes.encoders.numbers import Encoder
from calibayes.estimators.arithmetic import Arithmetic
from calibayes.estimators.columns import Selection, read_sparse
from calibayes.estimators.mixed import Mixed

Generative = Arithmetic
"""What all estimators are: they learn, predict, explain, generate, and can be added up."""


@dataclass(eq=False, repr=False, kw_only=True)
class Weighted(Generative):
    """What estimators over any numbers have beyond those over counts, which scikit-learn knows without it."""

    class_weight: Mapping[Any, float] | str | None = None

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes, before any temperature; else log p(x, class), (n, k)."""
        joint = self.predict_joint_log_proba(X)
        return log_odds(joint) if joint.shape[1] == 2 else joint


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeClassifier(Mixed, Weighted):
    """A class prior times families over their own columns, learned by any rule.

    Parameters
    ----------
    families : list of (name, family, columns) or (name, family, columns, encoder), optional
        As in scikit-learn's ColumnTransformer: ``columns`` are names, positions, a slice, or one of
        `calibayes.numeric`, `calibayes.categorical`, `calibayes.every`. Columns that no family is bound to are not
        used. By default the kinds of the columns decide.
    kinds : mapping, optional
        Column, by name or position, -> "gaussian", "kernel", "binned", "poisson", "multinomial", "categorical" or
        "bernoulli", instead of ``families``.
        Columns that are not named: numbers are independent Gaussians, all else is categorical with one pseudo-count a
        level. The columns of a kind are one family of that name.
    priors : (k,) array, optional
        Class probabilities that stay fixed under every rule.
    rule : str or rule, default="rc"
        "ml", "map", "rc", "tm", "dfe", "gdt", "em", "gd", or an object of `calibayes.rules`.
    start : {"data", "likelihood", "random", "bootstrap"} or start, default="data"
        Statistics to begin with: of the labels; of the labels as far as maximum likelihood takes them where something is
        hidden (components of mixtures, missing cells under a full covariance); of random labels; of randomly weighted
        rows.
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
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j where i is true: `predict` then decides at least expected cost.
    temperature : float or "auto", default=1
        Divides log probabilities; above 1 the model is less sure of itself. "auto" finds the one with the least log
        loss on the validation rows.
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
        Family -> name -> array: sums over the data. They add up over any split of the rows. For a family that finds
        a structure (a tree) they are what the structure was found in.
    statistics_ : mapping or None
        The same, as the rule has left them; None for gradient descent, which moves parameters.
    parameters_ : mapping
        Family -> name -> array, in the columns' own units.
    history_ : mapping
        "soft_error", "error", "log_loss", "objective", "step", "tau", "frozen", "passes", "seconds" (and
        "validation_error", "validation_log_loss") -> array; entry 0 is the start, entry t the state after t updates.
        A closed form ("ml", "map" where nothing is hidden) reads the rows once and has none, unless it has validation
        rows, callbacks or ``verbose``.
    best_iter_ : int
        The entry that was kept.
    n_iter_ : int
        Number of updates, at least 1.
    schema_ : Schema
        The kind of each column and why, where ``families`` is not given; it prints as a table.

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

    families: Sequence[tuple[str, Family, Selection] | tuple[str, Family, Selection, Encoder]] | None = None
    priors: Array | None = None

    @property
    def _sparse(self) -> bool:
        return read_sparse(self.specifications())

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        if self.families is None:
            return super().specifications()
        if self.kinds is not None:
            raise ValueError("give families or kinds, not both")
        return self.families

    def _decides_kinds(self) -> bool:
        return self.families is None

    def _fixed_priors(self, k: int) -> Array | None:
        return self.priors
