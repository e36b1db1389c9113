"""Posteriors in log space: normalization, the most probable class, scores as sums over rows, temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from calibayes.core.protocols import AnyArray, Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, namespace, portable, row_major, twin
from calibayes.kernels.level_counts import look_up, native_supports, weighted_counts
from calibayes.kernels.moments import zeroth

NEGLIGIBLE = 2.0**-40
"""A class weight W(Y, P) that is no larger counts as zero."""


class Scores(NamedTuple):
    """Weighted sums over labeled rows."""

    weight: float
    error: float
    soft_error: float
    """1 - p of the true class."""
    log_loss: float


class Assessment(NamedTuple):
    """Scores of a posterior, and the class weights of the next update."""

    objective: float
    """Weighted sum of generative * log p(x, true class) + (1 - generative) * log p(true class | x)."""
    train: Scores
    held_out: Scores
    weights: AnyArray
    """weight * (Y - (1 - generative) P), (n, k), or None if not requested."""


class FusedSums(NamedTuple):
    """Result of `calibayes.kernels.posterior.fused_pass`."""

    assessment: Assessment
    """With ``weights`` None."""
    counts: AnyArray
    """Sums of the class weights per class and cell, (k, cells)."""
    classes: AnyArray
    """Sums of the class weights per class, (k,)."""


def native_log_normalize(module: Any, log_joint: Array) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    log_posterior, evidence = np.empty(log_joint.shape), np.empty(len(log_joint))
    module.normalize(as_float64(log_joint), log_posterior, evidence)
    return log_posterior, evidence


def native_first_largest(module: Any, rows: Array) -> Any:
    if not is_matrix(rows, "f") or rows.shape[1] == 0:
        return NotImplemented
    positions = np.empty(len(rows), dtype=np.int64)
    module.largest(as_float64(rows), positions)
    return positions


def native_assess(
    module: Any,
    log_joint: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    out = np.empty(log_joint.shape) if weights else None
    rows = as_float64(log_joint), as_int64(labels), as_float64(weight), as_float64(held_out)
    objective, train, held = module.assess(*rows, generative, decided, out)
    return Assessment(objective, Scores(*train), Scores(*held), out)


@portable
def indicators(labels: Array, k: int) -> Array:
    """Class codes (n,) as indicators, (n, k); a row of code -1, without a label, is all zero."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)


@portable
def label_weights(labels: Array, weight: Array, k: int) -> Array:
    """The weight (n,) of each row in the class of its label, (n, k)."""
    weights = np.zeros((len(labels), k))
    labeled = np.flatnonzero(labels >= 0)
    weights[labeled, labels[labeled]] = weight[labeled]
    return weights


@twin(native_log_normalize)
def log_normalize(log_joint: Array) -> tuple[Array, Array]:
    """Split log p(x, class) (n, k) into log p(class | x), (n, k), and log p(x), (n,).

    A row with probability 0 in every class has a uniform posterior and log p(x) = -inf.
    """
    xp = namespace(log_joint)
    top = xp.max(log_joint, axis=1, keepdims=True)
    shifted = xp.where(xp.isfinite(top), log_joint - xp.where(xp.isfinite(top), top, 0.0), 0.0)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]


def joint_log_likelihood(log_joint: Array, onehot: Array) -> Array:
    """log p(x, true class) of each row, 0 for a row without a label."""
    return np.sum(log_joint * onehot, axis=1)


def conditional_log_likelihood(log_joint: Array, onehot: Array) -> Array:
    """log p(true class | x) of each row, 0 for a row without a label."""
    return np.sum(log_normalize(log_joint)[0] * onehot, axis=1)


def unlabeled_rows(onehot: Array) -> Array:
    """1 for a row without a label, else 0."""
    return 1.0 - np.sum(onehot, axis=1)


@twin(native_first_largest)
def first_largest(rows: Array) -> Array:
    """Position of the largest entry of each row of (n, k), the first of equal ones, (n,)."""
    return np.argmax(rows, axis=1)


