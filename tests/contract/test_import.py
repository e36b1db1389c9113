"""What `import calibayes` loads, and what it leaves for later."""

from __future__ import annotations

import subprocess
import sys

import pytest

import calibayes


def modules_after(statement: str) -> set[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_a_bare_import_leaves_what_few_programs_use() -> None:
    plain, whole = modules_after("import calibayes"), modules_after("from calibayes import *")
    later = {
        "calibayes.datasets",
        "calibayes.ensemble.bayes",
        "sklearn.linear_model",
        "urllib.request",
    }
    assert not later & plain
    assert later < whole


def test_every_public_name_is_there_and_listed() -> None:
    assert all(getattr(calibayes, name) is not None for name in calibayes.__all__)
    assert set(calibayes.__all__) | {"__file__", "__doc__"} <= set(dir(calibayes))


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NoSuchNB'"):
        calibayes.NoSuchNB  # noqa: B018
