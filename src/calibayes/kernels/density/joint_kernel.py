"""Gaussian kernels over all columns together: how much of each class lies about a row, near and farther off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import floats, is_matrix, twin, whole
from calibayes.kernels.threads import map_row_ranges

STEPS = 15
"""Bandwidths from the widest on, each narrower by the root of two: squares of kernels are kernels of the next."""
APART = 2
"""Steps from a bandwidth to the one behind it, which is twice as wide."""
UNKNOWN = 0.01
"""A row of which the class is not known, at the place of the nearest one: so much of it counts for all classes."""
FAR = 600.0
"""Most that a kernel's exponent is: beyond, only wider kernels count anyway."""
TOGETHER = 4
"""Stretches of rows are larger by this: products of matrices are slow where one of them has few rows."""


class KernelRows(NamedTuple):
    """Where kernels stand.

    Attributes
    ----------
    rows : (m, d) array
        Those of the first class first, then those of the second, and so on.
    weight : (m,) array
    ends : tuple
        Where the rows of each class begin, and where the last ones end, k + 1 numbers.
    """

    rows: Array
    weight: Array
    ends: tuple[int, ...]


class Votes(NamedTuple):
    """What lies about some rows.

    Attributes
    ----------
    steps : sequence
        Which bandwidths, the widest first.
    sums : (steps, n, k) array
        Sums of kernels by class, in units of the nearest row's.
    nearest : (n,) array
        Minus the log of that kernel, at bandwidth 0.
    """

    steps: Sequence[int]
    sums: Array
    nearest: Array


def joined(parts: Sequence[Votes]) -> Votes:
    """What lies about the rows of all parts, which have the same bandwidths."""
    sums, nearest = [part.sums for part in parts], [part.nearest for part in parts]
    return Votes(parts[0].steps, np.concatenate(sums, axis=1), np.concatenate(nearest))


def path_to(step: int) -> Sequence[int]:
    """The bandwidths that have a say in this one, the widest first."""
    return range(step % APART, step + 1, APART)


