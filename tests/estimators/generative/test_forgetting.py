"""Rows are forgotten exactly, by subtraction or by training on the rest, and a receipt says so."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import calibayes as cb
from calibayes.datasets import load_penguins
from calibayes.model.estimator import holding
from calibayes.trust import ForgettingReceipt, verify_receipt
from tests.seeds import generator

DATE = datetime(2025, 3, 1, 12, tzinfo=UTC)
CALIBRATED = [
    cb.GaussianNB(rule="rc", max_iter=8, stop=None),
    cb.GaussianNB(rule="gdt", max_iter=4, stop=None),
    cb.GaussianNB(rule="gd", max_iter=4, stop=None),
    cb.QuadraticDiscriminantAnalysis(rule="rc", max_iter=4, stop=None),
    cb.BernoulliNB(binarize=0.5, max_iter=4, stop=None),
]
"""Models whose encoders do not depend on the training rows, so that a refit is comparable number by number."""


def table(n=240):
    rng = generator(5)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + 0.8 * y[:, None], np.array(["a", "b", "c"])[y]


def ids(value):
    return f"{type(value).__name__} {value.rule}"


@pytest.fixture(scope="module")
def calibrated():
    X, y = table()
    return cb.GaussianNB(max_iter=8, stop=None).fit(X, y)


@pytest.mark.parametrize("estimator", CALIBRATED, ids=ids)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_calibrated_model_without_rows_is_a_refit(estimator, weighted):
    X, y = table()
    weight = generator(6).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    gone, rest = slice(30), slice(30, None)
    left = clone(estimator).fit(X, y, weight).forget(X[gone], y[gone], weight[gone])
    refit = clone(estimator).fit(X[rest], y[rest], weight[rest])
    assert_allclose(left.predict_proba(X), refit.predict_proba(X), atol=1e-7)
    assert left.training_table_ == refit.training_table_
    receipt = left.forgetting_receipt_
    assert (receipt.rows_forgotten, receipt.rows_left) == (30, len(y) - 30)
    assert_allclose(receipt.weight_forgotten, weight[gone].sum())
    assert_allclose(receipt.weight_left, weight[rest].sum())


@pytest.mark.parametrize(
    "estimator",
    [
        cb.NaiveBayes(max_iter=5, stop=None),
        cb.TreeAugmentedNB(max_iter=3, stop=None),
        cb.NaiveBayes(rule="ml"),
    ],
    ids=ids,
)
def test_levels_and_bins_stay_and_the_receipt_says_so(estimator):
    X, y = load_penguins(return_X_y=True)
    model = clone(estimator).fit(X, y)
    left = model.forget(X[::10], y[::10])
    kept = np.arange(len(y)) % 10 > 0
    audit = verify_receipt(left.forgetting_receipt_, left, before=model, remaining=(X[kept], y[kept]))
    assert audit.passed, str(audit)
    assert any("bins of numbers" in text for text in left.forgetting_receipt_.not_exact)
    assert any("levels" in text for text in left.forgetting_receipt_.not_exact)


def test_the_rows_that_remain_are_needed_after_loading(calibrated):
    X, y = table()
    loaded = pickle.loads(pickle.dumps(calibrated))
    with pytest.raises(ValueError, match=r"remaining=\(X_rest, y_rest\)"):
        loaded.forget(X[:5], y[:5])
    left = loaded.forget(X[:5], y[:5], remaining=(X[5:], y[5:]))
    assert_array_equal(
        left.parameters_["columns"]["mean"], calibrated.forget(X[:5], y[:5]).parameters_["columns"]["mean"]
    )


def test_other_rows_than_those_of_the_training_are_refused(calibrated):
    X, y = table()
    for remaining in ((X[6:], y[6:]), (X, y), (X[5:] + 1e-3, y[5:])):
        with pytest.raises(ValueError, match="not the training rows without those to forget"):
            calibrated.forget(X[:5], y[:5], remaining=remaining)
    with pytest.raises(ValueError, match="2 of 3 rows to forget are not among the rows of the last fit"):
        calibrated.forget(np.vstack([X[:1], X[1:3] + 1]), y[:3])
    with pytest.raises(ValueError, match="2 of 3 rows"):
        calibrated.forget(X[[0, 0, 0]], y[[0, 0, 0]])
    with pytest.raises(ValueError, match="no row remains"):
        calibrated.forget(X, y)
    with pytest.raises(ValueError, match="remaining must be"):
        calibrated.forget(X[:5], y[:5], remaining=X[5:])
    closed = cb.GaussianNB(rule="ml").fit(X, y)
    with pytest.raises(ValueError, match=r"the sums .* differ"):
        closed.forget(X[:5], y[:5], remaining=(X[6:], y[6:]))


def test_a_model_with_held_out_training_rows_is_refused():
    X, y = table()
    options = cb.TrainingOptions(validation_fraction=0.2)
    model = cb.GaussianNB(training=options, random_state=0, max_iter=3).fit(X, y)
    with pytest.raises(ValueError, match="validation_fraction"):
        model.forget(X[:5], y[:5])


def test_receipts_form_a_chain_that_further_rows_end(calibrated):
    X, y = table()
    once = calibrated.forget(X[:5], y[:5], date=DATE)
    twice = once.forget(X[5:9], y[5:9], date=DATE + timedelta(days=1))
    first, second = twice.forgetting_receipts_
    assert first == once.forgetting_receipt_
    assert second.previous == first.digest
    assert second.sums_before == first.sums_after
    assert verify_receipt(second, twice, before=once, remaining=(X[9:], y[9:])).passed
    assert not verify_receipt(first, twice).passed
    assert calibrated.forgetting_receipts_ == ()
    assert not hasattr(calibrated, "forgetting_receipt_")
    assert not hasattr(twice.partial_fit(X[:5], y[:5]), "forgetting_receipt_")


def test_the_audit_finds_rows_that_are_still_there(calibrated):
    """A model that claims to have forgotten rows, and has not."""
    X, y = table()
    honest = calibrated.forget(X[:5], y[:5])
    receipt = honest.forgetting_receipt_
    kept = holding(calibrated, calibrated.fitted_.with_extra("receipts", (receipt,)))
    failed = {
        check.name
        for check in verify_receipt(receipt, kept, remaining=(X[5:], y[5:])).checks
        if not check.passed
    }
    assert failed == {"sums after", "sums of the rows left", "refit"}
    sums_alone = replace(calibrated.fitted_, data_statistics=honest.data_statistics_).with_extra(
        "receipts", (receipt,)
    )
    audit = verify_receipt(receipt, holding(calibrated, sums_alone), remaining=(X[5:], y[5:]))
    assert [check.name for check in audit.checks if not check.passed] == ["refit"]
    assert "FAILED refit" in str(audit)


def test_a_receipt_is_text_with_a_checksum_and_a_signature(calibrated):
    X, y = table()
    receipt = calibrated.forget(
        X[:5], y[:5], date=DATE.astimezone(timezone(timedelta(hours=2)))
    ).forgetting_receipt_
    assert receipt.date == "2025-03-01T12:00:00Z"
    signed = receipt.signed(b"key")
    assert signed.digest == receipt.digest
    assert signed.is_signed_by(b"key")
    assert not signed.is_signed_by(b"other")
    assert not receipt.is_signed_by(b"key")
    assert not replace(signed, rows_forgotten=4).is_signed_by(b"key")
    assert ForgettingReceipt.from_json(signed.to_json()) == signed
    with pytest.raises(ValueError, match="was changed"):
        ForgettingReceipt.from_json(signed.to_json().replace('"rows_forgotten": 5', '"rows_forgotten": 4'))
    with pytest.raises(ValueError, match="no receipt"):
        ForgettingReceipt.from_json("{}")
    with pytest.raises(ValueError, match="bytes"):
        receipt.signed("key")
    with pytest.raises(ValueError, match="time zone"):
        calibrated.forget(X[:5], y[:5], date=datetime(2025, 3, 1))


def test_the_receipt_is_part_of_pickles_and_model_files(calibrated, tmp_path):
    X, y = table()
    left = calibrated.forget(X[:5], y[:5], date=DATE)
    cb.save(left, tmp_path / "left.safetensors")
    for other in (pickle.loads(pickle.dumps(left)), cb.load(tmp_path / "left.safetensors")):
        assert other.forgetting_receipt_ == left.forgetting_receipt_
        assert verify_receipt(left.forgetting_receipt_, other, remaining=(X[5:], y[5:])).passed
    broken = left.fitted_.with_extra("receipts", (replace(left.forgetting_receipt_, sums_after="?"),))
    with pytest.raises(cb.ModelFileError, match="SHA-256"):
        cb.save(holding(left, broken), tmp_path / "broken.safetensors")


def test_trees_say_that_they_stay():
    X, y = table()
    left = cb.CalibratedTrees(max_trees=5).fit(X, y).forget(X[:5], y[:5], date=DATE)
    assert left.forgetting_receipt_.not_exact[0] == "trees are grown on the training rows"
    with pytest.raises(ValueError, match="fit again on them"):
        left.forget(X[5:9], y[5:9], remaining=(X[9:], y[9:]))
