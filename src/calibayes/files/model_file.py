"""Save a model to one file, load it, and say what is in the file."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from calibayes._version import __version__
from calibayes.engines import is_distributed
from calibayes.files import codec, container, registry, value_objects
from calibayes.files.container import ModelFileError, document_text
from calibayes.model.attributes import HOME, numpy_classes
from calibayes.model.checked_rows import kept_row_count
from calibayes.model.parameters import adopt
from calibayes.model.training_rows import PROCESS_ONLY
from calibayes.tables.dates import is_zone

# -- Codecs of the values of pandas that can be levels of a column: intervals, dates, durations and periods
#
# pandas is imported when such a value is read. If it is not imported when a model is saved, the model has none of them.

FREQUENCY: Final = re.compile(r"\d{0,4}[A-Za-z]{1,4}(-[A-Z]{3})?")
"""Such as D, 2h or Q-DEC."""


def _timestamp(date: Any, zone: Any) -> Any:
    import pandas

    codec.typed(date, np.datetime64, "a date")
    if zone is None:
        return pandas.Timestamp(date)
    if not isinstance(zone, str) or not is_zone(zone):
        raise ValueError(f"{str(zone)[:80]!r} is no time zone of this machine")
    return pandas.Timestamp(date, tz="UTC").tz_convert(zone)


def _timestamp_parts(value: Any) -> Sequence[Any]:
    zone = None if value.tzinfo is None else str(value.tzinfo)
    return value.asm8 if zone is None else value.tz_convert("UTC").tz_localize(None).asm8, zone


def _timedelta(duration: Any) -> Any:
    import pandas

    return pandas.Timedelta(codec.typed(duration, np.timedelta64, "a duration"))


def _period(ordinal: Any, frequency: Any) -> Any:
    import pandas

    if type(ordinal) is not int or not isinstance(frequency, str) or not FREQUENCY.fullmatch(frequency):
        raise ValueError(f"no period: {ordinal!r}, {frequency!r}")
    return pandas.Period(ordinal=ordinal, freq=frequency)


def _interval(left: Any, right: Any, closed: Any) -> Any:
    import pandas

    return pandas.Interval(left, right, closed=closed)


PANDAS_VALUES: Final[Mapping[str, codec.Codec]] = {
    "Interval": codec.of_parts("$interval", lambda value: (value.left, value.right, value.closed), _interval),
    "Timestamp": codec.of_parts("$timestamp", _timestamp_parts, _timestamp),
    "Timedelta": codec.of_parts("$pandas_timedelta", lambda value: (value.asm8,), _timedelta),
    "Period": codec.of_parts("$period", lambda value: (value.ordinal, value.freqstr), _period),
}
"""Name of a type of pandas -> codec."""


def pandas_writes() -> Mapping[Any, codec.Write]:
    """Type -> how its values are written, if pandas is imported."""
    pandas = sys.modules.get("pandas")
    values = PANDAS_VALUES if pandas is not None else {}
    return {getattr(pandas, name): entry.write for name, entry in values.items()}


# -- What scikit-learn notes on an estimator by `set_output` and by the methods such as `set_fit_request` ----

OUTPUT: Final = "_sklearn_output_config"
REQUESTS: Final = "_metadata_request"
METHODS: Final = (
    *("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function"),
    *("score", "transform", "inverse_transform"),
)
FORMATS: Final = ("default", "pandas", "polars")


def pop_settings(attributes: dict[str, Any]) -> dict[str, Any]:
    """Settings as plain texts and numbers, removed from the attributes of an estimator."""
    output, requests = attributes.pop(OUTPUT, None), attributes.pop(REQUESTS, None)
    settings: dict[str, Any] = {}
    if output:
        settings["output"] = dict(output)
    if requests is not None:
        settings["requests"] = {method: dict(getattr(requests, method).requests) for method in METHODS}
    return settings


def apply_settings(model: Any, settings: Mapping[str, Any]) -> None:
    """Note settings on an estimator. Raises ValueError if they are invalid."""
    if not isinstance(settings, dict) or settings.keys() - {"output", "requests"}:
        raise ValueError("settings of scikit-learn are 'output' and 'requests'")
    if "output" in settings:
        _check(settings["output"], ("transform",), lambda format: format in FORMATS)
        vars(model)[OUTPUT] = dict(settings["output"])
    if "requests" in settings:
        _check(settings["requests"], METHODS, lambda named: isinstance(named, dict))
        vars(model)[REQUESTS] = _request(type(model).__name__, settings["requests"])


def _check(given: Any, names: tuple[str, ...], is_valid: Any) -> None:
    if not isinstance(given, dict) or not all(name in names and is_valid(given[name]) for name in given):
        raise ValueError("invalid settings of scikit-learn")


def _request(owner: str, requests: Mapping[str, Mapping[str, Any]]) -> MetadataRequest:
    made = MetadataRequest(owner=owner)
    for method, aliases in requests.items():
        for name, alias in aliases.items():
            getattr(made, method).add_request(param=name, alias=alias)
    return made


# -- Codecs of the library's own objects: values, estimators and functions, by their names in the registry ---


def _write_estimator(model: Any, path: str, writer: codec.Writer) -> dict[str, Any]:
    def write() -> dict[str, Any]:
        entry = registry.ESTIMATORS[type(model).__name__]
        parameters = BaseEstimator.get_params(model, deep=False)
        left_out = {*parameters, HOME, *PROCESS_ONLY}  # the arrays of a model file are NumPy's
        attributes = {name: value for name, value in vars(model).items() if name not in left_out}
        settings = pop_settings(attributes)
        unknown = [name for name in attributes if name not in {**entry.attributes, **entry.optional}]
        if unknown:
            raise ModelFileError(f"{path}.{unknown[0]} cannot be saved: it is no attribute that fit sets")
        return {
            "$estimator": type(model).__name__,
            "parameters": {
                # Another process may not reach the cluster of a distributed engine.
                key: writer.write(None if is_distributed(value) else value, f"{path}.{key}")
                for key, value in parameters.items()
                if key not in entry.local
            },
            "attributes": {key: writer.write(value, f"{path}.{key}") for key, value in attributes.items()},
            **({"scikit_learn": settings} if settings else {}),
        }

    return writer.once(model, write)


def _read_estimator(node: Mapping[str, Any], path: str, reader: codec.Reader) -> Any:
    codec.only(node, "$estimator", "parameters", "attributes", "scikit_learn")
    entry = value_objects.looked_up(registry.ESTIMATORS, node["$estimator"])
    given = {key: codec.typed(node[key], dict, key) for key in ("parameters", "attributes")}
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
    apply_settings(model, node.get("scikit_learn", {}))
    return value_objects.verified(model) if attributes else model


def _check_attributes(attributes: Mapping[str, Any], entry: registry.EstimatorEntry) -> None:
    """Raises ValueError unless a fitted estimator has all of its attributes, and an unfitted one has none."""
    known = {**entry.attributes, **entry.optional}
    wrong = [name for name in attributes if name not in known]
    wrong += [name for name in entry.attributes if attributes and name not in attributes]
    if wrong:
        raise ValueError(f"the attribute {wrong[0][:80]!r} is unknown or missing")
    value_objects.check_types(attributes, known)


def _write_foreign(value: Any, path: str, writer: codec.Writer) -> dict[str, Any]:
    names = inspect.signature(type(value)).parameters
    held = vars(value)  # some classes keep a parameter under another name
    parts = {name: held[name] if name in held else held["cvargs"][name] for name in names}
    return {
        "$scikit_learn": type(value).__name__,
        **{name: writer.write(part, f"{path}.{name}") for name, part in parts.items()},
    }


def _read_foreign(node: Mapping[str, Any], path: str, reader: codec.Reader) -> Any:
    cls = value_objects.looked_up(registry.FOREIGN, node["$scikit_learn"])
    codec.only(node, "$scikit_learn", *inspect.signature(cls).parameters)
    return cls(**{k: reader.read(part, f"{path}.{k}") for k, part in node.items() if k[:1] != "$"})


def _write_function(value: Any, path: str, writer: codec.Writer) -> dict[str, Any]:
    if value not in registry.FUNCTIONS.values():
        raise ValueError(codec.unknown_type(value))
    return {"$function": value.__name__}


def _read_function(node: Mapping[str, Any], path: str, reader: codec.Reader) -> Any:
    codec.only(node, "$function")
    return value_objects.looked_up(registry.FUNCTIONS, node["$function"])


_value = value_objects.value_codec(registry.VALUES, registry.OLDER_FIELDS, registry.SHORTENED)
_estimator = codec.Codec("$estimator", _write_estimator, _read_estimator)
_foreign = codec.Codec("$scikit_learn", _write_foreign, _read_foreign)
_function = codec.Codec("$function", _write_function, _read_function)

_codecs: Mapping[Any, codec.Codec] = {
    **codec.PLAIN_VALUES,
    **codec.ARRAYS,
    **dict.fromkeys(registry.VALUES.values(), _value),
    **dict.fromkeys((entry.cls for entry in registry.ESTIMATORS.values()), _estimator),
    **dict.fromkeys(registry.FOREIGN.values(), _foreign),
    type(value_objects.value_codec): _function,
}
WRITES, READS = codec.writes_and_reads(_codecs)
READS |= {entry.tag: entry.read for entry in PANDAS_VALUES.values()}


# -- What is in a model file, in short: written into the file, so that it can be told from the header alone


def contents_of(model: Any) -> Mapping[str, Any]:
    """Class, classes, columns, training table and kept rows of a fitted estimator, as plain values."""
    table = model.training_table_
    return {
        "class": type(model).__name__,
        "classes": tuple(_plain(label) for label in numpy_classes(model).tolist()),
        "rows": table.rows,
        "columns": table.columns,
        "kinds": table.kinds,
        "missing": table.missing,
        "kept_rows": kept_row_count(model),
    }


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; dates as texts."""
    plain = label.item() if isinstance(label, np.generic) else label
    return plain if type(plain) in (str, bool, int, float) else str(plain)


