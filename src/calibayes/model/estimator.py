"""The one estimator class behind all presets: scikit-learn's interface to a `Fitted` model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array, Engine, Rule
from calibayes.encoders.schema import Column, Schema
from calibayes.families import ClassPrior
from calibayes.families.model import PRIOR
from calibayes.kernels.posterior import log_normalize
from calibayes.learn import Stop
from calibayes.model import door, parameters, predict
from calibayes.model.binding import ColumnBinding
from calibayes.model.decision import log_odds
from calibayes.model.decisions import Decisions
from calibayes.model.delegates import delegate, feature
from calibayes.model.door import at_home
from calibayes.model.fit import fit, known_classes, update
from calibayes.model.fitted import Fitted, log_change, with_priors
from calibayes.model.input import TrainingRows, kept_rows_line, new_table, rows_of, set_training_table
from calibayes.model.labels import class_probabilities
from calibayes.model.parameters import adopt, estimator, unfitted_copy
from calibayes.model.progress import ProgressReporter
from calibayes.model.recipe import Recipe, Specification, TrainingOptions, class_prior_of
from calibayes.model.remembered import forget_rows, keep_shifted
from calibayes.model.verification import require_same_table, verified_conversion
from calibayes.rules import rule_named
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table
from calibayes.tables.text import PlainText, counted, listed, shortened
from calibayes.tables.training_table import TrainingTable

# -- Attributes of an estimator that are read from its fitted model ------------------------------------------


def fitted_of(model: Any) -> Any:
    """The fitted value of an estimator. Raises NotFittedError, which is an AttributeError, if there is none."""
    check_is_fitted(model, "fitted_")
    return model.fitted_


def verify_attributes(model: Any) -> None:
    """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
    conversion = verified_conversion(model, Fitted)
    if conversion is not None:
        require_same_table(conversion, model.fitted_.binding)


class FittedAttribute:
    """An attribute of an estimator with the value of a field of its ``fitted_``.

    Raises AttributeError if the estimator is not fitted, or if the field is None.
    """

    def __init__(self, field: str, doc: str) -> None:
        self.field, self.__doc__ = field, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        value = getattr(fitted_of(model), self.field)
        if value is None:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return value

    def __set__(self, model: Any, value: Any) -> None:
        raise AttributeError(f"{self.name!r} is read from `fitted_` and cannot be set")


class ArrayAttribute(FittedAttribute):
    """The same, in the library and on the device of the training rows."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else at_home(model, super().__get__(model, owner))


class OptionalAttribute(FittedAttribute):
    """The same, with None as a value."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else getattr(fitted_of(model), self.field)


class Extra(FittedAttribute):
    """What a feature has added to the fitted model. Raises AttributeError if it has not."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else self.present(model, fitted_of(model).extras.get(self.field))

    def present(self, model: Any, value: Any) -> Any:
        """The value. Raises AttributeError if it is missing or empty."""
        if value is None or value == ():
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return value


class Receipts(FittedAttribute):
    """Records that features have added to the fitted model; none if there are none."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else fitted_of(model).extras.get(self.field, ())


class LastReceipt(Extra):
    """The last of such records. Raises AttributeError if there is none."""

    def present(self, model: Any, value: Any) -> Any:
        return super().present(model, value)[-1]