@twin(native_assess)
def assess(
    log_joint: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Assessment:
    """Posterior, scores, objective and class weights from log p(x, class) (n, k) in one pass.

    ``labels`` (n,) are class codes, -1 if unknown; ``weight`` and ``held_out`` (n,) the weights of rows as training and
    as held-out rows; ``generative`` the share of log p(x, class) in the objective. Class weights of at most ``decided``
    (before they are multiplied by the weight of the row) are set to 0.
    """
    log_posterior, _ = log_normalize.numpy(log_joint)
    labeled = np.flatnonzero(labels >= 0)
    true = labels[labeled]
    log_true, joint = log_posterior[labeled, true], log_joint[labeled, true]
    gain = (1.0 - generative) * log_true if generative != 1.0 else np.zeros(len(true))
    if generative != 0.0:
        gain = gain + generative * joint
    wrong = np.argmax(log_posterior[labeled], axis=1) != true
    next_weights = None
    if weights:
        next_weights = -(1.0 - generative) * np.exp(log_posterior)
        next_weights[labeled, true] += 1.0
        next_weights[np.abs(next_weights) <= decided] = 0.0
        next_weights *= weight[:, None]
    train, held = (_scores(part[labeled], wrong, log_true) for part in (weight, held_out))
    return Assessment(_weighted_sum(weight[labeled], gain), train, held, next_weights)


def _scores(weight: Array, wrong: Array, log_true: Array) -> Scores:
    soft_error, log_loss = (_weighted_sum(weight, -values) for values in (np.expm1(log_true), log_true))
    return Scores(float(weight.sum()), float(weight @ wrong), soft_error, log_loss)


def _weighted_sum(weight: Array, values: Array) -> float:
    """Sum of weight times value over nonzero weights; a value of weight 0 may be infinite or NaN."""
    nonzero = weight != 0
    return float(weight[nonzero] @ values[nonzero])


@portable
def scores(log_posterior: Array, onehot: Array, weight: Array) -> Mapping[str, float]:
    """Weighted sums over rows with a label: error, soft error (1 - p of the true class) and log loss."""
    known = weight * onehot.sum(axis=1)
    log_true = np.sum(log_posterior * onehot, axis=1)
    wrong = np.sum(onehot, axis=1) - onehot[np.arange(len(onehot)), np.argmax(log_posterior, axis=1)]
    return {
        "weight": float(np.sum(known)),
        "error": float(known @ wrong),
        "soft_error": float(known @ -np.expm1(log_true)),
        "log_loss": float(known @ -log_true),
    }


@portable
def without_negligible(weights: Array) -> Array:
    """The weights W(Y, P), (n, k), with negligible ones set to zero, so that families can skip these rows.

    A statistic, the sum of w * t(x) over rows, changes by less than 2^-40 of the sum of |t(x)| over all rows: less than
    its rounding error.
    """
    return np.where(np.abs(weights) <= NEGLIGIBLE, 0.0, weights)


def best_temperature(
    log_posterior: Array, codes: Array, weight: Array, bounds: tuple[float, float] = (-3.0, 3.0)
) -> float:
    """The temperature with the lowest log loss on labeled rows with a prediction (no NaN); ``bounds`` of its logarithm."""
    labeled = ~np.isnan(log_posterior).any(axis=1) & (codes >= 0)
    rows = np.arange(int(labeled.sum()))
    log_posterior, codes, weight = log_posterior[labeled], codes[labeled], weight[labeled]

    def loss(log_temperature: float) -> float:
        return float(-weight @ log_normalize(log_posterior / np.exp(log_temperature))[0][rows, codes])

    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def held_out_scores(log_posterior: Array, codes: Array, weight: Array) -> tuple[float, float]:
    """Weighted log loss and error of the rows with a prediction (no NaN) and a label; NaN if there are none."""
    predicted = ~np.isnan(log_posterior).any(axis=1) & (codes >= 0)
    if not predicted.any():
        return np.nan, np.nan
    onehot = np.eye(log_posterior.shape[1])[codes[predicted]]
    sums = scores(log_posterior[predicted], onehot, weight[predicted])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]


# -- Averages of the posteriors of several models: maximum likelihood weights, log loss, log average and attribution

