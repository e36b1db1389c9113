"""scikit-learn's own checks, for every public estimator.

None is expected to fail but two that hand negative numbers to estimators whose tag says that they take none: scikit-learn's
own escape them, since those have neither class_weight nor decision_function.
"""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibayes
from calibayes import SingularCovarianceWarning

ESTIMATORS = [
    getattr(calibayes, name)()
    for name in calibayes.__all__
    if isinstance(getattr(calibayes, name), type) and hasattr(getattr(calibayes, name), "fit")
]


ITERATIVE = [estimator for estimator in ESTIMATORS if estimator.rule == "rc"]
"""All but those that are learned in closed form only."""

NEGATIVE = dict.fromkeys(
    ("check_class_weight_classifiers", "check_decision_proba_consistency"), "has negative counts"
)


def refused(estimator):
    return NEGATIVE if get_tags(estimator).input_tags.positive_only else {}


# The checks fit to noise and to fewer rows than columns: fits that have more to gain and singular covariances are what
# they ask for, and both say so.
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@pytest.mark.filterwarnings(
    f"ignore::{SingularCovarianceWarning.__module__}.{SingularCovarianceWarning.__name__}"
)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=refused)
def test_scikit_learn_check(estimator, check):
    check(estimator)
