"""What holds for every display, as for those of scikit-learn."""

import builtins
import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression

from calibayes import GaussianNB, plots
from calibayes.plots import (
    CostDisplay,
    CoverageDisplay,
    HistoryDisplay,
    LiftDisplay,
    ReasonsDisplay,
    ReliabilityDisplay,
    plot_overall,
    plot_reasons,
)
from calibayes.plots.display import Display
from tests.plots.display_cases import CASES, COLUMNS, OTHER, WEIRD, model, rows


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    mpl.use("agg")
    pyplot.close("all")
    yield
    pyplot.close("all")


def made(case, frame=True, **options):
    *_, X, y = rows(frame)
    return case.make(model(frame), X, y, **options)


def texts(display):
    """All texts as they are shown: without the backslashes of dollar signs."""
    display.figure_.savefig(io.BytesIO(), format="png", dpi=40)  # a wrong formula would be an error
    return [text.get_text().replace(r"\$", "$") for text in display.figure_.findobj(Text)]


def artists(display, case):
    found = [getattr(display, name) for name in case.artists]
    return [artist for one in found for artist in (one if isinstance(one, list | tuple) else [one])]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_display_is_drawn_on_given_axes_or_on_a_new_figure(case):
    axes = Figure().subplots()
    given = made(case, ax=axes)
    assert given.ax_ is axes
    assert given.figure_ is axes.figure
    assert pyplot.get_fignums() == []
    own = made(case)
    assert isinstance(own, Display)
    assert own.figure_ is own.ax_.figure is not axes.figure
    assert len(pyplot.get_fignums()) == 1
    again = own.plot(ax=axes)
    assert again is own
    assert own.ax_ is axes


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_artists_names_and_options_are_those_of_the_display(case):
    display = made(case, **case.options)
    drawn = artists(display, case)
    assert drawn
    assert all(artist is not None for artist in drawn)
    assert any(case.shows in text for text in texts(display))
    colors = [to_rgba("green")]
    found = [
        to_rgba(np.atleast_1d(color)[0] if np.ndim(color) == 2 else color)
        for artist in display.ax_.get_children()
        for getter in ("get_color", "get_facecolor")
        if hasattr(artist, getter) and not isinstance(artist, Text)
        for color in [getattr(artist, getter)()]
        if np.ndim(color) != 2 or len(color)
    ]
    assert set(colors) <= set(found)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_frames_and_arrays_are_drawn_alike(case):
    """Names of columns differ; everything else is the same."""
    names = dict(zip(COLUMNS, ("x0", "x1", "x2"), strict=True))
    assert [names.get(text, text) for text in texts(made(case, True))] == texts(made(case, False))


def test_every_display_has_a_case():
    classes = {name for name in plots.__all__ if name.endswith("Display")}
    assert classes == {type(made(case)).__name__ for case in CASES.values()}


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    def refuse(name, *given, **named):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *given, **named)

    real = builtins.__import__
    monkeypatch.setattr("calibayes.plots.axes.import_module", lambda name: refuse(name))
    with pytest.raises(ImportError, match=r"pip install 'calibayes\[plots\]'"):
        made(CASES["reliability"])


