"""The default classifier of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import PlainText, ProgressReporter, counted, text_table
from calibayes.core.protocols import Array, Engine, Layout
from calibayes.core.verify import require
from calibayes.engines import computing
from calibayes.ensemble import standard_members
from calibayes.ensemble.fitted_ensemble import FURTHER_TREES, TREES, FittedEnsemble
from calibayes.ensemble.many_rows import many_rows
from calibayes.ensemble.path_members import Member, PathMember
from calibayes.ensemble.standard_members import STANDARD, member_of, named_members
from calibayes.ensemble.training import MEMBER_ROWS, ONE_FOREST, Deadline, EnsembleTraining
from calibayes.estimators.discriminant_analysis import LinearDiscriminantAnalysis
from calibayes.estimators.tabular import KernelNB
from calibayes.families import ClassPrior
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.model import parameters
from calibayes.model.attributes import FittedAttribute, delegate, on_one_state
from calibayes.model.checked_rows import (
    Reading,
    Rows,
    TrainingRows,
    class_probabilities,
    kept_rows_line,
    new_table,
)
from calibayes.model.classifier import Classifier
from calibayes.model.parameters import adopt, copy_without, estimator, unfitted_copy
from calibayes.model.splits import divided, rows_by_weight
from calibayes.model.table_inputs import open_rows
from calibayes.model.training_rows import OF_PRIORS, OF_ROWS, OUT_OF_FOLD, TRAINING, keep_shifted
from calibayes.model.verification import verified_conversion
from calibayes.tables.conversion import IDENTIFIER
from calibayes.tables.origin import like_frame
from calibayes.tables.table import Table


@estimator
class PosteriorAverage(Classifier):
    """A weighted average of the posteriors of several models; subclasses name the members."""

    cv: Any = None
    class_weight: Mapping[Any, float] | str | None = None
    costs: Array | None = None
    time_limit: float | None = None
    random_state: int | np.random.RandomState | None = None
    engine: Engine | None = None
    n_jobs: int | None = None
    verbose: int = 0

    if TYPE_CHECKING:

        @property
        def fitted_(self) -> FittedEnsemble: ...

    classes_ = FittedAttribute("classes", "Class labels, (k,).")
    weights_ = FittedAttribute("weights", "Name -> weight of a member; class frequencies last.")
    models_ = FittedAttribute("models", "Name -> trained estimator, of the members with a weight.")
    paths_ = FittedAttribute("paths", "Name -> held-out scores along the member's path.")
    skipped_ = FittedAttribute("skipped", "Name -> why a member was left out.")
    class_prior_ = FittedAttribute("class_frequencies", "Class frequencies in training, (k,).")
    rows_ = FittedAttribute("rows", "Number of training rows.")
    tried_rows_ = FittedAttribute("tried_rows", "Number of rows that members were compared on.")
    out_of_fold_log_loss_ = FittedAttribute("log_loss", "Log loss of the ensemble on held-out rows.")
    schema_ = FittedAttribute("schema", "What each column contains; it prints as a table.")
    kept_rows_ = FittedAttribute("kept_rows", "Largest number of training rows that a member keeps.")
    out_of_fold_error_ = FittedAttribute("error", "Error of the ensemble on held-out rows.")

    def _members(
        self, rows: Rows, classes: Array, beyond: TrainingRows | None = None
    ) -> Mapping[str, Member | str]:
        """Name -> member, or the reason why it is left out; ``rows`` may be some of those ``beyond``."""
        raise TypeError(f"{type(self).__name__} names no members")

    def _growth(self, rows: TrainingRows) -> GrowthSettings | None:
        """How trees are grown on the members; None if none are."""
        return None

    def _completed(self, fitted: FittedEnsemble, training: EnsembleTraining) -> FittedEnsemble:
        """The fitted ensemble with what is computed after its training."""
        return fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Evaluate the members by cross-validation, weigh them and train them on all rows.

        A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Missing values are NaN, None or NA.
        y : (n,) labels
        sample_weight : (n,) floats, optional
        """
        deadline = Deadline(self.time_limit)
        given = open_rows(X, y, sample_weight)
        with computing(self.engine, self.n_jobs) as engine:
            reader = unfitted_copy(self)
            classes, all_rows = given.rows(reader, engine, Reading(self.class_weight))
            growth, seed = self._growth(all_rows), parameters.seed_of(self.random_state)
            is_large = growth is not None and self.cv is None and len(all_rows.codes) >= ONE_FOREST
            many = many_rows(all_rows, len(classes), seed) if is_large else None
            rows = all_rows.in_memory() if many is None else many.member_rows
            rows = rows._replace(table=rows.table.with_cache())
            beyond = all_rows if len(rows.codes) < len(all_rows.codes) else None
            members = self._members(rows, classes, beyond)
            is_named = given.y is None or isinstance(given.y, str)
            n = len(rows.codes) if is_named else len(np.asarray(given.y))
            division = divided(self.cv, rows, n, seed, None if growth is None else MEMBER_ROWS)
            progress = ProgressReporter(type(self).__name__, bool(self.verbose), 2 * len(members) + 1)
            training = EnsembleTraining(
                members,
                classes,
                rows,
                division,
                engine,
                self.n_jobs,
                deadline,
                progress,
                growth,
                beyond,
                many,
            )
            fitted = self._completed(training.run(), training)
        kept = given.kept(rows if many is None else many.rows)
        if TRAINING in kept:
            kept[OUT_OF_FOLD] = training.held_out
        return adopt(self, {**vars(reader), "fitted_": fitted, **kept})

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        if (conversion := verified_conversion(self, FittedEnsemble)) is not None:
            Deadline(self.time_limit)
            is_same = conversion.converted_names == self.fitted_.names
            require(is_same, "conversion_ has other columns than fitted_")

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        return self.fitted_.log_posterior(self._named(table).with_cache())  # members share encoded rows

    def _named(self, table: Table) -> Table:
        """A table with its columns named as in training, since the members compare names."""
        names = self.fitted_.names
        return table if table.names == names else replace(table, names=names)

    def _new_table(self, X: Any) -> Table:
        """The table to predict."""
        return self._named(new_table(self, X))

    @on_one_state
    def with_priors(self, priors: Array | Mapping[Any, float]) -> Self:
        """This model adjusted to other class frequencies (prior shift), without training.

        ``priors`` are (k,) probabilities or a mapping class -> probability. Posterior odds are multiplied
        by the ratio of the new class frequencies to those of training.
        """
        check_is_fitted(self)
        fixed = class_probabilities(priors, self.classes_)
        names = tuple(str(name) for name in self.classes_)
        log_priors = ClassPrior(fixed=fixed).bind(Layout(names, ())).parameters({})["log_probability"]
        fitted = replace(self.fitted_, priors=np.exp(log_priors))
        adjusted = copy_without(self, (*OF_ROWS, *OF_PRIORS))
        adopt(adjusted, {**vars(adjusted), "fitted_": fitted})
        change = fitted.prior_shift - self.fitted_.prior_shift
        return keep_shifted(self, adjusted, change, np.exp(log_priors))

    @on_one_state
    def shares(self, X: Any) -> Array:
        """Share of each member in the probability of the most probable class, (n, members); rows sum to one.

        The members are those of ``models_``, in its order, the class frequencies and, if there are any, the trees.
        """
        table = self._new_table(X)
        return self.fitted_.shares(table)

    marginals = delegate("analysis.ensemble_marginals", "marginals_of_ensemble")

    @on_one_state
    def summary(self) -> PlainText:
        """Plain text: weight, total step, held-out log loss and error of each member, and what was left out.

        The last line says how many training rows the model contains, and which members keep them.
        """
        check_is_fitted(self)
        fitted = self.fitted_
        lines: list[tuple[str, ...]] = [("member", "weight", "total step", "log loss", "error")]
        for name, weight in fitted.weights.items():
            path = fitted.paths.get(name)
            scores = (path.stop, path.log_loss[path.best], path.error[path.best]) if path else (np.nan,) * 3
            lines.append((name, f"{weight:.3f}", *(("" if np.isnan(v) else f"{v:.4g}") for v in scores)))
        if fitted.grown is not None:
            lines.append((TREES, "", "", f"{np.nanmin(fitted.grown.losses):.4g}", ""))
        lines.append(("ensemble", "1.000", "", f"{fitted.log_loss:.4g}", f"{fitted.error:.4g}"))
        k, d = counted(len(fitted.classes), "class", "classes"), counted(self.n_features_in_, "column")
        size = f"{type(self).__name__}: {k}, {d}, {counted(fitted.rows, 'row')}"
        kept = kept_rows_line(fitted.kept_by_member)
        seen = f"training table: {self.training_table_}"
        return PlainText("\n".join([size, text_table(lines), *_left_out(fitted), seen, kept]))


