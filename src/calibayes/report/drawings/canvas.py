"""The SVG element of a picture, and basic shapes."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.core.protocols import Array
from calibayes.report.page.markup import Child, Markup, element

WIDTH = 340.0
"""Width of a picture in SVG units: about that of a phone in pixels, so that text is not scaled there."""


def drawing(height: float, title: str, description: str, *children: Child, width: float = WIDTH) -> Markup:
    """A picture with a name and a description for screen readers."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        focusable="false",
    )


def swatch(code: int) -> Markup:
    """A small square in the color of a class, placed beside its name."""
    square = element("rect", width=12, height=12, rx=3, class_=f"f{code}")
    return element("svg", square, viewBox="0 0 12 12", aria_hidden="true", focusable="false")


def text(x: float, y: float, content: str, class_: str | None = None) -> Markup:
    """Text at a point."""
    return element("text", content, x=_short(x), y=_short(y), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("path", d=f"M{_short(x1)} {_short(y1)}L{_short(x2)} {_short(y2)}", class_=class_)


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, **more: float | str | None
) -> Markup:
    """A rectangle."""
    sizes = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
    return element("rect", **{name: _short(value) for name, value in sizes.items()}, class_=class_, **more)


def dot(x: float, y: float, class_: str, radius: float = 4.0) -> Markup:
    """A disk."""
    return element("circle", cx=_short(x), cy=_short(y), r=radius, class_=class_)


def polyline(
    x: Sequence[float] | Array, y: Sequence[float] | Array, class_: str, *, is_closed: bool = False
) -> Markup:
    """Connected points."""
    points = "L".join(f"{_short(a)} {_short(b)}" for a, b in zip(x, y, strict=True))
    return element("path", d=f"M{points}{'Z' if is_closed else ''}", class_=class_)


def _short(value: float) -> str:
    """A coordinate with one decimal."""
    return f"{value:.1f}".removesuffix(".0")
