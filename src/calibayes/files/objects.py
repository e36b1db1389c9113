"""Codecs of the library's own objects: values, estimators and functions, by their names in the registry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from sklearn.base import BaseEstimator

from calibayes.engines import is_distributed
from calibayes.estimators.interface.parameters import HOME, adopt
from calibayes.estimators.interface.remembered import PROCESS_ONLY
from calibayes.files import scikit_learn
from calibayes.files.pandas_values import PANDAS_VALUES
from calibayes.files.registry import ESTIMATORS, FOREIGN, FUNCTIONS, VALUES, EstimatorEntry
from calibayes.storage.arrays import ARRAYS, TENSORS
from calibayes.storage.codec import SHORT_FORMS, Codec, Read, Reader, Write, Writer, only, typed, unknown_type
from calibayes.storage.errors import ModelFileError
from calibayes.storage.value_objects import check_types, looked_up, read_same, value_codec, verified
from calibayes.storage.values import PLAIN_VALUES


def _write_estimator(model: Any, path: str, writer: Writer) -> dict[str, Any]:
    def write() -> dict[str, Any]:
        entry = ESTIMATORS[type(model).__name__]
        parameters = BaseEstimator.get_params(model, deep=False)
        attributes = {name: value for name, value in vars(model).items() if name not in parameters}
        attributes.pop(HOME, None)  # the arrays of a model file are NumPy's
        attributes = {name: value for name, value in attributes.items() if name not in PROCESS_ONLY}
        settings = scikit_learn.pop_settings(attributes)
        unknown = [name for name in attributes if name not in {**entry.attributes, **entry.optional}]
        if unknown:
            raise ModelFileError(f"{path}.{unknown[0]} cannot be saved: it is no attribute that fit sets")
        written = {
            "$estimator": type(model).__name__,
            "parameters": {
                key: writer.write(_without_cluster(value), f"{path}.{key}")
                for key, value in parameters.items()
                if key not in entry.local
            },
            "attributes": {key: writer.write(value, f"{path}.{key}") for key, value in attributes.items()},
        }
        return {**written, "scikit_learn": settings} if settings else written

    return writer.once(model, write)


def _without_cluster(parameter: Any) -> Any:
    """A parameter; None for an engine on a cluster, which a loaded model could not reach."""
    return None if is_distributed(parameter) else parameter


def _read_estimator(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    only(node, "$estimator", "parameters", "attributes", "scikit_learn")
    entry = looked_up(ESTIMATORS, node["$estimator"])
    given = {key: typed(node[key], dict, key) for key in ("parameters", "attributes")}
    parameters, attributes = (
        {key: reader.read(part, f"{path}.{key}") for key, part in parts.items()} for parts in given.values()
    )
    known = inspect.signature(entry.cls).parameters.keys() - set(entry.local)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(f"{entry.cls.__name__} has no parameter {unknown[0][:80]!r}")
    _check_attributes(attributes, entry)
    model = entry.cls(**parameters)
    adopt(model, {**vars(model), **attributes})
    scikit_learn.apply_settings(model, node.get("scikit_learn", {}))
    return verified(model) if attributes else model


def _check_attributes(attributes: Mapping[str, Any], entry: EstimatorEntry) -> None:
    """Raises ValueError unless a fitted estimator has all of its attributes, and an unfitted one has none."""
    known = {**entry.attributes, **entry.optional}
    wrong = [name for name in attributes if name not in known]
    wrong += [name for name in entry.attributes if attributes and name not in attributes]
    if wrong:
        raise ValueError(f"the attribute {wrong[0][:80]!r} is unknown or missing")
    check_types(attributes, known)


def _write_foreign(value: Any, path: str, writer: Writer) -> dict[str, Any]:
    names = inspect.signature(type(value)).parameters
    held = vars(value)  # some classes keep a parameter under another name
    parts = {name: held[name] if name in held else held["cvargs"][name] for name in names}
    return {
        "$scikit_learn": type(value).__name__,
        **{name: writer.write(part, f"{path}.{name}") for name, part in parts.items()},
    }


def _read_foreign(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    cls = looked_up(FOREIGN, node["$scikit_learn"])
    only(node, "$scikit_learn", *inspect.signature(cls).parameters)
    return cls(**{k: reader.read(part, f"{path}.{k}") for k, part in node.items() if k[:1] != "$"})


def _write_function(value: Any, path: str, writer: Writer) -> dict[str, Any]:
    if value not in FUNCTIONS.values():
        raise ValueError(unknown_type(value))
    return {"$function": value.__name__}


def _read_function(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    only(node, "$function")
    return looked_up(FUNCTIONS, node["$function"])


_value = value_codec(VALUES)
_estimator = Codec("$estimator", _write_estimator, _read_estimator)
_foreign = Codec("$scikit_learn", _write_foreign, _read_foreign)
_function = Codec("$function", _write_function, _read_function)

_codecs: Mapping[Any, Codec] = {
    **PLAIN_VALUES,
    **ARRAYS,
    **dict.fromkeys(VALUES.values(), _value),
    **dict.fromkeys((entry.cls for entry in ESTIMATORS.values()), _estimator),
    **dict.fromkeys(FOREIGN.values(), _foreign),
    type(value_codec): _function,
}
WRITES: Final[Mapping[Any, Write]] = {kind: codec.write for kind, codec in _codecs.items()}
"""Type -> how its values are written."""
READS: Final[Mapping[str, Read]] = {
    **{codec.tag: codec.read for codec in (*_codecs.values(), *PANDAS_VALUES.values())},
    **SHORT_FORMS,
    **TENSORS,
    "$same": read_same,
}
"""Tag -> how such an object is read."""
