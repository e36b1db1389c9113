"""Base of presets whose binned and categorical columns depend on each other: one family over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from calibayes.core.protocols import Array, Family
from calibayes.encoders.bins import PairBins
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.attributes import fitted_of
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.recipe import Specification
from calibayes.estimators.interface.input import TrainingRows
from calibayes.estimators.interface.parameters import estimator, number, whole_number
from calibayes.estimators.presets.joint_columns import (
    chosen_bins,
    joint_schema,
    joint_specifications,
    with_most_relevant,
)
from calibayes.estimators.presets.kinds import KindChoices
from calibayes.estimators.presets.naive_bayes import smoothing_of
from calibayes.estimators.presets.tabular import TabularNB
from calibayes.families.kernel.bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.tables.summaries.summary import TableSummary

Kind = TypeVar("Kind", bound=Family)


@estimator
class JointPreset(TabularNB):
    """Parameters of presets whose columns depend on each other."""

    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000
    discretize: str | Encoder | None = None
    n_bins: int | None = None

    numeric_kind: ClassVar[str] = "binned"
    family_name: ClassVar[str]
    """Name of the family over the columns that depend on each other."""

    def joint_family(self) -> Family:
        """The family over the columns that depend on each other."""
        raise TypeError(f"{type(self).__name__} chooses no family")

    def joint_columns(
        self, positions: Sequence[int], encoder: Encoder, rows: TrainingRows, k: int
    ) -> list[int] | None:
        """The columns of the joint family if all columns are too many, otherwise None."""
        raise TypeError(f"{type(self).__name__} chooses no columns")

    def default_bins(self) -> Encoder:
        """The encoder of binned columns unless ``discretize`` is given."""
        return PairBins()

    def choices(self) -> KindChoices:
        bins = chosen_bins(self.discretize, self.n_bins, self.default_bins())
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self.levels_encoder())

    def family_parameters(self) -> dict[str, Any]:
        """Parameters that all joint families have, checked."""
        return {
            **smoothing_of(self.alpha, self.prior),
            "back_off": number("back_off", self.back_off, 0.0, 1e300),
            "bandwidth": OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            "max_cells": whole_number("max_cells", self.max_cells, 1),
        }

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return joint_specifications(self.family_name, self.joint_family(), self.kinds, self.choices())

    def specify(self, rows: TrainingRows, classes: Array) -> Specification:
        """The families, with the joint one over the most relevant columns only if all columns are too many."""
        return with_most_relevant(
            super().specify(rows, classes),
            rows.summary,
            lambda positions, encoder: self.joint_columns(positions, encoder, rows, len(classes)),
        )

    def describe(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        return joint_schema(self.family_name, self.kinds, binding, summary)

    def learned_family(self, kind: type[Kind]) -> Kind | None:
        """The joint family after training; None if it has no columns. Raises ValueError if there were too few rows."""
        fitted = fitted_of(self)
        fitted.learned()
        family = fitted.model.families.get(self.family_name)
        return family if isinstance(family, kind) else None
