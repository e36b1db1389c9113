"""An ensemble fitted once for all tests."""

import pytest

from calibayes import BayesClassifier
from tests.estimators.ensemble.tables import frame


@pytest.fixture(scope="session")
def fitted():
    X, y = frame()
    return BayesClassifier().fit(X, y)