MOST_UPDATES = 100
LEAST_GAIN = 1e-10
"""Predicted gain in mean log likelihood below which the iteration ends."""
RIDGE = 1e-9
"""Added to the scaled curvature so that it stays definite when models have equal posteriors."""
SHORTEST = 1e-9
"""Step length at which the line search ends."""
LEAST_RATIO = 1e-3
"""Least ratio of a row's probability after a step to that before: the quadratic model is poor beyond it."""
SUFFICIENT_INCREASE = 1e-4
"""Share of the linearly predicted gain that a step must achieve (Armijo condition)."""


LEAST_IMPROVEMENT = 1e-3
"""Relative difference below which a held-out log loss is not lower than another."""


def is_lower(loss: float, before: Any) -> Any:
    """Whether a log loss is lower than another by more than noise."""
    return loss < (1.0 - LEAST_IMPROVEMENT) * before


def mixture_weights(log_true: Array, weight: Array, pseudo_weight: float = 0.0) -> Array:
    """Weights (m,) of an average of m models that maximize the likelihood of the true classes.

    ``log_true`` (n, m) are the log probabilities of the true class of held-out rows under each model, ``weight`` (n,)
    the weights of the rows. For each model one pseudo-row of weight ``pseudo_weight`` is added, to which only this model
    gives a positive probability: the log density of a Dirichlet(1 + pseudo_weight) prior. The likelihood is concave; Newton's
    method with nonnegativity constraints starts from equal weights. Without rows the weights are equal.

    >>> mixture_weights(np.log([[0.9, 0.5], [0.8, 0.5]]), np.ones(2)).round(3).tolist()
    [1.0, 0.0]
    """
    m, size = log_true.shape[1], float(weight.sum()) + log_true.shape[1] * pseudo_weight
    shares = np.full(m, 1.0 / m)
    if not size > 0:
        return shares
    top = log_true.max(axis=1, keepdims=True)
    probability = np.exp(np.where(np.isfinite(top), log_true - np.where(np.isfinite(top), top, 0.0), 0.0))
    if pseudo_weight > 0:
        probability = np.vstack([probability, np.eye(m)])
        weight = np.append(weight, np.full(m, pseudo_weight))
    for _ in range(MOST_UPDATES):
        relative = probability / (probability @ shares)[:, None]
        gradient = (weight / size) @ relative
        direction = _newton_point(relative, weight / size, gradient, shares) - shares
        if gradient @ direction <= LEAST_GAIN:
            break
        updated = shares + _step_length(relative @ direction, weight / size) * direction
        if np.array_equal(updated, shares):
            break
        shares = updated
    return np.asarray(shares / shares.sum())


def _newton_point(relative: Array, weight: Array, gradient: Array, shares: Array) -> Array:
    """Maximum of the quadratic model of the likelihood over nonnegative weights, scaled to sum to one, (m,).

    The curvature times the current weights is the gradient. A Lagrange multiplier of one on the sum of the weights makes
    them sum to one at the optimum.
    """
    curvature = (relative * weight[:, None]).T @ relative
    # Scaled to unit diagonal: the entries of a model of weight 0 may be far larger than those of the mixture.
    scale = np.sqrt(np.diagonal(curvature)) + np.finfo(float).tiny
    root = np.linalg.cholesky(curvature / np.outer(scale, scale) + RIDGE * np.eye(len(shares)))
    right_side = (2.0 * gradient - 1.0) / scale + RIDGE * scale * shares
    solution = nnls(root.T, np.linalg.solve(root, right_side))[0] / scale
    return np.asarray(solution / solution.sum()) if solution.sum() > 0 else shares


def _step_length(change: Array, weight: Array) -> float:
    """Step length by backtracking from 1; ``change`` (n,) is the relative change of the mixture for a full step."""
    slope, length = float(weight @ change), 1.0
    while length > SHORTEST:
        ratio = 1.0 + length * change
        if ratio.min() > LEAST_RATIO and weight @ np.log(ratio) >= SUFFICIENT_INCREASE * length * slope:
            return length
        length /= 2
    return 0.0


def log_loss(log_true: Array, shares: Array, weight: Array) -> float:
    """Weighted mean log loss of the average with weights ``shares`` (m,), given ``log_true`` (n, m); 0 without rows."""
    used, size = shares > 0, float(weight.sum())
    log_average = np.logaddexp.reduce(log_true[:, used] + np.log(shares[used]), axis=1)
    return float(weight @ -log_average) / size if size > 0 else 0.0


