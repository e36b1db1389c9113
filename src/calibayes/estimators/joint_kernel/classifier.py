"""A kernel classifier over all columns jointly."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_instance, require_number, require_positions
from calibayes.encoders.schema import Schema, column_types
from calibayes.engines import one_thread, thread_count
from calibayes.estimators.interface import parameters
from calibayes.estimators.interface.decisions import Decisions
from calibayes.estimators.interface.fitted_state import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    is_fitted_with,
    require_same_classes,
    require_score,
    verify_columns,
)
from calibayes.estimators.interface.input import Rows, new_table, set_training_table, training_rows
from calibayes.estimators.interface.kept_rows import kept_rows_line
from calibayes.estimators.interface.labels import class_frequencies
from calibayes.estimators.interface.marginals import JointColumns, Marginals, known_cells
from calibayes.estimators.interface.parameters import adopt, estimator, unfitted_copy
from calibayes.estimators.interface.splits import expand_counts
from calibayes.estimators.interface.streams.streaming import in_memory
from calibayes.estimators.joint_kernel.density import (
    PRIOR_ROWS,
    JointDensity,
    Smoothing,
    best_smoothing,
    joint_density,
    smoothing_scores,
)
from calibayes.kernels.density.joint_kernel import STEPS
from calibayes.kernels.threads import thread_limit
from calibayes.tables.summaries.summary import TableSummary
from calibayes.tables.text import PlainText, counted, shortened

LEFT_OUT_ROWS = 1000
"""Number of rows, each left out in turn, that bandwidth and smoothing are chosen on."""
MOST_PRIOR_ROWS = 1e9
FITTED = ("classes_", "schema_", "density_", "bandwidth_step_", "prior_rows_", "relevance_")


@estimator
class JointKernelClassifier(ClassifierMixin, Decisions, BaseEstimator):  # type: ignore[misc]
    """A kernel classifier: Gaussian kernel densities of the classes over all columns jointly.

    Numbers are centered on the median, transformed by asinh and standardized; levels become indicator columns; missing
    values are replaced by the median, with an indicator column, if at least ten training rows and 5 % of them have one.
    Other missing values are left out of the distances of a new row, and imputed by regression in kept rows. Columns are weighted by their mutual information with the
    class (in ten quantile bins), at least 1/50 of the largest. All kernels have one bandwidth; the posterior at each
    bandwidth is smoothed towards the one at twice the bandwidth, with ``prior_rows`` pseudo-rows, and at the widest one
    towards the class frequencies. So close rows decide where there are any, and more distant ones elsewhere. A pseudo-row of
    weight 0.01 with the class frequencies keeps all probabilities above zero.

    Parameters
    ----------
    bandwidth_step : int, optional
        The bandwidth is the root of the total variance, divided by sqrt(2) to this power, from 0 to 14. By default the one
        of lowest leave-one-out log loss.
    prior_rows : float, optional
        Pseudo-rows with the posterior of twice the bandwidth. By default the most, of 0 to 10, whose leave-one-out log
        loss is within a thousandth of the lowest.
    kept_rows : int, optional
        Approximate number of rows kept, a random subset of each class (at least fifty of it). By default 20,000, or a
        million encoded cells, but at least 10,000 rows.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true: `predict` then minimizes the expected cost.
    random_state : int or RandomState, optional
        Seed of the random subset; None is always the same.
    n_jobs : int, optional
        Threads over rows. The result is the same for any number.

    Attributes
    ----------
    classes_ : (k,) array
    bandwidth_step_ : int
    prior_rows_ : float
    left_out_log_loss_ : (8, 15) array
        Leave-one-out log loss for each number of pseudo-rows (one, if given) and each bandwidth; absent if both are given.
    relevance_ : mapping
        Encoded column -> its weight, 1 for the most relevant one.
    kept_rows_ : int
        Number of training rows in the fitted model.
    density_ : JointDensity
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Notes
    -----
    The fitted model, and a file that it is saved to, contains training rows, with all of their columns: it predicts from
    them. `KernelNB`, or `BayesClassifier` with ``keep_rows=False``, keep none.

    Examples
    --------
    >>> from calibayes import JointKernelClassifier
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = JointKernelClassifier().fit(penguins.data, penguins.target)
    >>> bool(model.score(penguins.data, penguins.target) > 0.98)
    True
    """

    bandwidth_step: int | None = None
    prior_rows: float | None = None
    kept_rows: int | None = None
    class_weight: Mapping[Any, float] | str | None = None
    costs: Array | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep rows, weight columns, choose bandwidth and smoothing."""
        most = None if self.kept_rows is None else parameters.whole_number("kept_rows", self.kept_rows, 1)
        steps, prior_rows = self._candidates()
        reader, seed = unfitted_copy(self), parameters.seed_of(self.random_state)
        with collected_warnings(), one_thread(), self._threads():
            X, y, sample_weight = in_memory(X, y, sample_weight)
            classes, rows = training_rows(
                reader, X, y, sample_weight, self.class_weight, most_weight=np.inf
            )  # only ratios of weights are used
            class_frequencies(rows.codes, rows.weight / rows.weight.max(), classes)  # every class has some
            rows = expand_counts(rows, seed)
            rows = rows._replace(weight=rows.weight / rows.weight.max())
            density = joint_density(rows, len(classes), most, seed)
            if len(steps) == len(prior_rows) == 1:
                return adopt(
                    self,
                    {
                        **vars(reader),
                        **_state(classes, rows.summary, density, Smoothing(steps[0], prior_rows[0])),
                    },
                )
            losses = _leave_one_out_losses(density, prior_rows)
            place, step = best_smoothing(losses[:, steps])
        state = _state(classes, rows.summary, density, Smoothing(steps[step], prior_rows[place]))
        return adopt(self, {**vars(reader), **state, "left_out_log_loss_": losses})

    def _candidates(self) -> tuple[list[int], list[float]]:
        """Bandwidth steps and numbers of pseudo-rows to choose from."""
        steps, prior_rows = list(range(STEPS)), PRIOR_ROWS.tolist()
        if self.bandwidth_step is not None:
            steps = [parameters.whole_number("bandwidth_step", self.bandwidth_step, 0)]
            if not steps[0] < STEPS:
                raise ValueError(f"bandwidth_step must be below {STEPS}, got {self.bandwidth_step}")
        if self.prior_rows is not None:
            prior_rows = [parameters.number("prior_rows", self.prior_rows, 0.0, MOST_PRIOR_ROWS)]
        return steps, prior_rows

    def _threads(self) -> AbstractContextManager[None]:
        """``n_jobs`` threads; by default those of the caller."""
        thread_count(self.n_jobs)
        return nullcontext() if self.n_jobs is None else thread_limit(thread_count(self.n_jobs))

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        if not is_fitted_with(self, (*FITTED, *COLUMNS), ("left_out_log_loss_", *OPTIONAL_COLUMNS)):
            return
        for name, kind in (("density_", JointDensity), ("schema_", Schema), ("relevance_", Mapping)):
            require_instance(name, getattr(self, name), kind)
        names, density = verify_columns(self).converted_names, self.density_
        require_same_classes(self.classes_, len(density.centers.ends) - 1)
        require(self.schema_.names == names, "schema_ has other columns than the training table")
        require_positions("the columns of density_", density.encoder.indices, len(names))
        require_number("prior_rows_", self.prior_rows_, 0.0, MOST_PRIOR_ROWS)
        require_number("bandwidth_step_", self.bandwidth_step_, 0, STEPS - 1)
        require(self.bandwidth_step_ == int(self.bandwidth_step_), "bandwidth_step_ must be a whole number")
        encoded = list(dict.fromkeys(density.encoder.names))
        require(list(self.relevance_) == encoded, "relevance_ has other columns than density_")
        for name, size in self.relevance_.items():
            require_number(f"the relevance of {name!r}", size, 0.0, 1.0)
        if hasattr(self, "left_out_log_loss_"):
            require_score("left_out_log_loss_", self.left_out_log_loss_, (None, STEPS))

    def _smoothing(self) -> Smoothing:
        return Smoothing(self.bandwidth_step_, self.prior_rows_)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        table = new_table(self, X)
        with one_thread(), self._threads():
            return self.density_.log_posterior(table, self._smoothing())

    def score_samples(self, X: Any) -> Array:
        """Log density of the encoded and weighted columns, (n,), averaged over the bandwidths in use."""
        table = new_table(self, X)
        with one_thread(), self._threads():
            return self.density_.log_density(table, self._smoothing())

    @property
    def kept_rows_(self) -> int:
        check_is_fitted(self)
        return len(self.density_.codes)

    def summary(self) -> PlainText:
        """Plain text: bandwidth, smoothing, relevance of the columns and number of training rows kept."""
        check_is_fitted(self)
        k = counted(len(self.classes_), "class", "classes")
        setting = f"bandwidth step {self.bandwidth_step_}, prior rows {self.prior_rows_:g}"
        largest_first = sorted(self.relevance_.items(), key=lambda item: -item[1])
        columns = [("encoded column", "relevance"), *((name, f"{size:.3f}") for name, size in largest_first)]
        seen = f"training table: {self.training_table_}"
        lines = [f"{type(self).__name__}: {k}, {setting}", shortened(columns), seen]
        return PlainText("\n".join([*lines, kept_rows_line({"": self.kept_rows_})]))

    def marginals(self, X: Any) -> Marginals:
        """log p(class | known columns) of the rows, for any known columns: the others are left out of the distances."""
        table, density = new_table(self, X), self.density_
        x, sources = density.encode(table), np.array(density.encoder.sources)

        def scores(present: Array) -> Array:
            with one_thread(), self._threads():
                rows = known_cells(x, present[:, sources])
                return density.log_posterior_at(rows, self._smoothing()).reshape(len(present), len(x), -1)

        part = JointColumns(density.encoder.indices, len(x), scores)
        return Marginals(table.names, np.zeros(len(self.classes_)), (part,))