# -- Save a model to one file, load it, and say what is in the file ------------------------------------------

MOST_BYTES: Final = 2**33
"""Default limit of the size of a file."""
PARTS: Final = ("contents", "model")
"""Keys of the document of a model."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of this package to one file.

    The file is in the safetensors format (docs/format.md): it holds numbers and texts and no code, later versions of this
    package can read it, and a damaged one is refused. It replaces an older file as a whole: a crash or a full disk
    leaves the old one. For what it tells about the training rows see docs/saved-models.md.

    Parameters
    ----------
    model : estimator
        Fitted. Everything that it was given must be numbers, texts or objects of this package: callbacks, own functions
        and estimators of other packages cannot be saved.
    path : str or path
        By custom it ends in ".safetensors".

    Raises
    ------
    ModelFileError
        If a part of the model cannot be saved; the message names it.

    Examples
    --------
    >>> import calibayes, tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = calibayes.GaussianNB().fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.safetensors"
    >>> calibayes.save(model, path)
    >>> bool((calibayes.load(path).predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    entry = registry.ESTIMATORS.get(type(model).__name__)
    if entry is None or entry.cls is not type(model) or not entry.attributes:
        raise ModelFileError(
            f"only estimators of calibayes can be saved, got {type(model).__name__}: save its parts, or use pickle"
        )
    check_is_fitted(model)
    writer = codec.Writer({**WRITES, **pandas_writes()})
    parts = {
        "contents": writer.write(contents_of(model), "contents"),
        "model": writer.write(model, type(model).__name__),
    }
    text = document_text(parts, "the document of this model")
    _model_of(parts, writer.tensors, type(model).__name__)  # what is written can be read
    container.write(path, text, writer.tensors)


def load(path: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> Any:
    """Load an estimator from a file that `save` has written.

    No code of the file is run: it has none. Sizes, checksums, types, shapes and the validity of all parameters are
    checked before the estimator is made.

    Parameters
    ----------
    path : str or path
    most_bytes : int, default=2**33
        Larger files are refused.

    Raises
    ------
    ModelFileError
        If the file is no model file, damaged, truncated, too large, invalid, or of a newer version of the format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibayes import GaussianNB, load, save
    >>> model = GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors").predict([[3.5]])
    array([1])
    """
    name = os.fsdecode(path)
    document, tensors = container.read(name, most_bytes, *PARTS)
    try:
        return _model_of(document, tensors)
    except value_objects.UnknownClassError as error:
        raise ModelFileError(
            f"{name}: {error}; it was written by calibayes {document['calibayes_version'][:40]}, this is {__version__}"
        ) from None
    except codec.INVALID as error:
        raise ModelFileError(f"{name} is invalid: {codec.reason(error)}") from error


def _model_of(document: Mapping[str, Any], tensors: Mapping[str, Any], name: str = "model") -> Any:
    """The estimator of a document. Raises ModelFileError if anything in it is invalid."""
    reader = codec.Reader(READS, tensors)
    reader.read(document["contents"], "contents")
    model = reader.read(document["model"], name)
    entry = registry.ESTIMATORS.get(type(model).__name__)
    if entry is None or not entry.attributes:
        raise ModelFileError("its model is no estimator")
    check_is_fitted(model, msg="its model is not fitted")
    unused = [name for name in tensors if name not in reader.used]
    if unused:
        raise ModelFileError(f"the tensor {unused[0][:80]!r} is not part of the model")
    if _text(document["contents"]) != _text(codec.Writer(WRITES).write(contents_of(model), "contents")):
        raise ModelFileError("its contents are not those of its model")
    return model


def _text(value: Any) -> str:
    """JSON, in which true, 1 and 1.0 are different."""
    return json.dumps(value, sort_keys=True)
