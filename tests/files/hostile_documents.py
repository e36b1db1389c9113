"""Hostile files with right checksums whose document is invalid. Name -> how it is made, and what its refusal must say."""

import json
from collections.abc import Callable
from typing import Any

from tests.files.forging import Parts
from tests.files.hostile_containers import Hostile, forged, parts


def raw(change: Callable[[str], str]) -> Callable[[], bytes]:
    """A builder of a file whose document is changed as text."""

    def to_text(p: Parts) -> None:
        p.document = change(json.dumps(p.document, separators=(",", ":")))

    return forged(to_text)


def document(**changes: Any) -> Callable[[], bytes]:
    return forged(lambda p: p.document.update(changes))


def contents(**changes: Any) -> Callable[[], bytes]:
    return forged(lambda p: p.document["contents"].update(changes))


def parameter(value: Any, name: str = "verbose") -> Callable[[], bytes]:
    return forged(lambda p: p.model["parameters"].update({name: value}))


def attribute(value: Any, name: str) -> Callable[[], bytes]:
    return forged(lambda p: p.model["attributes"].update({name: value}))


def fitted(value: Any, name: str) -> Callable[[], bytes]:
    return forged(lambda p: p.fitted.update({name: value}))


def with_value(text: str) -> Callable[[], bytes]:
    """A builder of a file in which a parameter is this JSON text."""
    return raw(lambda document: document.replace('"verbose":0', f'"verbose":{text}', 1))


def nested(opening: str, closing: str, depth: int) -> Callable[[], bytes]:
    return with_value(opening * depth + "0" + closing * depth)


def laughs(tag: str, depth: int = 60) -> Callable[[], bytes]:
    """A builder of a list of two lists of two lists ... by references."""

    def change(p: Parts) -> None:
        first = {tag: [0, 0], "$id": 1000}
        later = [{tag: [{"$same": n}, {"$same": n}], "$id": n + 1} for n in range(1000, 1000 + depth)]
        p.model["parameters"]["verbose"] = [first, *later]

    return forged(change)


def shared_keys(depth: int = 60) -> Callable[[], bytes]:
    """A builder of a mapping with a key that is a value of two values of two values ..., whose hash is costly."""

    def change(p: Parts) -> None:
        first = {"$type": "AnyOf", "stops": [{"$type": "Never"}], "$id": 1000}
        pair = [
            {"$type": "AnyOf", "stops": [{"$same": n}, {"$same": n}], "$id": n + 1}
            for n in range(1000, 1000 + depth)
        ]
        p.model["parameters"]["verbose"] = [first, *pair, {"$pairs": [[{"$same": 1000 + depth}, 0]]}]

    return forged(change)


def _rename_classes(p: Parts) -> None:
    p.document["contents"]["classes"] = ["benign", "malignant"]