def _leave_one_out_losses(density: JointDensity, prior_rows: list[float]) -> Array:
    votes, positions = density.leave_one_out(LEFT_OUT_ROWS)
    codes, weight = density.codes[positions], density.centers.weight[positions]
    return smoothing_scores(votes, density.prior, codes, weight, np.array(prior_rows))[0]


def _state(
    classes: Array, summary: TableSummary, density: JointDensity, smoothing: Smoothing
) -> dict[str, Any]:
    """The fitted attributes."""
    size = density.scale**2 / (density.scale**2).max()
    return {
        "classes_": classes,
        "schema_": column_types(summary),
        "density_": density,
        "bandwidth_step_": smoothing.bandwidth_step,
        "prior_rows_": smoothing.prior_rows,
        "relevance_": dict(zip(density.encoder.names, size.tolist(), strict=True)),
    }


def trained_at(
    rows: Rows, classes: Array, smoothing: Smoothing, kept_rows: int | None, seed: int
) -> JointKernelClassifier:
    """An estimator trained on rows with given bandwidth and smoothing."""
    model = JointKernelClassifier(
        bandwidth_step=smoothing.bandwidth_step, prior_rows=smoothing.prior_rows, kept_rows=kept_rows
    )
    set_training_table(model, rows.table)
    density = joint_density(rows, len(classes), kept_rows, seed)
    return adopt(model, {**vars(model), **_state(classes, rows.summary, density, smoothing)})
