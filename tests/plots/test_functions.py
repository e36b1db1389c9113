"""Functions that draw without a display: texts of users are shown unchanged."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from calibayes import MixtureDiscriminantAnalysis, measure_dependence
from calibayes.dependence import Pearson
from calibayes.plots import boxes, panels, plot_components, plot_dependence

CLASS, COLUMN = "_$x$ class", "$a$_1 \\frac{"
CURVE = ([0, 1, 2], [3.0, 2.0, 1.0])


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=[COLUMN, "_b"])
    return X, np.where(np.arange(80) % 2, CLASS, "other")


def of_components():
    model = MixtureDiscriminantAnalysis(n_components=2, rule="ml", random_state=0)
    return plot_components(model.fit(*table())).figure


@pytest.mark.parametrize(
    ("draw", "shown"),
    [
        (of_components, [CLASS, COLUMN]),
        (
            lambda: plot_dependence(measure_dependence(*table(), measure=Pearson()), CLASS).figure,
            [CLASS, COLUMN],
        ),
        (lambda: panels({COLUMN: {CLASS: CURVE}}, columns=1, x="x", y="y"), [CLASS, COLUMN]),
        (lambda: boxes({COLUMN: {CLASS: [1.0, 2.0]}}, y="error"), [CLASS, COLUMN]),
    ],
    ids=["components", "dependence", "panels", "boxes"],
)
def test_dollar_signs_and_underscores_are_shown(draw, shown):
    figure = draw()
    figure.savefig(io.BytesIO(), format="png", dpi=40)  # a wrong formula would be an error
    texts = [text.get_text() for text in figure.findobj(Text)]
    for name in shown:
        assert any(name.replace("$", r"\$") in text for text in texts)


def test_unused_panels_are_empty():
    figure = panels({name: {"curve": CURVE} for name in "abc"}, columns=2, x="x", y="y")
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
