"""The complete page: head, navigation, sections."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence

from calibayes.report.page.markup import Child, Markup, element, together, trusted
from calibayes.report.page.parts import Section
from calibayes.report.page.script import SCRIPT
from calibayes.report.page.style import STYLE


def policy() -> str:
    """The Content-Security-Policy of the page: its own style and script, and nothing from anywhere else."""
    style, script = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, opening: Child, sections: Sequence[Section], closing: Child) -> str:
    """The page as text."""
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
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        _bar(),
        element(
            "div",
            _navigation(sections),
            element("main", opening, [section.markup() for section in sections], id="content", tabindex="-1"),
            class_="columns",
        ),
        element("footer", closing),
        element("script", trusted(SCRIPT)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _bar() -> Markup:
    """The line at the top: the name of the package and the switch of the color scheme, which needs no script."""
    switch = element("input", type="checkbox", id="scheme", role="switch")
    return element(
        "header",
        element("span", "calibayes report", class_="brand"),
        element("label", switch, element("span", "Light / dark"), class_="switch"),
        class_="bar",
    )


def _navigation(sections: Sequence[Section]) -> Markup:
    items = [element("li", element("a", section.title, href=f"#{section.key}")) for section in sections]
    contents = element("ol", items)
    return element(
        "nav",
        element("details", element("summary", "On this page"), contents, class_="narrow"),
        element("div", element("p", "On this page"), element("ol", items), class_="wide"),
        aria_label="On this page",
    )


def framed(page: str, title: str, height: int = 900) -> str:
    """A page inside another one, such as a notebook, whose styles and scripts cannot reach it, nor it them."""
    return together(
        element(
            "iframe",
            srcdoc=page,
            title=title,
            sandbox="allow-scripts allow-popups",
            width="100%",
            height=str(height),
            frameborder="0",
        )
    ).html