def votes(
    rows: Array,
    kept: KernelRows,
    square: float,
    steps: Sequence[int] = range(STEPS),
    own: Array | None = None,
) -> Votes:
    """What lies about rows (n, d), where ``square`` is that of the widest bandwidth.

    ``own`` (n,) is the position of each row among those kept, if it is there: it is left out.
    """
    sums, nearest = np.empty((len(steps), len(rows), len(kept.ends) - 1)), np.empty(len(rows))
    asked, standing = _asking(rows), _standing(kept.rows)

    def some(part: slice) -> None:
        away = asked[part] @ standing
        if own is not None:
            away[np.arange(len(away)), own[part]] = np.inf
        sums[:, part], nearest[part] = _sums(away, kept, square, steps)

    map_row_ranges(some, len(rows), kept.weight.nbytes // TOGETHER)
    return Votes(steps, sums, nearest)


def votes_by_columns(
    rows: Array, kept: KernelRows, square: float, steps: Sequence[int], groups: Sequence[Sequence[int]]
) -> list[Votes]:
    """The same as groups of columns come in one after the other."""
    shape = len(groups), len(steps), len(rows), len(kept.ends) - 1
    sums, nearest = np.empty(shape), np.empty((len(groups), len(rows)))
    pairs = [(_asking(rows[:, group]), _standing(kept.rows[:, group])) for group in groups]

    def some(part: slice) -> None:
        away = np.zeros((part.stop - part.start, len(kept.rows)))
        for place, (asked, standing) in enumerate(pairs):
            away += np.maximum(asked[part] @ standing, 0.0)
            sums[place, :, part], nearest[place, part] = _sums(away.copy(), kept, square, steps)

    map_row_ranges(some, len(rows), kept.weight.nbytes // TOGETHER)
    return [Votes(steps, *found) for found in zip(sums, nearest, strict=True)]


def posteriors(found: Votes, prior: Array, backing: Array) -> Iterator[Array]:
    """p(class | x) for each bandwidth and each ``backing`` (b,), bandwidth by bandwidth, (b, n, k).

    To the rows about one come ``backing`` rows at its own place, whose classes are as kernels twice as wide say, and behind
    the widest ones as ``prior`` (k,) or (n, k) says: where rows lie close the close ones decide, and elsewhere those
    farther off. A share of a row with the classes of ``prior`` stands at the place of the nearest: one row alone, however
    much nearer than all others, is never sure.
    """
    behind: dict[int, Array] = {}
    before = np.broadcast_to(prior, (len(backing), *found.sums.shape[1:]))
    for step, sums in zip(found.steps, found.sums, strict=True):
        rest = np.multiply.outer(backing, np.exp(np.minimum(found.nearest * 2.0**step, FAR)))
        told = rest[:, :, None] * behind.pop(step - APART, before)
        told += sums + UNKNOWN * prior
        told /= (rest + sums.sum(axis=1) + UNKNOWN)[:, :, None]
        behind[step] = told
        yield told


def log_densities(rows: Array, kept: KernelRows, squares: Sequence[float]) -> Array:
    """Log density of normalized kernels, (n,), those of several bandwidths averaged."""
    weight, d = kept.weight / kept.weight.sum(), kept.rows.shape[1]
    asked, standing = _asking(rows), _standing(kept.rows)

    def some(part: slice) -> Array:
        away, logs = np.maximum(asked[part] @ standing, 0.0), []
        nearest = away.min(axis=1)
        away -= nearest[:, None]
        for square in squares:
            sums = np.exp(away * (-0.5 / square)) @ weight
            logs.append(np.log(sums) - 0.5 * nearest / square - 0.5 * d * np.log(2.0 * np.pi * square))
        return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(squares)))

    return np.concatenate(map_row_ranges(some, len(rows), kept.weight.nbytes // TOGETHER))


def _asking(rows: Array) -> Array:
    """Rows (n, d + 2) whose products with those that stand are squared distances."""
    return np.column_stack([rows, np.sum(rows * rows, axis=1), np.ones(len(rows))])


def _standing(rows: Array) -> Array:
    """KernelRows rows (d + 2, m) for products with those that ask."""
    return np.stack([*(-2.0 * rows.T), np.ones(len(rows)), np.sum(rows * rows, axis=1)])


def _sums(away: Array, kept: KernelRows, square: float, steps: Sequence[int]) -> tuple[Array, Array]:
    """Sums of kernels (steps, n, k) of squared distances (n, m), and how far the nearest is, (n,)."""
    gaps = [0, *(after - before for before, after in pairwise(steps))]
    found, nearest = kernel_sums(away, kept.weight, kept.ends, 0.5 * 2.0 ** steps[0] / square, gaps)
    return found, nearest * (0.5 / square)


def native_kernel_sums(module: Any, away: Array, weight: Array, ends: Any, scale: float, gaps: Any) -> Any:
    if not is_matrix(away, "f") or away.shape[1] == 0:
        return NotImplemented
    sums, nearest = np.empty((len(gaps), len(away), len(ends) - 1)), np.empty(len(away))
    module.kernel_sums(floats(away), floats(weight), whole(ends), scale, whole(gaps), sums, nearest)
    return sums, nearest


@twin(native_kernel_sums)
def kernel_sums(
    away: Array, weight: Array, ends: Sequence[int], scale: float, gaps: Sequence[int]
) -> tuple[Array, Array]:
    """Sums by class of kernels in units of the nearest one's, (steps, n, k), and the nearest squared distances, (n,).

    ``away`` (n, m) are squared distances, whose memory may be used, ``weight`` (m,) what kernels count; those of class c
    are ``ends[c]`` to ``ends[c + 1]``. Kernels are exp(-scale * distance), squared ``gaps[step]`` times before each step.
    """
    np.maximum(away, 0.0, out=away)
    nearest = away.min(axis=1)
    away -= nearest[:, None]
    away *= -scale
    np.exp(away, out=away)
    found = np.empty((len(gaps), len(away), len(ends) - 1))
    for place, gap in enumerate(gaps):
        for _ in range(gap):
            np.square(away, out=away)
        for code, (start, stop) in enumerate(pairwise(ends)):
            found[place, :, code] = away[:, start:stop] @ weight[start:stop]
    return found, nearest