def _left_out(fitted: FittedEnsemble) -> list[str]:
    """What was not done to save time, and why."""
    lines = _growth_lines(fitted)
    if fitted.tried_rows < fitted.rows:
        lines.append(f"compared on {fitted.tried_rows} of {fitted.rows} rows")
    for name, reason in fitted.skipped.items():
        lines.append(f"{name} {'were' if name in (TREES, FURTHER_TREES) else 'was'} left out: {reason}")
    for column in fitted.schema.columns:
        if column.kind == IDENTIFIER:
            lines.append(f"column {column.name!r} was left out: {column.reason.removesuffix(': left out')}")
    for name, path in fitted.paths.items():
        if path.ended:
            lines.append(f"{name} was not trained beyond total step {path.total_step[-1]:g}: {path.ended}")
    return lines


def _growth_lines(fitted: FittedEnsemble) -> list[str]:
    """What the trees are grown on, and how many there are."""
    if fitted.grown is None:
        return []
    forests, trees = len(fitted.grown.forests), fitted.grown.tree_count
    start = f"{fitted.grown.share:g} of the log posterior of the members' average"
    weight = f"weight {fitted.grown.weight:.3f} beside the members' average"
    return [f"trees: {weight}; {counted(forests, 'forest')} of {counted(trees, 'tree')}, grown on {start}"]


