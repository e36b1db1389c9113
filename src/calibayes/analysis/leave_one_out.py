"""Exact leave-one-out of closed forms: the statistics of all rows minus those of each row, without a fit for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone

from calibayes.core.abilities import LeavesOneOut, LeftOut, Recodable
from calibayes.core.named_arrays import subtract
from calibayes.core.notices import discarded_warnings
from calibayes.core.protocols import Array, Block, ModelArrays
from calibayes.encoders.levels import Levels
from calibayes.engines import one_thread
from calibayes.families import Product
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.dispatch import row_major
from calibayes.kernels.posterior import log_normalize
from calibayes.learn.train import accurate_sums
from calibayes.model.attributes import numpy_classes
from calibayes.model.checked_rows import Rows, check_total_weight, class_factors, convert, read_table
from calibayes.model.decision import tempered
from calibayes.model.estimator import GenerativeEstimator, recipe_of, refuse_parts_of_rows
from calibayes.model.recipe import Assembly, Recipe, assemble, encoded_source, layouts_of, recoded
from calibayes.model.training_rows import HeldOut
from calibayes.tables.row_blocks import ArraySource

if TYPE_CHECKING:
    from calibayes.analysis.held_out import LabeledTable

# -- Model and statistics without the levels that only removed rows had --------------------------------------

LEAST_COUNT = 1e-9
"""Counts below this are rounding of rows that were subtracted."""


def with_remaining_levels(
    assembly: Assembly, statistics: ModelArrays, given: Mapping[str, Array]
) -> tuple[Product, ModelArrays, dict[str, Array]]:
    """Model, statistics and columns of the removed rows, without the levels that no other row has."""
    binding, families = assembly.binding, assembly.model.families
    moved, encoders, columns = {}, dict(binding.encoders), dict(given)
    for name, family in families.items():
        if isinstance(family, Recodable):
            counts = family.occurrences(statistics[name])
            encoders[name], codes = encoders[name].restricted_to(np.where(counts > LEAST_COUNT, counts, 0.0))
            if codes is not None:
                moved[name] = codes
                each = list(codes) * (
                    columns[name].shape[1] // len(codes)
                )  # positions of sequences share codes
                recoded_columns = [  # -1 for a level that was removed
                    np.append(new, -1)[column] for new, column in zip(each, columns[name].T, strict=True)
                ]
                columns[name] = np.stack(recoded_columns, axis=1)
    if not moved:
        return assembly.model, statistics, columns
    layouts, names = layouts_of(replace(binding, encoders=encoders), assembly.classes)
    return assembly.model.bind(layouts, names), recoded(families, statistics, moved, layouts), columns


# -- Exact leave-one-out of closed forms: the statistics of all rows minus those of each row, without a fit for each

MOST_SINGLE_ROWS = 512
"""Rows that are left out by computing the parameters again; if there are more, folds are faster."""
HOW = "each row left out exactly"


class TrainedModel(NamedTuple):
    """A closed form of all rows."""

    assembly: Assembly
    """Its model is prepared with the statistics."""
    statistics: ModelArrays
    parameters: ModelArrays


def leave_one_out(model: Any, given: LabeledTable) -> HeldOut | None:
    """The record of training rows, each under the closed form of all other rows; None where that takes a fit for each.

    It is exact for ML and MAP if nothing but sums is learned from the rows: bins, grids, pooled levels and scaled numbers are
    not. A level that occurs in one row only is unknown where this row is left out. The only row of a class is not part of
    the record, nor is a row without which the others cannot be fitted.
    """
    if not isinstance(model, GenerativeEstimator):
        return None
    reader = clone(model)
    recipe = recipe_of(reader)
    if not _is_additive(reader, recipe) or (given.codes < 0).any() or not given.table.n:
        return None
    classes = numpy_classes(model)
    with discarded_warnings(), one_thread():
        rows = _rows(reader, given, classes)
        joint = None if rows is None else _log_joint(recipe, rows, classes)
    return None if joint is None else _record(recipe, given, joint)


def _rows(reader: GenerativeEstimator, given: LabeledTable, classes: Array) -> Rows | None:
    """The rows as `fit` reads them; None if it leaves out some, lacks a class, or learns from all rows how to read columns."""
    table = convert(reader, read_table(reader, given.table, reset=True))
    conversion, counts = reader.conversion_, np.bincount(given.codes, minlength=len(classes))
    if conversion.sources or conversion.identifiers or not counts.all():
        return None
    weight = given.weight
    if reader.class_weight is not None:
        weight = weight * class_factors(reader.class_weight, classes, given.codes, weight)
    check_total_weight(weight)
    return Rows(table, given.codes, weight, given.rows) if weight.min() > 0 else None


def _is_additive(reader: GenerativeEstimator, recipe: Recipe) -> bool:
    """Whether the model is a closed form of sums over rows, all of them used in the training."""
    options = recipe.options
    if not recipe.rule.is_closed_form or isinstance(options.temperature, str):
        return False
    if options.validation_fraction is not None or options.start not in (None, "data"):
        return False
    try:
        refuse_parts_of_rows(reader)
    except ValueError:
        return False
    return True


def _log_joint(recipe: Recipe, rows: Rows, classes: Array) -> Array | None:
    """log p(x, class) of each row under the model of all others, (n, k), NaN for a row that cannot be left out."""
    assembly = assemble(recipe, rows, classes)
    has_ability = all(isinstance(family, LeavesOneOut) for family in assembly.model.families.values())
    if not has_ability or any(encoder.data_dependence for encoder in assembly.binding.encoders.values()):
        return None
    columns, k = _row_by_row(rows.encoded(assembly.binding)), len(classes)
    nothing = np.broadcast_to(0.0, len(rows.codes))
    source = encoded_source(columns, assembly.model, rows.codes, rows.weight, nothing)
    model, sums = accurate_sums(assembly.model, source, recipe.engine, k)
    if sums.hidden:
        return None
    prepared, statistics = model.prepare(sums.statistics), sums.statistics
    trained = TrainedModel(assembly._replace(model=prepared), statistics, prepared.parameters(statistics))
    remaining = _without_single_levels(trained, source)
    if remaining is None:
        parts = [np.full((source.n, k), np.nan)]
    else:
        parts = recipe.engine.each(partial(_block_joint, trained), remaining)
    if any(part is None for part in parts):
        return None
    joint = np.concatenate(parts)
    alone = np.bincount(rows.codes, minlength=k)[rows.codes] == 1
    single = np.flatnonzero(np.isnan(joint[:, 0]) & ~alone)
    if len(single) > MOST_SINGLE_ROWS:
        return None
    joint[alone] = np.nan
    for row in single:
        joint[row] = _refitted_joint(trained, model, source.take(np.array([row])))
    return joint


def _row_by_row(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The same columns, dense ones row by row in memory: several kernels read them, and each would make a copy."""
    return {
        name: row_major(values) if isinstance(values, np.ndarray) and values.ndim == 2 else values
        for name, values in columns.items()
    }