class TestValues:
    def test_reliability_of_predictions_is_that_of_a_count(self):
        said = np.repeat([0.2, 0.8], 50)
        true = np.r_[np.arange(50) < 10, np.arange(50) < 30]
        display = ReliabilityDisplay.from_predictions(true, said, n_bins=2)
        assert display.prob_pred.tolist() == pytest.approx([0.2, 0.8])
        assert display.prob_true.tolist() == pytest.approx([0.2, 0.6])
        assert display.calibration_error == pytest.approx(0.1)
        assert (display.lower < display.prob_true).all()
        assert (display.prob_true < display.upper).all()
        weighted = ReliabilityDisplay.from_predictions(true, said, n_bins=2, sample_weight=1.0 + true)
        assert weighted.prob_true[0] == pytest.approx(20 / 60)

    def test_reliability_equals_that_of_scikit_learn(self):
        from sklearn.calibration import calibration_curve

        *_, X, y = rows(False)
        said = model(False).predict_proba(X)[:, 1]
        true, mean = calibration_curve(y == model(False).classes_[1], said, n_bins=5, strategy="uniform")
        display = ReliabilityDisplay.from_predictions(
            y, said, n_bins=5, strategy="uniform", classes=model(False).classes_
        )
        assert display.prob_true == pytest.approx(true)
        assert display.prob_pred == pytest.approx(mean)

    def test_cost_is_that_of_decisions_at_the_threshold(self):
        *_, X, y = rows(False)
        fitted, costs = model(False), np.array([[0.0, 1.0], [7.0, 0.5]])
        display = CostDisplay.from_estimator(fitted, X, y, costs=costs, pos_label=fitted.classes_[1])
        said, true = fitted.predict_proba(X)[:, 1], (y == fitted.classes_[1]).astype(int)
        for place in (0, 17, len(display.cost) - 1):
            decided = (said >= display.thresholds[place]).astype(int)
            assert display.cost[place] == pytest.approx(costs[true, decided].mean())
        assert display.bayes_threshold == pytest.approx(1 / 7.5)
        reverse = CostDisplay.from_estimator(fitted, X, y, costs=costs, pos_label=fitted.classes_[0])
        assert reverse.bayes_threshold == pytest.approx(6.5 / 7.5)

    def test_held_out_rows_of_the_model_are_the_default(self):
        held_out, record = ReliabilityDisplay.from_estimator(model(True)), model(True).held_out_
        said = np.exp(record.log_posterior)
        labels = model(True).classes_[record.codes]
        direct = ReliabilityDisplay.from_predictions(labels, said, classes=model(True).classes_)
        assert held_out.prob_true == pytest.approx(direct.prob_true)

    def test_other_classifiers_are_drawn(self):
        X, y, *other = rows(False)
        fitted = LogisticRegression().fit(X, y)
        assert LiftDisplay.from_estimator(fitted, *other, pos_label=OTHER).gain[-1] == pytest.approx(1.0)
        with pytest.raises(ValueError, match="LogisticRegression has no held-out rows"):
            LiftDisplay.from_estimator(fitted)

    def test_coverage_of_given_sets(self):
        labels = np.array(["a", "b", "a", "b"])
        sets = {0.9: [[1, 1]] * 4, 0.5: [[1, 0]] * 4}
        display = CoverageDisplay.from_predictions(labels, sets)
        assert display.stated.tolist() == [0.5, 0.9]
        assert display.observed.tolist() == [0.5, 1.0]
        assert display.size.tolist() == [1.0, 2.0]

    def test_functions_draw_displays(self):
        *_, X, _ = rows(True)
        explained = model(True).explain(X)
        assert len(plot_reasons(explained, 3).patches) == len(plot_overall(explained).patches) == 4


class TestBadInput:
    def test_of_scores(self):
        with pytest.raises(ValueError, match="pos_label must be given for 3 classes"):
            LiftDisplay.from_predictions([0, 1, 2], np.eye(3))
        with pytest.raises(ValueError, match="pos_label='z' is not among the classes"):
            LiftDisplay.from_predictions(["a", "b"], [0.1, 0.2], pos_label="z")
        with pytest.raises(ValueError, match="probabilities of 2 classes, but there are 3"):
            ReliabilityDisplay.from_predictions([0, 1, 2], np.full((3, 2), 0.5))
        with pytest.raises(ValueError, match="between 0 and 1"):
            ReliabilityDisplay.from_predictions([0, 1], [0.1, 1.2])
        with pytest.raises(ValueError, match="a threshold needs two classes, got 3"):
            CostDisplay.from_predictions([0, 1, 2], np.eye(3))
        with pytest.raises(ValueError, match="labels that are not among the classes"):
            CostDisplay.from_predictions([0, 5], [0.1, 0.2], classes=[0, 1])
        with pytest.raises(ValueError, match="give both X and y"):
            CostDisplay.from_estimator(model(True), rows(True)[0])

    def test_of_results(self):
        X, y, *_ = rows(True)
        with pytest.raises(ValueError, match="trained in closed form"):
            HistoryDisplay.from_estimator(GaussianNB(rule="ml").fit(X, y))
        with pytest.raises(ValueError, match="has no 'loss': give one of 'soft_error'"):
            HistoryDisplay.from_estimator(model(True), quantity="loss")
        with pytest.raises(ValueError, match="row must be the position of one of the 200 rows"):
            ReasonsDisplay.from_estimator(model(True), X, row=200)
        with pytest.raises(ValueError, match="kind must be 'gain' or 'lift'"):
            LiftDisplay.from_predictions([0, 1], [0.1, 0.2], kind="roc")
        assert WEIRD in model(True).classes_
