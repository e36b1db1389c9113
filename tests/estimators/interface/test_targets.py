"""Labels of any kind."""

import numpy as np
import pytest

from calibayes.model.checked_rows import distinct


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([-128, 127], dtype=np.int8),
        np.array([0, 2**40], dtype=np.int64),
        np.array([-(2**63), 2**63 - 1], dtype=np.int64),
        np.array([True, False]),
        np.array(["b", "a"]),
    ],
    ids=str,
)
def test_labels_are_distinguished_and_keep_their_type(labels):
    rows = labels[np.arange(7) % 2]
    values, which = distinct(rows)
    assert values.dtype == labels.dtype
    np.testing.assert_array_equal(values, np.sort(labels))
    np.testing.assert_array_equal(values[which], rows)
