"""What is in a model file, in short: written into the file, so that it can be told from the header alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibayes.estimators.interface.device_input import numpy_classes
from calibayes.estimators.interface.kept_rows import kept_row_count


def contents_of(model: Any) -> Mapping[str, Any]:
    """Class, classes, columns, training table and kept rows of a fitted estimator, as plain values."""
    table = model.training_table_
    return {
        "class": type(model).__name__,
        "classes": tuple(_plain(label) for label in numpy_classes(model).tolist()),
        "rows": table.rows,
        "columns": table.columns,
        "kinds": table.kinds,
        "missing": table.missing,
        "kept_rows": kept_row_count(model),
    }


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; dates as texts."""
    plain = label.item() if isinstance(label, np.generic) else label
    return plain if type(plain) in (str, bool, int, float) else str(plain)
