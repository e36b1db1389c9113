"""A fitted estimator from a family, a fitted encoder and sums over rows that another library has kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Arrays, Family
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.fitted import NOT_SUMS, Fitted, begin
from calibayes.estimators.generative.recipe import Assembly, layouts_of
from calibayes.estimators.interface.parameters import adopt
from calibayes.families import Product
from calibayes.families.model import PRIOR
from calibayes.rules import rule_named
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.read import array_names
from calibayes.tables.training_table import TrainingTable

COLUMNS = "columns"
"""The name of the family over all columns."""


@dataclass(frozen=True)
class Rebuilt:
    """What a fitted classifier of scikit-learn contains, in terms of the estimator of the same name.

    Attributes
    ----------
    model : estimator
        With the parameters of scikit-learn's, not fitted.
    family : Family
    encoder : Encoder
        Fitted to the columns.
    class_count : (k,) array
        Weight of the training rows of each class.
    statistics : function of the family, bound to columns and classes
        Its sums over the training rows.
    number_type : NumPy type
        The type of the columns.
    not_sums : str
        Why the statistics are no sums over the training rows, and what to do; empty if they are.
    adjust : function of the prepared family
        The family with values that scikit-learn has computed in another way.
    """

    model: Any
    family: Family
    encoder: Encoder
    class_count: Array
    statistics: Callable[[Any], Arrays]
    number_type: Any = np.float64
    not_sums: str = ""
    adjust: Callable[[Any], Any] = lambda family: family

    def fit(self, source: Any) -> Any:
        """The estimator, fitted, with the classes and columns of scikit-learn's. Raises ValueError if it has no parameters."""
        columns, classes = self._columns(source), np.asarray(source.classes_)
        if len(classes) < self.model.fewest_classes:
            raise ValueError(
                f"{type(self.model).__name__} needs at least two classes, got {classes.tolist()}"
            )
        fitted = self._fitted(self._assembly(columns, classes))
        rows = 0 if self.not_sums else int(np.rint(self.class_count.sum()))
        kinds, missing = (columns.types[0].name,) * len(columns.names), (0,) * len(columns.names)
        state = {
            "n_features_in_": len(columns.names),
            "conversion_": columns,
            "training_table_": TrainingTable(rows, rows, columns.names, kinds, missing),
            "fitted_": fitted,
        }
        if hasattr(source, "feature_names_in_"):
            state["feature_names_in_"] = np.array(columns.names, dtype=object)
        fitted.verify()
        return adopt(self.model, {**vars(self.model), **state})

    def _columns(self, source: Any) -> ColumnConversion:
        """Names and types of the columns, none of which is converted."""
        d = source.n_features_in_
        names = tuple(map(str, getattr(source, "feature_names_in_", array_names(d))))
        return ColumnConversion(names, (np.dtype(self.number_type),) * d)

    def _assembly(self, columns: ColumnConversion, classes: Array) -> Assembly:
        """The model bound to the columns, with moments about points that keep their digits."""
        chosen = {COLUMNS: tuple(range(len(columns.names)))}
        binding = ColumnBinding(
            {COLUMNS: self.family},
            {COLUMNS: self.encoder},
            chosen,
            columns.names,
            columns.types,
            conversion=columns,
        )
        layouts, names = layouts_of(binding, classes)
        prior = self.model.class_prior_for(len(classes))
        model = Product(prior, {COLUMNS: self.family}).bind(layouts, names)
        notes = {NOT_SUMS: self.not_sums} if self.not_sums else {}
        return Assembly(binding, model.recentered(self._sums(model)), classes, notes=notes)

    def _sums(self, model: Product) -> dict[str, Arrays]:
        family = model.families[COLUMNS]
        return {PRIOR: {"count": self.class_count}, COLUMNS: self.statistics(family)}

    def _fitted(self, assembly: Assembly) -> Fitted:
        """The closed form of the sums. Raises ValueError if there is none."""
        sums = self._sums(assembly.model)
        unfitted = begin(assembly, rule_named(self.model.rule), sums, is_additive=not self.not_sums)
        fitted = unfitted.closed_form(sums)
        if fitted.lacking:
            raise ValueError(f"these statistics have no valid parameters: {fitted.lacking}")
        families = {COLUMNS: self.adjust(fitted.model.families[COLUMNS])}
        model = replace(fitted.model, families=families)
        return replace(fitted, model=model, parameters=model.parameters(model.statistics_of(sums)))


def parameters_of(source: Any, estimator: type) -> dict[str, Any]:
    """The parameters of a classifier of scikit-learn that the estimator of the same name has, too, and maximum likelihood."""
    known = set(estimator().get_params(deep=False))
    given = source.get_params(deep=False)
    return {"rule": "ml", **{name: value for name, value in given.items() if name in known}}


def require_equal(name: str, ours: Any, theirs: Any) -> None:
    """Raises ValueError unless an attribute of the rebuilt estimator has scikit-learn's value, up to rounding.

    Where scikit-learn's value is not finite (the logarithm of a count of 0), ours is that of the least probability.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs)
    kind = theirs.dtype if theirs.dtype.kind == "f" else np.dtype(np.float64)
    compared = np.isfinite(theirs)
    # A third of the digits are left for covariances that are nearly singular.
    tolerance = float(np.cbrt(np.finfo(kind).eps)) * np.abs(theirs[compared]).max(initial=0.0)
    if not np.allclose(ours[compared], theirs[compared], rtol=0.0, atol=tolerance):
        raise ValueError(
            f"{name} does not follow from the other attributes of the fitted classifier: it was changed after `fit`, or a "
            "parameter was. Fit it again, or fit the estimator of calibayes"
        )
