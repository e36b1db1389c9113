"""Naive Bayes over the leaves of trees that are grown by calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import Conjugate
from calibayes.core.named_arrays import add, subtract
from calibayes.core.notices import PlainText, ProgressReporter, counted, warn
from calibayes.core.protocols import Array, Engine, ModelArrays, Rule
from calibayes.encoders.leaves import Leaves
from calibayes.encoders.schema import Schema, column_types
from calibayes.engines import chosen_engine, computing
from calibayes.families import Categorical
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.forests import MOST_LEAVES
from calibayes.kernels.level_counts import look_up, offsets
from calibayes.kernels.moments import RowCounts
from calibayes.kernels.posterior import exact_log_normalize
from calibayes.kernels.tree_growth import MOST_TREES, GrowthSettings, Report, forest_scores, leaf_changes
from calibayes.learn import Run, as_arrays, data_sums, learn, problem_of
from calibayes.learn.starts_and_stops import stop_named
from calibayes.model import parameters
from calibayes.model.attributes import Note, fitted_of, on_one_state
from calibayes.model.binding import ColumnBinding, every, position
from calibayes.model.checked_rows import Reading, Rows, TrainingRows
from calibayes.model.delegates import feature
from calibayes.model.estimator import GenerativeEstimator, Traits, holding, known_rows
from calibayes.model.fitted import ROUNDING, Fitted, begin, known_classes
from calibayes.model.parameters import adopt, estimator, unfitted_copy
from calibayes.model.predict import log_posterior
from calibayes.model.recipe import Assembly, Recipe, Specification, assemble
from calibayes.model.splits import row_counts, unit_weight
from calibayes.model.table_inputs import TableInput, open_rows
from calibayes.model.training_rows import forget_rows
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

# -- Train a model of leaves: grow the trees, then let a rule calibrate all leaves together ------------------

TREES = "trees"
"""Name of the family over the leaves."""


@dataclass
class GrowingLeaves:
    """`Leaves` that report each tree while they are fitted, and know how rows count."""

    leaves: Leaves
    report: Report
    counts: RowCounts
    seed: int
    place: Any = None
    """Function that moves blocks of rows to where trees are grown."""
    mass: Array = field(default_factory=lambda: np.zeros((0, 0)), init=False)
    """Weights of the training rows by class and leaf, (k, leaves), once they are fitted."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Leaves:
        leaves, mass = self.leaves.grown(summary, indices, self.counts, self.report, self.seed, self.place)
        self.mass = mass * self.counts.unit
        return leaves

    encode = Leaves.encode


def grown_model(recipe: Recipe, classes: Array, rows: TrainingRows) -> Fitted:
    """Grow trees on the rows; then at most ``recipe.max_iter`` updates of the rule on all leaves."""
    require_every_class(classes, rows)
    assembly = assemble(recipe, rows, classes)
    mass = assembly.notes[TREES].mass
    leaves = cast(Leaves, assembly.binding.encoders[TREES])
    of_class = mass[:, : leaves.forest.leaves[0]].sum(axis=1)
    data: ModelArrays = {PRIOR: {"count": of_class}, TREES: {"count": mass}}
    model = assembly.model.prepare(data)
    start = recipe.rule.begin(model, grown_statistics(leaves, data))
    run = Run(model, recipe.rule, start, stop=stop_named(recipe.stop, recipe.rule), limit=recipe.max_iter)
    notes = {"trees": leaves.forest.count, "held_out_log_loss": leaves.losses}
    fitted = begin(assembly._replace(model=model, notes=notes), recipe.rule, data)
    if recipe.max_iter:
        learn([run], assembly.source(rows), recipe.engine, recipe.callbacks)
        fitted = replace(fitted, history=as_arrays(run.history), best_iter=run.best_iter)
        if problem := problem_of(run):
            warn(problem, ConvergenceWarning)
    return replace(fitted, n_iter=max(run.updates, 1)).after(run)


def require_every_class(classes: Array, rows: TrainingRows) -> None:
    """Raise ValueError if a class has no rows, before trees are grown."""
    weight = np.bincount(rows.codes, rows.weight, minlength=len(classes))
    if empty := classes[weight == 0].tolist():
        raise ValueError(f"no rows (or no weight) in class {', '.join(map(repr, empty))}")


