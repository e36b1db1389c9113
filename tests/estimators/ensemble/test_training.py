"""Training of an ensemble."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes import BayesClassifier, PosteriorMixture
from calibayes.ensemble import training
from tests.estimators.ensemble.tables import frame


class TestTraining:
    def test_an_empty_list_of_models_is_refused(self):
        with pytest.raises(ValueError, match="at least one member"):
            PosteriorMixture(models=[]).fit(*frame())

    @pytest.mark.parametrize("sizes", [(40, 2), (40, 1), (1, 1), (2, 2, 2)])
    def test_classes_of_one_or_two_rows(self, sizes):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(len(y), 3)) + y[:, None]
        model = BayesClassifier().fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()

    def test_columns_without_information(self):
        y = np.arange(40) % 2
        X = pd.DataFrame({"same": np.ones(40), "none": np.nan, "one": [1.0] + [np.nan] * 39, "text": "a"})
        model = BayesClassifier().fit(X, y)
        assert_allclose(model.predict_proba(X), 0.5, atol=0.1)
        assert np.isfinite(model.score_samples(X)).all()
        model.sample(3, random_state=0)

    def test_an_interrupted_fit_leaves_the_model_as_it_was(self, monkeypatch):
        X, y = frame()
        model = BayesClassifier(families=["tied", "kernel"]).fit(X, y)
        before = model.predict_proba(X)

        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(training, "mixture_weights", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X.iloc[:50], y[:50])
        assert_array_equal(model.predict_proba(X), before)

    def test_progress_is_printed(self, capfd):
        BayesClassifier(families=["tied"], verbose=1).fit(*frame())
        assert "[BayesClassifier] tied, total step 0: log loss" in capfd.readouterr().err

    def test_splits_that_hold_out_nothing_are_refused(self):
        X, y = frame()
        with pytest.raises(ValueError, match="holds out no row: a class needs two rows at least"):
            BayesClassifier(cv=[("first", "second")]).fit(X, y)

    def test_tables_of_few_distinct_rows_are_learned(self):
        """Copies of a row with different labels: the best posterior is the class frequencies of each distinct row."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (600, 3)).astype(float)
        y = (rng.random(600) < np.where(X[:, 0] == X[:, 1], 0.85, 0.15)).astype(int)
        model = BayesClassifier().fit(X, y)
        assert np.mean(model.predict(X) == (X[:, 0] == X[:, 1])) == 1.0
        assert model.weights_["class frequencies"] < 0.2