def mix(log_posteriors: Array, weights: Array) -> Array:
    """log of the weighted average of posteriors, (n, k), from their logs (m, n, k) and weights (m,)."""
    used = weights > 0
    log_shares = log_posteriors[used] + np.log(weights[used])[:, None, None]
    return np.asarray(np.logaddexp.reduce(log_shares, axis=0))


# -- Components of mixtures: arrays (n, parts) whose columns belong to classes, those of a class side by side


def log_sum_and_shares(log_parts: Array, owner: Array) -> tuple[Array, Array]:
    """log of the sum of the parts of each class, (n, k), and the share of each part in the sum of its class, (n, parts).

    ``owner`` (parts,) is the class of each part, ascending. Shares are equal where all parts of a class are 0.
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    top = np.maximum.reduceat(log_parts, first, axis=1)
    part_top = top[:, owner]
    finite = np.isfinite(part_top)
    parts = np.exp(np.where(finite, log_parts - np.where(finite, part_top, 0.0), 0.0))
    total = np.add.reduceat(parts, first, axis=1)
    return top + np.log(total), parts / total[:, owner]


def draw_parts(shares: Array, owner: Array, classes: Array, rng: np.random.Generator) -> Array:
    """One part of the class (n,) of each row, (n,), drawn with probabilities ``shares`` (n, parts) or (1, parts)."""
    of_class = np.where(owner == classes[:, None], shares, 0.0)
    cumulative = np.cumsum(of_class, axis=1)
    uniform = rng.random((len(classes), 1)) * cumulative[:, -1:]
    positions = np.sum(cumulative <= uniform, axis=1)
    last = np.searchsorted(owner, classes, side="right") - 1
    return np.minimum(positions, last)


# -- Densities, posterior, scores and weighted counts of rows of levels in a single pass ---------------------


def native_fused_pass(
    module: Any, codes: Array, table: Array, first: Array, log_prior: Array, labels: Array, *inputs: Any
) -> Any:
    if not native_supports(codes, first, "iu") or len(table) == 0:
        return NotImplemented
    weight, held_out, *shares = inputs
    levels = row_major(codes), as_float64(table), as_int64(first)
    rows = as_float64(log_prior), as_int64(labels), as_float64(weight), as_float64(held_out)
    counts, class_sums = np.empty(table.shape), np.empty(len(table))
    sums = module.fused_pass(*levels, *rows, *shares, counts, class_sums)
    if sums is None:  # too many classes or columns
        return NotImplemented
    objective, train, held = sums
    return FusedSums(Assessment(objective, Scores(*train), Scores(*held), None), counts, class_sums)


@twin(native_fused_pass)
def fused_pass(codes: Array, table: Array, first: Array, log_prior: Array, *inputs: Any) -> FusedSums:
    """`look_up` of codes (n, d) in a table (k, cells), `assess` and `weighted_counts` without intermediate arrays.

    ``log_prior`` (k,) is added to the log densities; the inputs are the other arguments of `assess`: labels, weight,
    held_out, generative and decided.
    """
    assessment = assess(log_prior + look_up(codes, table, first), *inputs)
    counts = weighted_counts(codes, assessment.weights, first)
    return FusedSums(assessment._replace(weights=None), counts, zeroth(assessment.weights))


# -- Euclidean projection onto the probability simplex -------------------------------------------------------

PROBABILITY_FLOOR = 1e-12
"""Least probability after a projection, so that its logarithm is finite."""
LARGEST_LOG = 30.0
"""Logarithms above this are shifted down before they are exponentiated."""


def project(rows: Array) -> Array:
    """Nearest probability vector to each row of (n, k), by sorting (Held, Wolfe and Crowder 1974)."""
    descending = np.sort(rows, axis=1)[:, ::-1]
    excess = np.cumsum(descending, axis=1) - 1.0
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.sum(descending * ranks > excess, axis=1)
    threshold = excess[np.arange(len(rows)), support - 1] / support
    return np.maximum(rows - threshold[:, None], 0.0)


def log_project(log_rows: Array) -> Array:
    """Logarithms of the nearest probability vectors to exp(log_rows), (n, k), at least log of `PROBABILITY_FLOOR`."""
    # In a row far above one only the largest entries matter to the projection, so the row may be scaled down.
    excess = np.maximum(log_rows.max(axis=1, keepdims=True) - LARGEST_LOG, 0.0)
    probability = np.maximum(project(np.exp(log_rows - excess)), PROBABILITY_FLOOR)
    return np.asarray(np.log(probability / probability.sum(axis=1, keepdims=True)))


# -- Posteriors with the same bits everywhere ----------------------------------------------------------------
#
# Every operation is one that IEEE 754 defines to the last bit, in a fixed order, and none is fused with another: NumPy, native
# code of every instruction set and other array libraries give the same bits. Exponentials and logarithms of libraries do not.

LOG2_HIGH, LOG2_LOW, LOG2_E = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896340736
ROUND = 6755399441055744.0
"""1.5 * 2^52: adding it to a number rounds that to a whole one, which are the low bits of the sum."""
LEAST_EXPONENT = -708.0
"""Exponentials of smaller numbers are 0."""
EXP_SERIES = tuple(1.0 / factor for factor in np.cumprod([1.0, *range(1, 14)])[::-1])
"""Coefficients of the Taylor series, the highest power first."""
LOG_SERIES = tuple(1.0 / power for power in range(23, 1, -2))
"""Coefficients of the series of the inverse hyperbolic tangent without the first, the highest power first."""
LOG2 = 6.93147180559945309417e-01
ROOT_OF_HALF = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2)."""


