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
from sklearn.calibration import CalibrationDisplay
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from calibayes import GaussianNB, MixtureDiscriminantAnalysis, TradeOffCV, TreeAugmentedNB, plots
from calibayes.estimators.tree_augmented import Edge
from calibayes.plots import (
    CostDisplay,
    CoverageDisplay,
    HistoryDisplay,
    LiftDisplay,
    ReasonsDisplay,
    ReliabilityDisplay,
    SurpriseDisplay,
    TradeOffDisplay,
    TreeDisplay,
    plot_overall,
    plot_reasons,
)
from calibayes.plots.figures import Display
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


@pytest.mark.parametrize(
    "make",
    [
        lambda name: ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], name=name),
        lambda name: CostDisplay.from_predictions([0, 1], [0.2, 0.7], name=name),
        lambda name: LiftDisplay.from_predictions([0, 1], [0.2, 0.7], name=name),
        lambda name: CoverageDisplay.from_predictions([0, 1], {0.9: np.ones((2, 2))}, name=name),
        lambda name: SurpriseDisplay.from_estimator(model(True), rows(True)[2], name=name),
        lambda name: HistoryDisplay.from_estimator(model(True), name=name),
        lambda name: CASES["members"].make(model(True), *rows(True)[2:]),
    ],
)
def test_legends_have_names_that_begin_with_an_underscore(make):
    """matplotlib would leave them out."""
    legend = make(WEIRD).ax_.get_legend()
    assert any(WEIRD in text.get_text().replace(r"\$", "$") for text in legend.get_texts())


@pytest.mark.parametrize(
    "display",
    [
        lambda: TreeDisplay.from_estimator(TreeAugmentedNB()),
        lambda: TradeOffDisplay.from_estimator(TradeOffCV()),
        lambda: plots.plot_components(MixtureDiscriminantAnalysis()),
        lambda: ReliabilityDisplay.from_estimator(GaussianNB(), [[0.0]], [0]),
    ],
)
def test_estimators_must_be_fitted(display):
    with pytest.raises(NotFittedError):
        display()


def test_every_display_has_a_case():
    classes = {name for name in plots.__all__ if name.endswith("Display")}
    assert classes == {type(made(case)).__name__ for case in CASES.values()}


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    def refuse(name, *given, **named):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *given, **named)

    real = builtins.__import__
    monkeypatch.setattr("calibayes.plots.figures.import_module", lambda name: refuse(name))
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
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

    def test_probabilities_of_one_class_are_those_of_pos_label_as_in_scikit_learn(self):
        rng = np.random.default_rng(0)
        labels, said = np.array(["no", "yes"])[rng.integers(0, 2, 90)], rng.random(90)
        both = np.column_stack([said, 1 - said])
        expected = CalibrationDisplay.from_predictions(labels, said, pos_label="no", n_bins=4)
        found = ReliabilityDisplay.from_predictions(
            labels, said, pos_label="no", n_bins=4, strategy="uniform"
        )
        assert found.prob_true == pytest.approx(expected.prob_true)
        assert found.prob_pred == pytest.approx(expected.prob_pred)
        for display in (CostDisplay, LiftDisplay):
            one = display.from_predictions(labels, said, pos_label="no").line_.get_ydata()
            two = display.from_predictions(labels, both, pos_label="no").line_.get_ydata()
            assert one == pytest.approx(two)

    def test_rows_of_weight_0_are_left_out(self):
        rng = np.random.default_rng(0)
        labels, said = rng.integers(0, 2, 90), rng.random(90)
        weight = np.where((said < 0.3) | (said > 0.9), 0.0, 2.0)
        for display in (ReliabilityDisplay, CostDisplay, LiftDisplay):
            given = display.from_predictions(labels, said, sample_weight=weight)
            direct = display.from_predictions(labels[weight > 0], said[weight > 0])
            assert given.line_.get_xydata() == pytest.approx(direct.line_.get_xydata())

    def test_rounding_errors_of_probabilities_are_accepted(self):
        said = np.array([[1 + 2e-16, -1e-17], [0.25, 0.75]])
        assert said.max() > 1
        assert ReliabilityDisplay.from_predictions([0, 1], said).prob_pred.max() == 1.0

    def test_edges_without_information_have_the_least_width(self):
        (line,) = TreeDisplay([Edge("a", "b", 0.0, None)]).plot().lines_
        assert line.get_linewidth() == 0.5

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
        assert len(plot_reasons(explained, 3).patches) == 4  # the class prior and three columns
        assert len(plot_overall(explained).patches) == 3


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
        with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, k\), got shape \(2, 2, 2\)"):
            ReliabilityDisplay.from_predictions([0, 1], np.ones((2, 2, 2)))
        for weight in ([1.0], [1.0, -1.0], [1.0, np.nan], [0.0, 0.0]):
            with pytest.raises(ValueError, match=r"sample_weight must be an array of shape \(2,\)"):
                LiftDisplay.from_predictions([0, 1], [0.1, 0.2], sample_weight=weight)
        with pytest.raises(ValueError, match="sample_weight is for the rows of X: give X and y as well"):
            ReliabilityDisplay.from_estimator(model(True), sample_weight=np.ones(50))
        with pytest.raises(ValueError, match="sets must be a dictionary"):
            CoverageDisplay.from_predictions([0, 1], {})
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
