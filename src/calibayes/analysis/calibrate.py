"""`calibrate`: a fitted model trained further on labeled rows, from the statistics it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import warn
from calibayes.core.protocols import AdaptsFamilies, Family, ModelArrays, Rule
from calibayes.engines import computing
from calibayes.families.joint_model import PRIOR
from calibayes.learn import Run, as_arrays, learn, mini_batches, problem_of, stop_named
from calibayes.model.checked_rows import TrainingRows
from calibayes.model.estimator import holding, known_rows, recipe_of
from calibayes.model.fitted import Fitted
from calibayes.model.parameters import abilities_present
from calibayes.model.recipe import Assembly, Recipe


def calibrate(self: Any, X: Any, y: Any, sample_weight: Any = None, *, rule: str | Rule = "rc") -> Any:
    """A copy of this model that is calibrated on labeled rows, from its own statistics.

    `fit` starts from the statistics of its rows, and `partial_fit` adds those of further rows. Here the statistics of the
    model are the start, and the rows only say how to change them: for a model whose training rows are not at hand, such as
    one of scikit-learn (`calibayes.from_sklearn`), or for rows of another place or time. Columns are encoded as in training.

    Parameters
    ----------
    X : table
    y : (n,) labels
        Of classes that the model has.
    sample_weight : (n,) array, optional
    rule : str or Rule, default="rc"
        How to train. Raises ValueError for a rule that needs families with another prior ("gdt", "em"), or has a closed
        form, which is no calibration.

    Returns
    -------
    estimator
        A copy with that ``rule``; ``max_iter`` and ``stop`` are those of this one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics import log_loss
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB(rule="ml").fit(X[::2], y[::2])
    >>> calibrated = model.calibrate(X[1::2], y[1::2])
    >>> bool(log_loss(y[1::2], calibrated.predict_proba(X[1::2])) < log_loss(y[1::2], model.predict_proba(X[1::2])))
    True
    """
    check_is_fitted(self, "fitted_")
    fitted: Fitted = self.fitted_
    fitted.learned()
    fitted.require_changeable()
    chosen = holding(self, fitted, rule=rule)
    rows = known_rows(self, X, y, sample_weight, fewest_classes=1, unlabeled=False)
    with computing(self.engine, self.n_jobs) as engine:
        result = _calibrated(fitted, rows, recipe_of(chosen, engine))
    return holding(self, result, rule=rule)


def _calibrated(fitted: Fitted, rows: TrainingRows, recipe: Recipe) -> Fitted:
    start = _start(fitted, recipe)
    plan, rule = recipe.plan(recipe.draw_seed()), recipe.rule
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    sweep = None if plan.batch_size is None else mini_batches(source, plan.batch_size, plan.seed)
    state, stop = rule.begin(fitted.model, start), stop_named(plan.stop, plan.rule)
    run = Run(fitted.model, rule, state, stop=stop, limit=plan.max_iter, sweep=sweep)
    learn([run], source, recipe.engine, plan.callbacks)
    return _after(replace(fitted, rule=rule, is_additive=False).with_extra("receipts", ()), run)


def _start(fitted: Fitted, recipe: Recipe) -> ModelArrays:
    """The statistics to start from. Raises ValueError if the rule cannot train the model from them."""
    recipe.options.refuse_checkpoint("calibrate")
    if recipe.options.validation_fraction is not None:
        raise ValueError("calibrate holds no rows out: set validation_fraction=None")
    if "privacy" in fitted.extras:
        raise ValueError("a private model cannot be calibrated on rows, which would not be private")
    before, rule = fitted.rule, recipe.rule
    if fitted.statistics is None:
        raise ValueError(f"rule {before.name!r} keeps no statistics to start from: fit with another rule")
    if rule.is_closed_form:
        raise ValueError(f"rule {rule.name!r} has a closed form, which is no calibration: use rule='rc'")
    require_trainable(rule, fitted.model.families)
    strict = replace(fitted.model.prior, allows_zero=False)
    # raises ValueError for a class without rows
    strict.bind(fitted.model.prior.layout).prepare(fitted.statistics[PRIOR])
    return fitted.statistics


def with_training(fitted: Fitted, trained: Any) -> Fitted:
    """The fitted model with the result of another training of it; warns of a training that did not converge."""
    model, statistics, is_additive = trained.model, trained.data.statistics, trained.is_closed_form
    result = replace(fitted, model=model, data_statistics=statistics, is_additive=is_additive)
    return _after(result, trained.run)


def _after(fitted: Fitted, run: Run) -> Fitted:
    """The model with the best state of a run and its history; warns if the run did not converge."""
    if problem := problem_of(run):
        warn(problem, ConvergenceWarning)
    history = as_arrays(run.history) if run.history else None
    updates, best = max(run.updates, 1), run.best_iter
    return replace(fitted.after(run), history=history, best_iter=best, n_iter=updates)


def require_trainable(rule: Rule, families: Mapping[str, Family]) -> None:
    """Raises ValueError if the rule cannot train the families, or needs them in another form than they have."""
    for name, family in families.items():
        abilities_present(rule, name, family)
        if isinstance(rule, AdaptsFamilies) and rule.adapt(family) is not family:
            raise ValueError(
                f"{type(rule).__name__} needs families with another prior than those of this model: use rule='rc'"
            )