FOREIGN_NAMES = (
    *("os.system", "subprocess.Popen", "builtins.eval", "eval", "__import__", "__class__", "__init__"),
    *(
        "../../x",
        "/etc/passwd",
        "calibayes.files.load",
        "sklearn.svm.SVC",
        "SVC",
        "object",
        "type",
        "",
        "X" * 5000,
    ),
)
UNKNOWN = "unknown class or function"
NAMED = {
    f"{tag} {name[:30]!r}": Hostile(parameter({tag: name}), UNKNOWN)
    for tag in ("$type", "$estimator", "$function", "$scikit_learn")
    for name in FOREIGN_NAMES
}
BAD_NAMES = {
    f"{tag} that is {json.dumps(value)}": Hostile(parameter({tag: value}), UNKNOWN)
    for tag in ("$type", "$estimator", "$function", "$scikit_learn")
    for value in (None, 3, [], {}, ["Gaussian"])
}
LIBRARIES = {
    f"{tag} {name!r}": Hostile(parameter({tag: name}), "is invalid: ")
    for tag in ("$library", "$dtype", "$float", "$date", "$bytes", "$decimal")
    for name in ("os.system", "__class__", "../../x", "", "|V8", "O,O")
    if (tag, name) != ("$bytes", "")
}
VERSIONS = {
    **{
        f"format version {json.dumps(version)}": Hostile(
            document(format_version=version), "no format version"
        )
        for version in (0, -1, "1", 1.0, True, None, [1], {})
    },
    **{
        f"format version {version}": Hostile(document(format_version=version), f"newer format {version}")
        for version in (3, 10**30)
    },
    "version of the package that is a number": Hostile(document(calibayes_version=1), "no format version"),
    "endless version of the package": Hostile(
        forged(
            lambda p: (
                p.document.update(calibayes_version="9" * 100_000),
                p.model.update({"$estimator": "X"}),
            )
        ),
        UNKNOWN,
    ),
}
JSON = {
    "document that is no JSON": Hostile(raw(lambda text: text[:-1]), "not valid JSON"),
    "document that is a list": Hostile(raw(lambda text: f"[{text}]"), "no format version"),
    "document that is null": Hostile(raw(lambda text: "null"), "no format version"),
    "empty document": Hostile(raw(lambda text: ""), "not valid JSON"),
    "key of the document twice": Hostile(
        raw(lambda text: text.replace('"contents"', '"contents":0,"contents"', 1)), "same key twice"
    ),
    "parameter twice": Hostile(
        raw(lambda text: text.replace('"verbose"', '"verbose":0,"verbose"', 1)), "same key twice"
    ),
    "unknown key of the document": Hostile(document(code="import os"), "must have the keys"),
    "missing key of the document": Hostile(
        forged(lambda p: p.document.pop("contents")), "must have the keys"
    ),
    "NaN": Hostile(with_value("NaN"), "contains NaN"),
    "Infinity": Hostile(with_value("Infinity"), "contains Infinity"),
    "-Infinity": Hostile(with_value("-Infinity"), "contains -Infinity"),
    "1e999": Hostile(with_value("1e999"), "too large"),
    "-1e999": Hostile(with_value("-1e999"), "too large"),
    "whole number of 10,000 digits": Hostile(with_value("9" * 10_000), "too large"),
    "lists 100,000 deep": Hostile(nested("[", "]", 100_000), "nested too deeply"),
    "objects 100,000 deep": Hostile(nested('{"a":', "}", 100_000), "nested too deeply"),
    "lists 101 deep": Hostile(nested("[", "]", 101), "nested too deeply"),
    "tagged lists 300 deep": Hostile(nested('{"$list":[', "]}", 300), "nested too deeply"),
    "unfinished lists": Hostile(with_value("[" * 100_000), "nested too deeply|not valid JSON"),
    "lone surrogate as a tag": Hostile(with_value('{"$\\ud800":0}'), "unknown tag"),
    "lone surrogate as a class": Hostile(with_value('{"$type":"\\ud800"}'), UNKNOWN),
}
TAGS = {
    "unknown tag": Hostile(parameter({"$eval": "1 + 1"}), "unknown tag"),
    "tag of pickle": Hostile(parameter({"$reduce": ["os.system", ["true"]]}), "unknown tag"),
    "two tags": Hostile(parameter({"$list": [], "$type": "Gaussian"}), "unknown key"),
    "same of itself": Hostile(parameter({"$same": 7, "$id": 7}), "no object 7 before it"),
    "same of a later object": Hostile(
        parameter([{"$same": 7}, {"$list": [], "$id": 7}]), "no object 7 before it"
    ),
    "same inside of its object": Hostile(
        parameter({"$list": [{"$same": 7}], "$id": 7}), "no object 7 before it"
    ),
    "same of no number": Hostile(parameter({"$same": [0]}), "no object"),
    "same of true": Hostile(parameter({"$same": True}), "no object"),
    "same with other keys": Hostile(parameter({"$same": 0, "verbose": 1}), "unknown key"),
    "id that is a list": Hostile(parameter({"$list": [], "$id": []}), r"\$id must be"),
    "id that is a text": Hostile(parameter({"$list": [], "$id": "x"}), r"\$id must be"),
    "id twice": Hostile(parameter([{"$list": [], "$id": 7}, {"$list": [], "$id": 7}]), r"\$id"),
    "id without a tag": Hostile(parameter({"$id": 7}), r"\$id"),
    "billion lists": Hostile(laughs("$list"), "too often"),
    "billion keys": Hostile(shared_keys(), "too often"),
    "range of 10**18": Hostile(fitted({"$range": [0, 10**18, 1]}, "classes"), "range"),
    "range as a sequence": Hostile(
        parameter({"$type": "Schedule", "lengths": {"$range": [0, 10**18, 1]}}), "range"
    ),
    "repeated 10**12 times": Hostile(parameter({"$repeat": 0, "times": 10**12}), "not allowed"),
    "repeated often together": Hostile(parameter([{"$repeat": 0, "times": 2**23}] * 3), "not allowed"),
    "repeated -1 times": Hostile(parameter({"$repeat": 0, "times": -1}), "not allowed"),
    "repeated list": Hostile(parameter({"$repeat": {"$list": []}, "times": 5}), "cannot be repeated"),
    "count of 10**12": Hostile(parameter({"$count": [0, 10**12]}), "not allowed"),
    "count of texts": Hostile(parameter({"$count": ["a", 3]}), "must be of type int"),
    "names of 10**12 columns": Hostile(parameter({"$names": 10**12}), "not allowed"),
    "interval of objects": Hostile(parameter({"$interval": [{"$list": []}, 1, "left"]}), "is invalid"),
    "interval that is closed nowhere": Hostile(parameter({"$interval": [0, 1, "../x"]}), "is invalid"),
    "zone by path": Hostile(
        parameter({"$timestamp": [{"$scalar": 0, "type": "<M8[s]"}, "../../etc/passwd"]}), "no time zone"
    ),
    "date by text": Hostile(parameter({"$timestamp": ["now", None]}), "is invalid"),
    "period of a long frequency": Hostile(parameter({"$period": [0, "D" * 1000]}), "no period"),
    "fraction by zero": Hostile(parameter({"$fraction": [1, 0]}), "is invalid"),
    "decimal of a million digits": Hostile(parameter({"$decimal": "1" * 10**6}), "not allowed"),
    "range without a step": Hostile(parameter({"$range": [0, 3, 0]}), "is invalid"),
    "range of texts": Hostile(parameter({"$range": ["a", "b", "c"]}), "is invalid"),
    "slice of one number too many": Hostile(parameter({"$slice": [0, 1, 2, 3]}), "is invalid"),
    "pairs of three": Hostile(parameter({"$pairs": [[1, 2, 3]]}), "is invalid"),
    "pairs with a list as a key": Hostile(parameter({"$pairs": [[{"$list": []}, 0]]}), "is invalid"),
    "random state of a foreign generator": Hostile(
        parameter({"$random_state": ["PCG64", 0, 0, 0]}), "is invalid"
    ),
    "random state beyond its end": Hostile(
        forged(
            lambda p: p.model["parameters"].update(
                random_state={"$random_state": [{"$tensor": "fitted_.classes"}, 10**6, 0, 0.0]}
            )
        ),
        "is invalid",
    ),
    "array of objects beyond its shape": Hostile(
        parameter({"$array": [1], "type": "|O", "shape": [2]}), "is invalid"
    ),
    "empty array with huge axes": Hostile(
        parameter({"$array": [], "type": "<f8", "shape": [10**18, 0]}), "shape"
    ),
    "array with a negative shape": Hostile(
        parameter({"$array": ["a"], "type": "<U1", "shape": [-1]}), "shape"
    ),
    "array with a shape of 100 axes": Hostile(
        parameter({"$array": ["a"], "type": "<U1", "shape": [1] * 100}), "shape"
    ),
    "array of long texts": Hostile(parameter({"$array": ["a"] * 100, "type": "<U9999999"}), "not allowed"),
    "array of texts cut off": Hostile(
        parameter({"$array": ["abc"], "type": "<U1"}), "longer than their type"
    ),
    "array of numbers as a list": Hostile(parameter({"$array": [1.0], "type": "<f8"}), "not allowed"),
    "array without a type": Hostile(parameter({"$array": []}), "'type' is missing"),
    "tensor that is missing": Hostile(parameter({"$tensor": "x"}), "there is no tensor"),
    "tensor by number": Hostile(parameter({"$tensor": 0}), "there is no tensor"),
    "tensor of floats as dates": Hostile(
        fitted({"$tensor": "fitted_.data_statistics.columns.first", "type": "<M8[s]"}, "classes"),
        "the type beside a tensor",
    ),
    "tensor as objects": Hostile(
        fitted({"$tensor": "fitted_.classes", "type": "|O"}, "classes"), "the type beside a tensor"
    ),
    "scalar of objects": Hostile(parameter({"$scalar": 1, "type": "|O"}), "is invalid"),
    "scalar out of range": Hostile(parameter({"$scalar": 10**30, "type": "<i8"}), "is invalid"),
    "scalar of another type": Hostile(parameter({"$scalar": "a", "type": "<f8"}), "must be of type"),
    "type of odd size": Hostile(parameter({"$dtype": "<f3"}), "is invalid"),
}
MODELS = {
    "model that is a number": Hostile(document(model=3), "no estimator"),
    "model that is a family": Hostile(document(model={"$type": "ClassPrior"}), "no estimator"),
    "model that is a list": Hostile(document(model=[]), "no estimator"),
    "model that is a splitter": Hostile(document(model={"$scikit_learn": "KFold"}), "no estimator"),
    "model that is no classifier": Hostile(
        document(model={"$estimator": "TrainingOptions", "parameters": {}, "attributes": {}}), "no estimator"
    ),
    "model without attributes": Hostile(forged(lambda p: p.model.update(attributes={})), "not fitted"),
    "model without parameters": Hostile(
        forged(lambda p: p.model.pop("parameters")), "'parameters' is missing"
    ),
    "parameters that are a list": Hostile(forged(lambda p: p.model.update(parameters=[])), "must be of type"),
    "unknown key of a model": Hostile(forged(lambda p: p.model.update(code="x")), "unknown key"),
    **{
        f"attribute {name}": Hostile(attribute(0, name), "unknown or missing")
        for name in (
            "__class__",
            "__dict__",
            "fit",
            "predict",
            "__reduce__",
            "_sklearn_output_config",
            "coef_",
        )
    },
    **{
        f"parameter {name}": Hostile(parameter(0, name), "has no parameter")
        for name in ("__class__", "self", "fit", "args", "kwargs", "fitted_")
    },
    **{
        f"field {name}": Hostile(fitted(0, name), "unknown key")
        for name in ("__class__", "__dict__", "__post_init__", "predict")
    },
    "missing attribute": Hostile(
        forged(lambda p: p.model["attributes"].pop("n_features_in_")), "unknown or missing"
    ),
    "missing field": Hostile(forged(lambda p: p.fitted.pop("binding")), "binding"),
    "other estimator": Hostile(
        forged(lambda p: p.model.update({"$estimator": "JointKernelClassifier"})), "is invalid"
    ),
    "settings of scikit-learn that are a list": Hostile(
        forged(lambda p: p.model.update(scikit_learn=[1])), "settings of scikit-learn"
    ),
    "unknown setting of scikit-learn": Hostile(
        forged(lambda p: p.model.update(scikit_learn={"__class__": {}})), "settings of scikit-learn"
    ),
    "unknown output": Hostile(
        forged(lambda p: p.model.update(scikit_learn={"output": {"transform": "os"}})),
        "settings of scikit-learn",
    ),
    "request of an unknown method": Hostile(
        forged(lambda p: p.model.update(scikit_learn={"requests": {"__init__": {}}})),
        "settings of scikit-learn",
    ),
    "request of no name": Hostile(
        forged(lambda p: p.model.update(scikit_learn={"requests": {"fit": {"a b": "c d"}}})), "is invalid"
    ),
    "contents of another class": Hostile(contents(**{"class": "BayesClassifier"}), "contents are not those"),
    "contents with other classes": Hostile(forged(_rename_classes), "contents are not those"),
    "contents with other rows": Hostile(contents(rows=10**6), "contents are not those"),
    "contents that deny kept rows": Hostile(contents(kept_rows=-1), "contents are not those"),
    "contents of other types": Hostile(contents(classes=[False, True]), "contents are not those"),
    "contents that are null": Hostile(document(contents=None), "contents are not those"),
    "contents with an array": Hostile(
        contents(classes={"$tensor": "fitted_.classes"}), "contents are not those"
    ),
    "contents with a key more": Hostile(contents(author="me"), "contents are not those"),
}


def wrong_types() -> dict[str, Hostile]:
    """Every field of the fitted model and every attribute, with a value of a type that no field has."""
    slice_of_model = {"$slice": [None, None, None]}
    refused = "wrong type|must be an array|is not part of the model|no object 0 before it"
    small = parts()
    of_fitted = [name for name in small.fitted if name[:1] != "$"]
    return {
        **{f"type of field {name}": Hostile(fitted(slice_of_model, name), refused) for name in of_fitted},
        **{
            f"type of attribute {name}": Hostile(attribute(slice_of_model, name), refused)
            for name in small.model["attributes"]
        },
    }


DOCUMENTS = {**NAMED, **BAD_NAMES, **LIBRARIES, **VERSIONS, **JSON, **TAGS, **MODELS, **wrong_types()}
