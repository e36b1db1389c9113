"""Differentially private training of closed forms: sums over rows with noise, everything else from what was given.

The model is assembled on a table that is made of the given bounds, levels and classes alone. Of the training rows, it gets
nothing but the noised sums (`private_sums`), so that no other number of the model can depend on them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from calibayes.analysis.privacy import Privacy, PrivacyAccount, noise, rho_of
from calibayes.core.notices import listed, warn
from calibayes.core.protocols import Array, Arrays, ModelArrays
from calibayes.encoders.bins import UniformBins
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Flags, Numbers
from calibayes.families import Bernoulli, Categorical, Diagonal, Gaussian
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.event_counts import is_sparse
from calibayes.model import checked_rows
from calibayes.model.binding import ColumnBinding
from calibayes.model.checked_rows import Rows
from calibayes.model.fitted import Fitted, begin
from calibayes.model.parameters import unfitted_copy
from calibayes.model.recipe import Assembly, Recipe, assemble
from calibayes.model.table_inputs import TableInput
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.table import Table, numeric_matrix

# -- Whole-number sums over rows, to which one row contributes a bounded amount; noise on them; valid statistics from them
#
# Numbers are put on a lattice: u = (x - middle of the bounds) / half of their range, from -1 to 1, as round(u * LATTICE), and its square as
# round((u^2 - 1/2) * LATTICE), so that sums and their noise are exact integers.

LATTICE = 2**20
LEAST_SPREAD = 1e-2
"""Smallest standard deviation of a column as a share of the radius of its bounds."""
VARIANCE_STEPS = 2**20
"""Variances of the noise are rounded up to multiples of the inverse of this."""


@dataclass(frozen=True)
class RowSum:
    """A sum over rows whose cells are by class: one row changes one cell of each block of columns."""

    name: str
    values: Array
    """(k, cells), whole numbers."""
    sensitivity: int
    """Most that one row changes (L2 norm)."""
    share: int = 2
    """Share of the privacy that is spent on it, beside those of the other sums."""


def class_cells(codes: Array, values: Array, k: int) -> Array:
    """Sums of whole numbers (n,) by class, (k, 1)."""
    return np.rint(np.bincount(codes, values, minlength=k)).astype(np.int64)[:, None]


def prior_sum(codes: Array, k: int) -> RowSum:
    """Rows of each class."""
    return RowSum(f"{PRIOR}/count", class_cells(codes, np.ones(len(codes)), k), 1)


def level_sums(name: str, encoded: Array, codes: Array, levels: tuple[int, ...], k: int) -> Iterator[RowSum]:
    """Counts of the levels of each column by class; a negative code is a missing cell."""
    for j, size in enumerate(levels):
        known = encoded[:, j] >= 0
        cells = codes[known] * size + encoded[known, j].astype(np.int64)
        yield RowSum(f"{name}/count/{j}", np.bincount(cells, minlength=k * size).reshape(k, size), 1)


def moment_sums(name: str, units: Array, codes: Array, may_miss: Array, k: int) -> Iterator[RowSum]:
    """First and second moments of each column by class, of u from -1 to 1, and its known cells if some may be missing."""
    for j, column in enumerate(units.T):
        known = ~np.isnan(column)
        u, classes = np.clip(column[known], -1.0, 1.0), codes[known]
        yield RowSum(f"{name}/first/{j}", class_cells(classes, np.rint(u * LATTICE), k), LATTICE)
        squares = np.rint((u**2 - 0.5) * LATTICE)
        yield RowSum(f"{name}/second/{j}", class_cells(classes, squares, k), LATTICE // 2, share=1)
        if may_miss[j]:
            yield RowSum(f"{name}/count/{j}", class_cells(classes, np.ones(len(u)), k), 1)


def noise_variances(sums: list[RowSum], rho: float) -> list[Fraction]:
    """The variance of the noise of each sum, which spends its share of rho as (sensitivity^2 / variance) / 2.

    Variances are rounded up, so that no more than rho is spent.
    """
    parts = [Fraction(rho) * total.share / sum(other.share for other in sums) for total in sums]
    exact = [Fraction(total.sensitivity) ** 2 / (2 * part) for total, part in zip(sums, parts, strict=True)]
    return [Fraction(math.ceil(variance * VARIANCE_STEPS), VARIANCE_STEPS) for variance in exact]


def add_noise(sums: list[RowSum], variances: list[Fraction], source: random.Random) -> dict[str, Array]:
    """Name -> the sum with noise."""
    return {
        total.name: total.values + noise(variance, total.values.shape, source)
        for total, variance in zip(sums, variances, strict=True)
    }


def valid_statistics(
    released: Mapping[str, Array],
    scales: Mapping[str, float],
    families: Mapping[str, Any],
    bounds: Mapping[str, Array],
) -> ModelArrays:
    """Statistics of the families from released sums alone: nothing here costs privacy.

    ``bounds`` (2, d) are those of the columns of Gaussian families, ``scales`` standard deviations of the noise.
    """
    rows = np.maximum(released[f"{PRIOR}/count"].astype(np.float64), 1.0)
    statistics: dict[str, Arrays] = {PRIOR: {"count": rows[:, 0]}}
    for name, family in families.items():
        columns = range(len(family.layout.columns))
        if name in bounds:
            moments = [_moments(released, scales, f"{name}/{{}}/{j}", rows) for j in columns]
            count, mean, variance = (np.concatenate(parts, axis=1) for parts in zip(*moments, strict=True))
            middle, radius = bounds[name].mean(axis=0), np.ptp(bounds[name], axis=0) / 2
            mean = middle + radius * mean - family.layout.center
            second = count * (variance * radius**2 + mean**2)
            statistics[name] = {"count": count, "first": count * mean, "second": second}
        else:
            counts = [np.maximum(released[f"{name}/count/{j}"].astype(np.float64), 0.0) for j in columns]
            count = np.concatenate(counts, axis=1)
            is_flags = not isinstance(family, Categorical)  # zeros and ones of each column alternate
            flags = {"zeros": count[:, 0::2], "ones": count[:, 1::2]}
            statistics[name] = flags if is_flags else {"count": count}
    return statistics


def _moments(
    released: Mapping[str, Array], scales: Mapping[str, float], name: str, rows: Array
) -> tuple[Array, Array, Array]:
    """Count, mean and variance of a column of u by class, (k, 1) each.

    Noise costs less where it is allowed for: a mean moves towards that of all classes (positive-part James-Stein), a
    variance towards the pooled one, and the noise of means and of the pooled variance is added to the variance, so that
    densities are wide where little is known.
    """
    counted = released.get(name.format("count"))
    count = rows if counted is None else np.clip(counted, 1.0, rows)
    first = released[name.format("first")] / LATTICE
    second = released[name.format("second")] / LATTICE + count / 2
    mean_noise, square_noise = (scales[name.format(part)] / LATTICE / count for part in ("first", "second"))
    mean, square = np.clip(first / count, -1.0, 1.0), np.clip(second / count, 0.0, 1.0)
    share = count / count.sum()
    pooled_noise = float(np.sqrt(np.sum((share * square_noise) ** 2)))
    variance = square - mean**2 + mean_noise**2
    pooled = max(float(np.sum(share * variance)), pooled_noise, LEAST_SPREAD**2)
    shrunk = variance + (pooled - variance) * square_noise**2 / (square_noise**2 + pooled**2)
    unknown = mean_noise**2 * pooled / (mean_noise**2 + pooled)
    wide = np.maximum(shrunk, LEAST_SPREAD**2) + pooled_noise + unknown
    return count, _towards_center(mean, share, mean_noise), np.minimum(wide, 1.0)


def _towards_center(mean: Array, share: Array, deviation: Array) -> Array:
    """Class means with noise of a standard deviation, moved towards the mean of all rows (positive-part James-Stein)."""
    center = np.sum(share * mean)
    distance = mean - center
    factor = 1.0 - deviation**2 / np.maximum(distance**2, deviation**2)
    return np.asarray(center + factor * distance)


# -- Differentially private training of closed forms: sums over rows with noise, everything else from what was given
#
# The model is assembled on a table that is made of the given bounds, levels and classes alone. Of the training rows, it gets
# nothing but the noised sums (`private_sums`), so that no other number of the model can depend on them.

POINTS = 1025
"""Distinct numbers between the bounds of a column of the given table: more than it has bins."""
SUPPORTED = (
    "Gaussian densities (GaussianNB, kinds='gaussian'), levels (CategoricalNB, kinds='categorical'), bins of equal width "
    "(discretize='uniform') and flags (BernoulliNB)"
)


def fit_privately(model: Any, recipe: Recipe, given: TableInput) -> dict[str, Any]:
    """The fitted attributes of a private model."""
    privacy: Privacy = recipe.options.privacy
    privacy.check()
    if not recipe.rule.is_closed_form:
        raise ValueError(
            f"privacy needs a closed form, rule='ml' or rule='map', got rule={recipe.rule.name!r}"
        )
    if given.sample_weight is not None or model.class_weight is not None:
        raise ValueError("privacy counts each row once: leave out sample_weight and class_weight")
    if privacy.seed is not None:
        warn(
            "Privacy(seed=...) is for tests: who knows the seed can subtract the noise, so there is no promise of privacy"
        )
    classes = checked_rows.read_classes(privacy.classes)
    checked_rows.require_labels(model, given.y)
    read = given.in_memory()
    table = checked_rows.read_table(unfitted_copy(model), read.X, reset=True)
    target = checked_rows.read_target(read.y, unlabeled=False, classes=classes, fewest_classes=1)
    check_consistent_length(target.codes, np.empty(table.n))
    public = _public_rows(privacy, table.source_names, classes)
    private = replace(recipe, options=replace(recipe.options, privacy=None))
    assembly = assemble(private, public, classes)
    fitted = _released(assembly, recipe, privacy, table, target.codes)
    holder = unfitted_copy(model)
    checked_rows.set_training_table(holder, public.table)
    total = round(float(fitted.data_statistics[PRIOR]["count"].sum()))
    holder.training_table_ = replace(holder.training_table_, rows=total, labeled=total)
    return {**vars(holder), "fitted_": fitted}


def _public_rows(privacy: Privacy, names: tuple[str, ...], classes: Array) -> Rows:
    """A table of the given bounds and levels: numbers between the bounds, and every level, in every class."""
    given = [privacy.values_of(j, name) for j, name in enumerate(names)]
    n = max([POINTS, *(len(values) for kind, values in given if kind == "levels")])
    columns = [np.linspace(v[0], v[1], n) if kind == "bounds" else np.resize(v, n) for kind, v in given]
    content = tuple(np.tile(column, len(classes)) for column in columns)
    types = tuple(column.dtype for column in content)
    is_matrix = len(set(types)) == 1 and types[0] != object
    table = Table(names, np.stack(content, axis=1) if is_matrix else content, types)
    codes = np.repeat(np.arange(len(classes)), n)
    converted = ColumnConversion(names, table.types()).apply(table)
    return Rows(converted, codes, np.ones(len(codes)), np.arange(len(codes)))


def _released(assembly: Assembly, recipe: Recipe, privacy: Privacy, table: Table, codes: Array) -> Fitted:
    """The closed form of the noised sums, with the account of what they have cost."""
    bounds: dict[str, Array] = {}
    sums = list(_sums(assembly, privacy, table, codes, bounds))
    rho = rho_of(float(privacy.epsilon), float(privacy.delta))
    variances = noise_variances(sums, rho)
    source = random.SystemRandom() if privacy.seed is None else random.Random(privacy.seed)
    released = add_noise(sums, variances, source)
    scales = {total.name: math.sqrt(variance) for total, variance in zip(sums, variances, strict=True)}
    statistics = valid_statistics(released, scales, assembly.model.families, bounds)
    account = PrivacyAccount(
        epsilon=float(privacy.epsilon),
        delta=float(privacy.delta),
        rho=rho,
        sums=tuple(scales),
        sensitivities=tuple(float(total.sensitivity) for total in sums),
        scales=tuple(scales.values()),
        is_seeded=privacy.seed is not None,
    )
    temperature = float(recipe.options.temperature)
    fitted = begin(assembly, recipe.rule, statistics, is_additive=True, temperature=temperature)
    return fitted.with_extra("privacy", account).closed_form(statistics)


def _sums(
    assembly: Assembly, privacy: Privacy, table: Table, codes: Array, bounds: dict[str, Array]
) -> Iterator[RowSum]:
    """All sums over the rows that the families need; notes the bounds of Gaussian columns, (2, d)."""
    k, binding = len(assembly.classes), assembly.binding
    yield prior_sum(codes, k)
    for name, encoder in binding.encoders.items():
        family, chosen = assembly.model.families[name], binding.chosen[name]
        given = _given_values(privacy, binding, name, "levels" if type(encoder) is Levels else "bounds")
        if type(family) is Gaussian and type(family.shape) is Diagonal and type(encoder) is Numbers:
            low, high = np.array(given).T
            bounds[name] = np.stack([low, high])
            numbers = np.clip(numeric_matrix(table, chosen).astype(np.float64), low, high)
            units = (2 * numbers - low - high) / (high - low)
            may_miss = np.array([privacy.may_miss(j, binding.names[j]) for j in chosen])
            _refuse_missing(units, may_miss, binding.columns(name))
            yield from moment_sums(name, units, codes, may_miss, k)
        elif type(family) is Categorical and (
            type(encoder) is UniformBins or (type(encoder) is Levels and not encoder.pooling.is_active)
        ):  # bins and levels that are given, not found in the rows
            yield from level_sums(name, encoder.encode(table), codes, encoder.layout()["levels"], k)
        elif type(family) is Bernoulli and isinstance(encoder, Flags):
            columns = encoder.encode(table)
            flags = columns.toarray() if is_sparse(columns) else columns
            levels = np.where(np.isnan(flags), -1, flags).astype(np.int64)
            yield from level_sums(name, levels, codes, (2,) * levels.shape[1], k)
        else:
            raise ValueError(
                f"privacy is for {SUPPORTED}; {listed(binding.columns(name))} are modeled by {type(family).__name__} "
                f"with {type(encoder).__name__}"
            )


def _given_values(privacy: Privacy, binding: ColumnBinding, family: str, expected: str) -> list[Array]:
    """Bounds or levels of the columns of a family. Raises ValueError if the other kind was given."""
    names = binding.columns(family)
    given = [privacy.values_of(j, name) for j, name in zip(binding.chosen[family], names, strict=True)]
    wrong = [name for name, (kind, _) in zip(names, given, strict=True) if kind != expected]
    if wrong:
        raise ValueError(
            f"column {wrong[0]!r} is modeled by its {expected}: give Privacy({expected}={{{wrong[0]!r}: ...}})"
        )
    return [values for _, values in given]


def _refuse_missing(units: Array, may_miss: Array, names: tuple[str, ...]) -> None:
    """Raises ValueError if a cell is missing in a column that is said to be complete."""
    wrong = np.isnan(units).any(axis=0) & ~may_miss
    if wrong.any():
        name = names[int(np.argmax(wrong))]
        raise ValueError(
            f"column {name!r} has missing cells: name it in Privacy(missing=[...]), so that its known cells are counted, too"
        )
