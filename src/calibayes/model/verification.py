"""Checks of the fitted attributes of an estimator that come from outside; see `calibayes.core.verify`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core import verify
from calibayes.core.verify import require, require_array, require_instance, require_length
from calibayes.engines import chosen_engine
from calibayes.model.checked_rows import class_factors
from calibayes.model.decision import checked_costs
from calibayes.model.delegates import feature
from calibayes.model.parameters import no_seed
from calibayes.model.training_rows import ADAPTED, DRIFT, HELD_OUT, INTERVAL, REPORT, SURPRISE, HeldOut
from calibayes.tables.conversion import COLUMN_KINDS, ColumnConversion
from calibayes.tables.table import TrainingTable, missing_mask

COLUMNS = ("n_features_in_", "conversion_", "training_table_")
"""The attributes that reading a training table sets; ``feature_names_in_`` only if its columns have names."""
OPTIONAL_COLUMNS = ("feature_names_in_", HELD_OUT, DRIFT, SURPRISE, ADAPTED, INTERVAL, REPORT)
"""Attributes that a fitted estimator may have."""


def is_fitted_with(model: Any, required: Iterable[str], optional: Iterable[str] = ()) -> bool:
    """Whether an estimator has fitted attributes. Raises ValueError if some are lacking, or have unknown names."""
    given = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    lacking, unknown = set(required) - given, given - set(required) - set(optional)
    require(not given or not lacking, f"{type(model).__name__} has no {min(lacking, default='')}")
    require(not unknown, f"{type(model).__name__} has no attribute {min(unknown, default='')}")
    return bool(given)


def verify_parameters(model: Any) -> None:
    """Raises ValueError if a parameter that predictions use, or that says how rows are weighed, is invalid.

    An estimator checks its further parameters in its method ``verify``.
    """
    chosen_engine(getattr(model, "engine", None), getattr(model, "n_jobs", None))
    random_state = getattr(model, "random_state", None)
    try:
        check_random_state(random_state)
    except (TypeError, ValueError):
        raise no_seed(random_state) from None
    if getattr(model, "costs", None) is not None:
        checked_costs(model.costs, len(model.classes_))
    if getattr(model, "class_weight", None) is not None:
        k = len(model.classes_)
        class_factors(model.class_weight, model.classes_, np.arange(k), np.ones(k))


def verify_columns(model: Any) -> ColumnConversion:
    """The conversion of the columns. Raises ValueError unless their number and names are those of the conversion."""
    verify_parameters(model)
    conversion: ColumnConversion = model.conversion_
    d = model.n_features_in_
    require_instance("conversion_", conversion, ColumnConversion)
    verify.require_number("n_features_in_", d, 1)
    require_length("the names of conversion_", conversion.names, d)
    require_instance("training_table_", model.training_table_, TrainingTable)
    require(model.training_table_.columns == conversion.names, "training_table_ has other columns")
    verify_held_out(model)
    if not {ADAPTED, INTERVAL, REPORT}.isdisjoint(vars(model)):
        feature("prior_shift").verify_adapted(model)
    if hasattr(model, "feature_names_in_"):
        names = require_array("feature_names_in_", model.feature_names_in_, (d,), "O")
        require(tuple(names.tolist()) == conversion.names, "feature_names_in_ are not those of conversion_")
    return conversion


def verify_held_out(model: Any) -> None:
    """Raises ValueError unless records of held-out rows, if there are any, are of the classes and columns of the model."""
    if (record := vars(model).get(HELD_OUT)) is not None:
        require_instance(HELD_OUT, record, HeldOut)
        require_length(f"the classes of {HELD_OUT}", model.classes_, record.log_posterior.shape[1])
    if (drift := vars(model).get(DRIFT)) is not None:
        require_instance(DRIFT, drift, feature("drift").DriftReference)
        require_length(f"the classes of {DRIFT}", model.classes_, drift.log_posterior.shape[1])
    if (surprise := vars(model).get(SURPRISE)) is not None:
        require_instance(SURPRISE, surprise, feature("surprise").SurpriseReference)
        require(surprise.cells.shape[1] == len(model.conversion_.names), f"{SURPRISE} is of other columns")


def verified_conversion(model: Any, kind: type) -> ColumnConversion | None:
    """The conversion of the columns of an estimator whose model is ``fitted_``, of a class; None if it is not fitted."""
    if not is_fitted_with(model, ("fitted_", *COLUMNS), OPTIONAL_COLUMNS):
        return None
    require_instance("fitted_", model.fitted_, kind)
    return verify_columns(model)


def require_same_table(conversion: ColumnConversion, binding: Any) -> None:
    """Raises ValueError unless the binding of a model to its columns is one to the columns of an estimator."""
    require(binding.conversion == conversion, "conversion_ is not that of fitted_")
    labels = getattr(binding.origin, "labels", conversion.names)
    require_length("the labels of the training frame", labels, len(conversion.names))


def verify_classes(classes: Any) -> int:
    """The number of classes. Raises ValueError unless they are known, distinct and ascending."""
    k = len(require_array("classes", classes, (None,), COLUMN_KINDS))
    require(k > 0 and not missing_mask(classes).any(), "classes must be labels, none of them missing")
    verify.require_ascending("classes", classes)
    return k


def require_same_classes(classes: Any, k: int) -> None:
    """Raises ValueError unless there are k valid classes."""
    found = verify_classes(classes)
    require(found == k, f"there are {found} classes, but densities of {k}")


def require_score(name: str, value: Any, shape: tuple[int | None, ...]) -> None:
    """An array of scores; NaN where nothing was evaluated."""
    array = require_array(name, value, shape)
    require(not bool(np.any(array < 0)), f"{name} contains negative numbers")
