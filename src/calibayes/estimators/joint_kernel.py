"""A kernel classifier over all columns jointly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import PlainText, counted, shortened
from calibayes.core.protocols import Array, Engine
from calibayes.core.verify import require, require_finite, require_instance, require_number, require_positions
from calibayes.encoders.dense import Dense
from calibayes.encoders.schema import Schema, column_types
from calibayes.kernels import joint_density as joint_kernel
from calibayes.kernels.joint_density import STEPS, ClassSums, KernelRows, posteriors, relevance, steps_up_to
from calibayes.kernels.level_counts import places_in_class
from calibayes.model import checked_rows, parameters, verification
from calibayes.model.attributes import on_one_state
from calibayes.model.checked_rows import Reading, Rows
from calibayes.model.classifier import Classifier
from calibayes.model.delegates import feature
from calibayes.model.parameters import adopt, estimator, unfitted_copy
from calibayes.model.splits import expand_counts, unit_weight
from calibayes.model.table_inputs import InMemory, open_rows
from calibayes.model.verification import COLUMNS, OPTIONAL_COLUMNS, is_fitted_with
from calibayes.tables.table import Table

# -- Gaussian kernel densities of the classes over all columns of a table jointly ----------------------------

PRIOR_ROWS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
"""Numbers of pseudo-rows to choose from."""
LEAST_GAIN = 1e-3
"""Relative difference below which two log losses count as equal."""
LEAST_RELEVANCE = 0.02
"""Least squared weight of a column, relative to the most relevant one: it may matter together with others."""
LEAST_OF_CLASS = 50
"""Least number of rows of a class that are kept, if it has that many."""
MOST_SUMS = 2**22
"""Sums of kernels in memory at a time: 32 megabytes."""
MOST_ROWS, LEAST_ROWS, MOST_CELLS = 20_000, 10_000, 1e6
"""Rows kept by default: at most the first, fewer if their encoded cells exceed the third, but not below the second."""


class Smoothing(NamedTuple):
    """Bandwidth and smoothing towards wider bandwidths."""

    bandwidth_step: int
    """The bandwidth is the widest one divided by sqrt(2) to this power."""
    prior_rows: float
    """Pseudo-rows with the posterior of twice the bandwidth."""


@dataclass(frozen=True)
class JointDensity:
    """Kept rows, in encoded columns that are scaled by their relevance.

    Attributes
    ----------
    encoder : Dense
        Of new rows, in which missing values are NaN and integrated out: distances are over the known columns.
    scale : (d,) array
        Factors of the encoded columns.
    centers : KernelRows
        The rows with their weights: 1 for a row that occurred once, times class weights, more for a row that represents
        others.
    square : float
        The square of the widest bandwidth: the sum of the variances of the scaled columns.
    """

    encoder: Dense
    scale: Array
    centers: KernelRows
    square: float

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d = len(self.encoder.names)
        require(d > 0 and self.encoder.leaves_missing, "the encoder must be fitted, and one for new rows")
        require_finite("scale", self.scale, (d,))
        require(bool(((self.scale > 0) & (self.scale <= 1)).all()), "scale must be positive and at most 1")
        require(self.centers.rows.shape[1] == d, f"the rows have {self.centers.rows.shape[1]} of {d} columns")
        require_number("square", self.square, np.finfo(np.float64).tiny)
        total = float(np.sum(self.scale**2))
        is_total = bool(np.isclose(self.square, total, rtol=1e-6))
        require(is_total, f"square must be {total:g}, got {self.square:g}")

    @property
    def codes(self) -> Array:
        """The class of each kept row."""
        return np.repeat(np.arange(len(self.centers.ends) - 1), np.diff(self.centers.ends))

    @property
    def prior(self) -> Array:
        """Class frequencies, (k,)."""
        sums = np.bincount(self.codes, self.centers.weight, minlength=len(self.centers.ends) - 1)
        return np.asarray(sums / sums.sum())

    def encode(self, table: Table) -> Array:
        return self.encoder.encode(table) * self.scale

    def votes(self, table: Table, positions: Array) -> ClassSums:
        """Kernel sums by class at some rows of a table, for every bandwidth."""
        x = self.encoder.encode(table)[positions] * self.scale
        return joint_kernel.class_sums(x, self.centers, self.square)

    def log_posterior(self, table: Table, smoothing: Smoothing) -> Array:
        """log p(class | x), (n, k)."""
        return self.log_posterior_at(self.encode(table), smoothing)

    def log_posterior_at(self, x: Array, smoothing: Smoothing) -> Array:
        """log p(class | known cells) of encoded rows (n, d), (n, k)."""
        steps = steps_up_to(smoothing.bandwidth_step)

        def of_part(part: slice) -> Array:
            votes = joint_kernel.class_sums(x[part], self.centers, self.square, steps)
            return log_posterior(votes, self.prior, smoothing)

        return np.concatenate([of_part(part) for part in self._parts(len(x), len(steps))])

    def _parts(self, n: int, sums: int) -> Iterator[slice]:
        """Ranges of rows whose sums, so many per row and class, fit into memory."""
        rows = max(int(MOST_SUMS / (sums * len(self.prior))), 1)
        return (slice(start, start + rows) for start in range(0, max(n, 1), rows))

    def leave_one_out(self, most: int) -> tuple[ClassSums, Array]:
        """Kernel sums at some kept rows, each without its own kernel, and the positions of these rows."""
        codes, share = self.codes, min(most / len(self.codes), 1.0)
        classes = [np.flatnonzero(codes == code) for code in range(len(self.prior))]
        positions = np.concatenate([evenly_spaced(class_rows, share) for class_rows in classes])
        rows = self.centers.rows[positions]
        return joint_kernel.class_sums(rows, self.centers, self.square, left_out=positions), positions

    def log_density(self, table: Table, smoothing: Smoothing) -> Array:
        """Log density of the scaled encoded columns, (n,), averaged over the bandwidths in use."""
        squares = [self.square / 2.0**step for step in steps_up_to(smoothing.bandwidth_step)]
        return joint_kernel.log_densities(self.encode(table), self.centers, squares)


def log_posterior(votes: ClassSums, prior: Array, smoothing: Smoothing) -> Array:
    """log p(class | x) at the chosen bandwidth, (n, k)."""
    by_step = zip(votes.steps, posteriors(votes, prior, np.array([smoothing.prior_rows])), strict=True)
    posterior = next(values for step, values in by_step if step == smoothing.bandwidth_step)
    return np.asarray(np.log(posterior[0]))


def smoothing_scores(
    votes: ClassSums, prior: Array, codes: Array, weight: Array, prior_rows: Array = PRIOR_ROWS
) -> tuple[Array, Array]:
    """Log losses and errors of rows, (prior_rows, steps) each."""
    rows, share = np.arange(len(codes)), weight / weight.sum()
    losses, errors = np.empty((2, len(prior_rows), len(votes.steps)))
    for place, posterior in enumerate(posteriors(votes, prior, prior_rows)):
        losses[:, place] = -np.log(posterior[:, rows, codes]) @ share
        errors[:, place] = (posterior.argmax(axis=2) != codes) @ share
    return losses, errors


def best_smoothing(losses: Array) -> tuple[int, int]:
    """Positions of the prior rows and the step to use.

    The most prior rows whose lowest loss is within a thousandth of the lowest of all, and the best step for them.
    """
    least = losses.min(axis=1)
    as_good = ~(least.min() < (1.0 - LEAST_GAIN) * least)
    prior_rows = int(np.flatnonzero(as_good)[-1])
    return prior_rows, int(np.argmin(losses[prior_rows]))


def evenly_spaced(rows: Array, share: float) -> Array:
    """All of the rows, or about a share of them, evenly spaced."""
    n, most = len(rows), int(np.ceil(share * len(rows)))
    return rows if n <= most else rows[np.unique(np.linspace(0, n - 1, most).astype(int))]


def joint_density(
    rows: Rows, k: int, most: int | None, seed: int, columns: Sequence[int] | None = None
) -> JointDensity:
    """The density of all rows, or of about ``most`` of them, in which classes keep their frequency.

    ``columns`` are the positions of the columns to use, by default all but identifiers.
    """
    encoder = Dense().fit(rows.summary, rows.table.used if columns is None else columns)
    if most is None:
        most = min(MOST_ROWS, max(int(MOST_CELLS / max(len(encoder.names), 1)), LEAST_ROWS))
    if most < len(rows.codes):
        rows = expand_counts(rows, seed)  # in random order
        positions = _first_of_each_class(rows.codes, most)
        x = encoder.encode(rows.table.rows(positions))
    else:
        positions = np.argsort(rows.codes, kind="stable")
        x = encoder.encode(rows.table)[positions]  # all rows are encoded, since other models may share them
    codes, weight = rows.codes[positions], rows.weight[positions] / unit_weight(rows)
    share = weight * _class_correction(rows, codes, weight, k)
    found = relevance(x, np.eye(k)[codes] * share[:, None], float(weight.sum()))
    top = float(found.max())  # columns are scaled by the root of their relevance, relative to the largest
    scale = np.sqrt(np.maximum(found / top, LEAST_RELEVANCE)) if top > 0 else np.ones(len(found))
    ends = tuple(np.searchsorted(codes, np.arange(k + 1)).tolist())
    centers = KernelRows(x * scale, share * (weight.sum() / share.sum()), ends)
    return JointDensity(encoder.for_new_rows(), scale, centers, float(np.sum(scale**2)))


def _class_correction(rows: Rows, codes: Array, weight: Array, k: int) -> Array:
    """Factors of the weights of kept rows, (n,), that restore the class frequencies of all rows."""
    total = np.bincount(rows.codes, rows.weight / rows.weight.max(), minlength=k)
    kept_weight = np.bincount(codes, weight, minlength=k)
    return np.asarray((total / np.maximum(kept_weight, np.finfo(np.float64).tiny))[codes])


def _first_of_each_class(codes: Array, most: int) -> Array:
    """Positions of the rows to keep, class by class: the first of each."""
    share, order = min(most / len(codes), 1.0), np.argsort(codes, kind="stable")
    of_class = np.maximum(np.ceil(share * np.bincount(codes)), LEAST_OF_CLASS)
    return np.asarray(order[places_in_class(codes[order]) < of_class[codes[order]]])


# -- A kernel classifier over all columns jointly ------------------------------------------------------------

LEFT_OUT_ROWS = 1000
"""Number of rows, each left out in turn, that bandwidth and smoothing are chosen on."""
MOST_PRIOR_ROWS = 1e9
FITTED = ("classes_", "schema_", "density_", "bandwidth_step_", "prior_rows_", "relevance_")


@estimator
class JointKernelClassifier(Classifier):
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
        most, (steps, prior_rows) = self._most_rows(), self._candidates()
        reader, seed = unfitted_copy(self), parameters.seed_of(self.random_state)
        given = open_rows(X, y, sample_weight)
        with given.engine(self):
            # Only ratios of weights are used.
            how = Reading(self.class_weight, most_weight=np.inf, least_weight=0.0)
            classes, rows = given.in_memory().rows(reader, None, how)
            checked_rows.class_frequencies(
                rows.codes, rows.weight / rows.weight.max(), classes
            )  # every class has some
            table_rows, rows = rows, expand_counts(rows, seed)
            rows = rows._replace(weight=rows.weight / rows.weight.max())
            density = joint_density(rows, len(classes), most, seed)
            place, step, found = 0, 0, {}
            if len(steps) * len(prior_rows) > 1:
                losses = _leave_one_out_losses(density, prior_rows)
                place, step = best_smoothing(losses[:, steps])
                found = {"left_out_log_loss_": losses}
        state = _state(classes, rows, density, Smoothing(steps[step], prior_rows[place]))
        return adopt(self, {**vars(reader), **state, **found, **given.kept(table_rows)})

    def _most_rows(self) -> int | None:
        """Largest number of rows to keep."""
        return None if self.kept_rows is None else parameters.whole_number("kept_rows", self.kept_rows, 1)

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

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        if not is_fitted_with(self, (*FITTED, *COLUMNS), ("left_out_log_loss_", *OPTIONAL_COLUMNS)):
            return
        for name, kind in (("density_", JointDensity), ("schema_", Schema), ("relevance_", Mapping)):
            require_instance(name, getattr(self, name), kind)
        names, density = verification.verify_columns(self).converted_names, self.density_
        self._most_rows(), self._candidates()
        verification.require_same_classes(self.classes_, len(density.centers.ends) - 1)
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
            verification.require_score("left_out_log_loss_", self.left_out_log_loss_, (None, STEPS))

    def _smoothing(self) -> Smoothing:
        return Smoothing(self.bandwidth_step_, self.prior_rows_)

    @on_one_state
    def score_samples(self, X: Any) -> Array:
        """Log density of the encoded and weighted columns, (n,), averaged over the bandwidths in use."""
        return open_rows(X).map(self, "score_samples", self._log_density)

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        return self.density_.log_posterior(table, self._smoothing())

    def _log_density(self, table: Table, engine: Engine) -> Array:
        return self.density_.log_density(table, self._smoothing())

    @property
    def kept_rows_(self) -> int:
        check_is_fitted(self)
        return len(self.density_.codes)

    @on_one_state
    def summary(self) -> PlainText:
        """Plain text: bandwidth, smoothing, relevance of the columns and number of training rows kept."""
        check_is_fitted(self)
        k = counted(len(self.classes_), "class", "classes")
        setting = f"bandwidth step {self.bandwidth_step_}, prior rows {self.prior_rows_:g}"
        largest_first = sorted(self.relevance_.items(), key=lambda item: -item[1])
        columns = [("encoded column", "relevance"), *((name, f"{size:.3f}") for name, size in largest_first)]
        seen = f"training table: {self.training_table_}"
        lines = [f"{type(self).__name__}: {k}, {setting}", shortened(columns), seen]
        return PlainText("\n".join([*lines, checked_rows.kept_rows_line({"": self.kept_rows_})]))

    @on_one_state
    def marginals(self, X: Any) -> Any:
        """log p(class | known columns) of the rows, for any known columns: the others are left out of the distances."""
        table, density = checked_rows.new_table(self, X), self.density_
        kinds = feature("marginals")
        x, sources = density.encode(table), np.array(density.encoder.sources)

        def scores(present: Array) -> Array:
            with InMemory(X).engine(self):
                rows = kinds.known_cells(x, present[:, sources])
                return density.log_posterior_at(rows, self._smoothing()).reshape(len(present), len(x), -1)

        part = kinds.JointColumns(density.encoder.indices, len(x), scores)
        return kinds.Marginals(table.names, np.zeros(len(self.classes_)), (part,))


def _leave_one_out_losses(density: JointDensity, prior_rows: list[float]) -> Array:
    votes, positions = density.leave_one_out(LEFT_OUT_ROWS)
    codes, weight = density.codes[positions], density.centers.weight[positions]
    return smoothing_scores(votes, density.prior, codes, weight, np.array(prior_rows))[0]


def _state(classes: Array, rows: Rows, density: JointDensity, smoothing: Smoothing) -> dict[str, Any]:
    """The fitted attributes."""
    size = density.scale**2 / (density.scale**2).max()
    return {
        "classes_": classes,
        "schema_": column_types(rows.summary),
        "density_": density,
        "bandwidth_step_": smoothing.bandwidth_step,
        "prior_rows_": smoothing.prior_rows,
        "relevance_": dict(zip(density.encoder.names, size.tolist(), strict=True)),
    }


def trained_at(
    rows: Rows,
    classes: Array,
    smoothing: Smoothing,
    kept_rows: int | None,
    seed: int,
    columns: Sequence[int] | None = None,
) -> JointKernelClassifier:
    """An estimator trained on rows, and some or all of their columns, with given bandwidth and smoothing."""
    step, prior_rows = smoothing
    model = JointKernelClassifier(bandwidth_step=step, prior_rows=prior_rows, kept_rows=kept_rows)
    checked_rows.set_training_table(model, rows.table)
    density = joint_density(rows, len(classes), kept_rows, seed, columns)
    return adopt(model, {**vars(model), **_state(classes, rows, density, smoothing)})
