"""Trees as expressions, in rows with several missing values."""

import numpy as np

from calibayes import TreeAugmentedNB
from calibayes.datasets import load_penguins
from calibayes.export.model_expressions import model_expressions
from tests.export.evaluate import evaluate
from tests.export.tables import as_columns


def test_a_missing_column_below_a_missing_column_is_summed_out_once():
    penguins = load_penguins()
    model = TreeAugmentedNB(rule="ml").fit(penguins.data, penguins.target)
    rng = np.random.default_rng(0)
    table = penguins.data.mask(rng.random(penguins.data.shape) < 0.5)
    found = evaluate(model_expressions(model).probabilities, as_columns(table), len(table))
    np.testing.assert_allclose(found, model.predict_proba(table), rtol=0, atol=1e-12)
