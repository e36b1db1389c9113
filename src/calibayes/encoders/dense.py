"""Columns of mixed types as standardized numbers or their principal components, for Gaussian models of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array
from calibayes.encoders.encoder import Derived, Encoder, FixedLayout, ImputesTraining, verify_nested
from calibayes.encoders.levels import Levels
from calibayes.kernels import gaussian_density
from calibayes.kernels.cut_points import inverse_cdf_quantile, sort_columns
from calibayes.tables.summary import TableSummary, reaches
from calibayes.tables.table import Table, numeric_matrix

# -- Encodings of one type of columns each, of which `Dense` is made: scaled numbers, indicators of levels and of missing values

FARTHEST = 1e300
"""Distances from the median are clipped to this many scales (or units, if the scale exceeds 1)."""


@dataclass(frozen=True)
class AsinhScaled:
    """Numeric columns x as asinh((x - median) / scale): linear near the median, logarithmic in the tails.

    The scale is the interquartile range divided by 1.35 (the standard deviation of a normal distribution), or the
    standard deviation if the quartiles are equal. The median becomes 0, a missing value stays missing (NaN).
    """

    median: Array
    """Of each column, (d,)."""
    scale: Array
    """Of each column, (d,)."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_finite("median", self.median, (None,))
        verify.require_finite("scale", self.scale, self.median.shape)
        verify.require(bool((self.scale > 0).all()), "scale must be positive")

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        scaled = numeric_matrix(table, columns).astype(np.float64)
        limit = FARTHEST * np.minimum(self.scale, 1.0)  # so that the division cannot overflow
        scaled -= self.median
        np.clip(scaled, -limit, limit, out=scaled)
        scaled /= self.scale
        return np.arcsinh(scaled, out=scaled)

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        return list(enumerate(names))


