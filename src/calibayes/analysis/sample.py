"""Random rows of a fitted model, given known cells, and imputation of missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import AllowsMissing, Filling, HasSupport, Sampling
from calibayes.core.notices import listed
from calibayes.core.protocols import Array, Engine
from calibayes.encoders import MissingAsLevel
from calibayes.encoders.encoder import Encoder
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.posterior import log_normalize
from calibayes.model.checked_rows import new_table
from calibayes.model.fitted import Fitted
from calibayes.model.parameters import whole_number
from calibayes.model.predict import log_joint
from calibayes.model.table_inputs import open_rows
from calibayes.tables.origin import like_frame
from calibayes.tables.read import typed_objects, zone_of
from calibayes.tables.table import Table, is_missing, missing_mask, missing_objects


def sample(fitted: Fitted, n: int, y: Any, given: Mapping[Any, Any], rng: Generator) -> tuple[Any, Array]:
    """Random rows, as a table of the training kind, and their classes, (n,)."""
    parameters = fitted.learned()
    known, given = known_table(fitted, given, n), _with_derived(fitted, given)
    first = _encoded_given(fitted, known.rows(np.arange(n) == 0), given)
    codes = _random_classes(fitted, first, y, n, rng)
    encoded = _encoded_given(fitted, known, given)
    sampled = {}
    for name, family in fitted.model.families.items():
        if not isinstance(family, Sampling):
            raise ValueError(
                f"family {name!r} ({type(family).__name__}) cannot be sampled: it has no method sample"
            )
        sampled[name] = family.sample(parameters[name], codes, rng, encoded.get(name))
    return _as_trained(fitted, known, _decode(fitted, known, sampled, rng)), fitted.classes[codes]


def fill(fitted: Fitted, table: Table, engine: Engine) -> Any:
    """The rows with missing values imputed, as a table of the training kind."""
    parameters = fitted.learned()
    posterior = np.exp(log_normalize(log_joint(fitted, table, engine))[0])
    filled = {}
    for name, family in fitted.model.families.items():
        if isinstance(family, Filling):
            encoded = open_encoder(fitted, name).encode(table)
            filled[name] = family.fill(encoded, parameters[name], posterior)
        elif any(missing_mask(table.column(j)).any() for j in fitted.binding.chosen[name]):
            raise ValueError(
                f"family {name!r} ({type(family).__name__}) cannot fill its missing cells: it has no method fill"
            )
    return _as_trained(fitted, table, _decode(fitted, table, filled, None))


def known_table(fitted: Fitted, given: Mapping[Any, Any], n: int) -> Table:
    """Rows with the given cells; all others are missing."""
    names, types = fitted.binding.conversion.names, fitted.binding.conversion.types
    positions = {name: j for j, name in enumerate(names)} | dict(enumerate(range(len(names))))
    unknown = [name for name in given if name not in positions]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}; the columns are {listed(names)}")
    values = {positions[name]: value for name, value in given.items()}
    if len(values) < len(given):
        raise ValueError("a column is given twice, by name and by position")
    for j, value in values.items():
        if np.ndim(value):
            raise ValueError(f"given: column {names[j]!r} needs one value for all rows, got {value!r}")
    columns = [_constant_column(names[j], kind, values.get(j), n) for j, kind in enumerate(types)]
    zones = {j: zone for j, value in values.items() if (zone := zone_of(np.array([value], dtype=object)))}
    known = fitted.binding.conversion.apply(Table(names, tuple(columns), zones=zones))
    for j, value in values.items():
        if not is_missing(value) and missing_mask(known.column(j))[:1].any():
            raise ValueError(_unreadable(names[j], value))
    return known


def _unreadable(name: str, value: Any) -> str:
    return f"given: {value!r} cannot be read as a value of column {name!r}: give one as in the training table"


def _with_derived(fitted: Fitted, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The given cells by name, and those of the columns that are derived from them."""
    names, sources = fitted.binding.conversion.names, fitted.binding.conversion.sources
    by_name = {name if isinstance(name, str) else names[name]: value for name, value in given.items()}
    return by_name | {name: None for name, source in sources.items() if source in by_name}


def _constant_column(name: str, kind: np.dtype[Any], value: Any, n: int) -> Array:
    """A column of one value, or of missing values, of the type it had in training."""
    cells = np.array([value] * n, dtype=object)
    if kind.kind == "M" and isinstance(value, str):
        try:
            return np.full(n, np.datetime64(value, "us"))
        except ValueError as error:
            raise ValueError(_unreadable(name, value)) from error
    if kind.kind in "mM":
        is_given = value is not None
        return typed_objects(cells, missing_objects(cells), "given") if is_given else np.full(n, "NaT", kind)
    if kind.kind not in "fiu":
        return cells
    try:
        return np.full(n, np.nan if value is None else float(value))
    except (TypeError, ValueError) as error:
        raise ValueError(f"given: column {name!r} holds numbers, got {value!r}") from error