def grown_statistics(leaves: Leaves, data: ModelArrays) -> ModelArrays:
    """Counts of classes and leaves under which the posterior is that of the grown trees."""
    return counts_at(*leaves.start_probabilities(data[TREES]["count"].sum(axis=0)), data)


def counts_at(log_leaf: Array, log_class: Array, data: ModelArrays) -> ModelArrays:
    """As many counts as ``data`` has, in proportion to p(leaf | class) (k, leaves) and p(class) (k,)."""
    of_class = _weight(data) * np.exp(log_class)
    counts = {PRIOR: of_class, TREES: of_class[:, None] * np.exp(log_leaf)}
    return {name: {**data[name], "count": count} for name, count in counts.items()}


# -- Arithmetic on the leaf counts of models with given trees: further rows, rows to forget, and the sum of two models


def merged(ours: Fitted, theirs: Fitted) -> Fitted:
    """The counts of both. Raises ValueError if classes, columns or trees differ."""
    for fitted in (ours, theirs):
        fitted.refuse_shifted_priors()
    if not np.array_equal(ours.classes, theirs.classes):
        raise ValueError(f"different classes: {ours.classes.tolist()} and {theirs.classes.tolist()}")
    if ours.binding.names != theirs.binding.names:
        raise ValueError("different columns")
    binding, _, _ = ours.binding.unite(theirs.binding)
    data: ModelArrays = add(ours.data_statistics, theirs.data_statistics)
    counts: ModelArrays = add(_calibrated(ours), _calibrated(theirs))
    merged = replace(ours, binding=binding, n_iter=ours.n_iter + theirs.n_iter)
    return _at(merged.with_extra("receipts", ()), data, counts)