@dataclass(frozen=True)
class Indicators:
    """A categorical column as one indicator (0 or 1) for each level; a column of two levels as one indicator.

    Where a level is missing, all of them are missing (NaN).
    """

    levels: Levels
    drop_first: bool = False
    """Whether the first level has no indicator."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_length("the columns of levels", self.levels.indices, 1)
        verify.require(self.levels.layout()["levels"][0] > 0, "a column has no levels")

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        encoded = np.asarray(self.levels.encode(table) == np.array(self._shown_codes), dtype=np.float64)
        encoded[table.missing_mask(columns[0])] = np.nan
        return encoded

    @property
    def _shown_codes(self) -> list[int]:
        """Codes of the levels that have an indicator."""
        size = self.levels.layout()["levels"][0]
        return list(range(1 if size == 2 or (self.drop_first and size > 1) else 0, size))

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        level_names = [str(level) for level in self.levels.levels[0]] + ["other"]
        return [(0, f"{names[0]} = {level_names[code]}") for code in self._shown_codes]


@dataclass(frozen=True)
class MissingIndicator:
    """1 where a value is missing, else 0."""

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        return np.stack([table.missing_mask(j) for j in columns], axis=1).astype(np.float64)

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        return [(place, f"{name} missing") for place, name in enumerate(names)]


Part = AsinhScaled | Indicators | MissingIndicator
"""An encoding of one type of columns."""
PlacedPart = tuple[tuple[int, ...], Part]
"""Positions of columns in the table, and their encoding."""


def verified_sources(parts: Sequence[PlacedPart], indices: Sequence[int]) -> list[int]:
    """The position in the table of the source of each column of the parts. Raises ValueError if parts are no encodings."""
    sources: list[int] = []
    known = set(indices)
    for columns, part in parts:
        are_own = len(columns) > 0 and known.issuperset(columns)
        verify.require(are_own, "a part has no columns, or others than the encoder")
        verify.require_columns("the columns of a part", columns)
        if isinstance(part, AsinhScaled):
            verify.require_length("median", part.median, len(columns))
        elif isinstance(part, Indicators):
            verify.require(part.levels.indices == columns, "indicators are fitted to another column")
        else:
            is_known = isinstance(part, MissingIndicator)
            verify.require(is_known, f"{type(part).__name__} is no encoding of columns")
        sources += [columns[place] for place, _ in part.named_columns([""] * len(columns))]
    return sources


def indicated_columns(parts: Sequence[PlacedPart]) -> list[int]:
    """Positions of the columns with an indicator of missing values."""
    return [j for columns, part in parts if isinstance(part, MissingIndicator) for j in columns]


# -- Columns of mixed types as standardized numbers, for Gaussian models of a whole table --------------------

NORMAL_QUARTILES = 1.35
"""Interquartile range of a normal distribution with standard deviation 1, to two decimals."""
CELLS = 2**18
"""Number of cells whose medians and quartiles are computed at a time, to keep temporary copies small."""
MOST_LEVELS, LEAST_SHARE = 64, 0.005
"""Levels beyond the 64 most frequent ones of a column, and levels in less than 0.5 % of the rows, share one indicator
column: divided by its small standard deviation, the indicator of a rare level would have extreme values."""
INDICATED_SHARE, INDICATED_ROWS = 0.05, 10
"""A column has an indicator of missing values from this share of the rows and this number of rows on: what few rows show
about missing values is noise, and their indicator would have extreme values."""
MOST_REGRESSED = 500
"""Encoded columns up to which missing values of training rows are imputed from the other columns, which takes d^3 steps."""
IMPUTED_DIGITS = 9
"""Digits of imputed values: copies of a row, whose products round differently, must stay equal where values are binned."""


@dataclass(frozen=True)
class Dense(FixedLayout):
    """Mixed columns as standardized numbers: asinh-scaled numbers, then indicator columns.

    The encoded columns are, in this order: each numeric column, asinh-scaled (`AsinhScaled`); for each other column an
    indicator (0 or 1) of each level, only one if there are two levels, with rare levels pooled; for each column that is
    missing in at least ten training rows and 5 % of them an indicator of missing values. All of them are then standardized
    to mean 0 and variance 1 over the training rows; constant ones are left out. Of more than 131,072 training rows, medians,
    means and standard deviations are those of about as many, drawn by row number.

    In a column with an indicator of missing values, a missing number is replaced by the median, and a missing level has 0
    in all indicators of its column (before standardization). In other columns, missing values of training rows are
    imputed by regression on the other columns, or by the mean if there are more than 500; in new rows (`for_new_rows`)
    they stay missing (NaN), so that a model can integrate them out. An unknown level has 0 in all indicators of its
    column, or 1 in that of pooled levels.

    Parameters
    ----------
    drop_first : bool, default=False
        Whether the first level of a column has no indicator, as with ``OneHotEncoder(drop="first")``: the sum of all of
        them is constant, which makes covariance matrices singular.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibayes import GenerativeLogisticRegression
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 5.0, 6.0], "color": ["red", "blue", "red", "blue"]})
    >>> GenerativeLogisticRegression(encoder=Dense()).fit(X, [0, 0, 1, 1]).encoded_names_
    ('size', 'color = red')
    """

    drop_first: bool = False
    indices: tuple[int, ...] = ()
    parts: tuple[PlacedPart, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the encoded columns."""
    sources: tuple[int, ...] = ()
    """For each encoded column, the position (among the encoder's columns) of the column it was computed from."""
    varying: Any = None
    """Which columns of the parts are not constant in training, booleans."""
    indicated: Any = None
    """Which columns of the parts have an indicator of missing values, booleans."""
    mean: Any = None
    deviation: Any = None
    precision: Array | None = None
    """Inverse covariance for the imputation of training rows, (d, d); None if they are complete, or too wide."""
    leaves_missing: bool = False
    """Whether missing values stay missing."""

    data_dependence = "medians and standard deviations are found in the training rows"

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Dense:
        key = Dense, self.drop_first, tuple(indices)
        return summary.cached(key, lambda: self._fitted(summary, indices))

    def _fitted(self, summary: TableSummary, indices: Sequence[int]) -> Dense:
        table, weight, _ = summary.sample
        parts = tuple(_fitted_parts(summary, indices, self.drop_first))
        sources_and_names = [
            (columns[place], name)
            for columns, part in parts
            for place, name in part.named_columns([table.names[j] for j in columns])
        ]
        with_indicator = set(indicated_columns(parts))
        indicated = np.array([j in with_indicator for j, _ in sources_and_names])
        raw = _encoded_parts(table, parts, indicated)
        mean, deviation = _means_and_deviations(raw, weight)
        varying = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        varying[0] |= not varying.any()  # a family needs at least one column
        remaining = [pair for pair, varies in zip(sources_and_names, varying, strict=True) if varies]
        places = {j: place for place, j in enumerate(indices)}
        names, sources = tuple(name for _, name in remaining), tuple(places[j] for j, _ in remaining)
        scaling = mean[varying], np.where(deviation > 0, deviation, 1.0)[varying]
        of_parts = parts, names, sources, varying, indicated
        encoder = Dense(self.drop_first, tuple(indices), *of_parts, *scaling)
        standardized = encoder._standardized(table)
        if not np.isnan(np.min(standardized)) or standardized.shape[1] > MOST_REGRESSED:
            return encoder
        return replace(encoder, precision=gaussian_density.imputation_precision(standardized, weight))

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        if not self.indices:
            arrays = (self.varying, self.indicated, self.mean, self.deviation, self.precision)
            is_empty = not (self.parts or self.names or self.sources) and all(a is None for a in arrays)
            verify.require(is_empty, "an encoder that is not fitted has fitted fields")
            return
        sources = np.array(verified_sources(self.parts, self.indices))
        verify.require_array("varying", self.varying, sources.shape, "b")
        verify.require_array("indicated", self.indicated, sources.shape, "b")
        are_indicated = bool(np.array_equal(self.indicated, np.isin(sources, indicated_columns(self.parts))))
        verify.require(are_indicated, "indicated are not the columns with an indicator of missing values")
        d = int(self.varying.sum())
        verify.require(d > 0, "varying must contain at least one column")
        verify.require_length("names", self.names, d)
        place_of = {j: place for place, j in enumerate(self.indices)}
        expected = tuple(place_of[j] for j in sources[self.varying].tolist())
        verify.require(self.sources == expected, "sources are not the columns of the parts")
        verify.require_finite("mean", self.mean, (d,))
        deviation = verify.require_finite("deviation", self.deviation, (d,))
        verify.require(bool((deviation > 0).all()), "deviation must be positive")
        if self.precision is not None:
            _verify_precision(self.precision, d)

    def for_new_rows(self) -> Dense:
        return replace(self, leaves_missing=True)

    def encode(self, table: Table) -> Array:
        # Copies of this encoder, such as the one for new rows, share its means, and by them the encoded rows.
        standardized = table.cached(("encoded", id(self.mean)), self.mean, lambda: self._standardized(table))
        if self.leaves_missing:
            return standardized
        return table.cached(("imputed", id(self.mean)), self.mean, lambda: self._imputed(standardized))

    def _standardized(self, table: Table) -> Array:
        """The encoded rows with missing values as NaN, except in columns with an indicator of them."""
        standardized = _encoded_parts(table, self.parts, self.indicated)[:, self.varying]
        standardized -= self.mean
        standardized /= self.deviation
        return standardized

    def _imputed(self, standardized: Array) -> Array:
        if not np.isnan(np.min(standardized, initial=np.inf)):
            return standardized
        if self.precision is None:
            return np.nan_to_num(standardized, nan=0.0)
        imputed = np.round(gaussian_density.impute(standardized, self.precision), IMPUTED_DIGITS)
        return np.where(np.isnan(standardized), imputed, standardized)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError(
            "asinh-scaled numbers and indicator columns cannot be decoded into a table: sample from another model"
        )

    def layout(self) -> Mapping[str, Any]:
        d = len(self.names)
        return {"columns": self.names, "center": np.zeros(d), "variance": np.ones(d)}

    def unite(self, other: Dense) -> tuple[Dense, None, None]:
        raise ValueError(
            "models of standardized columns cannot be merged: each was fitted with its own scaling"
        )


