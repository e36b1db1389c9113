"""The class Report: an HTML page that can be saved, displayed in a notebook, or converted to a dictionary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.core.replaced_file import replaced_file
from calibayes.report.page import framed
from calibayes.report.sections import page_of
from calibayes.report.values import Facts


@dataclass(frozen=True)
class Report:
    """A page about a table or a model.

    Attributes
    ----------
    facts : Facts
        The content of the page as plain values.
    model : estimator
        The model that the page describes.
    html : str
        The complete page.
    findings : calibayes.checks.Findings
        The results of the numbered checks.
    """

    facts: Facts
    model: Any

    @cached_property
    def html(self) -> str:
        """The complete page."""
        return page_of(self.facts)

    @property
    def findings(self) -> Any:
        """The results of the numbered checks."""
        return self.facts.findings

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path. The file is replaced as a whole, never left incomplete."""
        with replaced_file(path) as file:
            file.write(self.html.encode())
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """The content of the page as dictionaries, lists, numbers and strings; numbers that are not finite are None."""
        return plain(self.facts)

    def _repr_html_(self) -> str:
        return framed(self.html, self.facts.title)

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e3
        return f"Report {self.facts.title!r}: {self.facts.about}; {size:.0f} kB; write it to a file with .save(path)"


def plain(value: Any) -> Any:
    """A value as dictionaries, lists, numbers and strings.

    >>> plain({"a": np.array([1.0, np.nan]), 2: (True, "x")})
    {'a': [1.0, None], '2': [True, 'x']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