def with_rows(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The counts with those of further rows, and the leaves moved by a step on them."""
    _require_free(fitted)
    added = _data_of(fitted, rows, engine)
    data: ModelArrays = add(fitted.data_statistics, added)
    counts = _moved(fitted, rows, _weight(added) / _weight(data), data)
    return _at(replace(fitted, n_iter=fitted.n_iter + 1).with_extra("receipts", ()), data, counts)


def without_rows(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The counts without those of some rows, and the leaves moved back by a step on them.

    Raises ValueError if the rows cannot have been part of the training.
    """
    _require_free(fitted)
    removed = _data_of(fitted, rows, engine)
    data: ModelArrays = subtract(fitted.data_statistics, removed)
    for name, arrays in data.items():
        before, after = fitted.data_statistics[name]["count"], arrays["count"]
        if (after < -ROUNDING * np.maximum(before, 1.0)).any():
            raise ValueError("these rows were not part of the training, or not with these weights")
    left = {name: {"count": np.maximum(arrays["count"], 0.0)} for name, arrays in data.items()}
    try:
        fitted.model.prior.prepare(left[PRIOR])
    except ValueError as error:
        return replace(fitted, data_statistics=left).without_parameters(str(error))
    share = _weight(removed) / _weight(fitted.data_statistics)
    return _at(fitted, left, _moved(fitted, rows, -share, left))


def _require_free(fitted: Fitted) -> None:
    """Raise ValueError if the leaves cannot be moved one by one."""
    fitted.refuse_shifted_priors()
    if _leaves(fitted).monotone:
        problem = "leaves that move one by one would no longer be monotone in a column"
        raise ValueError(f"{problem}: fit again on all rows")


def _leaves(fitted: Fitted) -> Leaves:
    return cast(Leaves, fitted.binding.encoders[TREES])


def _data_of(fitted: Fitted, rows: Rows, engine: Engine) -> ModelArrays:
    """The counts of rows by class and leaf."""
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    return data_sums(fitted.model, source, engine, len(fitted.classes)).statistics


def _weight(data: ModelArrays) -> float:
    return float(data[PRIOR]["count"].sum())


def _log_probabilities(fitted: Fitted) -> tuple[Array, Array]:
    """log p(leaf | class), (k, leaves), and log p(class), (k,)."""
    parameters = fitted.learned()
    return parameters[TREES]["log_probability"], parameters[PRIOR]["log_probability"]


def _calibrated(fitted: Fitted) -> ModelArrays:
    """The calibrated counts: those of the probabilities of a model, as many as its rows."""
    return counts_at(*_log_probabilities(fitted), fitted.data_statistics)


def _moved(fitted: Fitted, rows: Rows, share: float, data: ModelArrays) -> ModelArrays:
    """Calibrated counts, as many as ``data``, after a step of growth on some rows, times their share among all rows."""
    leaves, (log_leaf, log_class) = _leaves(fitted), _log_probabilities(fitted)
    codes, sizes, settings = leaves.encode(rows.table), leaves.forest.leaves, leaves.settings
    scores: Array = log_class + look_up(codes, log_leaf, offsets(sizes))
    rate = settings.rate * share
    weight = rows.weight / unit_weight(rows)
    changes = leaf_changes(codes, sizes, rows.codes, weight, scores, rate, settings.prior)
    return counts_at(*leaves.normalized(log_leaf + changes, log_class), data)


def _at(fitted: Fitted, data: ModelArrays, counts: ModelArrays) -> Fitted:
    """The model with other counts of the data, and other calibrated ones."""
    value, parameters, statistics = fitted.rule.begin(fitted.model, counts)
    changed = replace(fitted, data_statistics=data, history=None, best_iter=None)
    return replace(changed, state=value, statistics=statistics, parameters=parameters)


# -- Naive Bayes over the leaves of trees that are grown by calibration --------------------------------------


def _not_available(result: str) -> Any:
    """A property in place of a method: the estimator has no such attribute."""

    def refuse(model: Any) -> Any:
        raise AttributeError(
            f"CalibratedTrees models the leaves of trees, not the columns: for {result} use another model, such as KernelNB"
        )

    return property(refuse)


@estimator
class CalibratedTrees(GenerativeEstimator):
    """Naive Bayes over the leaves of trees that are grown where the residuals Y - P can still be told apart.

    Each tree is a column, each of its leaves a level. Growth begins with the class frequencies. Each round adds one tree
    for all classes: it splits the rows where the sums of Y - P, by column and bin, differ most, and multiplies
    p(leaf | class) by exp(rate * sum(Y - P) / (sum(V) + prior)) with V = P (1 - P) k / (k - 1), a damped step of Newton's
    method on the log loss and a calibration step on the counts of the new column. A tenth of each class's rows is held out
    to find out how many trees to grow; of fewer than 500 rows five folds in turn, and the trees are grown on all rows then.
    Interactions of any number of columns are found; numbers, strings (as categories), booleans, dates and
    missing values need no preprocessing.

    Numbers are split between 254 quantile bins; levels are ordered by their frequency, never by the class. A missing value
    goes to the side where it gains; where none was missing in training, to the side with more rows. Leaves have no density
    of the columns, hence there is no `sample`, `fill` and `score_samples`. `explain` adds up what the splits of a column
    change along the paths of a row through the trees. Only the ratios of sample weights matter. Whole weights are counts: of a
    row of weight 3, one copy may be held out and the trees grown on the others. If your weights are no counts, divide them by
    their mean.

    Parameters
    ----------
    max_trees : int, default=1000
    max_leaves : int, default=31
        Largest number of leaves of a tree, from 2 to 127.
    rate : float, default=0.1
        Share of a full step by which a tree moves log probabilities. Smaller ones need more trees. After each hundred
        trees it grows by a half, up to three times.
    prior : float, default=5
        Precision of a normal prior, with mean 0, of the log factor of a leaf. It is compared with the sum of V, which is
        at most half the number of rows in the leaf.
    least_variance : float, default=1
        Smallest sum of V over the rows and classes of a leaf.
    patience : int, default=20
        Growth ends if so many trees, or the last sixth of all if these are more, lower the held-out log loss by less than
        0.05 %.
    monotone : mapping, optional
        Column, by name or position, -> 1 (-1): the probability of the second of two classes never falls (rises) with it.
    rule : str or rule, default="rc"
        The rule by which ``max_iter`` updates calibrate all leaves together after the growth. A closed form ("ml", "map")
        would replace what the growth has learned.
    max_iter : int, default=0
        Largest number of these updates.
    stop, class_weight, costs, engine, n_jobs, verbose
        See `GenerativeClassifier`.
    random_state : int or RandomState, optional
        Seed of the choice of held-out rows; None is always the same.

    Attributes
    ----------
    classes_ : (k,) array
    n_trees_ : int
    held_out_log_loss_ : array
        Log loss of the held-out rows before the first tree and after each, also of those that were left out in the end.
    data_statistics_ : mapping
        Weights of the training rows by class and leaf; `merge` and `forget` add and subtract them.
    statistics_ : mapping
        The calibrated counts.
    schema_ : Schema
        What each column contains; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import CalibratedTrees
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = CalibratedTrees().fit(penguins.data, penguins.target)
    >>> bool(model.score(penguins.data, penguins.target) > 0.98)
    True
    """

    max_trees: int = 1000
    max_leaves: int = 31
    rate: float = 0.1
    prior: float = 5.0
    least_variance: float = 1.0
    patience: int = 20
    monotone: Any = None
    rule: str | Rule = "rc"
    max_iter: int = 0
    class_weight: Mapping[Any, float] | str | None = None

    n_trees_ = Note("trees", "Number of trees.")
    held_out_log_loss_ = Note("held_out_log_loss", "Log loss of held-out rows, before and after each tree.")

    _traits = Traits(reads_text=True, runs_on_device=True)

    # -- what is trained -------------------------------------------------------------------------------------------

    def _settings(self) -> GrowthSettings:
        """How trees are grown. Raises ValueError if a parameter is invalid."""
        if self.training is not None:
            raise ValueError("CalibratedTrees has no training options: leave training=None")
        return GrowthSettings(
            trees=parameters.whole_number("max_trees", self.max_trees, 1, MOST_TREES),
            leaves=parameters.whole_number("max_leaves", self.max_leaves, 2, MOST_LEAVES),
            rate=parameters.number("rate", self.rate, 1e-6, 1.0),
            prior=parameters.number("prior", self.prior, 1e-6, 1e9),
            least_variance=parameters.number("least_variance", self.least_variance, 1e-6, 1e12),
            patience=parameters.whole_number("patience", self.patience, 1, MOST_TREES),
        )

    def _recipe(self, engine: Engine) -> Recipe:
        recipe = super()._recipe(engine)
        rule = recipe.rule
        if rule.uses_unlabeled or Conjugate in rule.needs or (rule.is_closed_form and self.max_iter):
            problem = f"rule={rule.name!r} would replace what the growth of the trees has learned"
            raise ValueError(f"{problem}: use a rule that takes steps from there, such as 'rc'")
        if self.monotone is not None and self.max_iter:
            problem = "leaves that move one by one do not stay monotone in a column"
            raise ValueError(f"{problem}: with monotone use max_iter=0")
        return replace(
            recipe, specify=partial(self._specification, place=getattr(engine, "growth_blocks", None))
        )

    def _specification(self, rows: TrainingRows, classes: Array, place: Any = None) -> Specification:
        leaves = Leaves(self._settings(), self._directions(rows.summary, len(classes)))
        progress = ProgressReporter(type(self).__name__, bool(self.verbose))

        def report(trees: int, loss: float) -> bool:
            progress.after_tree(trees, loss, self.max_trees)
            return False

        seed = parameters.seed_of(self.random_state)
        growing = GrowingLeaves(leaves, report, row_counts(rows, len(classes)), seed, place)
        family = (TREES, Categorical(), every, growing)
        return Specification([family], self._class_prior(len(classes)), {TREES: growing})

    def _directions(self, table: TableSummary, k: int) -> tuple[tuple[int, int], ...]:
        """Positions and directions of monotone columns."""
        given = {} if self.monotone is None else self.monotone
        signs = given.values() if isinstance(given, Mapping) else [None]
        are_whole = all(isinstance(sign, parameters.WHOLE) and type(sign) is not bool for sign in signs)
        if not are_whole or not all(sign in (-1, 1) for sign in signs):
            raise ValueError(f"monotone must be a mapping of columns to 1 or -1, got {self.monotone!r}")
        if given and k != 2:
            raise ValueError(f"monotone needs two classes, and there are {k}")
        positions = {position(name, table): int(sign) for name, sign in given.items()}
        for j in positions:
            if not table.is_numeric(j):
                name = table.names[j]
                raise ValueError(f"column {name!r} is not numeric: it has no order to be monotone in")
        return tuple(sorted(positions.items()))

    def _schema(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        return column_types(summary)

    # -- training --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow trees on a table. A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Missing values are NaN, None or NA.
        y : (n,) labels
        sample_weight : (n,) floats, optional
        """
        return self._fitted_to(open_rows(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on further rows: their counts are added to the leaves, whose probabilities move.

        The trees are grown on the rows of the first call, which must contain every class, and stay as they are. Tree by
        tree, each leaf takes the step of growth on the residuals of the new rows, times their share among all rows so
        far. Raises ValueError if columns are monotone: single leaves do not stay in order.
        """
        if not hasattr(self, "fitted_"):
            return forget_rows(self._fitted_to(open_rows(X, y, sample_weight), known_classes(classes, None)))
        self._refuse_parts_of_rows()
        with computing(self.engine, self.n_jobs) as engine:
            known_classes(classes, self.fitted_)
            rows = known_rows(self, X, y, sample_weight)
            fitted = with_rows(self.fitted_, rows, engine)
        seen = self.training_table_ + rows.described()
        return forget_rows(adopt(self, {**vars(self), "fitted_": fitted, "training_table_": seen}))

    def _fitted_to(self, given: TableInput, classes: Array | None = None) -> Self:
        with given.engine(self) as engine:
            reader, recipe = unfitted_copy(self), self._recipe(engine)
            self._settings()
            how = Reading(self.class_weight, classes=classes, least_weight=0.0)
            classes, rows = given.rows(reader, engine, how)
            fitted = grown_model(recipe, classes, rows)
        return adopt(self, {**vars(reader), "fitted_": fitted, **given.kept(rows)})

    @on_one_state
    def summary(self) -> PlainText:
        """Plain text: classes, columns, trees and their log loss on held-out rows."""
        first, *others = str(super().summary()).splitlines()
        return PlainText("\n".join([first, self._growth_line(), *others]))

    def _growth_line(self) -> str:
        leaves, losses = self.leaves_.forest.leaves, self.held_out_log_loss_
        few, most = min(leaves), max(leaves)
        size = counted(most, "leaf", "leaves") if few == most else f"{few} to {most} leaves"
        trees = f"{counted(len(leaves), 'tree')} of {size}"
        if np.isnan(losses[0]):
            return f"{trees}, no rows held out"
        return f"{trees}, log loss {losses.min():.4g} on held-out rows (class frequencies alone: {losses[0]:.4g})"

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        """log p(class | x), (n, k), with the same bits everywhere: the leaves of one tree after another."""
        fitted, leaves = self.fitted_, self.leaves_
        scores = forest_scores(leaves.bytes.encode(table), leaves.forest, *_log_probabilities(fitted))
        return log_posterior(fitted, table, engine, exact_log_normalize(scores)[0])

    # -- leaf counts -----------------------------------------------------------------------------------------------

    def merge(self, other: Self) -> Self:
        """The model of the rows of both, for models with the same trees, such as copies that `partial_fit` has updated.

        Leaf counts are added, those of the data exactly, and the calibrated ones: each model weighs as many rows as it
        has seen.
        """
        if type(self) is not type(other):
            raise ValueError(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
        for model in (self, other):
            check_is_fitted(model, "fitted_")
        both = merged(self.fitted_, other.fitted_)
        return holding(self, both, training_table_=self.training_table_ + other.training_table_)

    def forget(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        remaining: tuple[Any, ...] | None = None,
        date: datetime | None = None,
    ) -> Self:
        """The model without these rows in its leaf counts.

        The rows must have been part of the training, with the same weights. They are subtracted from the counts of the
        data exactly, and the leaves take a step back like that of `partial_fit`, which undoes it in part. The trees stay
        as they are, although the rows took part in their growth: to forget the rows completely, fit again without them, which
        is why there is no use for the rows that remain (``remaining``). The receipt says the same.
        """
        check_is_fitted(self, "fitted_")
        if remaining is not None:
            raise ValueError("trees are not grown again on the remaining rows: fit again on them")
        self._refuse_parts_of_rows()
        rows = known_rows(self, X, y, sample_weight)
        left = without_rows(self.fitted_, rows, chosen_engine(self.engine, self.n_jobs))
        exact = "counts of the data in the leaves: the rows were subtracted; leaf values took a step back, no more"
        date_text = feature("receipts").utc_text(date)
        receipt = feature("forget").receipt_of(self, left, rows, date_text, (exact,))
        left = left.with_extra("receipts", (*self.forgetting_receipts_, receipt))
        return holding(self, left, training_table_=self.training_table_ - rows.described())

    @property
    def leaves_(self) -> Leaves:
        """The trees: the encoder whose codes are the leaves of rows."""
        return cast(Leaves, fitted_of(self).binding.encoders[TREES])

    # -- what leaves cannot give -----------------------------------------------------------------------------------

    score_samples = outlier_threshold = _not_available("densities")
    sample = _not_available("samples")
    fill = _not_available("imputation")
