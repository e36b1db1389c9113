"""Python code that creates an estimator: constructor calls with the parameters that differ from their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from itertools import takewhile
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

PUBLIC = (
    "calibayes",
    *(f"calibayes.{name}" for name in ("families", "rules", "encoders", "learn", "engines")),
)
"""Modules whose public names are imported in the code."""
GIVEN = "# X: a data frame with the columns of this report, y: the labels of its rows"
LARGEST_ARRAY = 1000
"""Most elements of an array that is written as code."""
LINE = 100
"""Longest line, in characters."""


class NotExpressible(ValueError):
    """Raised if a parameter has no short Python expression."""


def code_of(estimator: Any, source: str | None = None) -> str:
    """Code that creates an estimator and fits it to X and y.

    Parameters
    ----------
    estimator : estimator
    source : str, optional
        Code that creates X and y; by default a comment that describes them.

    Raises
    ------
    NotExpressible
        If a parameter is not a number, string, list, tuple, mapping, array, public function or object of a public class.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> print(code_of(NaiveBayes(rule="ml")))
    from calibayes import NaiveBayes
    <BLANKLINE>
    # X: a data frame with the columns of this report, y: the labels of its rows
    model = NaiveBayes(rule="ml")
    model.fit(X, y)
    """
    writer = CodeWriter()
    made = writer.expression(estimator, 0)
    imports = [
        f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(writer.imports.items())
    ]
    arrays = ["import numpy as np", ""] if writer.uses_numpy else []
    given = source.strip() if source else GIVEN
    return "\n".join([*arrays, *imports, "", given, f"model = {made}", "model.fit(X, y)"])


class CodeWriter:
    """Writes expressions and collects the imports that they need."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.uses_numpy = False

    def expression(self, value: Any, depth: int) -> str:
        """A value as Python."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, str):
            return _quoted(value)
        if value is None or isinstance(value, bool | int | float | bytes):
            return repr(value)
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        if isinstance(value, list | tuple | Mapping):
            return self._container(value, depth)
        if isinstance(value, FunctionType | type):
            return self._imported(value)
        return self._call(value, depth)

    def _array(self, value: Any, depth: int) -> str:
        if value.size > LARGEST_ARRAY:
            raise NotExpressible(f"an array of {value.size} elements is too long to be written as code")
        self.uses_numpy = True
        return f"np.array({self.expression(value.tolist(), depth)})"

    def _container(self, value: Any, depth: int) -> str:
        parts = [self.expression(part, depth + 1) for part in value]
        if isinstance(value, Mapping):
            values = [self.expression(part, depth + 1) for part in value.values()]
            pairs = [f"{key}: {part}" for key, part in zip(parts, values, strict=True)]
            return _wrapped("{", pairs, "}", depth)
        if isinstance(value, list):
            return _wrapped("[", parts, "]", depth)
        return _wrapped("(", [*parts[:-1], f"{parts[-1]},"] if len(parts) == 1 else parts, ")", depth)

    def _imported(self, value: Any) -> str:
        """A public function or class, by its name."""
        name = value.__name__
        for module in (*PUBLIC, *_public_parents(value.__module__)):
            if getattr(import_module(module), name, None) is value:
                self.imports.setdefault(module, set()).add(name)
                return str(name)
        raise NotExpressible(f"{name} has no public name from which it can be imported")

    def _call(self, value: Any, depth: int) -> str:
        """The constructor of an object with the parameters that differ from their defaults."""
        name = self._imported(type(value))
        parts = [f"{key}={self.expression(part, depth + 1)}" for key, part in _changed(value).items()]
        return _wrapped(f"{name}(", parts, ")", depth)


def _quoted(text: str) -> str:
    """A string as Python code, in double quotes where that needs no backslash."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if '"' not in text and "\\" not in plain else plain


def _changed(value: Any) -> dict[str, Any]:
    """Parameters of an object that differ from their defaults. Raises NotExpressible for an object without parameters."""
    if isinstance(value, BaseEstimator):
        given = BaseEstimator.get_params(value, deep=False)
        defaults = {name: each.default for name, each in inspect.signature(type(value)).parameters.items()}
    elif is_dataclass(value):
        given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        defaults = {each.name: _default(each) for each in fields(value)}
    elif not inspect.signature(type(value)).parameters and not getattr(value, "__dict__", None):
        return {}
    else:
        raise NotExpressible(f"the parameters of {type(value).__name__} cannot be written as code")
    return {name: part for name, part in given.items() if not _is_same(part, defaults.get(name, MISSING))}


def _default(each: Any) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def _is_same(first: Any, second: Any) -> bool:
    """Whether a parameter has its default value: the same object, or the same type and representation."""
    if first is second:
        return True
    return type(first) is type(second) and repr(first) == repr(second)


def _public_parents(module: str) -> list[str]:
    """Modules from which a name may be imported: the module and its parents, up to the first private one, inner ones first."""
    public = list(takewhile(lambda part: not part.startswith("_"), module.split(".")))
    return [".".join(public[: len(public) - cut]) for cut in range(len(public))]


def _wrapped(start: str, parts: list[str], end: str, depth: int) -> str:
    """Parts on one line, or each on a separate line if they are long."""
    line = f"{start}{', '.join(parts)}{end}"
    if len(line) + 4 * depth <= LINE and "\n" not in line:
        return line
    indent = "    " * (depth + 1)
    lines = [f"{indent}{part.removesuffix(',')}," for part in parts]
    return "\n".join([start, *lines, "    " * depth + end])
