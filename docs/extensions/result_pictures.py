"""Pictures that are drawn while the site is built, from the numbers in `docs/results` and `docs/lab`.

A page refers to one by a link that works on a code host, too: `[Picture: caption](ADDRESS/reproduction.html#picture-NAME)`. On
the site the picture takes the place of the link. `[Picture: caption](ADDRESS/auto_examples/NAME.html)` is the first picture of an
example.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "pictures"
LINK = r"\[Picture: ([^\]]+)\]\({address}/[\w/-]+\.html#picture-([\w-]+)\)"
EXAMPLE = r"\[Picture: ([^\]]+)\]\({address}/auto_examples/(\w+)\.html\)"
"""A picture of an example, which the gallery has drawn."""


def drawings() -> dict[str, Callable[[Path], Any]]:
    """Name of a picture -> function that writes it to a file."""
    results = {
        path.stem: partial(draw_result, path) for path in sorted((ROOT / "docs/results").glob("*.json"))
    }
    return {
        **results,
        "generative-models-notes-example": draw_example,
        "leaderboard-curve": draw_leaderboard_curve,
        "speed-scaling": draw_scaling,
    }


def draw_result(numbers: Path, path: Path) -> None:
    from calibayes.reproduction.pages import save_drawing
    from calibayes.reproduction.result_tables import read_numbers

    save_drawing(read_numbers(numbers).draw(), path)


def draw_example(path: Path) -> None:
    from calibayes.reproduction.pages import save_drawing
    from calibayes.reproduction.papers.generative_models_notes import draw_boundaries

    save_drawing(draw_boundaries(), path)


def draw_leaderboard_curve(path: Path) -> None:
    from leaderboard.curve import curves, draw_curves
    from leaderboard.log import read_log

    draw_curves(curves(read_log(ROOT / "docs/lab/leaderboard-curve.jsonl")), path)


def draw_scaling(path: Path) -> None:
    from races.page import figure
    from races.scaling import read_curves

    figure(read_curves(ROOT / "docs/results/speed-scaling.csv"), path)


def used_pictures(docs: Path, address: str) -> set[str]:
    """Names of the pictures that pages refer to."""
    link = re.compile(LINK.format(address=re.escape(address)))
    texts = (path.read_text(encoding="utf-8") for path in docs.glob("**/*.md"))
    return {name for text in texts for _, name in link.findall(text)}


def draw_pictures(app, config) -> None:
    """Draw the pictures that pages refer to."""
    docs, known = Path(app.srcdir), drawings()
    used = used_pictures(docs, config.documentation_address)
    if unknown := used - known.keys():
        raise ExtensionError(
            f"no drawing for the pictures {', '.join(sorted(unknown))}; choose from {list(known)}"
        )
    sys.path.append(str(ROOT / "benchmarks"))
    (docs / FOLDER).mkdir(exist_ok=True)
    for name in sorted(used):
        known[name](docs / FOLDER / f"{name}.svg")
    close_figures()


def close_figures() -> None:
    """Close what was drawn, or the gallery would take it for pictures of its first example."""
    from matplotlib import pyplot

    pyplot.close("all")


def show_pictures(app, name: str, source: list[str]) -> None:
    """Replace links to pictures by the pictures."""
    depth = "../" * name.count("/")
    image = rf"(picture-\2)=\n![\1]({depth}{FOLDER}/\2.svg)"
    example = rf"[![\1]({depth}auto_examples/images/sphx_glr_\2_001.png)]({depth}auto_examples/\2.rst)"
    for link, shown in ((LINK, image), (EXAMPLE, example)):
        source[0] = re.sub(link.format(address=re.escape(app.config.documentation_address)), shown, source[0])


def setup(app):
    app.add_config_value("documentation_address", "", "env")
    app.connect("config-inited", draw_pictures)
    app.connect("source-read", show_pictures, priority=600)  # after links are checked
    return {"parallel_read_safe": True, "parallel_write_safe": True}