class Note(FittedAttribute):
    """An attribute with the value of a note of the fitted model. Raises AttributeError if there is no such note."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        notes = fitted_of(model).notes
        if self.field not in notes:
            raise AttributeError(f"this {type(model).__name__} has no attribute {self.name!r}")
        return notes[self.field]


# -- A plain-text summary of a fitted generative model -------------------------------------------------------


def summary(name: str, fitted: Fitted, table: TrainingTable) -> PlainText:
    """Classes, columns and training of a fitted model; ``name`` is that of its estimator."""
    k, d = (
        counted(len(fitted.classes), "class", "classes"),
        counted(len(fitted.binding.conversion.names), "column"),
    )
    lines = [
        f"{name}: {k}, {d}, rule {fitted.rule.name}, {counted(fitted.n_iter, 'update')}",
        _class_table(fitted),
        _family_table(fitted.binding) if fitted.schema is None else _column_table(fitted.schema),
        *_training_lines(fitted),
        *([f"privacy: {fitted.extras['privacy']}"] if "privacy" in fitted.extras else []),
        f"training table: {table}",
        kept_rows_line({}),
    ]
    return PlainText("\n".join(lines))


def _class_table(fitted: Fitted) -> str:
    counts = fitted.data_statistics[PRIOR]["count"]
    cells = zip(fitted.classes.tolist(), counts, counts / max(counts.sum(), 1e-300), strict=True)
    rows = [(str(label), f"{count:.6g}", f"{share:.3f}") for label, count, share in cells]
    return shortened([("class", "weight of rows", "share"), *rows])


def _column_table(schema: Schema) -> str:
    return shortened([Column._fields, *(tuple(str(cell) for cell in column) for column in schema.columns)])


def _family_table(binding: ColumnBinding) -> str:
    rows = [
        (name, type(family).__name__, listed(binding.columns(name)))
        for name, family in binding.families.items()
    ]
    return shortened([("family", "model", "columns"), *rows])


def _training_lines(fitted: Fitted) -> list[str]:
    """Error and log loss on the training rows, where training has computed them, and what is lacking."""
    lacking = [f"no parameters yet: {fitted.lacking}"] if fitted.lacking else []
    if fitted.history is None or fitted.best_iter is None:
        return lacking
    error, loss = (float(fitted.history[name][fitted.best_iter]) for name in ("error", "log_loss"))
    return [*lacking, f"training error {error:.4g}, log loss {loss:.4g}"]


# -- An estimator adjusted to other class frequencies --------------------------------------------------------


def adjusted(model: Any, fitted: Fitted, priors: Any) -> Any:
    """A copy of an estimator whose model, and whose record of held-out rows, are adjusted to other class frequencies."""
    given = class_probabilities(priors, fitted.classes)
    adapted = model.holding(with_priors(fitted, given))
    return keep_shifted(model, adapted, log_change(fitted, given), np.asarray(given, dtype=np.float64))


# -- The one estimator class behind all presets: scikit-learn's interface to a `Fitted` model ----------------


@estimator
class GenerativeEstimator(ClassifierMixin, Decisions, BaseEstimator):  # type: ignore[misc]
    """Training, prediction, explanation, sampling and exact updates of a generative classifier.

    Subclasses (presets) say which families model which columns. The parameters are described in `GenerativeClassifier`.
    """

    rule: str | Rule = "rc"
    max_iter: int = 64
    stop: str | Stop | list[Stop] | tuple[Stop, ...] | None = "objective"
    training: TrainingOptions | None = None
    costs: Array | None = None
    random_state: int | np.random.RandomState | None = None
    engine: Engine | None = None
    n_jobs: int | None = None
    verbose: int = 0

    default_start: ClassVar[str] = "data"
    reads_sparse: ClassVar[bool] = False
    runs_on_device: ClassVar[bool] = False  # whether X may be an array of PyTorch, CuPy, ...
    fewest_classes: ClassVar[int] = 2
    allows_lost_classes: ClassVar[bool] = False
    """Whether classes without rows or of prior probability 0 are allowed, for rules with a closed form."""
    is_tempered_if_wide: ClassVar[bool] = False
    """Whether `fit` chooses a temperature by inner folds if the table has more columns than rows."""

    if TYPE_CHECKING:

        @property
        def fitted_(self) -> Fitted: ...

        @property
        def training_table_(self) -> TrainingTable: ...

    # -- what a preset says ----------------------------------------------------------------------------------------

    def specify(self, rows: TrainingRows, classes: Array) -> Specification:
        """The families that the parameters stand for; they may depend on the training rows."""
        return Specification(self.specifications(), self.class_prior_for(len(classes)))

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        """The families that the parameters stand for: (name, family, columns) or (name, family, columns, encoder)."""
        raise TypeError(f"{type(self).__name__} names no families")

    def class_priors(self, k: int) -> Any:
        """Class probabilities that stay fixed (k,), a `ClassPrior`, or None to count the classes."""
        return None

    def class_prior_for(self, k: int) -> ClassPrior:
        """The class prior of k classes; one of them may have probability 0 if the preset allows it."""
        allows_zero = self.allows_lost_classes and rule_named(self.rule).is_closed_form
        return class_prior_of(self.class_priors(k), allows_zero)

    def describe(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        """The kind of each column, if the estimator chooses it."""
        return None

    def recipe(self, engine: Engine) -> Recipe:
        """What to train and how, from the constructor parameters. Raises ValueError if one is invalid."""
        parameters.whole_number("max_iter", self.max_iter, 0)
        options = TrainingOptions.given(self.training)
        callbacks = parameters.listed_callbacks(options.callbacks)
        if self.verbose:
            callbacks.insert(0, ProgressReporter(type(self).__name__, True).after_update)
        return Recipe(
            specify=self.specify,
            rule=rule_named(self.rule),
            stop=self.stop,
            max_iter=self.max_iter,
            options=options,
            engine=engine,
            random_state=self.random_state,
            callbacks=callbacks,
            describe=self.describe,
            default_start=self.default_start,
            is_tempered_if_wide=self.is_tempered_if_wide and self.training is None,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = True, self.reads_sparse
        tags.array_api_support = self.runs_on_device
        return tags

    # -- training ----------------------------------------------------------------------------------------------------

    @door.fit_on_device
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on a table. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array, data frame or, if all families read counts or flags, sparse array of shape (n, d)
            Missing values are NaN, None or NA.
        y : (n,) labels
            None, NaN or NA is a missing label, for ``rule="em"``.
        sample_weight : (n,) floats, optional
        """
        with door.computing_for(self, X) as engine:
            reader, recipe = unfitted_copy(self), self.recipe(engine)
            if (privacy := recipe.options.privacy) is not None:
                return adopt(
                    self, feature("privacy").fit_privately(self, privacy, X, y, sample_weight, recipe)
                )
            unlabeled = recipe.rule.uses_unlabeled
            fitted = fit(recipe, *self._rows(reader, X, y, sample_weight, engine, unlabeled=unlabeled))
        return adopt(self, {**vars(reader), "fitted_": fitted})

    @door.fit_on_device
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on further rows.

        For ML and MAP the result is that of `fit` on all rows so far, given the kinds, bins, grids and pooled levels
        that the first call fixes; with ``TrainingOptions(keep_summary=True)`` bins, grids and pooled levels are those of
        all rows so far, too. For other rules, and if something is hidden (components of a mixture, missing values under a
        full covariance), the rows' statistics are added and one step of the rule is taken on them. The first call needs
        all classes. New levels may appear later; if levels are pooled they join the pool. Gradient descent and trees then
        start anew from the data so far, as trees do when their structure changes. Until every class has enough rows,
        predictions raise ValueError (docs/scikit-learn.md: classes of probability 0).
        """
        with door.computing_for(self, X) as engine:
            recipe, before = self.recipe(engine), getattr(self, "fitted_", None)
            self.refuse_parts_of_rows()
            reader = unfitted_copy(self) if before is None else copy.copy(self)
            options = {"classes": known_classes(classes, before), "reset": before is None}
            options["unlabeled"] = recipe.rule.uses_unlabeled
            known, rows = self._rows(reader, X, y, sample_weight, **options)
            fitted = update(before, recipe, known, rows)
        seen = reader.training_table_ if before is None else self.training_table_ + rows.described()
        return adopt(self, {**vars(reader), "fitted_": fitted, "training_table_": seen})

    def _rows(self, reader: Any, *given: Any, **options: Any) -> tuple[Array, Any]:
        """Classes and rows of table, labels and weights, read in passes by an engine; ``reader`` notes the columns."""
        few = self.fewest_classes
        return rows_of(reader, *given, class_weight=self.class_weight, fewest_classes=few, **options)

    calibrate = delegate("analysis.calibrate")

    def holding(self, fitted: Fitted, table: Table | None = None, **changes: Any) -> Self:
        """A copy of this estimator that holds a fitted model; ``table`` is its training table, if it is another one."""
        holder = forget_rows(copy.copy(self) if table is None else unfitted_copy(self))
        if table is not None:
            set_training_table(holder, table)
        return adopt(holder, {**vars(holder), "fitted_": fitted, **changes})

    verify = verify_attributes
    leave_one_out = delegate("analysis.leave_one_out")
    unknown_cells = delegate("analysis.unknown_cells", "cells_of")
    influence = delegate("analysis.influence", "influence_of_groups")
    __sklearn_array_api_convert__ = delegate("backends.device.input", "moved")

    # -- prediction --------------------------------------------------------------------------------------------------

    @door.on_device
    def predict(self, X: Any) -> Array:
        """The class of each row, (n,): the most probable one, or with ``costs`` the one of lowest expected cost."""
        if self.costs is not None:
            return super().predict(X)
        codes = self._of_table(predict.most_probable_classes, X)
        return door.labels_at(self.fitted_.classes, codes)

    @door.on_device
    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return self._of_table(predict.log_posterior, X)

    @door.on_device
    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k)."""
        return self._of_table(predict.log_joint, X)

    @door.on_device
    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,): low for rows unlike those of training."""
        return log_normalize(self.predict_joint_log_proba(X))[1]

    @door.on_device
    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes, before any temperature; otherwise log p(x, class), (n, k)."""
        joint = self.predict_joint_log_proba(X)
        return log_odds(joint) if joint.shape[1] == 2 else joint

    def outlier_threshold(self, X: Any, share: float = 0.01) -> float:
        """The log density below which a new row falls with probability at most ``share``.

        ``X`` are rows that were not used for training; the bound holds for any distribution (a conformal quantile). It
        is -inf if they are too few for so small a share. A row with missing values has the density of its known ones,
        which is no smaller: use the threshold for rows that are as complete as these.
        """
        scores = np.sort(door.on_numpy(self.score_samples(X)))
        return predict.lower_quantile(scores, parameters.number("share", share, 0.0, 1.0))

    def with_priors(self, priors: Array | Mapping[Any, float]) -> Self:
        """This model adjusted to other class frequencies (prior shift), without training.

        The log odds move by the difference between the new frequencies, (k,) or a mapping class -> probability, and
        those of training.
        """
        return adjusted(self, self._learned(), priors)

    marginals = delegate("analysis.marginals", "marginals_of")
    sample = delegate("analysis.sample", "sample_model")
    fill = delegate("analysis.sample", "fill_rows")

    def _learned(self) -> Fitted:
        """The fitted model, with parameters."""
        check_is_fitted(self, "fitted_")
        self.fitted_.learned()
        return self.fitted_

    def _of_table(self, function: Any, X: Any) -> Any:
        """A function of the fitted model, a table and an engine."""
        fitted, table = self._learned(), new_table(self, X)
        with door.computing_for(self, X) as engine:
            return function(fitted, table, engine)

    def _decision_inputs(self, X: Any, *, density: bool) -> tuple[Array, Array, Array]:
        joint = self.predict_joint_log_proba(X)
        log_posterior, evidence = log_normalize(joint)
        return joint, np.exp(predict.tempered_posterior(self.fitted_, log_posterior)), evidence

    def summary(self) -> PlainText:
        """Plain text: classes, columns and training."""
        check_is_fitted(self, "fitted_")
        return summary(type(self).__name__, self.fitted_, self.training_table_)

    # -- exact arithmetic --------------------------------------------------------------------------------------------

    merge = delegate("analysis.merging", "merge_models")
    forget = delegate("analysis.forget")

    def require_sums(self) -> None:
        """Raises ValueError unless this is a fitted closed-form model whose statistics are plain sums over rows."""
        check_is_fitted(self, "fitted_")
        feature("merging").require_additive(self.fitted_)
        self.refuse_parts_of_rows()

    def refuse_parts_of_rows(self) -> None:
        """Raises ValueError if a parameter needs all rows at once, so that the model is no sum over rows."""
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once: give row weights instead")

    # -- fitted attributes -------------------------------------------------------------------------------------------

    classes_ = ArrayAttribute("classes", "Class labels, (k,).")
    data_statistics_ = FittedAttribute("data_statistics", "Family -> name -> array: sums over the data.")
    statistics_ = OptionalAttribute("statistics", "Family -> name -> array: the statistics after training.")
    parameters_ = OptionalAttribute("parameters", "Family -> name -> array, in the columns' own units.")
    n_iter_ = FittedAttribute("n_iter", "Number of updates, at least 1.")
    history_ = FittedAttribute("history", "Name -> array over the states; a closed form has none.")
    best_iter_ = FittedAttribute("best_iter", "The entry of the history that was used.")
    temperature_ = FittedAttribute("temperature", "Divides log probabilities.")
    schema_ = FittedAttribute("schema", "The kind of each column, if the estimator chose it.")
    privacy_account_ = Extra("privacy", "What a differentially private training has spent.")
    forgetting_receipts_ = Receipts("receipts", "Records of removals of rows, the first one first.")
    forgetting_receipt_ = LastReceipt("receipts", "The record of the last removal of rows (`forget`).")
