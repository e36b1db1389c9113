"""Decision boundaries: what is drawn, and messages for arguments in the wrong order."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from sklearn.datasets import load_iris

from calibayes import GaussianNB
from calibayes.plots import plot_boundaries

FRAME = load_iris(as_frame=True)
X, y = FRAME.data.iloc[:, :2], FRAME.target


def test_rows_of_a_frame_and_a_score_are_drawn():
    is_first = np.asarray(y == 0)
    model = GaussianNB(rule="ml").fit(X.to_numpy(), is_first)
    axes = plot_boundaries(X, is_first, {"ml": model.decision_function})
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ml"]
    assert sum(len(points.get_offsets()) for points in axes.collections[:2]) == len(X)


def test_any_number_of_classes_and_scores_is_drawn():
    labels = np.arange(len(X)) % 6
    scores = {f"_$s$ {place}": lambda rows, place=place: rows[:, 0] - 5 - place / 5 for place in range(5)}
    axes = plot_boundaries(X, labels, scores)
    points = [artist for artist in axes.collections if isinstance(artist, PathCollection)]
    assert sum(len(artist.get_offsets()) for artist in points) == len(X)
    shown = [text.get_text().strip().replace(r"\$", "$") for text in axes.get_legend().get_texts()]
    assert shown == list(scores)


def test_wrong_arguments_end_with_the_expected_ones():
    model = GaussianNB(rule="ml").fit(X.to_numpy(), y)
    order = r"plot_boundaries\(columns, target, scores\)"
    with pytest.raises(ValueError, match=f"columns must be an array.* got GaussianNB.*{order}"):
        plot_boundaries(model, X, y)
    with pytest.raises(ValueError, match=f"columns must be an array.*shape \\(150, 3\\).*{order}"):
        plot_boundaries(np.ones((150, 3)), y, {"ml": model.decision_function})
    with pytest.raises(ValueError, match=f"scores must be a dictionary.*got GaussianNB.*{order}"):
        plot_boundaries(X, y, model)
    with pytest.raises(ValueError, match=f"target must have one label.*{order}"):
        plot_boundaries(X, y[:5], {"ml": model.decision_function})
    with pytest.raises(ValueError, match=r"scores\['ml'\] must return one number for each row.*\(40000, 3\)"):
        plot_boundaries(X, y, {"ml": model.decision_function})
