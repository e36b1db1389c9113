"""Actions of the workflows are named by the hash of a commit: a tag can be moved to other code."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".github/workflows"
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}\s+# v\d+(\.\d+)*")
if not FOLDER.is_dir():
    pytest.skip("a source distribution has no workflows", allow_module_level=True)


def actions(text):
    """What a workflow uses, but for actions and workflows of this repository."""
    used = re.findall(r"^[\s-]*uses:\s*(.+?)\s*$", text, re.MULTILINE)
    return [action for action in used if not action.startswith("./")]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.y*ml")), ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit(path):
    used = actions(path.read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_an_action_by_tag_or_branch_is_found():
    text = "steps:\n  - uses: a/b@v6\n  - name: c\n    uses: a/c/d@main # v1\n  - uses: ./local\n"
    assert [action for action in actions(text) if not PINNED.fullmatch(action)] == [
        "a/b@v6",
        "a/c/d@main # v1",
    ]