# -- The default classifier ------------------------------------------------------------------------------------

ROWS_FOR_TREES = 500
"""Rows from which on trees are grown by default; a row of weight 2 counts twice."""
DENSITY = "kernel"
"""The default member for densities: it models every column in its own units, and can be sampled."""


@estimator
class BayesClassifier(PosteriorAverage):
    """The default classifier: an ensemble of generative models for data frames with columns of any type.

    Numbers, strings (as categories), booleans, categories, dates, missing values and sample weights need no preprocessing;
    columns of text whose values are nearly all distinct are left out, with a warning (``schema_``). The members are

    - "kernel": naive Bayes with kernel densities,
    - "tied": Gaussian classes with one covariance matrix,
    - "full": Gaussian classes with a covariance matrix each, shrunk towards the common one, up to 10,000 rows,
    - "near": a kernel classifier over all columns (`JointKernelClassifier`), up to 10,000 rows,
    - "tree": tree-augmented naive Bayes, from 1,000 rows on,
    - "centroids": Gaussian classes with one variance per column and shrunken means (nearest shrunken centroids), if there
      are more columns than rows,
    - the class frequencies, so that no class has probability zero.

    Their posteriors are averaged with weights. From 500 rows on, "trees" (see `CalibratedTrees`) are grown on this average:
    they begin with half of its log posterior and find what it leaves unexplained, such as interactions of many columns. A
    forest is grown for each of the inner folds and stopped on the rows of that fold; the prediction is the average of the
    forests. The members' average keeps a weight beside them, or all of it, where held-out rows say so.

    With more than 10,000 rows, and unless ``cv`` is given, the members are trained on about 10,000 of them, and each forest
    on all but a tenth of the rows; if the trees are left out, the members are trained on all. From 100,000 rows on there is
    one forest then, for which a tenth of the rows is held out, the members' rows among them, but of no class a larger share
    than of the others. Rows may lie in files, queries or a cluster: all of them are used, in passes. A forest has at most 1,000 trees; with so many columns and classes that growth would take many minutes it has fewer, with a
    warning.

    With more than 200 columns, "tied", "full" and "near" leave out columns of numbers that have one value in more than 99 %
    of the rows. If covariances of more than 64 columns would take more than 2e8 multiplications per pass, "full" models the
    64 leading principal components. "tree" is left out if more than 1e9 pairs of cells would be counted.

    With more columns (encoded as numbers and indicators) than rows, "tied" has a share of a spherical covariance and is
    computed in the span of the rows, without a (d, d) matrix. Inner cross-validation then chooses the shrinkage of "tied" and
    "centroids", a factor of their covariances, and a temperature for "kernel" and "full".

    A missing cell is integrated out of a new row by the members: their prediction is that of the known cells. If a value was
    missing in at least ten training rows (for the Gaussian members and "near" also 5 % of them), its absence is evidence
    like any value. Trees send a missing value to the side where it gains; where none was missing in training, to the side
    with more rows.

    "kernel", "tied", "full" and "tree" are trained by risk-based calibration (`calibayes.rules.RC`). Inner cross-validation
    chooses the sum of the calibration steps of each (for "near", bandwidth and smoothing), and then the weights. These
    maximize the log likelihood of the out-of-fold predictions plus 0.5 * log(weight) for each member, a weak prior. Members
    with a weight below 0.4 / (number of members) get weight 0, except the class frequencies. `summary` shows the result.

    Parameters
    ----------
    families : list, optional
        Members instead of the default ones: the names listed above, (name, family), (name, family, encoder), or
        (name, estimator of this package). Trees are grown if "trees" is among them.
    density : str, optional
        The member used by `score_samples`, `sample`, `fill` and `outlier_threshold`; by default "kernel", or the first
        one if there is no "kernel". "near" has `score_samples` only.
    keep_rows : bool, default=True
        Whether members may keep training rows. By default "near" does: the fitted model, and a file that it is saved to,
        contains up to 10,000 training rows with all of their columns. With False "near" is left out, which makes
        predictions worse on some tables; what remains of the data are sums over rows, the levels of columns that are not
        numbers (so leave out names and other identifiers), and single values of columns, such as the smallest and largest.
    cv : int, splitter or list of splits, optional
        Inner folds. By default five, or three from 3,000 rows on. Whole sample weights are counts: a row of weight w is
        treated as w copies (fewer and heavier ones if they would be more than eight times the rows), which may lie in
        different folds. If your weights are no counts, divide them by their mean.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true: `predict` then minimizes the expected cost.
    time_limit : float, optional
        Limit of the whole fit in seconds: calibration and the growth of trees end, and members or trees for which there is
        no time are left out, with a warning. Reading the table and evaluating one member cannot be left out.
    random_state : int or RandomState, optional
        Seed of the folds; None is a fixed seed, unlike in scikit-learn.
    engine : Engine, optional
        Where computations over blocks of rows run; by default ``n_jobs`` decides.
    n_jobs : int, optional
        Threads over blocks of rows. The result is the same for any number, bit for bit.
    verbose : int, default=0
        If positive, show progress on the standard error stream: a bar on a terminal, otherwise lines.

    Attributes
    ----------
    classes_ : (k,) array
    weights_ : mapping
        Name -> weight of a member in the average that trees are grown on; "class frequencies" is the last. Its weight is 1
        if the ensemble is no better than the class frequencies alone.
    trees_ : GrownTrees
        The trees and their weight beside the members' average; absent if there are none.
    models_ : mapping
        Name -> trained estimator, of the members with a positive weight.
    paths_ : mapping
        Name -> held-out log loss and error along the member's path of calibration steps (or amounts of shrinkage), and
        the chosen one.
    skipped_ : mapping
        Name -> why a member, or the trees, were left out. "further trees" says why growth ended before held-out rows did
        not gain any more.
    density_ : estimator
        The member named by ``density``, without calibration: calibration improves decisions and worsens the density.
    schema_ : Schema
        What each column contains, how many values are missing, and which columns are left out; it prints as a table.
    kept_rows_ : int
        Number of training rows in the fitted model: the largest number that a member keeps.
    out_of_fold_log_loss_, out_of_fold_error_ : float
        Of the ensemble on the held-out rows.
    rows_, tried_rows_ : int
        Number of training rows, and of those used in the inner cross-validation.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import BayesClassifier
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = BayesClassifier().fit(penguins.data, penguins.target)
    >>> list(model.weights_)
    ['near', 'tied', 'full', 'kernel', 'class frequencies']
    """

    families: Sequence[Any] | None = None
    density: str | None = None
    keep_rows: bool = True

    trees_ = FittedAttribute("grown", "The trees that are grown on the members.")
    density_ = FittedAttribute("density", "The member with the density, before calibration.")

    def _members(
        self, rows: Rows, classes: Array, beyond: TrainingRows | None = None
    ) -> Mapping[str, Member | str]:
        learns_from_some = self.cv is None and self._growth(beyond or rows) is not None
        k, most = len(classes), MEMBER_ROWS if learns_from_some else None
        given = self.families
        if given is None:
            return standard_members.standard_members(None, rows, k, self.keep_rows, most, beyond)
        if isinstance(given, str):
            raise ValueError(f"families must be a list, got {given!r}; for example [{given!r}]")
        entries = [entry for entry in given if entry != TREES]
        names = [entry for entry in entries if isinstance(entry, str)]
        unknown = [name for name in names if name not in STANDARD]
        if unknown:
            known = ", ".join([*STANDARD, TREES])
            raise ValueError(f"unknown member {unknown[0]!r}; the members are {known}")
        listed = named_members([(entry, None) if isinstance(entry, str) else entry for entry in entries])
        if not self.keep_rows:
            for name, *parts in listed:
                standard_members.refuse_kept_rows(name, *parts)
        members = (
            standard_members.standard_members(names, rows, k, most_rows=most, beyond=beyond) if names else {}
        )
        return {name: members.get(name) or member_of(name, *parts) for name, *parts in listed}

    def _growth(self, rows: TrainingRows) -> GrowthSettings | None:
        is_large = rows_by_weight(rows) >= ROWS_FOR_TREES
        is_grown = is_large if self.families is None else TREES in list(self.families)
        return GrowthSettings() if is_grown else None

    def _completed(self, fitted: FittedEnsemble, training: EnsembleTraining) -> FittedEnsemble:
        """The ensemble with the member for densities, which is trained now if it has no weight."""
        evaluated = training.results
        name = self.density or (DENSITY if DENSITY in evaluated else next(iter(evaluated)))
        if name not in evaluated:
            raise ValueError(f"density={name!r} is not among the members {', '.join(evaluated)}")
        member, trained = training.member(name), fitted.models.get(name)
        if trained is None:
            density = member.train_density(training.member_rows, fitted.paths[name])
        else:
            density = member.uncalibrated(trained) if isinstance(member, PathMember) else trained
        return replace(fitted, density=density)

    # -- the density of one member ---------------------------------------------------------------------------------

    @on_one_state
    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,), of ``density_``: an average of posteriors has no density."""
        return open_rows(X).map(self, "score_samples", self._log_density)

    def _log_density(self, table: Table, engine: Engine) -> Array:
        log_density: Array = self._density_with("score_samples").score_samples(self._named(table))
        return log_density

    @on_one_state
    def outlier_threshold(self, X: Any, share: float = 0.01) -> float:
        """The log density below which a new row falls with probability at most ``share``; see `GenerativeClassifier`."""
        return float(self._density_with("outlier_threshold").outlier_threshold(self._new_table(X), share))

    @on_one_state
    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
    ) -> tuple[Any, Array]:
        """Random rows and their classes, drawn from ``density_``; see `GenerativeClassifier.sample`."""
        rows, classes = self._density_with("sample").sample(n_samples, y, given, random_state)
        return rows, classes

    @on_one_state
    def fill(self, X: Any) -> Any:
        """The rows with missing values imputed by ``density_``; see `GenerativeClassifier.fill`."""
        return like_frame(self._density_with("fill").fill(self._new_table(X)), X)

    def _density_with(self, method: str) -> Any:
        """``density_``, adjusted to the class frequencies of this model. Raises ValueError if it lacks a method."""
        check_is_fitted(self)
        density, priors = self.fitted_.density, self.fitted_.priors
        for needed in (method, *(("with_priors",) if priors is not None else ())):
            if not hasattr(density, needed):
                advice = f"choose another member by `density`, such as {DENSITY!r}"
                raise ValueError(f"{type(density).__name__} has no `{needed}`: {advice}")
        return density if priors is None else density.with_priors(priors)


# -- An ensemble of any models of the package ----------------------------------------------------------------


@estimator
class PosteriorMixture(PosteriorAverage):
    """A weighted average of the posteriors of any models of this package: p(class | x) = sum of w_m p_m(class | x).

    The weights maximize the log likelihood of the out-of-fold predictions plus 0.5 * log(weight) for each member, a weak
    prior. Members with a weight below 0.4 / (number of members) get weight 0. The class frequencies are a member, too, so
    that no class has probability zero. Models with an iterative rule (RC, TM, GDT) are stopped early, at the
    sum of steps with the lowest held-out log loss.

    Parameters
    ----------
    models : list of (name, estimator), optional
        By default `KernelNB` and `LinearDiscriminantAnalysis`; the latter needs numbers.
    cv : int, splitter or list of splits, optional
        Inner folds. By default five, or three from 3,000 rows on; if there are more than 20,000 rows, on a subset of about
        20,000. If all weights are integers with a sum of at most eight times the number of rows, a row of weight w is
        treated as w copies.
    class_weight, costs, random_state, engine, n_jobs, verbose
        As in `GenerativeClassifier`.
    time_limit : float, optional
        Approximate limit of the fit in seconds: calibration ends, and members that were not evaluated yet are left out.

    Attributes
    ----------
    weights_ : mapping
        Name -> weight; "class frequencies" is the last. Its weight is 1 if the ensemble is no better than the class
        frequencies alone.
    models_, paths_ : mappings
        Name -> trained estimator, of the members with a weight; held-out scores along the path of calibration steps.
    skipped_ : mapping
        Name -> why a member was left out.
    schema_ : Schema
        What each column contains, and how many values are missing; it prints as a table.
    kept_rows_ : int
        Number of training rows in the fitted model: the largest number that a member keeps.
    out_of_fold_log_loss_, out_of_fold_error_ : float
        Of the ensemble on the held-out rows.
    rows_, tried_rows_ : int
        Number of training rows, and of those used in the inner cross-validation.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import KernelNB, PosteriorMixture, QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PosteriorMixture(models=[("kernel", KernelNB()), ("qda", QuadraticDiscriminantAnalysis())]).fit(X, y)
    >>> list(model.weights_)
    ['kernel', 'qda', 'class frequencies']
    """

    models: Sequence[tuple[str, Any]] | None = None

    def _members(
        self, rows: Rows, classes: Array, beyond: TrainingRows | None = None
    ) -> Mapping[str, Member | str]:
        default = [("kernel", KernelNB()), ("linear", LinearDiscriminantAnalysis())]
        given = default if self.models is None else self.models
        return {name: member_of(name, *parts) for name, *parts in named_members(given)}
