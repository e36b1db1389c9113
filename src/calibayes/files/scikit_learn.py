"""What scikit-learn notes on an estimator by `set_output` and by the methods such as `set_fit_request`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sklearn.utils.metadata_routing import MetadataRequest

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
    valid = isinstance(given, dict) and all(
        name in names and is_valid(value) for name, value in given.items()
    )
    if not valid:
        raise ValueError("invalid settings of scikit-learn")


def _request(owner: str, requests: Mapping[str, Mapping[str, Any]]) -> MetadataRequest:
    made = MetadataRequest(owner=owner)
    for method, aliases in requests.items():
        for name, alias in aliases.items():
            getattr(made, method).add_request(param=name, alias=alias)
    return made
