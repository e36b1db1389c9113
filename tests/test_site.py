"""The documentation site: links, lists of pages, pictures. `check.py --docs` builds the site itself."""

import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import calibayes
from calibayes.reproduction.result_tables import (
    BoxNumbers,
    BoxSummaries,
    CurveNumbers,
    read_numbers,
    to_json,
)

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/repository"
MOST_BYTES = 65_536
"""Larger pictures are drawn from numbers while the site is built."""


@pytest.fixture
def extensions(monkeypatch):
    """The modules of docs/extensions that need no Sphinx."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    import internal_members
    import page_lists
    import repository_links

    yield page_lists, repository_links, internal_members
    for name in ("page_lists", "repository_links", "internal_members"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("target", "origin", "page", "expected"),
    [
        ("scale.md#dask", "docs/start.md", "start.md", "scale.md#dask"),
        (
            "../../CONTRIBUTING.md#a-rule",
            "docs/how-to/extend.md",
            "how-to/extend.md",
            "../project/contributing.md#a-rule",
        ),
        ("docs/scale.md", "CONTRIBUTING.md", "project/contributing.md", "../scale.md"),
        ("../tests/cases.py", "docs/start.md", "start.md", f"{ADDRESS}/blob/main/tests/cases.py"),
        ("../README.md#use", "docs/start.md", "start.md", f"{ADDRESS}/blob/main/README.md#use"),
        ("https://semver.org", "docs/start.md", "start.md", "https://semver.org"),
        ("#below", "docs/start.md", "start.md", "#below"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_to_the_repository(extensions, target, origin, page, expected):
    assert extensions[1].site_link(target, origin, page, ADDRESS) == (expected, "")


@pytest.mark.parametrize("target", ["no-such-page.md", "../README.md#no-such-heading"])
def test_a_link_to_nowhere_is_a_problem(extensions, target):
    text = f"See [there]({target}), `[code](no-link.md)`.\n\n```python\n[code](no-link.md)\n```\n"
    _, problems = extensions[1].site_text(text, "docs/start.md", "start.md", ADDRESS)
    assert len(problems) == 1
    assert target in problems[0]


def test_patterns_without_a_page_are_left_out_of_lists(extensions, tmp_path):
    (tmp_path / "scale.md").touch()
    text = "```{toctree}\n:glob:\n\n/scale*\n/nothing*\n```"
    left = extensions[0].without_empty_patterns(text, tmp_path / "how-to", tmp_path)
    assert left == "```{toctree}\n:glob:\n\n/scale*\n```"


def test_internal_members_are_those_of_estimators(extensions):
    internal = extensions[2]
    found = {
        member for name in calibayes.__all__ for member in internal.internal_members(f"calibayes.{name}")
    }
    assert found == set(internal.INTERNAL)
    assert not found & {*dir(ClassifierMixin), *dir(BaseEstimator)}
    assert internal.internal_members("calibayes.families.Gaussian") == []


def test_no_picture_is_large():
    assert [path.name for path in (ROOT / "docs").glob("*.svg") if path.stat().st_size > MOST_BYTES] == []


@pytest.mark.parametrize(
    "numbers",
    [
        BoxNumbers({"a": {"one": [0.1, 0.2], "two": [0.3]}}, y="error"),
        BoxSummaries({"a": {"one": [0.1, 0.2, 0.3, 0.4, 0.5, 0.9]}}, y="error"),
        CurveNumbers({"a": {"": [[1.0, 2.0], [0.5, 0.25]]}}, x="rows", y="loss", columns=1),
    ],
)
def test_numbers_of_pictures_are_written_and_read(numbers, tmp_path):
    path = tmp_path / "numbers.json"
    path.write_text(to_json(numbers), encoding="utf-8")
    assert read_numbers(path) == numbers
    assert numbers.draw().axes


def test_numbers_of_an_unknown_kind_are_refused(tmp_path):
    path = tmp_path / "numbers.json"
    path.write_text('{"kind": "pie", "panels": {}}', encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"numbers.json has numbers of kind 'pie'; expected one of boxes, summaries, curves"
    ):
        read_numbers(path)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda path: path.stem
)
def test_kept_numbers_can_be_drawn(path):
    assert read_numbers(path).panels


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_every_example_of_the_gallery_has_a_title_and_a_picture(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""\n')
    assert "plt.show()" in text
    compile(text, path.name, "exec")
