"""The one estimator class behind all presets: scikit-learn's interface to a `Fitted` model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.notices import PlainText, ProgressReporter, counted, listed, shortened
from calibayes.core.protocols import Array, Engine, Rule
from calibayes.encoders.schema import Column, Schema
from calibayes.engines import chosen_engine
from calibayes.families import ClassPrior
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.posterior import log_normalize
from calibayes.learn import Stop
from calibayes.model import attributes, checked_rows, parameters, predict
from calibayes.model.attributes import (
    FittedAttribute,
    LastReceipt,
    OptionalAttribute,
    Receipts,
    delegate,
    fitted_of,
    on_one_state,
)
from calibayes.model.binding import ColumnBinding
from calibayes.model.checked_rows import Reading, Rows, TrainingRows
from calibayes.model.classifier import Classifier
from calibayes.model.decision import log_odds
from calibayes.model.delegates import feature
from calibayes.model.fitted import Fitted, fit, known_classes, log_change, update, with_priors
from calibayes.model.parameters import adopt, copy_without, estimator, unfitted_copy
from calibayes.model.recipe import DEFAULT_OPTIONS, Recipe, Specification, TrainingOptions, training_options
from calibayes.model.table_inputs import labels_at, on_numpy, open_rows
from calibayes.model.training_rows import OF_ROWS, keep_shifted
from calibayes.model.verification import require_same_table, verified_conversion
from calibayes.rules import rule_named
from calibayes.tables.table import Table, TrainingTable

Generative = TypeVar("Generative", bound="GenerativeEstimator")

# -- A plain-text summary of a fitted generative model -------------------------------------------------------


def summary(name: str, fitted: Fitted, table: TrainingTable) -> PlainText:
    """Classes, columns and training of a fitted model; ``name`` is that of its estimator."""
    k = counted(len(fitted.classes), "class", "classes")
    d = counted(len(fitted.binding.conversion.names), "column")
    lines = [
        f"{name}: {k}, {d}, rule {fitted.rule.name}, {counted(fitted.n_iter, 'update')}",
        _class_table(fitted),
        _family_table(fitted.binding) if fitted.schema is None else _column_table(fitted.schema),
        *_training_lines(fitted),
        *([f"privacy: {fitted.extras['privacy']}"] if "privacy" in fitted.extras else []),
        f"training table: {table}",
        checked_rows.kept_rows_line({}),
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
    families = binding.families.items()
    rows = [(name, type(family).__name__, listed(binding.columns(name))) for name, family in families]
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
    given = checked_rows.class_probabilities(priors, fitted.classes)
    adapted = holding(model, with_priors(fitted, given))
    return keep_shifted(model, adapted, log_change(fitted, given), np.asarray(given, dtype=np.float64))


# -- The one estimator class behind all presets: scikit-learn's interface to a `Fitted` model ----------------


class Traits(NamedTuple):
    """What kinds of tables and classes a preset accepts."""

    start: str = "data"
    reads_sparse: bool = False
    reads_text: bool = False
    runs_on_device: bool = False
    """Whether X may be an array of PyTorch, CuPy, ..."""
    fewest_classes: int = 2
    allows_lost_classes: bool = False
    """Whether classes without rows or of prior probability 0 are allowed, for rules with a closed form."""
    is_tempered_if_wide: bool = False
    """Whether `fit` chooses a temperature by inner folds if the table has more columns than rows."""


@estimator
class GenerativeEstimator(Classifier):
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

    _traits: ClassVar[Traits] = Traits()
    _schema: ClassVar[Any] = None
    """Method of a preset that chooses the kinds of columns: their schema, from the column binding and the summary."""

    if TYPE_CHECKING:
        class_weight: Any

        @property
        def fitted_(self) -> Fitted: ...

        @property
        def training_table_(self) -> TrainingTable: ...

    # -- what a preset says ----------------------------------------------------------------------------------------

    def _families(self) -> Sequence[tuple[Any, ...]]:
        """The families that the parameters stand for: (name, family, columns) or (name, family, columns, encoder)."""
        raise TypeError(f"{type(self).__name__} names no families")

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        """The families that the parameters stand for; they may depend on the training rows."""
        return Specification(self._families(), self._class_prior(len(classes)))

    def _given_priors(self, k: int) -> Any:
        """Class probabilities that stay fixed (k,), a `ClassPrior`, or None to count the classes."""
        return getattr(self, "priors", None)

    def _class_prior(self, k: int) -> ClassPrior:
        """The class prior of k classes; one of them may have probability 0 if the preset allows it."""
        allows_zero = self._traits.allows_lost_classes and rule_named(self.rule).is_closed_form
        given = self._given_priors(k)
        prior = given if isinstance(given, ClassPrior) else ClassPrior(given)
        return replace(prior, allows_zero=prior.allows_zero or allows_zero)

    def _recipe(self, engine: Engine) -> Recipe:
        """What to train and how, from the constructor parameters. Raises ValueError if one is invalid."""
        parameters.whole_number("max_iter", self.max_iter, 0)
        options = DEFAULT_OPTIONS if self.training is None else training_options(self.training)
        callbacks = list(options.callbacks or ())
        if self.verbose:
            callbacks.insert(0, ProgressReporter(type(self).__name__, True).after_update)
        rule, traits = rule_named(self.rule), self._traits
        try:
            seeds = check_random_state(self.random_state)
        except (TypeError, ValueError):
            raise parameters.no_seed(self.random_state) from None
        return Recipe(
            specify=self._specification,
            reading=Reading(self.class_weight, rule.uses_unlabeled, fewest_classes=traits.fewest_classes),
            rule=rule,
            stop=self.stop,
            max_iter=self.max_iter,
            options=options,
            engine=engine,
            seeds=seeds,
            random_state=self.random_state,
            callbacks=callbacks,
            describe=self._schema,
            default_start=traits.start,
            is_tempered_if_wide=traits.is_tempered_if_wide and self.training is None,
        )

    def _refuse_parts_of_rows(self) -> None:
        """Raises ValueError if a parameter needs all rows at once, so that the model is no sum over rows."""
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once: give row weights instead")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = True, self._traits.reads_sparse
        tags.input_tags.string = self._traits.reads_text or getattr(self, "encoder", None) is not None
        tags.array_api_support = self._traits.runs_on_device
        return tags

    # -- training ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on a table. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array, data frame or, if all families read counts or flags, sparse array of shape (n, d)
            Missing values are NaN, None or NA.
        y : (n,) labels
            None, NaN or NA is a missing label, for ``rule="em"``, ``RC(unlabeled=1)`` and ``GDT(unlabeled=1)``.
        sample_weight : (n,) floats, optional
        """
        given = open_rows(X, y, sample_weight)
        with given.engine(self) as engine:
            reader, recipe = unfitted_copy(self), self._recipe(engine)
            if recipe.options.privacy is not None:
                return adopt(self, feature("privacy").fit_privately(self, recipe, given))
            classes, rows = given.rows(reader, engine, recipe.reading)
            fitted = fit(recipe, classes, rows)
        return adopt(self, {**vars(reader), "fitted_": fitted, **given.kept(rows)})

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
        given = open_rows(X, y, sample_weight)
        with given.engine(self) as engine:
            recipe, before = self._recipe(engine), vars(self).get("fitted_")
            self._refuse_parts_of_rows()
            reader = unfitted_copy(self) if before is None else copy_without(self, OF_ROWS)
            known, is_first = known_classes(on_numpy(classes), before), before is None
            how = recipe.reading._replace(classes=known, reset=is_first)
            known, rows = given.in_memory().rows(reader, engine, how)
            fitted = update(before, recipe, known, rows)
        seen = rows.described() if is_first else self.training_table_ + rows.described()
        return adopt(self, {**vars(reader), "fitted_": fitted, "training_table_": seen, **given.place()})

    calibrate = delegate("analysis.calibrate")
    influence = delegate("analysis.influence", "influence_of_groups")
    __sklearn_array_api_convert__ = delegate("backends.device.input", "moved")

    # -- prediction --------------------------------------------------------------------------------------------------

    @on_one_state
    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k)."""
        return open_rows(X).map(self, "predict_joint_log_proba", self._log_joint)

    @on_one_state
    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,): low for rows unlike those of training."""
        return open_rows(X).map(self, "score_samples", self._log_density)

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes, before any temperature; otherwise log p(x, class), (n, k)."""
        return super().decision_function(X)

    def _labels(self, table: Table, engine: Engine) -> Array:
        if self.costs is not None:
            return super()._labels(table, engine)
        codes = predict.most_probable_classes(fitted_of(self), table, engine)
        return labels_at(self.fitted_.classes, codes)

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        return predict.log_posterior(fitted_of(self), table, engine)

    def _log_joint(self, table: Table, engine: Engine) -> Array:
        return predict.log_joint(fitted_of(self), table, engine)

    def _log_density(self, table: Table, engine: Engine) -> Array:
        return log_normalize(self._log_joint(table, engine))[1]

    def _scores(self, table: Table, engine: Engine) -> Array:
        joint = self._log_joint(table, engine)
        return log_odds(joint) if joint.shape[1] == 2 else joint

    def _decision_inputs(self, X: Any, *, density: bool) -> tuple[Array, Array, Array]:
        joint = on_numpy(self.predict_joint_log_proba(X))
        log_posterior, evidence = log_normalize(joint)
        return joint, np.exp(predict.tempered_posterior(self.fitted_, log_posterior)), evidence

    @on_one_state
    def outlier_threshold(self, X: Any, share: float = 0.01) -> float:
        """The log density below which a new row falls with probability at most ``share``.

        ``X`` are rows that were not used for training; the bound holds for any distribution (a conformal quantile). It
        is -inf if they are too few for so small a share. A row with missing values has the density of its known ones,
        which is no smaller: use the threshold for rows that are as complete as these.
        """
        scores = np.sort(on_numpy(self.score_samples(X)))
        return predict.lower_quantile(scores, parameters.number("share", share, 0.0, 1.0))

    @on_one_state
    def with_priors(self, priors: Array | Mapping[Any, float]) -> Self:
        """This model adjusted to other class frequencies (prior shift), without training.

        The log odds move by the difference between the new frequencies, (k,) or a mapping class -> probability, and
        those of training.
        """
        return adjusted(self, fitted_of(self), priors)

    marginals = delegate("analysis.marginals", "marginals_of")
    sample = delegate("analysis.sample", "sample_model")
    fill = delegate("analysis.sample", "fill_rows")

    @on_one_state
    def summary(self) -> PlainText:
        """Plain text: classes, columns and training."""
        return summary(type(self).__name__, fitted_of(self), self.training_table_)

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        if (conversion := verified_conversion(self, Fitted)) is None:
            return
        require_same_table(conversion, self.fitted_.binding)
        recipe_of(self).verify()

    # -- exact arithmetic --------------------------------------------------------------------------------------------

    merge = delegate("analysis.merging", "merge_models")
    forget = delegate("analysis.forget")

    # -- fitted attributes -------------------------------------------------------------------------------------------

    classes_ = attributes.ArrayAttribute("classes", "Class labels, (k,).")
    data_statistics_ = FittedAttribute("data_statistics", "Family -> name -> array: sums over the data.")
    statistics_ = OptionalAttribute("statistics", "Family -> name -> array: the statistics after training.")
    parameters_ = OptionalAttribute("parameters", "Family -> name -> array, in the columns' own units.")
    n_iter_ = FittedAttribute("n_iter", "Number of updates, at least 1.")
    history_ = FittedAttribute("history", "Name -> array over the states; a closed form has none.")
    best_iter_ = FittedAttribute("best_iter", "The entry of the history that was used.")
    temperature_ = FittedAttribute("temperature", "Divides log probabilities.")
    schema_ = FittedAttribute("schema", "The kind of each column, if the estimator chose it.")
    privacy_account_ = attributes.Extra("privacy", "What a differentially private training has spent.")
    forgetting_receipts_ = Receipts("receipts", "Records of removals of rows, the first one first.")
    forgetting_receipt_ = LastReceipt("receipts", "The record of the last removal of rows (`forget`).")


# -- What other modules need of an estimator ------------------------------------------------------------------


def recipe_of(model: GenerativeEstimator, engine: Engine | None = None) -> Recipe:
    """What an estimator trains and how; by default where its own engine runs. Raises ValueError if a parameter is invalid."""
    return model._recipe(chosen_engine(model.engine, model.n_jobs) if engine is None else engine)


def families_of(model: GenerativeEstimator) -> Sequence[tuple[Any, ...]]:
    """The families that the parameters of an estimator stand for, as `GenerativeClassifier` takes them."""
    return model._families()


def traits_of(model: GenerativeEstimator) -> Traits:
    """What kinds of tables and classes an estimator accepts."""
    return model._traits


def class_prior_for(model: GenerativeEstimator, k: int) -> ClassPrior:
    """The class prior that the parameters of an estimator stand for, over k classes."""
    return model._class_prior(k)


def holding(model: Generative, fitted: Fitted, table: Table | None = None, **changes: Any) -> Generative:
    """A copy of an estimator that holds a fitted model; ``table`` is its training table, if it is another one."""
    holder = copy_without(model, OF_ROWS) if table is None else unfitted_copy(model)
    if table is not None:
        checked_rows.set_training_table(holder, table)
    return adopt(holder, {**vars(holder), "fitted_": fitted, **changes})


def refuse_parts_of_rows(model: GenerativeEstimator) -> None:
    """Raises ValueError if a parameter needs all rows at once, so that the model is no sum over rows."""
    model._refuse_parts_of_rows()


def require_sums(model: GenerativeEstimator) -> None:
    """Raises ValueError unless this is a fitted closed-form model whose statistics are plain sums over rows."""
    feature("merging").require_additive(fitted_of(model))
    model._refuse_parts_of_rows()


def known_rows(model: GenerativeEstimator, X: Any, y: Any, sample_weight: Any = None, **changes: Any) -> Rows:
    """Rows in memory, read like those that the model of an estimator was trained on."""
    fitted = model.fitted_
    how = Reading(model.class_weight, fitted.rule.uses_unlabeled, fitted.classes, reset=False)
    how = how._replace(fewest_classes=model._traits.fewest_classes)._replace(**changes)
    return open_rows(X, y, sample_weight).in_memory().rows(model, None, how)[1]