def _verify_precision(precision: Any, d: int) -> None:
    """Raise ValueError unless a matrix (d, d) is symmetric and positive definite."""
    verify.require_finite("precision", precision, (d, d))
    is_symmetric = bool(np.allclose(precision, precision.T, rtol=1e-6, atol=1e-6))
    verify.require(is_symmetric, "precision is not symmetric")
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError as error:
        raise ValueError("precision is not positive definite") from error


def _fitted_parts(summary: TableSummary, indices: Sequence[int], drop_first: bool) -> Iterator[PlacedPart]:
    """Encodings of all numeric columns, of each other column, and of the missing values."""
    table, weight, _ = summary.sample
    with_values = [j for j in indices if not table.missing_mask(j).all()]
    if numeric := tuple(j for j in with_values if table.is_numeric(j)):
        yield numeric, _asinh_scaling(numeric_matrix(table, numeric), weight)
    for j in with_values:
        if not table.is_numeric(j):
            levels = Levels(most=MOST_LEVELS, rare=LEAST_SHARE * summary.total_weight)
            yield (j,), Indicators(levels.fit(summary, [j]), drop_first)
    # A missing date counts once, not again for its month.
    sources = [j for j in indices if not table.is_derived(j)]
    if indicated := tuple(j for j in sources if j not in with_values or _is_indicated(summary, j)):
        yield indicated, MissingIndicator()


