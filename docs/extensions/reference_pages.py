"""Pages of the reference: one for each public module, with a page for each of its public names."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path

from repository_links import write
from sphinx.errors import ExtensionError

HEADING = re.compile(r"^## `(calibayes[\w.]*)`", flags=re.MULTILINE)
REFERENCE = re.compile(r":ref:`([^<`]+?) *<[^>`]+>`")
LEFT_OUT = {"__version__"}


def public_modules(docs: Path) -> list[str]:
    """The modules with a section in reference.md."""
    return HEADING.findall((docs / "reference.md").read_text(encoding="utf-8"))


def module_page(name: str) -> str:
    """The page of a module: what its docstring says, and tables of its classes, functions and other names."""
    module = importlib.import_module(name)
    public = {word: getattr(module, word) for word in getattr(module, "__all__", ()) if word not in LEFT_OUT}
    if not public:
        raise ExtensionError(f"{name} is in docs/reference.md and has no __all__")
    things = {word: thing for word, thing in public.items() if has_page(name, word, thing)}
    classes = [word for word, thing in things.items() if inspect.isclass(thing)]
    functions = [word for word, thing in things.items() if inspect.isroutine(thing)]
    others = [word for word in things if word not in {*classes, *functions}]
    parts = [f"# `{name}`", module_text(module)]
    for title, words in (("Classes", classes), ("Functions", functions), ("Constants", others)):
        parts += [f"## {title}", table(name, words)] if words else []
    return "\n\n".join(parts) + "\n"


def has_page(module: str, word: str, thing: object) -> bool:
    """Whether a name has a page in the section of this module: no module, and not already in that of `calibayes`."""
    is_in_calibayes = (
        module != "calibayes" and getattr(importlib.import_module("calibayes"), word, None) is thing
    )
    return not inspect.ismodule(thing) and not is_in_calibayes


def module_text(module: object) -> str:
    """The docstring of a module as reStructuredText: first what it is, then its examples."""
    text = inspect.cleandoc(module.__doc__ or "").replace("Examples\n--------\n", ".. rubric:: Examples\n\n")
    return f"```{{eval-rst}}\n{text}\n```"


def table(module: str, words: list[str]) -> str:
    """A table of names, each with a page of its own."""
    lines = [
        "```{eval-rst}",
        f".. currentmodule:: {module}",
        "",
        ".. autosummary::",
        "   :toctree: generated",
        "   :nosignatures:",
        "",
    ]
    return "\n".join([*lines, *(f"   {word}" for word in sorted(words, key=str.lower)), "```"])


def write_pages(app, config) -> None:
    folder = Path(app.srcdir)
    shutil.rmtree(folder / "api", ignore_errors=True)  # pages of names that are gone
    for name in public_modules(folder):
        write(folder / "api" / f"{name}.md", module_page(name))


def plain_references(app, what, name, thing, options, lines: list[str]) -> None:
    """Inherited docstrings refer to sections of other projects: keep the words only."""
    lines[:] = [REFERENCE.sub(r"\1", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", plain_references)
    app.connect("config-inited", write_pages)  # before autosummary looks for what to generate
    return {"parallel_read_safe": True, "parallel_write_safe": True}