def _block_joint(trained: TrainedModel, block: Block) -> Array | None:
    """log p(x, class) of the rows of a block, each under the model of all other rows, (n, k)."""
    model = trained.assembly.model
    joint = _log_prior(model, trained.statistics[PRIOR]["count"], block)
    for name, family in model.families.items():
        left_out = LeftOut(trained.statistics[name], trained.parameters[name], block.labels, block.weight)
        density = cast(LeavesOneOut, family).leave_one_out(block.columns[name], left_out)
        if density is None:
            return None
        joint = joint + density
    return joint


def _log_prior(model: Product, count: Array, block: Block) -> Array:
    """log p(class) without each row, (n, k)."""
    prior, k = model.prior, len(count)
    if prior.fixed is not None:
        return np.broadcast_to(prior.parameters({"count": count})["log_probability"], (len(block.labels), k))
    smoothed, rows = count + prior.alpha, np.arange(len(block.labels))
    result = np.empty((len(rows), k))
    with np.errstate(divide="ignore", invalid="ignore"):
        result[:] = np.log(smoothed)
        result[rows, block.labels] = np.log(smoothed[block.labels] - block.weight)
        result -= np.log(smoothed.sum() - block.weight)[:, None]
    return result


def _without_single_levels(trained: TrainedModel, source: ArraySource) -> ArraySource | None:
    """The rows without levels that are none without their only row; None if the levels are not those of `Levels`.

    Text that occurs in one row is no level without the row. A number may stay one: integers are levels up to the largest.
    """
    columns = dict(source.columns)
    for name, family in trained.assembly.model.families.items():
        encoder = trained.assembly.binding.encoders[name]
        if not isinstance(family, Recodable):
            continue
        if not isinstance(encoder, Levels):
            return None
        counts = family.occurrences(trained.statistics[name])
        is_rare = (counts > 0) & (counts <= source.weight.max())
        if is_rare.any():  # else every level is in several rows
            columns[name] = _with_removed_levels(columns[name], is_rare, encoder)
    return replace(source, columns=columns)


def _with_removed_levels(codes: Array, is_rare: Array, encoder: Levels) -> Array:
    """The codes (n, d), with -1 for levels without which the encoder would be fitted if their only row were missing.

    Only levels that are marked, (cells,), can be in one row.
    """
    remaining = codes.copy()
    for j, rare in enumerate(np.split(is_rare, np.cumsum(encoder.layout()["levels"])[:-1])):
        is_removed = rare & ~encoder.is_kept_unseen(j) if rare.any() else rare
        if is_removed.any():
            seen = np.bincount(codes[codes[:, j] >= 0, j], minlength=len(rare))
            remaining[np.append(is_removed & (seen == 1), False)[codes[:, j]], j] = -1
    return remaining


def _refitted_joint(trained: TrainedModel, model: Product, block: Block) -> Array:
    """log p(x, class) of a single row under parameters that are computed without it, (k,); NaN if there are none."""
    k = len(trained.assembly.classes)
    of_row = model.structure_statistics(block, block.onehot(k) * block.weight[:, None])
    left = subtract(trained.statistics, of_row)
    assembly = trained.assembly._replace(model=model)
    smaller, statistics, columns = with_remaining_levels(assembly, left, block.columns)
    try:
        prepared = smaller.prepare(statistics)
        parameters = prepared.parameters(statistics)
    except (ValueError, np.linalg.LinAlgError):
        return np.full(k, np.nan)
    return np.asarray(prepared.log_joint(replace(block, columns=columns), parameters)[0])


def _record(recipe: Recipe, given: LabeledTable, joint: Array) -> HeldOut | None:
    """The record of the rows that could be left out; None if there are none."""
    found = ~np.isnan(joint[:, 0])
    if not found.any():
        return None
    if not found.all():
        given, joint = given.only(found), joint[found]
    log_posterior, log_density = log_normalize(joint)
    log_posterior = posterior_by_options(recipe, log_posterior)
    return HeldOut(log_posterior, given.codes, given.weight, given.rows, HOW, log_density)


def posterior_by_options(recipe: Recipe, log_posterior: Array) -> Array:
    """log p(class | x) at the temperature of the training options, (n, k)."""
    temperature = float(recipe.options.temperature)
    return log_posterior if temperature == 1.0 else tempered(log_posterior, temperature)
