"""Kernel densities over all columns together, as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.engines import thread_count
from calibayes.engines.local import one_thread
from calibayes.estimators import checks
from calibayes.estimators.deciding import ByPosterior
from calibayes.estimators.explaining import Explanation, code_of, pairs
from calibayes.estimators.joint_density import BACKINGS, Choice, JointDensity, chosen, joint_density, judged
from calibayes.estimators.reading import Reading, Rows
from calibayes.estimators.splits import units
from calibayes.estimators.targets import class_frequencies
from calibayes.kernels.density.joint_kernel import STEPS
from calibayes.kernels.threads import thread_limit
from calibayes.tables.read import Table

JUDGED_ROWS = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class JointKernelClassifier(ByPosterior, ClassifierMixin, Reading):  # type: ignore[misc]
    """Classes as kernel densities over all columns together: rows speak for their class where they lie near.

    Numbers are bent about their median and standardized, levels become indicators, missing cells are the median with an
    indicator of their own. A column counts by how much it says of the class by itself (mutual information with its
    tenths), at least a fiftieth of the most relevant one. All kernels have one bandwidth, and kernels twice as wide stand
    behind them, others behind those, and the class frequencies behind the widest: they count as a few rows at the place
    of the row that is asked about. So where rows lie close those decide, and elsewhere those farther off. A hundredth of
    a row of unknown class is at the place of the nearest one: no class is ever impossible.

    Parameters
    ----------
    narrowing : int, optional
        How narrow kernels are: the bandwidth is the root of the summed variances, divided by the root of two so often.
        By default the one of 0 to 14 under which rows that are left out have the highest likelihood given the columns,
        at that backing.
    backing : float, optional
        How many rows the wider kernels count as. By default the most, of 0 to 10, whose log loss is within a thousandth of
        the least.
    kept_rows : int, optional
        About how many rows are kept at most, a random draw of each class; a class keeps fifty if it has them. By default
        20,000, or a million encoded cells, but at least 10,000.
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
    backing_ : float
    left_out_log_loss_ : (8, 15) array
        Log loss of rows that were left out, for each backing (one, where it is given) and each bandwidth; absent where
        both are given.
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
    backing: float | None = None
    kept_rows: int | None = None
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
        most = None if self.kept_rows is None else checks.whole_number("kept_rows", self.kept_rows, 1)
        steps, backings = self._candidates()
        self.__dict__.pop("left_out_log_loss_", None)
        self.classes_, rows = self._training_rows((X, y, sample_weight), self.class_weight, unlabeled=False)
        class_frequencies(rows.codes, rows.weight / rows.weight.max(), self.classes_)  # every class has some
        seed = check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1)
        with one_thread(), self._threads():
            rows = units(rows, int(seed))
            rows = rows._replace(weight=rows.weight / rows.weight.max())
            density = joint_density(rows, len(self.classes_), most, int(seed))
            single = len(steps) == len(backings) == 1
            choice = Choice(steps[0], backings[0]) if single else self._chosen(density, steps, backings)
        return self._keep(density, choice)

    def _candidates(self) -> tuple[list[int], list[float]]:
        """Bandwidths and backings to choose from."""
        steps, backings = list(range(STEPS)), BACKINGS.tolist()
        if self.narrowing is not None:
            steps = [checks.whole_number("narrowing", self.narrowing, 0)]
            if not steps[0] < STEPS:
                raise ValueError(f"narrowing must be below {STEPS}, got {self.narrowing}")
        if self.backing is not None:
            backings = [checks.number("backing", self.backing, 0.0, 1e9)]
        return steps, backings

    def _chosen(self, density: JointDensity, steps: list[int], backings: list[float]) -> Choice:
        found, which = density.left_out(JUDGED_ROWS)
        codes, weight = density.codes[which], density.kept.weight[which]
        losses = judged(found, density.prior, codes, weight, np.array(backings))[0]
        self.left_out_log_loss_ = losses
        backing, place = chosen(losses[:, steps])
        return Choice(steps[place], backings[backing])

    def _keep(self, density: JointDensity, choice: Choice) -> Self:
        self.density_, self.narrowing_, self.backing_ = density, choice.narrowing, choice.backing
        size = density.scale**2 / (density.scale**2).max()
        self.relevance_ = dict(zip(density.encoder.names, size.tolist(), strict=True))
        return self

    def _threads(self) -> AbstractContextManager[None]:
        """As many threads as were asked for; where nothing was said, those of whoever asks."""
        checks.jobs(self.n_jobs)
        return nullcontext() if self.n_jobs is None else thread_limit(thread_count(self.n_jobs))

    @property
    def _choice(self) -> Choice:
        return Choice(self.narrowing_, self.backing_)

    def _table(self, X: Any) -> Table:
        check_is_fitted(self)
        return self._read(X, reset=False)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        table = self._table(X)
        with one_thread(), self._threads():
            return self.density_.log_posterior(table, self._choice)

    def score_samples(self, X: Any) -> Array:
        """Log density of the columns as they are encoded and weighted, (n,), averaged over the bandwidths that count."""
        table = self._table(X)
        with one_thread(), self._threads():
            return self.density_.log_density(table, self._choice)

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
        with one_thread(), self._threads():
            names, terms = self.density_.terms(table, self._choice)
        prior = np.broadcast_to(np.log(self.density_.prior)[None, :, None], (*terms.shape[:2], 1))
        return ("class prior", *names), np.concatenate([prior, terms], axis=2)


def trained_at(
    rows: Rows, classes: Array, choice: Choice, kept_rows: int | None, seed: int
) -> JointKernelClassifier:
    """An estimator of rows that were read already."""
    model = JointKernelClassifier(narrowing=choice.narrowing, backing=choice.backing, kept_rows=kept_rows)
    model._match_names(rows.table, reset=True)
    model.classes_ = classes
    return model._keep(joint_density(rows, len(classes), kept_rows, seed), choice)
