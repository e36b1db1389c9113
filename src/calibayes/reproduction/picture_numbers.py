"""The numbers behind a figure, in a small file from which the documentation site draws it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibayes.plots.figures import boxes, panels, summary_boxes

DECIMALS = 5
"""Decimals of the numbers in a file; a picture shows fewer."""


@dataclass(frozen=True)
class BoxNumbers:
    """Numbers of box plots: title of a panel -> name of a box -> numbers."""

    panels: Mapping[str, Mapping[str, Sequence[float]]]
    y: str
    columns: int = 4

    kind: ClassVar[str] = "boxes"

    def draw(self) -> Any:
        return boxes(self.panels, y=self.y, columns=self.columns)


@dataclass(frozen=True)
class BoxSummaries(BoxNumbers):
    """Summaries for box plots: ends of the whiskers, quartiles and median in the order of size, then the outliers."""

    kind: ClassVar[str] = "summaries"

    def draw(self) -> Any:
        return summary_boxes(self.panels, y=self.y, columns=self.columns)


@dataclass(frozen=True)
class CurveNumbers:
    """Numbers of line plots: title of a panel -> label of a curve -> x values and y values."""

    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
    x: str
    y: str
    columns: int

    kind: ClassVar[str] = "curves"

    def draw(self) -> Any:
        curves = {
            title: {label: (np.asarray(x), np.asarray(y)) for label, (x, y) in by_label.items()}
            for title, by_label in self.panels.items()
        }
        return panels(curves, columns=self.columns, x=self.x, y=self.y)


KINDS = {kind.kind: kind for kind in (BoxNumbers, BoxSummaries, CurveNumbers)}


def to_json(numbers: BoxNumbers | CurveNumbers) -> str:
    """JSON text with one line for each panel."""
    settings = {"kind": numbers.kind, **{k: v for k, v in vars(numbers).items() if k != "panels"}}
    head = json.dumps(settings)[1:-1]
    lines = [f"{json.dumps(title)}: {json.dumps(_rounded(panel))}" for title, panel in numbers.panels.items()]
    return "{" + head + ', "panels": {\n' + ",\n".join(lines) + "\n}}\n"


def read_numbers(path: Path) -> BoxNumbers | CurveNumbers:
    """The numbers in a file. Raises ValueError if they are of no known kind."""
    content = json.loads(path.read_text(encoding="utf-8"))
    kind = content.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"{path.name} has numbers of kind {kind!r}; expected one of {', '.join(KINDS)}")
    return KINDS[kind](**content)


def _rounded(value: Any) -> Any:
    """Numbers in nested mappings and sequences, rounded."""
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [_rounded(part) for part in value]
    return round(float(value), DECIMALS)
