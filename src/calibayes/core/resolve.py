"""Short names for objects, accepted wherever a person would type one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def resolve(
    parameter: str,
    given: Any,
    names: Mapping[Any, Callable[[], Any]],
    *,
    ability: str,
    example: str,
) -> Any:
    """The object that a short name means, or the object itself.

    Parameters
    ----------
    parameter : str
        Name of the parameter, for the error message.
    given : str, None or object
    names : mapping
        Short name -> function that makes the object.
    ability : str
        An attribute that every such object has.
    example : str
        An object that could be given instead of a name, for the error message.

    Raises
    ------
    ValueError
        If ``given`` is an unknown name, a class instead of an object, or lacks the attribute.

    Examples
    --------
    >>> resolve("size", "small", {"small": lambda: 1 + 0j}, ability="real", example="1j")
    (1+0j)
    """
    if isinstance(given, str | None) and given in names:
        return names[given]()
    if isinstance(given, str | type | None) or not hasattr(given, ability):
        known = ", ".join(repr(name) for name in names)
        raise ValueError(f"{parameter} must be one of {known} or an object such as {example}, got {given!r}")
    return given
