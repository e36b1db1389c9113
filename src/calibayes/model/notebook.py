"""How notebooks show a classifier: scikit-learn's diagram and, once it is fitted, its summary."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

SECTION = (
    '<details open style="margin: 0.5em 0"><summary>Summary of the fitted model</summary>'
    '<pre style="overflow-x: auto; max-height: 30em; margin: 0.5em 0">{}</pre></details>'
)


def page_of(model: Any) -> str:
    """scikit-learn's HTML diagram of an estimator, followed by its `summary`, if it has one and is fitted."""
    return str(estimator_html_repr(model)) + _summary_section(model)


def _summary_section(model: Any) -> str:
    try:
        summary = model.summary() if hasattr(model, "summary") else ""
    except NotFittedError:
        return ""
    return SECTION.format(html.escape(str(summary))) if summary else ""


def html_method(self: Any) -> Callable[[], str]:
    """The method that makes the HTML page, as the property ``_repr_html_``; none if scikit-learn is to display text."""
    if get_config()["display"] != "diagram":
        raise AttributeError("_repr_html_ exists if sklearn's configuration option 'display' is 'diagram'")
    return lambda: page_of(self)


def mime_bundle(self: Any, **kwargs: Any) -> Mapping[str, str]:
    """Text and HTML of the estimator, for Jupyter."""
    bundle = {"text/plain": repr(self)}
    if get_config()["display"] == "diagram":
        bundle["text/html"] = page_of(self)
    return bundle
