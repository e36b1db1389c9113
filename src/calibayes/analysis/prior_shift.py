"""A model adapted to the class frequencies of unlabeled rows, and whether the class frequencies are all that moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis import prior_shift_tests as tests
from calibayes.analysis.held_out import GIVEN_ROWS, held_out_of, labeled_table, predicted, refitted
from calibayes.core import verify
from calibayes.core.notices import PlainText, counted, shortened, warn
from calibayes.core.protocols import Array
from calibayes.kernels.posterior import log_normalize
from calibayes.model import training_rows
from calibayes.model.attributes import numpy_classes
from calibayes.model.parameters import seed_of, whole_number
from calibayes.model.splits import hold_out
from calibayes.model.table_inputs import on_numpy

MOST_NEW_ROWS = 10_000
"""Of more new rows, so many are drawn: the held-out rows limit the precision, and they are no more."""
FEWEST_DRAWS = 20
LEVEL = 0.05
"""Significance level of both tests, and one minus the coverage of the intervals."""
PSEUDO_ROWS = 10.0
"""Rows of the Dirichlet prior with the training frequencies."""
LEAST_EVIDENCE = 3.0
"""Likelihood-ratio statistic for each degree of freedom below which the training frequencies are kept."""


NOTED = (training_rows.ADAPTED, training_rows.INTERVAL, training_rows.REPORT)
"""Attributes of an adapted model."""


class ClassConditionalShiftWarning(UserWarning):
    """New rows differ from the training rows by more than their class frequencies.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ClassConditionalShiftWarning)  # an error instead of a warning
    """


@dataclass(frozen=True)
class PriorShift:
    """Class frequencies of new rows, and whether they are all that moved. Prints as a table and a conclusion.

    Attributes
    ----------
    classes : (k,) array
    training : (k,) array
        Class frequencies of the held-out rows, which are those of training.
    estimate : (k,) array
        Maximum-likelihood frequencies of the new rows.
    adapted : (k,) array
        The frequencies that the model is adapted to: the estimate, shrunk towards ``training``.
    interval : (k, 2) array
        95 % bootstrap interval of the frequencies of the new rows.
    rows : int
        Number of new rows that were used.
    no_shift_p_value : float
        p-value of "the class frequencies did not move".
    classes_alone_p_value : float or None
        p-value of "p(x | class) did not move"; None if it could not be tested.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).adapt_priors(X[:75]).prior_shift_.estimate.round(1)
    array([0.7, 0.3, 0. ])
    """

    classes: Array
    training: Array
    estimate: Array
    adapted: Array
    interval: Array
    rows: int
    no_shift_p_value: float
    classes_alone_p_value: float | None = None

    @property
    def has_shift(self) -> bool:
        """Whether the class frequencies moved, at the 5 % level."""
        return self.no_shift_p_value < LEVEL

    @property
    def is_of_classes_alone(self) -> bool | None:
        """Whether nothing else moved, as far as the test at the 5 % level can tell; None if it could not be tested."""
        return None if self.classes_alone_p_value is None else self.classes_alone_p_value >= LEVEL

    @property
    def conclusion(self) -> str:
        """What follows, in words."""
        if self.is_of_classes_alone is False:
            return (
                "p(x | class) moved: the frequencies above are not to be trusted, and adapting to them does not mend the "
                "model. Train on labeled rows like the new ones"
            )
        said = f"{'' if self.has_shift else 'no evidence that '}the class frequencies moved"
        if self.is_of_classes_alone is None:
            return f"{said}; whether p(x | class) moved was not tested"
        return f"{said}, and no evidence that p(x | class) did"

    def verify(self) -> None:
        """Raises ValueError if the fields, which may come from a model file, do not fit together."""
        k = len(self.classes)
        for name in ("training", "estimate", "adapted"):
            verify.require_probabilities(name, getattr(self, name), (k,))
        interval = verify.require_array("interval", self.interval, (k, 2))
        verify.require(bool((interval[:, 0] <= interval[:, 1]).all()), "an interval ends before it begins")
        is_probability = (interval >= 0) & (interval <= 1)
        verify.require(bool(is_probability.all()), "an interval is not one of probabilities")
        verify.require_number("rows", self.rows, 1)
        for p_value in (self.no_shift_p_value, self.classes_alone_p_value):
            verify.require(p_value is None or 0 <= p_value <= 1, f"a p-value is {p_value}")

    def __str__(self) -> str:
        lines = [("class", "training", "new rows", "95 % interval", "adapted to")]
        columns = self.training, self.estimate, *self.interval.T, self.adapted
        for label, *numbers in zip(self.classes.tolist(), *columns, strict=True):
            training, estimate, low, high, adapted = (f"{number:.3f}" for number in numbers)
            lines.append((str(label), training, estimate, f"{low} to {high}", adapted))
        text = [f"class frequencies of {counted(self.rows, 'new row')}", shortened(lines)]
        text.append(f"p-value of no shift of the classes: {self.no_shift_p_value:.2g}")
        if self.classes_alone_p_value is not None:
            text.append(f"p-value of a shift of the classes alone: {self.classes_alone_p_value:.2g}")
        return PlainText("\n".join([*text, self.conclusion]))


def adapt_priors(self: Any, X_new: Any, *, bootstrap: int = 200, random_state: Any = None) -> Any:
    """This model adapted to the class frequencies of unlabeled rows, as `with_priors` does for known frequencies.

    The frequencies have the highest likelihood if p(x | class) is that of training (EM of Saerens, Latinne and Decaestecker
    2002), with posteriors that are calibrated on held-out rows. They are shrunk towards the training frequencies as far
    as the new rows have no evidence against these. Warns if p(x | class) moved, too.

    The better the model, the more the new rows tell about their frequencies. Those that a better model has estimated serve any
    other: ``model.with_priors(better.adapt_priors(X_new).adapted_priors_)``.

    Parameters
    ----------
    X_new : array or data frame of shape (n, d)
        Unlabeled rows; of more than 10,000 rows so many are drawn.
    bootstrap : int, default=200
        Number of draws for the intervals and for the test of p(x | class).
    random_state : int or RandomState, optional
        Seed of the draws; None is always the same.

    Returns
    -------
    model
        ``adapted_priors_`` (k,) are its class frequencies, ``adapted_priors_interval_`` (k, 2) 95 % intervals of those of
        the new rows, and ``prior_shift_`` is a report with the tests (`calibayes.trust.PriorShift`).
    """
    check_is_fitted(self)
    if not hasattr(self, "with_priors"):
        raise TypeError(
            f"{type(self).__name__} cannot be adapted to other class frequencies: it has no with_priors"
        )
    draws = whole_number("bootstrap", bootstrap, FEWEST_DRAWS)
    rng = np.random.default_rng(seed_of(random_state))
    sample = labeled_sample(held_out_of(self, "adapt_priors"), numpy_classes(self))
    chosen, log_posterior = _of_new_rows(self, X_new, rng)
    report = _report(self, sample, log_posterior, draws, rng)
    alone = _classes_alone(self, X_new, chosen, draws, rng)
    report = replace(report, classes_alone_p_value=alone)
    adapted = self.with_priors(report.adapted)
    vars(adapted).update(zip(NOTED, (report.adapted, report.interval, report), strict=True))
    if report.is_of_classes_alone is False:
        warn(f"{report.conclusion} (p-value {alone:.2g})", ClassConditionalShiftWarning)
    return adapted


def labeled_sample(record: training_rows.HeldOut, classes: Array) -> tests.LabeledSample:
    """The held-out rows with their calibration. Raises ValueError if a class has none."""
    lacking = np.setdiff1d(np.arange(len(classes)), record.codes)
    if len(lacking):
        raise ValueError(
            f"class {classes.tolist()[lacking[0]]!r} has no held-out row, so that its new frequency cannot be estimated: give rows "
            "of every class by model.with_held_out(X, y)"
        )
    return tests.LabeledSample.of(record)


def _of_new_rows(model: Any, X_new: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions of the new rows that are used, and their log posteriors."""
    log_posterior = np.asarray(on_numpy(model.predict_log_proba(X_new)))
    n = len(log_posterior)
    chosen = np.arange(n) if n <= MOST_NEW_ROWS else np.sort(rng.choice(n, MOST_NEW_ROWS, replace=False))
    return chosen, log_posterior[chosen]


