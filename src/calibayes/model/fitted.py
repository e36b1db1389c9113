"""The fitted model as one immutable value. Everything a model can do is a function of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.named_arrays import add
from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Layout, ModelArrays, Rule, State
from calibayes.core.verify import require, require_array, require_names, require_number
from calibayes.encoders.schema import Schema
from calibayes.families import ClassPrior, Product
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.dispatch import hosted, on_host
from calibayes.kernels.posterior import best_temperature, log_normalize
from calibayes.learn import LastState, Plan, Run, as_arrays, problem_of, train
from calibayes.learn.train import accurate_sums, prepared, step_on_new_rows
from calibayes.model.binding import ColumnBinding
from calibayes.model.checked_rows import Rows, TrainingRows, read_classes
from calibayes.model.delegates import EXTRAS, feature
from calibayes.model.recipe import Assembly, Recipe, assemble, layouts_of, recoded
from calibayes.model.splits import evaluation_folds, hold_out, rows_by_weight
from calibayes.model.verification import verify_classes

SINGLE: np.dtype[Any] = np.dtype(np.float32)
ROUNDING = 1e-12
"""Share of a sum that is left as rounding when all rows were removed from it."""
NOT_SUMS = "not_sums"
"""Note of a model whose statistics are no sums over its training rows: why, and what to do."""


@dataclass(frozen=True)
class Fitted:
    """A trained generative model: named arrays and plain values, without code.

    Attributes
    ----------
    classes : (k,) array
    binding : ColumnBinding
        Which columns each family models, and their fitted encoders.
    model : Product
        Class prior and families, with everything that stays fixed.
    rule : Rule
        The rule it was trained by.
    data_statistics : mapping
        Family -> name -> array: sums over the data. For a family with a structure, the sums it was found in.
    state : mapping or None
        The value of the rule's state, from which training can continue.
    statistics : mapping or None
        The statistics as the rule left them; None for a rule that keeps none.
    parameters : mapping or None
        Family -> name -> array, in the columns' own units; None while there are too few rows.
    is_additive : bool
        Whether the statistics are plain sums over rows, so that models can be merged and rows removed exactly.
    lacking : str
        Why there are no parameters yet.
    temperature : float
        Divides log probabilities.
    has_shifted_priors : bool
        Whether the class probabilities were replaced (`with_priors`).
    n_iter : int
        Number of updates, at least 1.
    history : mapping or None
        Name -> array over the states of training.
    best_iter : int or None
        The state that was used.
    schema : Schema or None
        The kind of each column, where the estimator chose it.
    notes : mapping
        Further results of training, by name.
    extras : mapping
        What features above the model have added, by name (`calibayes.model.delegates.EXTRAS`).
    """

    classes: Array
    binding: ColumnBinding
    model: Product
    rule: Rule
    data_statistics: ModelArrays
    state: ModelArrays | None = None
    statistics: ModelArrays | None = None
    parameters: ModelArrays | None = None
    is_additive: bool = False
    lacking: str = ""
    temperature: float = 1.0
    has_shifted_priors: bool = False
    n_iter: int = 1
    history: Mapping[str, Array] | None = None
    best_iter: int | None = None
    schema: Schema | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)

    def verify(self) -> None:
        """Raises ValueError if the parts, which may come from a model file, do not fit together."""
        verify_classes(self.classes)
        self.binding.verify()
        self.model.verify()
        self._verify_arrays()
        self._verify_progress()
        layouts, names = layouts_of(self.binding, self.classes)
        require(self.model.prior.layout.classes == names, "the model has other classes")
        require_names("families of the model", self.model.families, layouts)
        for name, family in self.model.families.items():
            require_same_layout(name, cast(Any, family).layout, layouts[name])
            is_kind = type(family) is type(self.binding.families[name])
            require(is_kind, f"family {name!r} of the model is not of the kind that was bound")
        for name, value in self.extras.items():
            require(name in EXTRAS, f"unknown extra {name!r}")
            feature(EXTRAS[name]).verify_extra(self, value)

    def _verify_arrays(self) -> None:
        """Raises ValueError if statistics, state or parameters are missing or do not fit the model."""
        self.model.verify_structure_statistics(self.data_statistics)
        has_parameters = self.parameters is not None
        has_statistics = has_parameters and self.rule.keeps_statistics
        require((self.state is not None) == has_parameters, "parameters without a state, or the reverse")
        require((self.statistics is not None) == has_statistics, f"statistics of rule {self.rule.name!r}")
        if self.parameters is not None:
            self.model.verify_parameters(self.parameters)
        if self.statistics is not None:
            self.model.verify_statistics(self.statistics)
        if self.state is not None:
            verify = self.model.verify_statistics if has_statistics else self.model.verify_parameters
            verify(self.state)

    def _verify_progress(self) -> None:
        """Raises ValueError if the history, the number of updates or the temperature is impossible."""
        require_number("the temperature", self.temperature, 1e-12, 1e12)
        require(self.n_iter >= 1, f"n_iter is {self.n_iter}, below 1")
        lengths = {len(require_array(name, value, (None,))) for name, value in (self.history or {}).items()}
        require(len(lengths) <= 1, "the arrays of the history differ in length")
        states = max(lengths, default=self.n_iter + 1)
        require(self.best_iter is None or 0 <= self.best_iter < states, f"best_iter is {self.best_iter}")

    def with_extra(self, name: str, value: Any) -> Fitted:
        """This model with what a feature adds, or without it, for None or an empty tuple."""
        others = {key: extra for key, extra in self.extras.items() if key != name}
        return replace(self, extras=others if value is None or value == () else {**others, name: value})

    def after(self, run: Run) -> Fitted:
        """This model with the best state of a run."""
        state = run.best.state
        # A rule keeps its statistics as the value of its state, or none.
        value, parameters = hosted(state.value), hosted(state.parameters)
        statistics = value if state.statistics is state.value else state.statistics
        return replace(self, state=value, statistics=statistics, parameters=parameters, lacking="")

    def without_parameters(self, lacking: str) -> Fitted:
        """This model while its rows are too few for parameters."""
        empty = replace(self, state=None, statistics=None, parameters=None, history=None, best_iter=None)
        return replace(empty, lacking=lacking)

    def closed_form(self, data_statistics: ModelArrays) -> Fitted:
        """The maximum-likelihood model of other sums over rows, or one that says what it lacks."""
        changed = replace(self, data_statistics=data_statistics, history=None, best_iter=None)
        try:
            model = self.model.prepare(data_statistics)
        except ValueError as error:
            return changed.without_parameters(str(error))
        return replace(changed, model=model, lacking="").uncalibrated()

    def uncalibrated(self) -> Fitted:
        """The model before calibration: the closed form of the data."""
        sums = self.model.statistics_of(self.data_statistics)
        return replace(self, state=sums, statistics=sums, parameters=self.model.parameters(sums))

    def learned(self) -> ModelArrays:
        """The parameters. Raises ValueError if there were too few rows for them."""
        if self.parameters is None:
            raise ValueError(f"not enough rows have been seen yet: {self.lacking}")
        return self.parameters

    @property
    def number_type(self) -> np.dtype[Any]:
        """float32 if all training columns were float32 and are modeled as numbers; otherwise float64."""
        reads_numbers = all(family.reads == "numbers" for family in self.model.families.values())
        return SINGLE if reads_numbers and set(self.binding.types) == {SINGLE} else np.dtype(np.float64)

    def refuse_shifted_priors(self) -> None:
        """Raises ValueError if the class probabilities were replaced."""
        if self.has_shifted_priors:
            advice = "train, merge or forget first, and replace them afterwards"
            raise ValueError(f"the class priors of this model were replaced (with_priors): {advice}")

    def require_changeable(self) -> None:
        """Raises ValueError if rows cannot be added to the statistics, removed from them or weighed against them."""
        self.refuse_shifted_priors()
        if reason := self.notes.get(NOT_SUMS):
            raise ValueError(str(reason))


def counted_families(binding: ColumnBinding) -> list[str]:
    """Names of the families whose encoders depend on the training rows: those that ``keep_summary`` is for."""
    return [name for name, encoder in binding.encoders.items() if encoder.data_dependence]


def require_same_layout(name: str, given: Layout, expected: Layout) -> None:
    """Raises ValueError if a family's layout is not that of its encoder.

    A family may have seeds of more classes: those of classes without rows.
    """
    seeds = tuple(map(_are_close, given.seeds, expected.seeds))
    parts = ((getattr(given, f.name), getattr(expected, f.name)) for f in fields(Layout) if f.name != "seeds")
    is_same = all(_are_close(left, right) for left, right in parts)
    require(is_same and all(seeds), f"the layout of family {name!r} is not that of its encoder")


def _are_close(left: Any, right: Any) -> bool:
    """Whether arrays are equal to rounding: logarithms of another processor differ in the last digit."""
    if not isinstance(left, np.ndarray):
        return bool(left == right)
    return left.shape == right.shape and bool(np.allclose(left, right, rtol=1e-9, atol=1e-9))


def begin(assembly: Assembly, rule: Rule, data_statistics: ModelArrays, **changes: Any) -> Fitted:
    """A model without parameters yet."""
    return Fitted(
        classes=assembly.classes,
        binding=assembly.binding.for_new_rows(),
        model=assembly.model,
        rule=rule,
        data_statistics=data_statistics,
        schema=assembly.schema,
        notes=assembly.notes,
        **changes,
    )


def with_priors(fitted: Fitted, priors: Array) -> Fitted:
    """The model adjusted to other class frequencies (prior shift), (k,) probabilities.

    Log odds move by the difference between the new frequencies and those of training. After calibration the class prior
    of the model is no frequency: it is moved by that difference, not replaced.
    """
    parameters = fitted.learned()
    fitted.refuse_shifted_priors()
    change = log_change(fitted, priors)
    moved = parameters[PRIOR]["log_probability"] + change * fitted.temperature
    shifted = {**parameters, PRIOR: {"log_probability": moved - np.logaddexp.reduce(moved)}}
    return replace(fitted, parameters=shifted, has_shifted_priors=True)


def log_change(fitted: Fitted, priors: Array) -> Array:
    """Logarithms of the ratios of class frequencies to those of training, (k,)."""
    prior = fitted.model.prior
    new = ClassPrior(fixed=priors).bind(prior.layout).parameters({})["log_probability"]
    training = replace(prior, alpha=0.0).parameters(fitted.data_statistics[PRIOR])["log_probability"]
    if not np.isfinite(training).all():
        lost = fitted.classes[~np.isfinite(training)].tolist()
        why = "had probability 0 in training, so that its log odds cannot be moved"
        raise ValueError(f"class {lost[0]!r} {why}")
    return np.asarray(new - training)


# -- Training a recipe on rows, and on further rows ------------------------------------------------------------


def fit(recipe: Recipe, classes: Array, rows: TrainingRows) -> Fitted:
    """Train on rows; with a validation fraction, first find how far to train on the others."""
    fraction, k = recipe.options.validation_fraction, len(classes)
    path = recipe.options.checkpoint
    checkpoint = None if path is None else feature("checkpoint").open_checkpoint(recipe, classes, path)
    if fraction is None:
        training, held = rows, None
    else:
        held = hold_out(rows.codes, fraction, np.random.default_rng(recipe.draw_seed()))
        training = rows.only(~held)
    plan = recipe.plan(recipe.draw_seed())
    assembly = assemble(recipe, training, classes)
    extras = _first_sums(recipe, assembly, training) if recipe.options.keep_summary else {}
    if checkpoint is not None:
        plan = _recorded(plan, checkpoint, "training", assembly)
    trained = train(assembly.model, assembly.source(rows, held), recipe.engine, plan, k)
    run = trained.run
    temperature = _temperature(recipe, assembly._replace(model=trained.model), run, rows, held)
    progress = {
        "n_iter": max(trained.updates, 1),
        "temperature": temperature,
        "history": trained.history,
        "best_iter": run.best_iter,
    }
    problems = [trained.problem]
    if held is not None and recipe.options.refit:
        # To the same sum of steps as the best state: it means the same for any number of rows.
        horizon = run.history[run.best_iter].total_step
        assembly = assemble(recipe, rows, classes)
        extras = _first_sums(recipe, assembly, rows) if recipe.options.keep_summary else {}
        last = replace(plan, stop=LastState())
        if checkpoint is not None:
            last = _recorded(last, checkpoint, "refit", assembly)
        trained = train(assembly.model, assembly.source(rows), recipe.engine, last, k, horizon)
        problems.append(trained.problem)
    for problem in filter(None, problems):
        warn(problem, ConvergenceWarning)
    fitted = begin(assembly._replace(model=trained.model), recipe.rule, trained.data.statistics, **progress)
    if checkpoint is not None:
        checkpoint.remove()
    return replace(fitted.after(trained.run), is_additive=trained.is_closed_form, extras=extras)


def _recorded(plan: Plan, checkpoint: Any, name: str, assembly: Assembly) -> Plan:
    """A plan whose states are recorded in the checkpoint."""
    return replace(plan, recorder=checkpoint.recorder(name, assembly.binding.names))


def _first_sums(recipe: Recipe, assembly: Assembly, rows: TrainingRows) -> dict[str, Any]:
    """Counts of the values of the first rows (``keep_summary``), by their name in `Fitted.extras`."""
    return {"kept": feature("keep_summary").first_sums(recipe, assembly, rows)}


def _temperature(recipe: Recipe, bound: Assembly, run: Run, rows: TrainingRows, held: Array | None) -> float:
    """The temperature given, or that of lowest log loss on held-out rows."""
    given = recipe.options.temperature
    if needs_temperature(recipe, rows):
        return fold_temperature(recipe, bound.classes, rows.in_memory())
    if not isinstance(given, str):
        return float(given)
    assert held is not None  # TrainingOptions.check makes sure
    validation = rows.only(held)
    parts = recipe.engine.each(
        lambda block: log_normalize(bound.model.log_joint(block, run.best.parameters))[0],
        bound.source(validation),
    )
    return best_temperature(on_host(np.concatenate(parts)), validation.codes, validation.weight)


def known_classes(given: Any, before: Fitted | None) -> Array:
    """All classes: those given at the first call of `partial_fit`, later those of the model."""
    if before is None:
        if given is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return read_classes(given)
    classes = before.classes if given is None else read_classes(given)
    if not np.array_equal(classes, before.classes):
        was = f"is not the same as on last call to partial_fit, was: {before.classes.tolist()}"
        raise ValueError(f"classes={classes.tolist()} {was}")
    return classes


def update(before: Fitted | None, recipe: Recipe, classes: Array, rows: Rows) -> Fitted:
    """Add further rows to a model; without one, begin it.

    A closed form is that of all rows so far. Other rules take one step on the new rows.
    """
    recipe.options.refuse_checkpoint("partial_fit")
    k, engine, plan = len(classes), recipe.engine, recipe.plan()
    if before is None:
        assembly, old = assemble(recipe, rows, classes, more_to_come=True), None
    else:
        before.require_changeable()
        if "privacy" in before.extras:
            raise ValueError(f"{feature('privacy_account').ONLY_FIT}; fit again on all rows")
        assembly, old = _extended(before, rows)
    kept = None
    if recipe.options.keep_summary:
        assembly, old, kept = feature("keep_summary").with_kept_sums(recipe, assembly, old, rows)
    source = assembly.source(rows)
    earlier = None if old is None else old.data_statistics
    model, new = accurate_sums(assembly.model, source, engine, k, earlier, more_to_come=True)
    if old is not None and model is not assembly.model:
        old = _moved(old, model)
    assembly, structure = assembly._replace(model=model), model.structure
    total: ModelArrays = new.statistics if old is None else add(old.data_statistics, new.statistics)
    closed, temperature = recipe.rule.is_closed_form and not new.hidden, recipe.options.temperature
    fitted = begin(assembly, recipe.rule, total).with_extra("kept", kept)
    fitted = replace(
        fitted,
        n_iter=1 if before is None else before.n_iter + 1,
        temperature=1.0 if isinstance(temperature, str) else float(temperature),
        is_additive=closed and (before is None or before.is_additive),
    )
    try:
        model = prepared(model, new._replace(statistics=total), source, engine, k)
    except ValueError as error:
        return fitted.without_parameters(str(error))
    state = None
    if old is not None and not closed and model.structure == structure:
        state = _state_to_continue(old, recipe.rule, model)
    run = step_on_new_rows(model, source, engine, plan, state, closed, total)
    if problem := problem_of(run):
        warn(problem, ConvergenceWarning)
    fitted = replace(fitted, model=model).after(run)
    return fitted if closed else replace(fitted, history=as_arrays(run.history), best_iter=run.best_iter)


def _moved(old: Fitted, model: Product) -> Fitted:
    """A fitted model with moments about the points of another one."""
    moved = replace(old, data_statistics=old.model.moved(old.data_statistics, model))
    if old.statistics is None:
        return moved
    statistics = old.model.moved(old.statistics, model)
    return replace(moved, state=statistics, statistics=statistics)


def _state_to_continue(old: Fitted, rule: Rule, model: Product) -> State | None:
    """The state from which a step on further rows starts; None to start from the statistics of all rows so far.

    The statistics of earlier rows may have no valid parameters under a model that was prepared on more rows.
    """
    if old.state is None or old.rule.name != rule.name:
        return None
    if old.statistics is not None and model.keep_valid(old.state, old.state)[1]:
        return None
    return rule.state(model, old.state)


def _extended(before: Fitted, rows: Rows) -> tuple[Assembly, Fitted]:
    """A model with room for levels that only further rows have.

    The state of a family with a structure cannot be recoded: its training starts anew from the data so far.
    """
    binding, moved = before.binding.extend(rows.table)
    assembly = Assembly(binding, before.model, before.classes, before.schema, before.notes)
    if not moved:
        return assembly, before
    layouts, names = layouts_of(binding, before.classes)
    families = before.model.families
    statistics = None if before.model.structure else before.statistics
    state = None if statistics is None else recoded(families, statistics, moved, layouts)
    data = recoded(families, before.data_statistics, moved, layouts)
    model = before.model.bind(layouts, names)
    return assembly._replace(model=model), replace(before, data_statistics=data, state=state)


# -- The temperature of a model of more columns than rows, chosen by inner folds -------------------------------

LOG_TEMPERATURES = (0.0, 16.0)
"""Bounds of the logarithm of the temperature: posteriors do not become more extreme."""


def needs_temperature(recipe: Recipe, rows: TrainingRows) -> bool:
    """Whether inner folds choose the temperature: not for closed forms, which must stay sums over rows, nor for EM."""
    is_likelihood = recipe.rule.uses_unlabeled and recipe.rule.generative_weight is None
    is_calibrated = not (recipe.rule.is_closed_form or is_likelihood)
    columns, is_tempered = len(rows.summary.names), recipe.is_tempered_if_wide and is_calibrated
    return is_tempered and columns > len(rows.codes) and columns > rows_by_weight(rows)


def fold_temperature(recipe: Recipe, classes: Array, rows: Rows) -> float:
    """The temperature of lowest log loss on the held-out rows of inner folds; 1 if no row can be held out."""
    rows, masks = evaluation_folds(None, rows, len(rows.codes), 0)
    log_posterior = np.full((len(rows.codes), len(classes)), np.nan)
    for mask in masks:
        log_posterior[mask] = _held_out_posterior(recipe, classes, rows.only(~mask), rows.only(mask))
    return best_temperature(log_posterior, rows.codes, rows.weight, LOG_TEMPERATURES) if masks else 1.0


def _held_out_posterior(recipe: Recipe, classes: Array, training: Rows, held_out: Rows) -> Array:
    """log p(class | x) of held-out rows, (n, k), under the model of the training rows."""
    assembly = assemble(recipe, training, classes)
    plan = replace(recipe.plan(), callbacks=())
    trained = train(assembly.model, assembly.source(training), recipe.engine, plan, len(classes))
    model, parameters = trained.model, trained.run.best.parameters
    joint = recipe.engine.each(lambda block: model.contrast(block, parameters), assembly.source(held_out))
    return log_normalize(np.concatenate(joint))[0]
