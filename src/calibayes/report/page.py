"""The complete page: head, navigation, sections."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib import resources

from calibayes.report.markup import Child, Markup, Section, element, trusted


def _text_of(name: str) -> str:
    """The text of a file in this folder, after a line break."""
    return "\n" + (resources.files("calibayes.report") / name).read_text("utf-8")


SCRIPT = _text_of("page.js")
"""Search in the list of columns, and the copy button. Everything else works without it."""
LIGHT = """
  --ground: #fafaf8; --surface: #ffffff; --ink: #1c2128; --soft: #57606d; --line: #e2e4e8; --wash: #f1f3f5;
  --accent: #0a6c8d; --accent-wash: #e3f1f6; --warn: #b4450b; --warn-wash: #fdf0e7;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5568f; --c4: #c08a00; --c5: #3a97d4; --other: #8a93a0;
  color-scheme: light;
"""
DARK = """
  --ground: #13161a; --surface: #1a1e24; --ink: #e4e7eb; --soft: #a0a9b5; --line: #2d343d; --wash: #222830;
  --accent: #62bfe0; --accent-wash: #16303b; --warn: #f0a06a; --warn-wash: #33231a;
  --c0: #5aa9e6; --c1: #ee8a4c; --c2: #3fc79a; --c3: #e39cc4; --c4: #ecc14f; --c5: #a5d8f7; --other: #818b99;
  color-scheme: dark;
"""
STYLE = (
    f":root {{{LIGHT}}}\n:root:has(#scheme:checked) {{{DARK}}}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{{DARK}}} :root:has(#scheme:checked) {{{LIGHT}}} }}\n{_text_of('page.css')}"
)
"""The style sheet. Colors are variables, which pictures use as well; the switch exchanges the two color schemes."""


# -- The complete page: head, navigation, sections -----------------------------------------------------------


def policy() -> str:
    """The Content-Security-Policy of the page: only its own style and script are allowed."""
    style, script = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT))
    own = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def document(title: str, opening: Child, sections: Sequence[Section], closing: Child) -> str:
    """The complete HTML document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", trusted(STYLE)),
    )
    content = [opening, [section.markup() for section in sections]]
    main = element("main", content, id="content", tabindex="-1")
    body = element(
        "body",
        element("a", "Skip to content", href="#content", class_="skip"),
        _bar(),
        element("div", _navigation(sections), main, class_="columns"),
        element("footer", closing),
        element("script", trusted(SCRIPT)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _bar() -> Markup:
    """The bar at the top: the name of the package, and a switch of the color scheme that needs no script."""
    switch = element("input", type="checkbox", id="scheme", role="switch")
    return element(
        "header",
        element("span", "calibayes report", class_="brand"),
        element("label", switch, element("span", "Switch light and dark"), class_="switch"),
        class_="bar",
    )


def _navigation(sections: Sequence[Section]) -> Markup:
    links = [element("a", section.title, href=f"#{section.key}") for section in sections]
    contents = element("ol", [element("li", link) for link in links])
    return element(
        "nav",
        element("details", element("summary", "On this page"), contents, class_="narrow"),
        element("div", element("p", "On this page"), contents, class_="wide"),
        aria_label="On this page",
    )


def framed(page: str, title: str) -> str:
    """An iframe with the page, for a notebook: styles and scripts of page and notebook do not affect each other."""
    options = {"sandbox": "allow-scripts allow-popups", "width": "100%", "height": "900", "frameborder": "0"}
    return element("iframe", srcdoc=page, title=title, **options).html