def _encoded_given(fitted: Fitted, known: Table, given: Mapping[Any, Any]) -> dict[str, Array]:
    """The encoded columns of families with a given cell."""
    encoded = {}
    for name, family in fitted.model.families.items():
        chosen = fitted.binding.chosen[name]
        columns = {fitted.binding.names[j] for j in chosen} | set(chosen)
        if columns & set(given):
            if not isinstance(family, AllowsMissing) and len(columns & set(given)) < len(chosen):
                raise ValueError(f"the columns of {type(family).__name__} can only be given all together")
            encoder = open_encoder(fitted, name)
            encoded[name] = encoder.encode(known)
            if isinstance(family, HasSupport):
                fitted.binding.refuse_outside_support(name, encoded[name])
            _refuse_unknown_levels(encoder, encoded[name], known, chosen)
    return encoded


def _refuse_unknown_levels(encoder: Encoder, encoded: Array, known: Table, chosen: Sequence[int]) -> None:
    """Raise ValueError if a given value is not a level of its column; ``chosen`` are the columns of the encoder."""
    sizes = encoder.layout().get("levels", ())
    if encoded.dtype.kind != "i" or len(sizes) != len(chosen) or encoded.shape[1] != len(chosen):
        return
    for place, j in enumerate(chosen):
        value = known.column(j)[0]
        if encoded[0, place] < 0 and not is_missing(value):
            codes = np.zeros((sizes[place], len(chosen)), dtype=encoded.dtype)
            codes[:, place] = np.arange(sizes[place])
            levels = [level for level in encoder.decode(codes, None)[place].tolist() if not is_missing(level)]
            raise ValueError(
                f"{value!r} is not a level of column {known.names[j]!r}: its levels in training are "
                f"{', '.join(map(repr, levels))}"
            )


def open_encoder(fitted: Fitted, family: str) -> Encoder:
    """The encoder of a family's columns under which a missing value is unknown, not a value of its own."""
    encoder = fitted.binding.encoders[family]
    return encoder.with_missing_unknown() if isinstance(encoder, MissingAsLevel) else encoder


def _random_classes(fitted: Fitted, encoded: Mapping[str, Array], y: Any, n: int, rng: Generator) -> Array:
    """Codes drawn from p(class | given cells), or those of the labels y."""
    if y is not None:
        classes = fitted.classes.tolist()
        labels = [y] * n if np.ndim(y) == 0 else list(y)
        unknown = [label for label in labels if label not in classes]
        if unknown or len(labels) != n:
            raise ValueError(f"{(unknown or [y])[0]!r} is not among the classes {classes}, or not {n} labels")
        return np.array([classes.index(label) for label in labels])
    parameters = fitted.learned()
    joint = parameters[PRIOR]["log_probability"][None]
    for name, columns in encoded.items():
        joint = joint + fitted.model.families[name].log_density(columns, parameters[name])
    posterior = np.exp(log_normalize(joint)[0][0])
    return np.sort(rng.choice(len(fitted.classes), size=n, p=posterior / posterior.sum()))


def _decode(fitted: Fitted, table: Table, encoded: Mapping[str, Array], rng: Generator | None) -> list[Array]:
    """The table's columns with missing cells taken from decoded ones."""
    columns = [table.column(j) for j in range(len(table.names))]
    for name, array in encoded.items():
        decoded = fitted.binding.encoders[name].decode(array, rng)
        for j, column in zip(fitted.binding.chosen[name], decoded, strict=True):
            absent = missing_mask(columns[j])
            is_rounded = fitted.binding.types[j].kind in "iu" and column.dtype.kind == "f"
            values = np.rint(column) if is_rounded else column
            if absent.any():
                columns[j] = values if absent.all() else np.where(absent, values, columns[j])
    return columns


def _as_trained(fitted: Fitted, table: Table, columns: list[Array]) -> Any:
    """Columns as a table of the kind that the model was fitted to; known dates are those of ``table``."""
    conversion = fitted.binding.conversion
    restored = conversion.restored(columns, table.originals)
    return fitted.binding.origin.build(conversion.names, conversion.types, restored)


# -- The methods of estimators ----------------------------------------------------------------------------------


def sample_model(
    self: Any,
    n_samples: int = 1,
    y: Any = None,
    given: Mapping[Any, Any] | None = None,
    random_state: Any = None,
) -> tuple[Any, Array]:
    """Random rows and their classes, drawn from the model.

    Parameters
    ----------
    n_samples : int, default=1
    y : label or (n_samples,) labels, optional
        Classes to draw from; by default they are drawn too, conditional on the given cells.
    given : mapping, optional
        Column (name or position) -> value of all rows; the other columns are drawn conditional on these.
    random_state : int or RandomState, optional

    Returns
    -------
    X : data frame or array of shape (n_samples, d)
        The kind of table that the model was fitted to. Columns that no family models are missing.
    y : (n_samples,) array
    """
    fitted, n = learned(self), whole_number("n_samples", n_samples, 1)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    return sample(fitted, n, y, given or {}, rng)


def fill_rows(self: Any, X: Any) -> Any:
    """The rows with missing values imputed, conditional on the known values of each row.

    Numbers are imputed by their mean, levels by the most probable one, and binned numbers by the middle of the most
    probable bin. Returns a table of the kind that the model was fitted to; a data frame has the index and the
    column types of ``X``.
    """
    fitted, table = learned(self), new_table(self, X)
    with open_rows(X).engine(self) as engine:
        return like_frame(fill(fitted, table, engine), X)


def learned(model: Any) -> Fitted:
    """The fitted model of an estimator, with parameters."""
    check_is_fitted(model, "fitted_")
    model.fitted_.learned()
    return model.fitted_
