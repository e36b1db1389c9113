"""Differentially private training of closed forms: sums over rows with noise, everything else from what was given.

The model is assembled on a table that is made of the given bounds, levels and classes alone. Of the training rows, it gets
nothing but the noised sums (`private_sums`), so that no other number of the model can depend on them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.encoders.bins import UniformBins
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Flags, Numbers
from calibayes.estimators.generative.fitted import Fitted, begin
from calibayes.estimators.generative.privacy import sums as private_sums
from calibayes.estimators.generative.recipe import Assembly, Recipe, assemble
from calibayes.estimators.interface.device_input import refuse_on_device
from calibayes.estimators.interface.input import Rows, read_table, set_training_table
from calibayes.estimators.interface.labels import read_classes, read_target, require_labels
from calibayes.estimators.interface.parameters import unfitted_copy
from calibayes.estimators.interface.privacy.account import Privacy, PrivacyAccount
from calibayes.estimators.interface.privacy.zero_concentrated import rho_of
from calibayes.estimators.interface.streams.streaming import in_memory
from calibayes.families import Bernoulli, Categorical, Diagonal, Gaussian
from calibayes.families.model import PRIOR
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.table import Table, numeric_matrix

POINTS = 1025
"""Distinct numbers between the bounds of a column of the given table: more than it has bins."""
SUPPORTED = (
    "Gaussian densities (GaussianNB, kinds='gaussian'), levels (CategoricalNB, kinds='categorical'), bins of equal width "
    "(discretize='uniform') and flags (BernoulliNB)"
)


class GivenRows(NamedTuple):
    """The training rows: their columns as they were read, and class codes."""

    table: Table
    codes: Array


def fit_privately(
    model: Any, privacy: Privacy, X: Any, y: Any, sample_weight: Any, recipe: Recipe
) -> dict[str, Any]:
    """The fitted attributes of a private model."""
    privacy.check()
    if not recipe.rule.is_closed_form:
        raise ValueError(
            f"privacy needs a closed form, rule='ml' or rule='map', got rule={recipe.rule.name!r}"
        )
    if sample_weight is not None or model.class_weight is not None:
        raise ValueError("privacy counts each row once: leave out sample_weight and class_weight")
    if privacy.seed is not None:
        warn(
            "Privacy(seed=...) is for tests: who knows the seed can subtract the noise, so there is no promise of privacy"
        )
    classes = read_classes(privacy.classes)
    rows = _read(model, X, y, classes)
    public = _public_rows(privacy, rows.table.source_names, classes)
    private = replace(recipe, options=replace(recipe.options, privacy=None))
    assembly = assemble(private, public, classes)
    fitted = _released(assembly, recipe, privacy, rows)
    holder = unfitted_copy(model)
    set_training_table(holder, public.table)
    total = round(float(fitted.data_statistics[PRIOR]["count"].sum()))
    holder.training_table_ = replace(holder.training_table_, rows=total, labeled=total)
    return {**vars(holder), "fitted_": fitted}


def _read(model: Any, X: Any, y: Any, classes: Array) -> GivenRows:
    require_labels(model, y)
    refuse_on_device(model, X)
    X, y, _ = in_memory(X, y)
    table = read_table(unfitted_copy(model), X, reset=True)
    target = read_target(y, unlabeled=False, classes=classes, fewest_classes=1)
    check_consistent_length(target.codes, np.empty(table.n))
    return GivenRows(table, target.codes)


def _public_rows(privacy: Privacy, names: tuple[str, ...], classes: Array) -> Rows:
    """A table of the given bounds and levels: numbers between the bounds, and every level, in every class."""
    given = [privacy.values_of(j, name) for j, name in enumerate(names)]
    n = max([POINTS, *(len(values) for kind, values in given if kind == "levels")])
    columns = [
        np.linspace(values[0], values[1], n) if kind == "bounds" else np.resize(values, n)
        for kind, values in given
    ]
    content = tuple(np.tile(column, len(classes)) for column in columns)
    if len({column.dtype for column in content}) == 1 and content[0].dtype != object:
        table = Table(names, np.stack(content, axis=1), tuple(column.dtype for column in content))
    else:
        table = Table(names, content, tuple(column.dtype for column in content))
    codes = np.repeat(np.arange(len(classes)), n)
    converted = ColumnConversion(names, table.types()).apply(table)
    return Rows(converted, codes, np.ones(len(codes)), np.arange(len(codes)))


def _released(assembly: Assembly, recipe: Recipe, privacy: Privacy, rows: GivenRows) -> Fitted:
    """The closed form of the noised sums, with the account of what they have cost."""
    bounds: dict[str, Array] = {}
    sums = list(_sums(assembly, privacy, rows, bounds))
    rho = rho_of(float(privacy.epsilon), float(privacy.delta))
    variances = private_sums.noise_variances(sums, rho)
    source = random.SystemRandom() if privacy.seed is None else random.Random(privacy.seed)
    released = private_sums.noised(sums, variances, source)
    scales = {total.name: math.sqrt(variance) for total, variance in zip(sums, variances, strict=True)}
    statistics = private_sums.valid_statistics(released, scales, assembly.model.families, bounds)
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
    fitted = begin(
        assembly, recipe.rule, statistics, is_additive=True, temperature=temperature, privacy=account
    )
    return fitted.closed_form(statistics)


def _sums(
    assembly: Assembly, privacy: Privacy, rows: GivenRows, bounds: dict[str, Array]
) -> Iterator[private_sums.RowSum]:
    """All sums over the rows that the families need; notes the bounds of Gaussian columns, (2, d)."""
    k, binding = len(assembly.classes), assembly.binding
    yield private_sums.prior_sum(rows.codes, k)
    for name, encoder in binding.encoders.items():
        family, chosen = assembly.model.families[name], binding.chosen[name]
        given = _given_values(
            privacy, binding.names, chosen, "levels" if type(encoder) is Levels else "bounds"
        )
        if type(family) is Gaussian and type(family.shape) is Diagonal and type(encoder) is Numbers:
            low, high = np.array(given).T
            bounds[name] = np.stack([low, high])
            numbers = np.clip(numeric_matrix(rows.table, chosen).astype(np.float64), low, high)
            units = (2 * numbers - low - high) / (high - low)
            may_miss = np.array([privacy.may_miss(j, binding.names[j]) for j in chosen])
            _refuse_missing(units, may_miss, binding.columns(name))
            yield from private_sums.moment_sums(name, units, rows.codes, may_miss, k)
        elif type(family) is Categorical and _is_given(encoder):
            levels = encoder.layout()["levels"]
            yield from private_sums.level_sums(name, encoder.encode(rows.table), rows.codes, levels, k)
        elif type(family) is Bernoulli and isinstance(encoder, Flags):
            yield from private_sums.flag_sums(name, _dense(encoder.encode(rows.table)), rows.codes, k)
        else:
            raise ValueError(
                f"privacy is for {SUPPORTED}; {', '.join(binding.columns(name))} are modeled by {type(family).__name__} "
                f"with {type(encoder).__name__}"
            )


def _given_values(
    privacy: Privacy, names: tuple[str, ...], chosen: tuple[int, ...], expected: str
) -> list[Array]:
    """Bounds or levels of columns. Raises ValueError if the other kind was given."""
    given = [privacy.values_of(j, names[j]) for j in chosen]
    wrong = [names[j] for j, (kind, _) in zip(chosen, given, strict=True) if kind != expected]
    if wrong:
        raise ValueError(
            f"column {wrong[0]!r} is modeled by its {expected}: give Privacy({expected}={{{wrong[0]!r}: ...}})"
        )
    return [values for _, values in given]


def _is_given(encoder: Any) -> bool:
    """Whether the codes of an encoder follow from given bounds or levels alone."""
    return type(encoder) is UniformBins or (type(encoder) is Levels and not encoder.pooling.is_active)


def _dense(columns: Any) -> Array:
    return np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns)


def _refuse_missing(units: Array, may_miss: Array, names: tuple[str, ...]) -> None:
    """Raises ValueError if a cell is missing in a column that is said to be complete."""
    wrong = np.isnan(units).any(axis=0) & ~may_miss
    if wrong.any():
        name = names[int(np.argmax(wrong))]
        raise ValueError(
            f"column {name!r} has missing cells: name it in Privacy(missing=[...]), so that its known cells are counted, too"
        )
