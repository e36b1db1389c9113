"""Training a recipe on rows, and on further rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.named_arrays import add
from calibayes.core.notices import warn
from calibayes.core.protocols import Array, ModelArrays, Rule, State
from calibayes.families import Product
from calibayes.kernels.dispatch import on_host
from calibayes.kernels.posterior import best_temperature, log_normalize
from calibayes.learn import LastState, Plan, Run, as_arrays, problem_of, train
from calibayes.learn.train import accurate_sums, prepared, step_on_new_rows
from calibayes.model.delegates import feature
from calibayes.model.fitted import Fitted, begin
from calibayes.model.input import Rows, TrainingRows, read_classes
from calibayes.model.recipe import Assembly, Recipe, assemble, layouts_of, recoded
from calibayes.model.splits import evaluation_folds, hold_out
from calibayes.tables.kept_sums import KeptSums


def fit(recipe: Recipe, classes: Array, rows: TrainingRows) -> Fitted:
    """Train on rows; with a validation fraction, first find how far to train on the others."""
    fraction, k = recipe.options.validation_fraction, len(classes)
    path = recipe.options.checkpoint
    checkpoint = None if path is None else feature("checkpoint").open_checkpoint(recipe, classes, path)
    held = None
    if fraction is not None:
        held = hold_out(rows.codes, fraction, np.random.default_rng(recipe.draw_seed()))
    plan = recipe.plan(recipe.draw_seed())
    training = rows if held is None else rows.only(~held)
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


def _first_sums(recipe: Recipe, assembly: Assembly, rows: TrainingRows) -> dict[str, KeptSums]:
    """Counts of the values of the first rows (``keep_summary``), by their name in `Fitted.extras`."""
    return {"kept": feature("keep_summary").first_sums(recipe, assembly, rows)}


def _temperature(
    recipe: Recipe, assembly: Assembly, run: Run, rows: TrainingRows, held: Array | None
) -> float:
    """The temperature given, or that of lowest log loss on held-out rows."""
    given = recipe.options.temperature
    if needs_temperature(recipe, rows):
        return fold_temperature(recipe, assembly.classes, rows.in_memory())
    if not isinstance(given, str):
        return float(given)
    assert held is not None  # TrainingOptions.check makes sure
    validation = rows.only(held)
    parts = recipe.engine.each(
        lambda block: log_normalize(assembly.model.log_joint(block, run.best.parameters))[0],
        assembly.source(validation),
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
        raise ValueError(
            f"classes={classes.tolist()} is not the same as on last call to partial_fit, was: {before.classes.tolist()}"
        )
    return classes


def update(before: Fitted | None, recipe: Recipe, classes: Array, rows: Rows) -> Fitted:
    """Add further rows to a model; without one, begin it.

    A closed form is that of all rows so far. Other rules take one step on the new rows.
    """
    recipe.options.refuse_checkpoint("partial_fit")
    k, engine, plan = len(classes), recipe.engine, recipe.plan()
    if before is None:
        assembly, old = assemble(recipe, rows, classes), None
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
    assembly = assembly._replace(model=model)
    structure = assembly.model.structure
    total: ModelArrays = new.statistics if old is None else add(old.data_statistics, new.statistics)
    closed = recipe.rule.is_closed_form and not new.hidden
    options = recipe.options
    fitted = begin(
        assembly,
        recipe.rule,
        total,
        n_iter=1 if before is None else before.n_iter + 1,
        temperature=1.0 if isinstance(options.temperature, str) else float(options.temperature),
        is_additive=closed and (before is None or before.is_additive),
    ).with_extra("kept", kept)
    try:
        model = prepared(assembly.model, new._replace(statistics=total), source, engine, k)
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
    statistics = None if old.statistics is None else old.model.moved(old.statistics, model)
    return replace(
        old,
        data_statistics=old.model.moved(old.data_statistics, model),
        statistics=statistics,
        state=old.state if statistics is None else statistics,
    )


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
    """Whether inner folds choose the temperature: not for closed forms, which must stay sums over rows."""
    is_calibrated = not (recipe.rule.is_closed_form or recipe.rule.uses_unlabeled)
    return recipe.is_tempered_if_wide and is_calibrated and len(rows.summary.names) > len(rows.codes)


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
    parameters = trained.run.best.parameters
    joint = recipe.engine.each(
        lambda block: trained.model.contrast(block, parameters), assembly.source(held_out)
    )
    return log_normalize(np.concatenate(joint))[0]
