"""Figures are known to pyplot where a person would expect them on the screen."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
%s
from calibayes import TreeAugmentedNB
from calibayes.datasets import load_penguins
from calibayes.plots import plot_tree
penguins = load_penguins()
axes = plot_tree(TreeAugmentedNB().fit(penguins.data, penguins.target))
pyplot = sys.modules.get("matplotlib.pyplot")
print(pyplot is not None and axes.figure.number in pyplot.get_fignums())
"""


NOTEBOOK = """
sys.modules["IPython"] = shell = type(sys)("IPython")
shell.get_ipython, shell.version_info = lambda: None, (9, 0)
"""


@pytest.mark.parametrize(
    ("setup", "is_shown"),
    [
        ("", False),
        ("import matplotlib.pyplot", True),
        (NOTEBOOK, True),
    ],
    ids=["script", "pyplot", "notebook"],
)
def test_figures_of_notebooks_and_pyplot_users_are_shown(setup, is_shown):
    script = SCRIPT % setup
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"MPLBACKEND": "agg", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(is_shown)