def _is_indicated(summary: TableSummary, j: int) -> bool:
    """Whether missing values of column j are frequent enough for an indicator."""
    least = max(INDICATED_SHARE * summary.total_weight, INDICATED_ROWS * summary.unit)
    return bool(reaches(summary.missing_weight(j), least))


def _asinh_scaling(matrix: Array, weight: Array) -> AsinhScaled:
    """The scaling of numeric columns (n, d), computed for a few columns at a time."""
    step = max(CELLS // max(len(matrix), 1), 1)
    parts = (matrix[:, start : start + step] for start in range(0, matrix.shape[1], step))
    pairs = [_medians_and_scales(part.astype(np.float64), weight) for part in parts]
    median, scale = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    return AsinhScaled(median, scale)


def _medians_and_scales(values: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted medians and scales (see `AsinhScaled`) of columns (n, d); missing values have weight 0 and sort last."""
    known = ~np.isnan(values.T)
    columns = np.where(known, values.T, np.inf)
    if known.all():
        ranked, cumulative = sort_columns(columns, weight)
    else:
        order = np.argsort(columns, axis=1, kind="stable")
        ranked = np.take_along_axis(columns, order, axis=1)
        cumulative = np.cumsum(np.take_along_axis(weight * known, order, axis=1), axis=1)
    low, median, high = (inverse_cdf_quantile(ranked, cumulative, share) for share in (0.25, 0.5, 0.75))
    scale = (high - low) / NORMAL_QUARTILES
    for j in np.flatnonzero(~(scale > 0)):
        known_values, shares = values[known[j], j], weight[known[j]] / weight[known[j]].sum()
        scale[j] = np.sqrt(shares @ (known_values - shares @ known_values) ** 2)
    return median, np.where(scale > 0, scale, 1.0)


def _encoded_parts(table: Table, parts: Sequence[PlacedPart], indicated: Array) -> Array:
    """The columns of all parts, before standardization; missing values are 0 in ``indicated`` columns, else NaN."""
    raw = np.concatenate([part.encode(table, columns) for columns, part in parts], axis=1)
    if indicated.any():
        raw[:, indicated] = np.nan_to_num(raw[:, indicated], copy=False, nan=0.0)
    return raw


def _means_and_deviations(raw: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted means and standard deviations of the known values of columns (n, d)."""
    known = ~np.isnan(raw)
    if known.all():
        mean = weight @ raw / weight.sum()
        return mean, np.sqrt(weight @ (raw - mean) ** 2 / weight.sum())
    filled, total = np.nan_to_num(raw, nan=0.0), weight @ known
    mean = weight @ filled / total
    return mean, np.sqrt(weight @ np.where(known, filled - mean, 0.0) ** 2 / total)


# -- Principal components of encoded columns -----------------------------------------------------------------

LEAST_NOISE = 1e-3
"""Least variance of the noise, as a share of the average variance of the inner columns, and in their units."""


@dataclass(frozen=True)
class PrincipalComponents(FixedLayout):
    """The leading principal components of the columns of another encoder, as in `PCA(whiten=True)` of scikit-learn.

    The encoded columns are uncorrelated over the training rows, with mean 0 and variance 1 (unless ``whiten`` is False),
    in descending order of the variance that they explain. Components whose variance is below 1e-10 of the largest are left
    out. Of more than 131,072 training rows, about as many are used, drawn by row number. With n rows there are fewer than n components: all of them span the rows of the table.

    Where the inner encoder leaves a value missing in a new row, it is replaced by its conditional mean given the known
    ones, in a Gaussian model of the components and uncorrelated noise (probabilistic principal components).

    Parameters
    ----------
    most : int, default=64
        Largest number of components.
    inner : Encoder, default=Dense()
        An encoder of numbers that has no missing values in training rows.
    whiten : bool, default=True
        Whether to divide the components by their standard deviations. Without it distances between rows stay the same.

    Examples
    --------
    >>> from calibayes import LinearDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis(encoder=PrincipalComponents(2)).fit(X, y).score(X, y) > 0.85
    True
    """

    most: int = 64
    inner: Encoder = field(default_factory=Dense)
    whiten: bool = True
    indices: tuple[int, ...] = ()
    mean: Array = field(default_factory=lambda: np.zeros(0))
    directions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Eigenvectors, divided by their standard deviations if whitened, (inner columns, components)."""
    variances: Array = field(default_factory=lambda: np.zeros(0))
    """Variances of the components before scaling, (components,)."""
    noise: float = 1.0
    """Average variance of the inner columns that the components do not explain."""

    data_dependence = "principal components are found in the training rows"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"the number of components (most) must be at least one, got {self.most}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> PrincipalComponents:
        inner, (table, weight, _) = self.inner.fit(summary, indices), summary.sample
        x = inner.encode(table)
        mean = weight @ x / weight.sum()
        centered = (x - mean) * np.sqrt(weight / weight.sum())[:, None]
        variances, vectors = _variances_and_directions(centered)
        order = np.argsort(-variances, kind="stable")[: self.most]
        order = order[variances[order] > 1e-10 * max(variances[-1], 1e-300)]
        order = order if len(order) else np.array([len(variances) - 1])
        positive = np.where(variances[order] > 0, variances[order], 1.0)
        directions = vectors[:, order] / np.sqrt(positive) if self.whiten else vectors[:, order]
        total, d = float(np.sum(centered**2)), centered.shape[1]
        noise = max((total - float(variances[order].sum())) / d, LEAST_NOISE * total / d, LEAST_NOISE)
        found = mean, directions, positive, noise
        return PrincipalComponents(self.most, inner, self.whiten, tuple(indices), *found)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        inner = verify_nested(self.inner, self.indices, is_codes=False)
        d, count = len(inner.get("columns", self.indices)), np.size(self.variances)
        verify.require_finite("variances", self.variances, (count,))
        verify.require(bool((self.variances > 0).all()), "variances must be positive")
        is_possible = count <= self.most and (count > 0) == (d > 0)
        verify.require(is_possible, f"there are {count} components of {d} columns")
        verify.require_finite("mean", self.mean, (d,))
        verify.require_finite("directions", self.directions, (d, count))
        verify.require_number("noise", self.noise, np.finfo(np.float64).tiny)

    def for_new_rows(self) -> PrincipalComponents:
        inner = self.inner
        return replace(self, inner=inner.for_new_rows()) if isinstance(inner, ImputesTraining) else self

    def encode(self, table: Table) -> Array:
        return self._components(self.inner.encode(table) - self.mean)

    def encode_known(self, table: Table, known: Array) -> Array:
        """`encode` of the rows for each set of known columns, (sets, columns) booleans: (sets * n, d); others are imputed."""
        sources = self.inner.sources if isinstance(self.inner, Derived) else range(len(self.indices))
        centered = self.inner.encode(table) - self.mean
        rows = np.where(known[:, None, np.array(sources)], centered, np.nan)
        return self._components(rows.reshape(-1, centered.shape[1]))

    def _components(self, centered: Array) -> Array:
        """The components of rows (n, inner columns), with missing values imputed from the known ones."""
        if np.isnan(np.min(centered, initial=np.inf)):
            scale = self.variances if self.whiten else np.sqrt(self.variances)
            centered = gaussian_density.impute_from_factors(centered, self.directions * scale, self.noise)
        return np.asarray(centered @ self.directions)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("principal components cannot be decoded into a table: sample from another model")

    def layout(self) -> Mapping[str, Any]:
        d = self.directions.shape[1]
        names = tuple(f"component {number + 1}" for number in range(d))
        variance = np.ones(d) if self.whiten else self.variances
        return {"columns": names, "center": np.zeros(d), "variance": variance}

    def unite(self, other: PrincipalComponents) -> tuple[PrincipalComponents, None, None]:
        raise ValueError(
            "models of principal components cannot be merged: each was fitted with its own components"
        )


def _variances_and_directions(centered: Array) -> tuple[Array, Array]:
    """Ascending variances and their directions, (d, directions), of centered rows (n, d); no (d, d) matrix if n < d."""
    n, d = centered.shape
    if n < d:
        _, roots, rows = np.linalg.svd(centered, full_matrices=False)
        return roots[::-1] ** 2, rows[::-1].T
    variances, vectors = np.linalg.eigh(centered.T @ centered)
    return variances, vectors
