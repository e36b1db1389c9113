"""What to train and how, and the bound model that follows from it and the training rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from calibayes.core import protocols
from calibayes.core.abilities import Recodable
from calibayes.core.protocols import Array, Block, Engine, Family, Layout, ModelArrays, Rule, Source
from calibayes.encoders.schema import Schema
from calibayes.families import ClassPrior, Product
from calibayes.learn import Plan, Start
from calibayes.learn.run import Callback
from calibayes.learn.starts_and_stops import SeveralStarts, start_named, stop_named
from calibayes.learn.train import Fold
from calibayes.model import parameters, pickles
from calibayes.model.binding import ColumnBinding, bind
from calibayes.model.checked_rows import Reading, Rows, TrainingRows
from calibayes.model.delegates import feature
from calibayes.rules import ML
from calibayes.tables.row_blocks import ArraySource
from calibayes.tables.summary import TableSummary


@parameters.estimator
class TrainingOptions(BaseEstimator):  # type: ignore[misc]
    """Training options that are rarely changed, for the ``training`` parameter of the generative estimators.

    Parameters
    ----------
    start : {"data", "likelihood", "random", "bootstrap", "random_parameters"} or start, optional
        Initial statistics: of the labels; of the labels after maximum likelihood (EM), if components or missing values
        are hidden; of random labels; of randomly weighted rows; of random parameters. By default "data", for mixtures
        "likelihood". `calibayes.learn.SeveralStarts` trains from each of several starts, and uses the best.
    batch_size : int, optional
        Rows of a mini-batch; 1 is a stochastic pass. By default an update uses all rows.
    validation_fraction : float, optional
        Share of each class's rows that is held out inside `fit`: the state of lowest held-out log loss is used.
    refit : bool, default=True
        Whether to train again on all rows, to the same sum of steps as the best state, after a validation.
    temperature : float or "auto", default=1
        Divides log probabilities; above 1 they are less extreme. "auto" minimizes the log loss of the validation rows.
        Naive Bayes without ``training`` options chooses it by inner folds if there are more columns than rows.
    callbacks : list of functions, optional
        Called after each update with a `calibayes.learn.Progress`; a true result stops training.
    checkpoint : str or path, optional
        File in which `fit` keeps the state of the training after every pass. If the process ends before the fit does, the
        same `fit` in a new process goes on from the last finished pass, to the same result; then the file is removed. A
        file of another training is refused (docs/checkpoints.md).
    keep_summary : bool, default=False
        Whether the model keeps counts of the distinct values of columns that are binned, counted on a grid or have pooled
        levels, so that `partial_fit` finds bins, grids and pools in all rows so far, not in the first ones: for ML and MAP
        the result is that of `fit` on all rows, whatever their division. Kinds of columns, dates and identifiers are still
        those of the first rows. It needs families over single columns, such as those of `NaiveBayes` and `KernelNB`. From
        65,536 distinct numbers of a column on, its counts would be too large: then a warning says that bins, grids and
        pools stay as they are. `merge` and `forget` refuse a model with such counts.
    privacy : Privacy, optional
        Differentially private `fit` of a closed form over levels and bounded numbers, from sums with noise
        (docs/privacy.md).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB(training=TrainingOptions(batch_size=30), max_iter=5, stop=None, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    start: str | Start | None = None
    batch_size: int | None = None
    validation_fraction: float | None = None
    refit: bool = True
    temperature: float | str = 1.0
    callbacks: Sequence[Callback] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    keep_summary: bool = False
    privacy: Any = None

    get_params = parameters.get_params
    set_params = parameters.set_params
    __getstate__ = pickles.get_state
    __setstate__ = pickles.set_state

    def check(self) -> None:
        """Raises ValueError if an option is invalid."""
        if self.batch_size is not None:
            parameters.whole_number("batch_size", self.batch_size, 1)
        if self.validation_fraction is not None:
            parameters.open_fraction("validation_fraction", self.validation_fraction)
        if not isinstance(self.temperature, str):
            parameters.number("temperature", self.temperature, 1e-6, 1e6)
        elif self.temperature != "auto":
            raise ValueError(f"temperature must be a number or 'auto', got {self.temperature!r}")
        elif self.validation_fraction is None:
            raise ValueError("temperature='auto' needs held-out rows: set validation_fraction")
        parameters.listed_callbacks(self.callbacks)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise ValueError(f"checkpoint must be the path of a file or None, got {self.checkpoint!r}")
        if isinstance(self.start, SeveralStarts):
            self.refuse_checkpoint("trainings from several starts")
        if not isinstance(self.keep_summary, bool | np.bool_):
            raise ValueError(f"keep_summary must be True or False, got {self.keep_summary!r}")
        if self.privacy is not None:
            account = feature("privacy_account")
            account.check_alone(self.privacy, self.keep_summary, self.validation_fraction, self.start)

    def refuse_checkpoint(self, trainings: str) -> None:
        """Raises ValueError if a checkpoint is wanted where there is more than one training, or a part of one."""
        if self.checkpoint is not None:
            why = "which is of one fit: set checkpoint=None"
            raise ValueError(f"{trainings} cannot have a checkpoint, {why}")


DEFAULT_OPTIONS = TrainingOptions()


def training_options(training: Any) -> TrainingOptions:
    """The options given, or those by default. Raises ValueError if they are invalid."""
    if training is None:
        return DEFAULT_OPTIONS
    if not isinstance(training, TrainingOptions):
        raise ValueError(f"training must be TrainingOptions() or None, got {training!r}")
    training.check()
    return training


class Specification(NamedTuple):
    """The families of a model, its class prior, and results of choosing them."""

    families: Sequence[tuple[Any, ...]]
    """(name, family, columns) or (name, family, columns, encoder) each."""
    class_prior: ClassPrior = ClassPrior()
    notes: Mapping[str, Any] = {}
    """Results that the estimator shows as attributes, by name."""


@dataclass(frozen=True)
class Recipe:
    """What to train and how.

    Attributes
    ----------
    specify : function of rows and classes
        The families, which may depend on the training rows (number of components).
    reading : Reading
        How training rows are read.
    rule : Rule
    stop : Stop
    max_iter : int
    options : TrainingOptions
    engine : Engine
        Where sums over blocks run.
    seeds : RandomState
        The generator of seeds, made from ``random_state``.
    random_state : int, RandomState or None
    callbacks : sequence
        Those of the options, and progress reports.
    describe : function of the column binding and the summary of the training table
        The schema of the columns; None if kinds of columns are not chosen.
    default_start : str
    is_tempered_if_wide : bool
        Whether the temperature is chosen by inner folds if the table has more columns than rows.
    """

    specify: Callable[[Any, Array], Specification]
    reading: Reading
    rule: Rule
    stop: Any
    max_iter: int
    options: TrainingOptions
    engine: Engine
    seeds: np.random.RandomState
    random_state: Any = None
    callbacks: Sequence[Callback] = ()
    describe: Callable[[ColumnBinding, TableSummary], Schema | None] | None = None
    default_start: str = "data"
    is_tempered_if_wide: bool = False

    def verify(self) -> None:
        """Raises ValueError if there is no such stop or start."""
        plan = self.plan()
        stop_named(plan.stop, plan.rule)
        start_named(plan.start, plan.seed)

    def draw_seed(self) -> int:
        """A new seed from the random state."""
        return int(self.seeds.randint(2**31 - 1))

    def plan(self, seed: int = 0) -> Plan:
        """How to train, with a seed for random starts and mini-batches."""
        starts_from = self.rule.starts_from
        start = self.default_start if starts_from is None else "likelihood"
        return Plan(
            rule=self.rule,
            start=start if self.options.start is None else self.options.start,
            stop=self.stop,
            seed=seed,
            max_iter=self.max_iter,
            batch_size=self.options.batch_size,
            callbacks=self.callbacks,
            likelihood=None if self.rule.is_closed_form else starts_from or ML(),
        )


class Assembly(NamedTuple):
    """A model bound to columns, and how they are encoded."""

    binding: ColumnBinding
    model: Product
    classes: Array
    schema: Schema | None = None
    notes: Mapping[str, Any] = {}

    def source(self, rows: TrainingRows, held_out: Array | None = None) -> Source:
        """The encoded rows; ``held_out`` (n,) booleans are those that do not train."""
        if held_out is None:
            weight, validation = rows.weight, np.broadcast_to(0.0, len(rows.codes))
        else:
            weight, validation = rows.weight * ~held_out, rows.weight * held_out
        sizes = {"k": len(self.classes), "least_cells": self.model.least_cells}
        return rows.source(self.binding, weight, validation, **sizes)


def assemble(recipe: Recipe, rows: TrainingRows, classes: Array, *, more_to_come: bool = False) -> Assembly:
    """Fit the encoders to the rows and bind the families to their columns; later rows may be ``more_to_come``."""
    if recipe.options.privacy is not None:
        raise ValueError(f"{feature('privacy_account').ONLY_FIT}; set privacy=None for anything else")
    specification = recipe.specify(rows, classes)
    summary = rows.summary
    binding = bind(specification.families, summary, more_to_come=more_to_come)
    for name, family in binding.families.items() if recipe.rule.needs else ():
        parameters.abilities_present(recipe.rule, name, family)
    families = dict(binding.families)
    if getattr(recipe.engine, "is_on_device", False):
        support, options = feature("device_support"), recipe.options
        support.require_device_support(families, recipe.rule, options.batch_size, options.checkpoint)
    if isinstance(recipe.rule, protocols.AdaptsFamilies):
        families = {name: recipe.rule.adapt(family) for name, family in families.items()}
    names = tuple(map(str, classes))
    model = Product(specification.class_prior, families).bind(binding.layouts(names), names)
    schema = None if recipe.describe is None else recipe.describe(binding, summary)
    return Assembly(binding, model, classes, schema, specification.notes)


def layouts_of(binding: ColumnBinding, classes: Array) -> tuple[dict[str, Layout], tuple[str, ...]]:
    """The layouts of all families and the names of the classes."""
    names = tuple(map(str, classes))
    return binding.layouts(names), names


def encoded_source(
    columns: Mapping[str, Array], model: Product, codes: Array, weight: Array, held_out: Array
) -> ArraySource:
    """Encoded rows in blocks of a size that suits the model."""
    k = len(model.prior.layout.classes)
    return ArraySource(columns, codes, weight, held_out, k=k, least_cells=model.least_cells)


def recoded(
    families: Mapping[str, Family],
    statistics: ModelArrays,
    moved: Mapping[str, Sequence[Array]],
    layouts: Mapping[str, Layout],
) -> ModelArrays:
    """Statistics after levels were given new codes."""
    changed = {
        name: family.recode(statistics[name], moved[name], layouts[name].levels)
        for name, family in families.items()
        if name in moved and isinstance(family, Recodable)
    }
    return {**statistics, **changed}


def shared_folds(
    recipe: Recipe, rows: Rows, classes: Array, held_out: Sequence[Array], training: Iterable[Rows] = ()
) -> tuple[ArraySource, list[Fold]]:
    """One source with each fold's encoding of all rows, and the folds. Encoders are fitted to training rows alone.

    ``training`` are the training rows of each fold, if they are known already.
    """
    recipe.options.refuse_checkpoint("the folds of a cross-validation")
    training = training or [rows.only(~mask) for mask in held_out]
    columns: dict[str, Array] = {}
    folds = []
    for position, (mask, fold_rows) in enumerate(zip(held_out, training, strict=True)):
        assembly = assemble(recipe, fold_rows, classes)
        encoded = assembly.binding.encode(rows.table)
        columns |= {f"{position}/{name}": array for name, array in encoded.items()}
        names = tuple(assembly.model.families)
        folds.append(Fold(assembly.model, _view(f"{position}/", names, mask), mask))
    nothing = np.zeros(len(rows.codes))
    return ArraySource(columns, rows.codes, rows.weight, nothing, k=len(classes)), folds


def _view(prefix: str, names: Sequence[str], held_out: Array) -> Callable[[Block], Block]:
    """A block's columns of one fold; held-out rows have no training weight, training rows no validation weight.

    The blocks are the same in every pass, so that their weights are computed once.
    """
    weights: dict[tuple[int, int], tuple[Array, Array]] = {}

    def view(block: Block) -> Block:
        key = block.first, len(block.weight)
        if key not in weights:
            mask = held_out[block.first : block.first + len(block.weight)]
            weights[key] = block.weight * ~mask, block.weight * mask
        columns = {name: block.columns[prefix + name] for name in names}
        return Block(columns, block.labels, *weights[key], block.first)

    return view
