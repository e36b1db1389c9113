"""Encoders that are fitted again, to counts of the values of all rows so far, when rows are added to a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibayes.core.abilities import SumsByColumn
from calibayes.core.notices import warn
from calibayes.core.protocols import Arrays, Rule
from calibayes.core.verify import require, require_instance, require_names
from calibayes.model.binding import ColumnBinding
from calibayes.model.checked_rows import Rows, TrainingRows
from calibayes.model.fitted import Fitted, counted_families
from calibayes.model.recipe import Assembly, Recipe, layouts_of
from calibayes.tables.kept_sums import KeptSummary, KeptSums, kept_sums, values_table
from calibayes.tables.table import Table


def first_sums(recipe: Recipe, assembly: Assembly, rows: TrainingRows) -> KeptSums:
    """The counts of the first rows of a model. Raises ValueError if it cannot keep them."""
    require_closed_form(recipe.rule)
    sums = sums_of(assembly.binding, rows, len(assembly.classes))
    refitted(assembly, sums, rows)  # an encoder that learns from something else is refused now, not later
    return sums


def require_closed_form(rule: Rule) -> None:
    """Raises ValueError for a rule that takes steps: their states are those of one encoding of the columns."""
    if not rule.is_closed_form:
        raise ValueError(
            f"keep_summary=True is for rule='ml' and rule='map', got {rule.name!r}: the state of a rule that takes steps "
            "belongs to the bins it was found with; set keep_summary=False"
        )


def sums_of(binding: ColumnBinding, rows: TrainingRows, k: int) -> KeptSums:
    """Counts of the values of the columns whose encoding depends on the training rows.

    Raises ValueError if a family of such columns has other statistics than counts of single columns.
    """
    names = counted_families(binding)
    for name in names:
        if not isinstance(binding.families[name], SumsByColumn):
            raise ValueError(
                f"keep_summary=True keeps counts of the values of single columns, from which the statistics of {name!r} "
                f"({type(binding.families[name]).__name__}) cannot be computed: use NaiveBayes, KernelNB or families such as "
                "Categorical and KernelDensity, or set keep_summary=False"
            )
    sums = kept_sums(rows.summary, [j for name in names for j in binding.chosen[name]], k)
    _warn_if_exceeding(sums)
    return sums


def with_further_rows(before: Fitted, binding: ColumnBinding, rows: Rows) -> KeptSums:
    """The counts of a model with those of further rows. Raises ValueError if the model has none."""
    kept: KeptSums | None = before.extras.get("kept")
    if kept is None:
        raise ValueError(
            "this model has not counted the values of its columns: fit it with keep_summary=True from the beginning, or set "
            "keep_summary=False"
        )
    if kept.exceeding:
        return kept.plus(KeptSums(len(rows.codes), float(rows.weight.sum())), binding.names)
    sums = kept.plus(sums_of(binding, rows, len(before.classes)), binding.names)
    _warn_if_exceeding(sums)
    return sums


def _warn_if_exceeding(sums: KeptSums) -> None:
    if sums.exceeding:
        warn(
            f"column {sums.exceeding!r} has too many distinct numbers to keep counts of them (keep_summary): further rows will "
            "not change bins, grids and pooled levels any more; round the numbers before, or leave the column out"
        )


def refitted(assembly: Assembly, sums: KeptSums, rows: TrainingRows) -> Assembly:
    """The model with encoders fitted to all rows so far; ``rows`` are the newest.

    Raises ValueError if an encoder learns from anything else than counts of single columns.
    """
    if not sums.columns:
        return assembly
    newest = rows.summary
    pairs = zip(assembly.binding.types, newest.types(), strict=True)  # only numbers of different types change
    types = (np.result_type(*pair) if {t.kind for t in pair} <= set("fiu") else pair[0] for pair in pairs)
    binding = replace(assembly.binding, types=tuple(types))
    summary = KeptSummary(newest.head, np.zeros(0), None, sums, binding.types)
    encoders = dict(binding.encoders)
    for name in counted_families(binding):
        encoders[name] = encoders[name].fit(summary, binding.chosen[name])
    binding = replace(binding, encoders=encoders)
    model = assembly.model.bind(*layouts_of(binding, assembly.classes))
    return assembly._replace(binding=binding, model=model)


def recounted(old: Fitted, assembly: Assembly) -> Fitted:
    """A model with the statistics of its rows under other encoders; its state is dropped."""
    kept: KeptSums | None = old.extras.get("kept")
    if kept is None or not kept.columns:
        return old
    binding, table = assembly.binding, values_table(kept, assembly.binding.names)
    statistics = dict(old.data_statistics)
    for name in counted_families(binding):
        statistics[name] = _statistics(assembly.model.families[name], binding, name, table, kept)
    return replace(old, data_statistics=statistics, state=None, statistics=None)


def _statistics(family: Any, binding: ColumnBinding, name: str, table: Table, sums: KeptSums) -> Arrays:
    """Statistics of the rows that were counted."""
    entries = binding.encoders[name].encode(table)
    weights = [sums.columns[str(j)].weights[:, :-1] for j in binding.chosen[name]]
    return family.statistics_by_column([(entries[: len(w), j], w) for j, w in enumerate(weights)])


def with_kept_sums(
    recipe: Recipe, assembly: Assembly, old: Fitted | None, rows: Rows
) -> tuple[Assembly, Fitted | None, KeptSums]:
    """Encoders fitted to all rows so far, the old rows counted by them, and the kept sums."""
    if old is None:
        return assembly, old, first_sums(recipe, assembly, rows)
    require_closed_form(recipe.rule)
    kept = with_further_rows(old, assembly.binding, rows)
    assembly = refitted(assembly, kept, rows)
    newest = None if recipe.describe is None else recipe.describe(assembly.binding, rows.summary)
    if newest is not None and assembly.schema is not None:
        assembly = assembly._replace(schema=assembly.schema.with_further_rows(newest))
    return assembly, old if kept.exceeding else recounted(old, assembly), kept


def verify_extra(fitted: Fitted, kept: Any) -> None:
    """Raises ValueError if the counts of values are not those of the columns whose encoding depends on the rows."""
    require_instance("kept", kept, KeptSums)
    if kept.exceeding:
        return
    families = counted_families(fitted.binding)
    columns = [str(j) for name in families for j in fitted.binding.chosen[name]]
    require_names("columns of kept sums", kept.columns, columns)
    for name in families:
        can_count = isinstance(fitted.model.families[name], SumsByColumn)
        require(can_count, f"kept sums of family {name!r}, which does not count single columns")
    for sums in kept.columns.values():
        require(sums.weights.shape[1] == len(fitted.classes) + 1, "kept sums of other classes")
        require(len(sums.values) > 0, "kept sums of a column without values")