def _report(
    model: Any, sample: tests.LabeledSample, log_posterior: Array, draws: int, rng: np.random.Generator
) -> PriorShift:
    """The report without the test of p(x | class)."""
    training, ratios, n = sample.frequencies, sample.ratios(log_posterior), len(log_posterior)
    estimate = tests.estimated_frequencies(ratios, training)
    p_value = tests.no_shift_p_value(sample, log_posterior, estimate)
    smoothed = tests.estimated_frequencies(ratios, training, PSEUDO_ROWS * (1 + n / sample.rows))
    found = tests.bootstrap_frequencies(sample, log_posterior, estimate, draws, rng)
    adapted, interval = shrunk(smoothed, training, p_value), interval_of(found, n)
    return PriorShift(numpy_classes(model), training, estimate, adapted, interval, n, p_value)


def interval_of(found: Array, rows: int) -> Array:
    """Percentile intervals of drawn frequencies, (k, 2).

    They include what rows that are all of a class, or none of them, still allow (Clopper and Pearson): there, all draws are
    the same.
    """
    low, high = np.quantile(found, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    all_of_class = (LEVEL / 2) ** (1 / rows)
    return np.column_stack([np.minimum(low, all_of_class), np.maximum(high, 1 - all_of_class)])


def shrunk(estimate: Array, training: Array, p_value: float) -> Array:
    """Frequencies between training and estimate, (k,): log odds are moved by the share 1 - c (k - 1) / statistic.

    This is the positive-part James-Stein estimate for the likelihood-ratio statistic of the p-value, with
    c = `LEAST_EVIDENCE`: without evidence nothing moves, with much of it nearly everything does.
    """
    degrees = len(training) - 1
    statistic = float(chi2.isf(p_value, degrees)) if p_value > 0 else np.inf
    share = max(0.0, 1.0 - LEAST_EVIDENCE * degrees / statistic) if statistic > 0 else 0.0
    log_frequency = share * np.log(estimate) + (1 - share) * np.log(training)
    return np.exp(log_normalize(log_frequency[None])[0][0])


def _classes_alone(model: Any, X_new: Any, rows: Array, draws: int, rng: np.random.Generator) -> float | None:
    """p-value of p(x | class) being unchanged; None if no model has held-out rows of its own.

    Held-out rows of folds belong to models that differ from the one that predicts the new rows, which alone would make the
    distributions differ. Both samples are predicted by one model here: the model itself, if its record is of rows that
    were not used in training, or else one that is trained on half of the training rows.
    """
    same = _model_with_rows(model, rng)
    if same is None:
        return None
    other, record = same
    log_posterior = np.asarray(on_numpy(other.predict_log_proba(X_new)))[rows]
    sample = tests.LabeledSample.of(record)
    estimate = tests.estimated_frequencies(sample.ratios(log_posterior), sample.frequencies)
    compared = _compared(sample, log_posterior, estimate)
    if record.log_density is not None:
        density = np.asarray(on_numpy(other.score_samples(X_new)))[rows]
        compared.append(tests.Comparison(record.log_density, density))
    return tests.classes_alone_p_value(sample, compared, len(rows), estimate, draws, rng)


def _model_with_rows(model: Any, rng: np.random.Generator) -> tuple[Any, training_rows.HeldOut] | None:
    """A model and the record of rows that it, and no other model, has predicted without training on them."""
    if training_rows.TRAINING not in vars(model):
        record = vars(model)[training_rows.HELD_OUT]
        return (model, record) if record.how == GIVEN_ROWS else None
    given = labeled_table(model, *vars(model)[training_rows.TRAINING], reset=True)
    share = min(0.5, training_rows.HELD_OUT_ROWS / given.table.n)
    mask = hold_out(given.codes, share, rng) & (given.codes >= 0)
    if len(np.unique(given.codes[mask])) < len(numpy_classes(model)):
        return None
    other = refitted(model, given.only(~mask))
    return other, predicted(other, given.only(mask))


def _compared(sample: tests.LabeledSample, log_posterior: Array, estimate: Array) -> list[tests.Comparison]:
    """What is compared: the posterior of each class at the estimated frequencies, and the largest of them."""
    ratio = np.log(np.maximum(estimate, np.finfo(float).tiny)) - np.log(sample.frequencies)
    held_out, new = (
        log_normalize(sample.calibration.log_posterior(rows) + ratio)[0]
        for rows in (sample.log_posterior, log_posterior)
    )
    of_classes = [tests.Comparison(*pair) for pair in zip(held_out.T, new.T, strict=True)]
    return [*of_classes, tests.Comparison(held_out.max(axis=1), new.max(axis=1))]


def verify_adapted(model: Any) -> None:
    """Raises ValueError unless the attributes that `adapt_priors` sets, if there are any, agree."""
    found = {name: vars(model)[name] for name in NOTED if name in vars(model)}
    adapted, interval, report = NOTED
    problem = f"of {adapted}, {interval} and {report} there is only {', '.join(found)}"
    verify.require(len(found) in (0, 3), problem)
    if found:
        shift = found[report]
        verify.require(isinstance(shift, PriorShift), f"{report} must be a PriorShift")
        verify.require_length(f"the classes of {report}", shift.classes, len(model.classes_))
        for name, value in ((adapted, shift.adapted), (interval, shift.interval)):
            verify.require(np.array_equal(found[name], value), f"{name} is not that of {report}")
