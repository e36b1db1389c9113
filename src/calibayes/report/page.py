"""The complete page: head, navigation, sections."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence

from calibayes.report.markup import Child, Markup, Section, element, trusted

# -- The script of the page: search in the list of columns, and the copy button. Everything else works without it

SCRIPT = """
"use strict";
for (const field of document.querySelectorAll("[data-filters]")) {
  const rows = [...document.querySelectorAll("#" + field.dataset.filters + " tbody tr")];
  const status = document.getElementById(field.id + "-count");
  field.closest(".search").hidden = false;
  field.addEventListener("input", () => {
    const terms = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !terms.every((term) => text.includes(term));
      shown += row.hidden ? 0 : 1;
    }
    status.textContent = terms.length ? shown + " of " + rows.length : "";
  });
}
for (const button of document.querySelectorAll("[data-copies]")) {
  const code = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });
}
"""


# -- The style sheet of the page. Colors are variables, which pictures use as well ---------------------------

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
_RULES = """
*, *::before, *::after { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1.25rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif; }
a { color: var(--accent); text-underline-offset: 0.15em; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -999rem; padding: 0.6rem 1rem; background: var(--accent); color: var(--surface); z-index: 3; }
.skip:focus { left: 0.5rem; top: 0.5rem; }
.bar { display: flex; justify-content: space-between; align-items: center; gap: 1rem; max-width: 82rem; margin: 0 auto;
  padding: 0.9rem 1.25rem 0; color: var(--soft); font-size: 0.875rem; }
.brand { font-weight: 600; letter-spacing: 0.01em; color: var(--accent); }
.switch { display: inline-flex; align-items: center; gap: 0.5rem; cursor: pointer; padding: 0.3rem 0; }
.switch input { appearance: none; width: 2.25rem; height: 1.25rem; margin: 0; border-radius: 1rem; background: var(--line);
  border: 1px solid var(--other); position: relative; cursor: pointer; flex: none; }
.switch input::after { content: ""; position: absolute; left: 2px; top: 2px; width: 0.875rem; height: 0.875rem;
  border-radius: 50%; background: var(--soft); }
.switch input:checked { background: var(--accent-wash); border-color: var(--accent); }
.switch input:checked::after { left: auto; right: 2px; background: var(--accent); }
.columns { max-width: 82rem; margin: 0 auto; padding: 0 1.25rem; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: 0.3rem 0; color: var(--soft); text-decoration: none; font-size: 0.9rem; line-height: 1.4; }
nav a:hover { color: var(--accent); text-decoration: underline; }
nav .wide { display: none; }
nav .narrow { margin: 1rem 0 0; }
nav .narrow a { padding: 0.5rem 0; font-size: 1rem; }
main { min-width: 0; padding-bottom: 3rem; }
h1 { font-size: clamp(1.7rem, 1.2rem + 2vw, 2.4rem); line-height: 1.2; letter-spacing: -0.02em; margin: 1.75rem 0 0.5rem;
  overflow-wrap: anywhere; font-weight: 650; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -0.01em; margin: 0 0 0.9rem; font-weight: 650; }
h3 { font-size: 1.05rem; line-height: 1.35; margin: 2.25rem 0 0.6rem; font-weight: 650; }
h4, figure h3 { font-size: 0.95rem; line-height: 1.35; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
section { margin-top: 3.25rem; padding-top: 2.25rem; border-top: 1px solid var(--line); }
p { margin: 0 0 0.9rem; max-width: 68ch; overflow-wrap: break-word; }
.lead { font-size: 1.125rem; color: var(--soft); margin-bottom: 1.5rem; }
.note { font-size: 0.875rem; color: var(--soft); }
ul { padding-left: 1.2rem; max-width: 68ch; }
li { margin: 0.35rem 0; overflow-wrap: anywhere; }
.name { overflow-wrap: anywhere; unicode-bidi: isolate; }
code { font: 0.9em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; background: var(--wash);
  padding: 0.1em 0.3em; border-radius: 4px; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(10.5rem, 42vw), 1fr)); gap: 0.75rem; margin: 1.5rem 0; }
