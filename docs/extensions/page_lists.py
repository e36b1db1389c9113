"""Lists of pages that are made while the site is built."""

from __future__ import annotations

import re
from pathlib import Path

MARKS = {
    "<!-- The site lists the pages of the modules here. -->": "```{toctree}\n:maxdepth: 1\n:glob:\n\napi/calibayes*\n```",
    "<!-- The site lists the pages of this folder here. -->": "```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```",
}
"""Marks on pages, which code hosts do not show -> lists of pages."""
LIST = re.compile(r"```\{toctree\}\n.*?```", flags=re.DOTALL)


def show_lists(app, name: str, source: list[str]) -> None:
    """Replace the marks, and leave patterns without a page out of lists: pages may come with a part that is not there."""
    for mark, pages in MARKS.items():
        source[0] = source[0].replace(mark, pages)
    folder = (Path(app.srcdir) / name).parent
    source[0] = LIST.sub(lambda match: without_empty_patterns(match[0], folder, Path(app.srcdir)), source[0])


def without_empty_patterns(text: str, folder: Path, docs: Path) -> str:
    lines = [line for line in text.splitlines() if not line.endswith("*") or has_page(line, folder, docs)]
    return "\n".join(lines)


def has_page(pattern: str, folder: Path, docs: Path) -> bool:
    base, relative = (docs, pattern[1:]) if pattern.startswith("/") else (folder, pattern)
    return any(path.suffix in {".md", ".rst"} for path in base.glob(relative))


def setup(app):
    app.connect("source-read", show_lists)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
