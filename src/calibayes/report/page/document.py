"""The complete page: head, navigation, sections."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence

from calibayes.report.page.markup import Child, Markup, element, trusted
from calibayes.report.page.parts import Section
from calibayes.report.page.script import SCRIPT
from calibayes.report.page.style import STYLE


def policy() -> str:
    """The Content-Security-Policy of the page: only its own style and script are allowed."""
    style, script = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )


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
    body = element(
        "body",
        element("a", "Skip to content", href="#content", class_="skip"),
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
    """The bar at the top: the name of the package, and a switch of the color scheme that needs no script."""
    switch = element("input", type="checkbox", id="scheme", role="switch")
    return element(
        "header",
        element("span", "calibayes report", class_="brand"),
        element("label", switch, element("span", "Switch light and dark"), class_="switch"),
        class_="bar",
    )


def _navigation(sections: Sequence[Section]) -> Markup:
    contents = element(
        "ol", [element("li", element("a", section.title, href=f"#{section.key}")) for section in sections]
    )
    return element(
        "nav",
        element("details", element("summary", "On this page"), contents, class_="narrow"),
        element("div", element("p", "On this page"), contents, class_="wide"),
        aria_label="On this page",
    )


def framed(page: str, title: str, height: int = 900) -> str:
    """An iframe with the page, for a notebook: styles and scripts of page and notebook do not affect each other."""
    return element(
        "iframe",
        srcdoc=page,
        title=title,
        sandbox="allow-scripts allow-popups",
        width="100%",
        height=str(height),
        frameborder="0",
    ).html
