"""A sample of the metamorphic laws: `check.py --laws` tries them on many tables, and on real ones."""

import pytest

from tests.metamorphic import run
from tests.metamorphic.laws import EXCEPTIONS, LAWS
from tests.metamorphic.tables import random_table

pytestmark = pytest.mark.filterwarnings("ignore")
ESTIMATORS = run.estimators()
SAMPLE = {"mixed": 10, "numbers": 9, "counts": 11}
"""Numbers of tables that many laws were found broken on: with dates and levels, gaps, and a column that recodes another one."""
TESTED_ELSEWHERE = (*run.COSTLY_LAWS, "SQL", "ONNX", "pieces", "saved", "DuckDB in UTC", "polars")


@pytest.mark.parametrize("table", SAMPLE)
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if not any(word in name for word in run.COSTLY)]
)
def test_changes_that_mean_nothing_leave_predictions_alone(name, table):
    laws = [
        law
        for law in LAWS
        if law not in TESTED_ELSEWHERE and (law, name.removesuffix(" ml")) not in EXCEPTIONS
    ]
    outcomes = dict(run.outcomes(name, ESTIMATORS[name], random_table(SAMPLE[table]), {}, laws))
    assert not {key: found for key, found in outcomes.items() if run.is_violation(found)}


@pytest.mark.parametrize(
    "law", ["column order", "constant column", "all-missing column", "powers of two", "duplicates"]
)
def test_the_default_is_left_alone_by_changes_that_mean_nothing(law):
    outcomes = dict(
        run.outcomes("BayesClassifier", ESTIMATORS["BayesClassifier"], random_table(4), {}, [law])
    )
    assert not {key: found for key, found in outcomes.items() if run.is_violation(found)}


def test_every_exception_is_of_a_law_and_an_estimator():
    assert all(law in LAWS and name in ESTIMATORS for law, name in EXCEPTIONS)