.cards > div { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 0.85rem 1rem; min-width: 0; }
.cards dt { font-size: 0.8rem; line-height: 1.35; color: var(--soft); }
.cards dd { margin: 0.15rem 0 0; font-size: 1.45rem; line-height: 1.25; font-weight: 600; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.cards small { display: block; font-size: 0.8rem; font-weight: 400; line-height: 1.4; color: var(--soft); margin-top: 0.25rem; }
.scroll { overflow-x: auto; margin: 0.75rem 0 1rem; border: 1px solid var(--line); border-radius: 10px; background: var(--surface); }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0.7rem 0.9rem 0.3rem; font-size: 0.875rem; color: var(--soft); }
th, td { text-align: left; padding: 0.45rem 0.9rem; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: 0.8rem; white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 500; max-width: 22rem; }
td { max-width: 26rem; }
th.figure, td.figure { text-align: right; white-space: nowrap; min-width: 0; }
tr.chosen > * { background: var(--accent-wash); }
figure { margin: 0; background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; min-width: 0; }
figcaption { font-size: 0.85rem; line-height: 1.5; color: var(--soft); margin-top: 0.6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1rem; margin: 1rem 0; }
.small { grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
figure h4 + p, figure h4 + .facts { margin-top: 0.2rem; }
.facts { font-size: 0.8rem; line-height: 1.45; color: var(--soft); margin: 0 0 0.5rem; }
details { margin: 0.6rem 0; }
summary { cursor: pointer; color: var(--accent); font-size: 0.9rem; padding: 0.2rem 0; }
figure details { margin: 0.5rem 0 0; }
figure summary { font-size: 0.8rem; }
details .scroll { max-height: 30rem; overflow: auto; }
.tall .scroll { max-height: 34rem; overflow: auto; }
.tall thead th { position: sticky; top: 0; background: var(--surface); box-shadow: 0 1px 0 var(--line); }
figure .scroll { border-radius: 6px; }
figure th, figure td { padding: 0.3rem 0.6rem; }
.search { margin: 0.75rem 0; display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; font-size: 0.9rem; }
.search input { font: inherit; padding: 0.45rem 0.7rem; border: 1px solid var(--other); border-radius: 8px; background: var(--surface);
  color: var(--ink); min-width: 0; width: 18rem; max-width: 100%; }
.search[hidden], [hidden] { display: none; }
.key { display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; list-style: none; padding: 0; margin: 0.5rem 0; font-size: 0.85rem; max-width: none; }
.key li { display: inline-flex; align-items: center; gap: 0.4rem; margin: 0; min-width: 0; }
td ul.cells { list-style: none; margin: 0; padding: 0; max-width: none; }
td ul.cells li { margin: 0; }
td .name, th .name { overflow-wrap: break-word; }
td .name { word-break: normal; }
main dl:not(.cards) dt { font-weight: 600; }
main dl:not(.cards) dd { margin: 0 0 0.8rem; max-width: 68ch; overflow-wrap: anywhere; }
.cards .text { font-size: 1.1rem; }
.code + button { margin: 0 0 1rem; }
.key svg { width: 0.8rem; height: 0.8rem; flex: none; }
.finding { background: var(--surface); border: 1px solid var(--line); border-left: 4px solid var(--warn); border-radius: 8px;
  padding: 0.9rem 1.1rem; margin: 0.8rem 0; }
.finding h3 { margin: 0 0 0.35rem; }
.finding p { margin-bottom: 0.5rem; }
.finding .label { color: var(--warn); font-variant-numeric: tabular-nums; margin-right: 0.5rem; }
.passed { color: var(--soft); font-size: 0.9rem; }
.code { position: relative; margin: 0.75rem 0; }
pre { margin: 0; padding: 1.1rem 1.2rem; overflow-x: auto; background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
pre code { background: none; padding: 0; font-size: 0.85rem; line-height: 1.6; overflow-wrap: normal; }
button { font: inherit; font-size: 0.85rem; padding: 0.35rem 0.8rem; border-radius: 8px; border: 1px solid var(--accent);
  background: var(--surface); color: var(--accent); cursor: pointer; }
button:hover { background: var(--accent-wash); }
.row { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; min-width: 0; }
footer { max-width: 82rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; color: var(--soft); font-size: 0.85rem; border-top: 1px solid var(--line); }
svg { display: block; width: 100%; height: auto; overflow: visible; max-width: 25rem; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg .strong { fill: var(--ink); font-weight: 600; }
svg .ink { fill: var(--ink); }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .axis { stroke: var(--other); stroke-width: 1; fill: none; }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; }
svg .dashed { stroke: var(--other); stroke-width: 1.2; stroke-dasharray: 4 3; fill: none; }
svg .band { fill: var(--accent-wash); }
svg .accent { fill: var(--accent); }
svg .muted { fill: var(--other); }
svg .negative { fill: var(--warn); }
svg .accent-line { stroke: var(--accent); stroke-width: 2; fill: none; stroke-linejoin: round; }
svg .whisker { stroke: var(--accent); stroke-width: 1.6; fill: none; }
svg .muted-line { stroke: var(--other); stroke-width: 1.6; fill: none; }
svg .warn-line { stroke: var(--warn); stroke-width: 1.6; fill: none; stroke-dasharray: 3 3; }
svg .paper { stroke: var(--surface); stroke-width: 1.5; }
svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); } svg .f3 { fill: var(--c3); }
svg .f4 { fill: var(--c4); } svg .f5 { fill: var(--c5); } svg .f6 { fill: var(--other); }
svg .s0, svg .s1, svg .s2, svg .s3, svg .s4, svg .s5, svg .s6 { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); } svg .s2 { stroke: var(--c2); } svg .s3 { stroke: var(--c3); }
svg .s4 { stroke: var(--c4); } svg .s5 { stroke: var(--c5); } svg .s6 { stroke: var(--other); }
svg .soft { fill-opacity: 0.14; }
svg .cell { fill: var(--accent); }
@media (min-width: 66rem) {
  .columns { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 3.5rem; }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 2.4rem 0 1.5rem; }
  nav .wide { display: block; }
  nav .wide p { font-weight: 600; font-size: 0.85rem; margin-bottom: 0.4rem; }
  nav .narrow { display: none; }
}
@media (max-width: 40rem) {
  .cards > div:first-child { grid-column: span 2; }
  th, td { padding: 0.4rem 0.6rem; }
  .stack, .stack tbody, .stack caption { display: block; }
  .stack thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .stack tr { display: block; border-top: 1px solid var(--line); padding: 0.5rem 0; }
  .stack th.figure, .stack td.figure, .stack th, .stack td { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.6rem;
    border: 0; padding: 0.15rem 0.9rem; text-align: left; white-space: normal; max-width: none; }
  .stack [data-label]::before { content: attr(data-label); color: var(--soft); font-weight: 400; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print { nav, .bar, .search, button { display: none !important; } section { break-inside: avoid-page; }
  .columns { display: block; } }
"""
STYLE = (
    f":root {{{LIGHT}}}\n:root:has(#scheme:checked) {{{DARK}}}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{{DARK}}} :root:has(#scheme:checked) {{{LIGHT}}} }}\n{_RULES}"
)
"""The style sheet; the switch exchanges the two color schemes."""


# -- The complete page: head, navigation, sections -----------------------------------------------------------


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
