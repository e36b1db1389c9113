"""Links of the pages, as the site needs them.

On a code host a page links to files of the repository: `[records](decisions/README.md)`, `[tests](../tests/cases.py)`. On the
site, links to pages of the site are left to MyST, which checks them; links to other files become links to the repository. A
link to a file that does not exist, or to a heading that a file outside the site does not have, is a warning. Links to
other sites are not followed; `external-links.txt` in the output folder lists them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from posixpath import normpath, relpath

ROOT = Path(__file__).resolve().parents[2]
COPIED = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
}
"""Files of the repository -> the pages of the site with their text."""
LINK = re.compile(r"(?<!\\)(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`]+`", flags=re.MULTILINE | re.DOTALL)
"""Code: blocks, and words in backticks."""
EXTERNAL = re.compile(r"https?://[^\s)>\"'`\]]+")


def site_text(text: str, origin: str, page: str, address: str) -> tuple[str, list[str]]:
    """Text of a page with the links of the site, and what is wrong with its links.

    Parameters
    ----------
    origin, page : str
        Path in the repository of the file with this text; path in `docs/` of the page that shows it.
    address : str
        Address of the repository.
    """
    problems: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        target, problem = site_link(match[2], origin, page, address)
        problems.extend([problem] if problem else [])
        return f"{match[1]}{target}{match[3]}"

    pieces, end = [], 0
    for fence in FENCE.finditer(text):
        pieces += [LINK.sub(replaced, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, LINK.sub(replaced, text[end:])]), problems


def site_link(target: str, origin: str, page: str, address: str) -> tuple[str, str]:
    """Target of a link on the site, and what is wrong with it ("" if nothing is)."""
    if re.match(r"[a-z]+:|#", target):
        return target, ""
    path, _, anchor = target.partition("#")
    file = normpath(os.path.join(os.path.dirname(origin), path))
    shown = COPIED.get(file, file.removeprefix("docs/") if file.startswith("docs/") else None)
    if not (ROOT / file).exists():
        return target, f"{origin} links to {target}, and there is no file {file}"
    if shown is not None and not (ROOT / file).is_dir():
        return relpath(shown, os.path.dirname(page) or ".") + ("#" + anchor if anchor else ""), ""
    problem = (
        "" if has_anchor(ROOT / file, anchor) else f"{origin} links to {target}, which has no such heading"
    )
    return f"{address}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{target_of(file, anchor)}", problem


def target_of(file: str, anchor: str) -> str:
    return f"{file}#{anchor}" if anchor else file


def has_anchor(path: Path, anchor: str) -> bool:
    """Whether a Markdown file has the heading with this anchor; true for files of other kinds and without an anchor."""
    if not anchor or path.suffix != ".md":
        return True
    headings = re.findall(r"^#+ +(.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return anchor in {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    """Anchor of a heading, as code hosts have it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def copy_files(app, config) -> None:
    """Write the pages of `COPIED`; one whose text has not changed keeps its time, so that it is not built again."""
    for file, page in COPIED.items():
        if (ROOT / file).exists():
            text, problems = site_text(
                (ROOT / file).read_text(encoding="utf-8"), file, page, config.repository_address
            )
            warn(problems)
            write(Path(app.srcdir) / page, text)


def write(path: Path, text: str) -> None:
    """Write a file if its text differs."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read_source(app, name: str, source: list[str]) -> None:
    """Links of a page of `docs/`, before it is parsed."""
    page = app.env.doc2path(name, base=False).as_posix()
    if page.endswith(".md") and page not in COPIED.values() and not page.startswith("api/"):
        address = app.config.repository_address
        source[0], problems = site_text(source[0], f"docs/{page}", page, address)
        warn(problems)


def warn(problems: list[str]) -> None:
    from sphinx.util.logging import getLogger

    for problem in problems:
        getLogger(__name__).warning(problem)


def list_external_links(app, error) -> None:
    """Write the links to other sites, with the pages that have them."""
    if error is not None or app.builder.format != "html":
        return
    pages: dict[str, set[str]] = {}
    for name in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(name))
        for link in EXTERNAL.findall(path.read_text(encoding="utf-8")) if path.suffix == ".md" else []:
            pages.setdefault(link.rstrip(".,;"), set()).add(name)
    lines = [f"{link}  ({', '.join(sorted(names))})" for link, names in sorted(pages.items())]
    (Path(app.outdir) / "external-links.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} links to other sites, which were not followed: {app.outdir}/external-links.txt")


def setup(app):
    app.add_config_value("repository_address", "", "env")
    app.connect("config-inited", copy_files)
    app.connect("source-read", read_source)
    app.connect("build-finished", list_external_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
