"""Base classes of densities: `Density` for three methods over whole rows, `ColumnDensity` for formulas of single cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import require, require_arrays
from calibayes.kernels.moments import row_blocks

UNBOUND = Layout((), ())
"""No classes and no columns: the layout of a class prior or family before `bind`."""


@dataclass(frozen=True)
class Density(ABC):
    """A density p(x | class) of whole rows: a subclass defines `statistics`, `parameters` and `log_density`.

    Statistics and parameters are arrays whose first axis has an entry for each class; what all classes share has a first
    axis of length 1. A class whose statistics become invalid (`is_valid`) during training, or whose parameters would not
    be finite, keeps its current statistics; before training this is an error. Columns with missing values are refused: a
    density that is a product over columns can leave them out (`ColumnDensity`).

    Examples
    --------
    A normal distribution about the mean of each class, of unit variance:

    >>> import numpy as np
    >>> from calibayes import GenerativeClassifier, every
    >>> class UnitNormal(Density):
    ...     def statistics(self, columns, weights, parameters=None):
    ...         return {"count": weights.sum(axis=0), "sum": weights.T @ columns}
    ...     def parameters(self, statistics):
    ...         return {"mean": statistics["sum"] / statistics["count"][:, None]}
    ...     def log_density(self, columns, parameters):
    ...         squares = (columns[:, None] - parameters["mean"]) ** 2
    ...         return -0.5 * np.sum(squares + np.log(2 * np.pi), axis=2)
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("numbers", UnitNormal(), every)]).fit(X, y).predict([[4.0, 1.0]])
    array([1])
    """

    layout: Layout = field(default=UNBOUND, repr=False, compare=False, kw_only=True)
    """The columns and classes, set by `bind`."""

    reads: ClassVar[str] = "numbers"
    requirement: ClassVar[str] = ""
    """What `is_valid` asks of the rows of a class, such as "two different values", for the error message."""

    @abstractmethod
    def statistics(self, columns: Any, weights: Array, parameters: Arrays | None = None) -> Arrays: ...

    @abstractmethod
    def parameters(self, statistics: Arrays) -> Arrays: ...

    @abstractmethod
    def log_density(self, columns: Any, parameters: Arrays) -> Array: ...

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout)

    def is_valid(self, statistics: Arrays) -> Array:
        """Whether statistics could be sums over rows, (k,) or (k, d) booleans: by default, whether "count" is positive."""
        count = statistics.get("count", np.ones(len(self.layout.classes)))
        return np.asarray(count > 0)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family, unchanged. Raises ValueError, naming class and column, if it has no valid parameters."""
        for problem, invalid in self._invalid(start).items():
            for c, *column in np.argwhere(invalid)[:1]:
                place = f"class {self.layout.classes[c]!r}" if len(invalid) > 1 else "all classes together"
                if invalid.shape[1:] == (len(self.layout.columns),):
                    place += f", column {self.layout.columns[column[0]]!r}"
                raise ValueError(f"{place}: {problem}. Leave the column or the class out")
        return self

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class with invalid statistics or parameters keeps all its statistics; shared arrays are kept for all classes."""
        frozen = np.zeros(len(self.layout.classes), dtype=bool)
        for invalid in self._invalid(proposed).values():
            frozen |= invalid.reshape(len(invalid), -1).any(axis=1)
        if any(len(value) != len(frozen) for value in proposed.values()):
            frozen[:] = frozen.any()
        statistics, number = {}, 0
        for name, value in proposed.items():
            kept = frozen[: len(value)]
            statistics[name] = np.where(kept.reshape(-1, *[1] * (value.ndim - 1)), current[name], value)
            number += int(kept.sum()) * value[0].size
        return ValidStatistics(statistics, number, frozen)

    def _invalid(self, statistics: Arrays) -> dict[str, Array]:
        """What is wrong -> where: invalid statistics, and each parameter where it is not finite."""
        name, needs = type(self).__name__, self.requirement and f", which needs {self.requirement}"
        try:
            with np.errstate(all="ignore"):
                parameters, valid = self.parameters(statistics), self.is_valid(statistics)
        except np.linalg.LinAlgError as error:
            return {f"{name} has no parameters ({error})": np.ones(1, dtype=bool)}
        invalid = {f"the known values do not determine the parameters of {name}{needs}": ~valid}
        for key, parameter in parameters.items():
            invalid[f"parameter {key!r} of {name} is not finite"] = ~np.isfinite(parameter)
        return invalid


class ColumnDensity(Density):
    """A density that is a product over columns; a missing cell (NaN) is left out of the product and of all sums.

    A subclass defines `cell_statistics`, `parameters` and `cell_log_density`. The statistics are the sums of what
    `cell_statistics` gives, and "count", the weight of the known cells, (k, d) each. A known cell that has no density
    (`in_support`) is an error that names its column and value, in training and in predictions.

    Sums about ``layout.center`` keep the digits of numbers far from 0, as ``(x - center) ** 2``. But two models have two
    centers: only a family that is `calibayes.core.abilities.Movable` may use it, so that `merge` adds sums about one point.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes import GenerativeClassifier, every
    >>> class Exponential(ColumnDensity):
    ...     def cell_statistics(self, x):
    ...         return {"sum": x}
    ...     def parameters(self, statistics):
    ...         return {"log_rate": np.log(statistics["count"] / statistics["sum"])}
    ...     def cell_log_density(self, x, parameters):
    ...         return parameters["log_rate"] - np.exp(parameters["log_rate"]) * x
    >>> X, y = [[0.1, 2.0], [0.3, np.nan], [1.5, 3.0], [4.0, 0.5]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("waits", Exponential(), every)]).fit(X, y).predict([[0.2, np.nan]])
    array([0])
    """

    @abstractmethod
    def cell_statistics(self, x: Array) -> Arrays:
        """What each cell adds to the statistics, by name, (n, d) each; what comes of NaN is not used."""

    @abstractmethod
    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        """log p(cell | class), (n, k, d), from numbers (n, 1, d) and parameters (k, d); what comes of NaN is not used."""

    def in_support(self, x: Array) -> Array:
        """Which cells have a density, (n, d) booleans: by default those of finite `cell_statistics`; NaN is not used."""
        with np.errstate(all="ignore"):
            return reduce(np.logical_and, map(np.isfinite, self.cell_statistics(x).values()), np.isfinite(x))

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        x = np.asarray(columns, dtype=np.float64)
        known = ~np.isnan(x)
        cells = {"count": known.astype(np.float64), **self.cell_statistics(x)}
        return {name: weights.T @ np.where(known, value, 0.0) for name, value in cells.items()}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        n, d = columns.shape
        density = np.empty((n, len(self.layout.classes)))
        for rows in row_blocks(n, d * density.shape[1]):  # `terms` of all rows need much memory
            density[rows] = self.terms(columns[rows], parameters).sum(axis=2)
        return density

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        x = np.asarray(columns, dtype=np.float64)[:, None, :]
        return np.where(np.isnan(x), 0.0, self.cell_log_density(x, parameters))

    def has_hidden(self, columns: Array) -> bool:
        return False  # missing values are not counted, so the statistics do not depend on the parameters

    # -- Verifiable: a subclass with further fields, or with numbers that have limits, adds its own checks ---------

    def verify(self) -> None:
        self.layout.verify()

    def verify_statistics(self, statistics: Arrays) -> None:
        """Names and shapes are those of the sums over no rows, numbers are finite, and no count is negative."""
        expected = self._sums_of_no_rows()
        require_arrays("statistics", statistics, {name: value.shape for name, value in expected.items()})
        require(bool(np.all(statistics["count"] >= 0)), "count contains numbers below 0")

    def verify_parameters(self, parameters: Arrays) -> None:
        """Names and shapes are those that `parameters` gives, and numbers are finite; limits are for subclasses."""
        with np.errstate(all="ignore"):
            expected = self.parameters(self._sums_of_no_rows())
        require_arrays("parameters", parameters, {name: value.shape for name, value in expected.items()})

    def _sums_of_no_rows(self) -> Arrays:
        return self.statistics(
            np.empty((0, len(self.layout.columns))), np.empty((0, len(self.layout.classes)))
        )
