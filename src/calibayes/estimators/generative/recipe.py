"""What to train and how: the values that a preset's parameters stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from calibayes.core.protocols import Array, Engine, Rule
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.interface import checks
from calibayes.estimators.interface.input import Rows
from calibayes.families import ClassPrior
from calibayes.learn import Plan, Start, Stop, start_named, stop_named
from calibayes.learn.progress import Callback
from calibayes.rules import ML
from calibayes.tables.table import Table


@dataclass(eq=False, repr=False, kw_only=True)
class TrainingOptions(BaseEstimator):  # type: ignore[misc]
    """Training options that are rarely changed, for the ``training`` parameter of the generative estimators.

    Parameters
    ----------
    start : {"data", "likelihood", "random", "bootstrap"} or start, optional
        Initial statistics: of the labels; of the labels after maximum likelihood (EM), if components or missing values
        are hidden; of random labels; of randomly weighted rows. By default "data", for mixtures "likelihood".
    batch_size : int, optional
        Rows of a mini-batch; 1 is a stochastic pass. By default an update uses all rows.
    validation_fraction : float, optional
        Share of each class's rows that is held out inside `fit`: the state of lowest held-out log loss is used.
    refit : bool, default=True
        Whether to train again on all rows, to the same sum of steps as the best state, after a validation.
    temperature : float or "auto", default=1
        Divides log probabilities; above 1 they are less extreme. "auto" minimizes the log loss of the validation rows.
    callbacks : list of functions, optional
        Called after each update with a `calibayes.learn.Progress`; a true result stops training.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB(training=TrainingOptions(batch_size=30), max_iter=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    start: str | Start | None = None
    batch_size: int | None = None
    validation_fraction: float | None = None
    refit: bool = True
    temperature: float | str = 1.0
    callbacks: Sequence[Callback] | None = None

    def check(self) -> None:
        """Raises ValueError if an option is invalid."""
        if self.batch_size is not None:
            checks.whole_number("batch_size", self.batch_size, 1)
        if self.validation_fraction is not None:
            checks.open_fraction("validation_fraction", self.validation_fraction)
        if not isinstance(self.temperature, str):
            checks.number("temperature", self.temperature, 1e-6, 1e6)
        elif self.temperature != "auto":
            raise ValueError(f"temperature must be a number or 'auto', got {self.temperature!r}")
        elif self.validation_fraction is None:
            raise ValueError("temperature='auto' needs held-out rows: set validation_fraction")
        checks.listed_callbacks(self.callbacks)


class Specification(NamedTuple):
    """The families of a model, its class prior, and results of choosing them."""

    families: Sequence[tuple[Any, ...]]
    """(name, family, columns) or (name, family, columns, encoder) each."""
    class_prior: ClassPrior = ClassPrior()
    notes: Mapping[str, Any] = {}
    """Results that the estimator shows as attributes, by name."""


def class_prior_of(given: Any) -> ClassPrior:
    """The class prior that class probabilities (k,), a `ClassPrior` or None (count the classes) mean."""
    return given if isinstance(given, ClassPrior) else ClassPrior(fixed=given)


@dataclass(frozen=True)
class Recipe:
    """What to train and how.

    Attributes
    ----------
    specify : function of rows and classes
        The families, which may depend on the training rows (number of components).
    rule : Rule
    stop : Stop
    max_iter : int
    options : TrainingOptions
    engine : Engine
        Where sums over blocks run.
    random_state : int, RandomState or None
    callbacks : sequence
        Those of the options, and progress reports.
    describe : function of the column binding and the training table
        The schema of the columns, or None.
    default_start : str
    """

    specify: Callable[[Rows, Array], Specification]
    rule: Rule
    stop: Any
    max_iter: int
    options: TrainingOptions
    engine: Engine
    random_state: Any = None
    callbacks: Sequence[Callback] = ()
    describe: Callable[[ColumnBinding, Table], Schema | None] = lambda binding, table: None
    default_start: str = "data"
    seeds: np.random.RandomState = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", check_random_state(self.random_state))

    def draw_seed(self) -> int:
        """A new seed from the random state."""
        return int(self.seeds.randint(2**31 - 1))

    def plan(self, seed: int = 0) -> Plan:
        """How to train, with a seed for random starts and mini-batches."""
        start = self.default_start if self.options.start is None else self.options.start
        stop: Stop = stop_named(self.stop)
        return Plan(
            rule=self.rule,
            start=start_named(start, seed),
            stop=stop,
            max_iter=self.max_iter,
            batch_size=self.options.batch_size,
            seed=seed,
            callbacks=self.callbacks,
            likelihood=None if self.rule.is_closed_form else ML(),
        )
