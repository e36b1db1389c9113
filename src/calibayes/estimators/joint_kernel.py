"""Kernel densities over all columns together, as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.engines import jobs as threads_for
from calibayes.engines.blas import one_thread
from calibayes.estimators import checks
from calibayes.estimators.deciding import ByPosterior
from calibayes.estimators.explaining import Explanation, code_of, pairs
from calibayes.estimators.joint_density import JointDensity, joint_density
from calibayes.estimators.reading import Reading, Rows
from calibayes.estimators.targets import class_frequencies
from calibayes.kernels.joint_kernel import STEPS
from calibayes.kernels.threads import jobs
from calibayes.tables.read import Table

KEPT_ROWS, JUDGED_ROWS = 4000, 1000


@dataclass(eq=False, repr=False, kw_only=True)
class JointKernelClassifier(ByPosterior, ClassifierMixin, Reading):  # type: ignore[misc]
    """Classes as kernel densities over all columns together: rows speak for their class where they lie near.

    Numbers are bent about their median and standardised, levels become indicators, missing cells are the median with an
    indicator of their own. A column counts by how much it says of the class by itself (mutual information with its
    tenths), at least a fiftieth of the most relevant one. All kernels have one bandwidth. The posterior has a twentieth
    of a row more, of unknown class, at the place of the nearest row: no class is ever impossible.

    Parameters
    ----------
    narrowing : int, optional
        How narrow kernels are: the bandwidth is the root of the summed variances, divided by the root of two so often.
        By default the one of 0 to 14 under which rows that are left out have the highest likelihood given the columns.
    kept_rows : int, default=4000
        Most rows that are kept, a random draw of each class; a class keeps fifty if it has them.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j where i is true: `predict` then decides at least expected cost.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    random_state : int or RandomState, optional
        Seeds the draw of rows; by default it is the same every time.
    n_jobs : int, optional
        Threads over rows. The result is the same for any number.

    Attributes
    ----------
    classes_ : (k,) array
    narrowing_ : int
    left_out_log_loss_ : (15,) array
        Log loss of rows that were left out, for each bandwidth; absent where ``narrowing`` is given.
    relevance_ : mapping
        Encoded column -> how much it counts, 1 for the most relevant one.
    density_ : JointDensity

    Examples
    --------
    >>> from calibayes import JointKernelClassifier
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = JointKernelClassifier().fit(penguins.columns, penguins.target)
    >>> bool(model.score(penguins.columns, penguins.target) > 0.98)
    True
    """

    narrowing: int | None = None
    kept_rows: int = KEPT_ROWS
    costs: Array | None = None
    class_weight: Mapping[Any, float] | str | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep rows, weigh columns, choose the bandwidth."""
        most = checks.whole_number("kept_rows", self.kept_rows, 1)
        if (
            self.narrowing is not None
            and not 0 <= checks.whole_number("narrowing", self.narrowing, 0) < STEPS
        ):
            raise ValueError(f"narrowing must be below {STEPS}, got {self.narrowing}")
        self.__dict__.pop("left_out_log_loss_", None)
        self.classes_, rows = self._training_rows((X, y, sample_weight), self.class_weight, unlabelled=False)
        class_frequencies(rows.codes, rows.weight / rows.weight.max(), self.classes_)  # every class has some
        seed = check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1)
        with one_thread(), jobs(threads_for(checks.jobs(self.n_jobs))):
            density = joint_density(rows, len(self.classes_), most, int(seed))
            chosen = self._chosen(density) if self.narrowing is None else int(self.narrowing)
        return self._keep(density, chosen)

    def _chosen(self, density: JointDensity) -> int:
        said, which = density.left_out(JUDGED_ROWS)
        codes, weight = density.shares[which].argmax(axis=1), density.shares[which].sum(axis=1)
        true = said[:, np.arange(len(which)), codes]
        self.left_out_log_loss_ = -(true @ weight) / weight.sum()
        return int(np.argmin(self.left_out_log_loss_))

    def _keep(self, density: JointDensity, narrowing: int) -> Self:
        self.density_, self.narrowing_ = density, narrowing
        size = density.scale**2 / (density.scale**2).max()
        self.relevance_ = dict(zip(density.encoder.names, size.tolist(), strict=True))
        return self

    def _table(self, X: Any) -> Table:
        check_is_fitted(self)
        return self._read(X, reset=False)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        table = self._table(X)
        with one_thread(), jobs(threads_for(self.n_jobs)):
            return self.density_.log_posterior(table, self.narrowing_)

    def score_samples(self, X: Any) -> Array:
        """Log density of the columns as they are encoded and weighted, (n,)."""
        table = self._table(X)
        with one_thread(), jobs(threads_for(self.n_jobs)):
            return self.density_.log_density(table, self.narrowing_)

    def explain(self, X: Any, against: Any = None) -> Explanation:
        """What speaks for the most probable class of each row, or for another ``against`` it.

        Columns come in one after the other, the most relevant first; a column's contribution is what the log odds change
        by it. The contributions of a row sum to its log odds.
        """
        names, terms = self._terms(X)
        chosen, other = pairs(terms.sum(axis=2), code_of(against, self.classes_))
        rows = np.arange(len(terms))
        return Explanation(
            names, terms[rows, chosen] - terms[rows, other], self.classes_[chosen], self.classes_[other]
        )

    def _terms(self, X: Any) -> tuple[tuple[str, ...], Array]:
        """Names and terms (n, k, names) of the log posterior."""
        table = self._table(X)
        with one_thread(), jobs(threads_for(self.n_jobs)):
            names, terms = self.density_.terms(table, self.narrowing_)
        prior = np.broadcast_to(np.log(self.density_.prior)[None, :, None], (*terms.shape[:2], 1))
        return ("class prior", *names), np.concatenate([prior, terms], axis=2)


def trained_at(
    rows: Rows, classes: Array, narrowing: int, kept_rows: int, seed: int
) -> JointKernelClassifier:
    """An estimator of rows that were read already."""
    model = JointKernelClassifier(narrowing=narrowing, kept_rows=kept_rows)
    model._match_names(rows.table, reset=True)
    model.classes_ = classes
    return model._keep(joint_density(rows, len(classes), kept_rows, seed), narrowing)