def exact_exp(x: Array) -> Array:
    """e^x of numbers that are not positive, to about one unit in the last place: x = m log 2 + r, and a polynomial in r."""
    safe = np.maximum(x, LEAST_EXPONENT)
    shifted = safe * LOG2_E + ROUND
    m = shifted - ROUND
    r = (safe - m * LOG2_HIGH) - m * LOG2_LOW
    p = np.full_like(r, EXP_SERIES[0])
    for coefficient in EXP_SERIES[1:]:
        p = p * r + coefficient
    with np.errstate(over="ignore"):
        bits = p.view(np.uint64) + (shifted.view(np.uint64) << np.uint64(52))
    return np.where(x > LEAST_EXPONENT, bits.view(np.float64), 0.0)


def exact_log(x: Array) -> Array:
    """log x of normal positive numbers: x = 2^m y with y about 1, and a series in (y - 1) / (y + 1)."""
    bits = x.view(np.int64)
    exponent = (bits - ROOT_OF_HALF) >> 52
    y = (bits - (exponent << 52)).view(np.float64)
    f = (y - 1.0) / (y + 1.0)
    z = f * f
    p = np.full_like(z, LOG_SERIES[0])
    for coefficient in LOG_SERIES[1:]:
        p = p * z + coefficient
    return np.asarray(exponent * LOG2 + (2.0 * f + 2.0 * f * (z * p)))


class ExactPosterior(NamedTuple):
    """Posteriors, and log scores less the largest and the log sum of their exponentials."""

    posterior: Array
    shifted: Array
    log_sum: Array


def exact_posterior(scores: Array) -> ExactPosterior:
    """Posteriors (n, k) of log scores (n, k); uniform for a row of probability 0 in every class."""
    top = scores.max(axis=1, keepdims=True)
    is_finite = np.isfinite(top)
    shifted = np.where(is_finite, scores - np.where(is_finite, top, 0.0), 0.0)
    powers = exact_exp(shifted)
    total = powers[:, 0].copy()
    for power in powers.T[1:]:  # one class after another: sums of NumPy are in an order of its own
        total = total + power
    return ExactPosterior(powers / total[:, None], shifted, exact_log(total))


def exact_log_normalize(scores: Array) -> tuple[Array, Array]:
    """`log_normalize` of log scores (n, k), with the same bits everywhere: log probabilities (n, k) and log evidence (n,)."""
    _, shifted, log_sum = exact_posterior(scores)
    top = scores.max(axis=1)
    evidence = np.where(np.isfinite(top), top + log_sum, top)
    return shifted - log_sum[:, None], evidence
