"""The estimator class behind the ensembles."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import PlainText, counted, text_table
from calibayes.core.protocols import Array, Engine, Layout
from calibayes.core.verify import require
from calibayes.engines import computing
from calibayes.ensemble.fitted_ensemble import TREES, FittedEnsemble
from calibayes.ensemble.member import Member
from calibayes.ensemble.training import MEMBER_ROWS, Deadline, EnsembleTraining
from calibayes.families import ClassPrior
from calibayes.kernels.tree_growth import GrowthSettings
from calibayes.model import parameters
from calibayes.model.attributes import FittedAttribute
from calibayes.model.classifier import Classifier
from calibayes.model.delegates import delegate
from calibayes.model.door import open_rows
from calibayes.model.input import Reading, Rows, class_probabilities, kept_rows_line, new_table
from calibayes.model.parameters import adopt, estimator, unfitted_copy
from calibayes.model.progress import ProgressReporter
from calibayes.model.remembered import OUT_OF_FOLD, TRAINING, forget_adaptation, forget_rows, keep_shifted
from calibayes.model.splits import divided
from calibayes.model.verification import verified_conversion
from calibayes.tables.conversion import IDENTIFIER
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

    def _members(self, rows: Rows, classes: Array) -> Mapping[str, Member | str]:
        """Name -> member, or the reason why it is left out."""
        raise TypeError(f"{type(self).__name__} names no members")

    def _growth(self, rows: Rows) -> GrowthSettings | None:
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
        limit = (
            np.inf
            if self.time_limit is None
            else parameters.number("time_limit", self.time_limit, 0.0, 1e300)
        )
        deadline = Deadline(limit)
        given = open_rows(X, y, sample_weight)
        with computing(self.engine, self.n_jobs) as engine:
            reader, read = unfitted_copy(self), given.in_memory()
            classes, rows = read.rows(reader, engine, Reading(self.class_weight))
            everything = read.beyond
            if everything is not None:
                everything = replace(everything.weighted(self.class_weight), conversion=reader.conversion_)
            rows = rows._replace(table=rows.table.with_cache())
            members, settings = self._members(rows, classes), self._growth(rows)
            seed, most = parameters.seed_of(self.random_state), None if settings is None else MEMBER_ROWS
            training = EnsembleTraining(
                members,
                classes,
                rows,
                divided(self.cv, rows, len(np.asarray(read.y)), seed, most),
                engine,
                self.n_jobs,
                deadline,
                ProgressReporter(type(self).__name__, bool(self.verbose), 2 * len(members) + 1),
                settings,
                everything,
            )
            fitted = self._completed(training.run(), training)
        kept = given.kept(rows)
        if TRAINING in kept:
            kept[OUT_OF_FOLD] = training.held_out
        return adopt(self, {**vars(reader), "fitted_": fitted, **kept})

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        if (conversion := verified_conversion(self, FittedEnsemble)) is not None:
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
        adjusted = forget_adaptation(forget_rows(adopt(copy.copy(self), {**vars(self), "fitted_": fitted})))
        change = fitted.prior_shift - self.fitted_.prior_shift
        return keep_shifted(self, adjusted, change, np.exp(log_priors))

    def shares(self, X: Any) -> Array:
        """Share of each member in the probability of the most probable class, (n, members); rows sum to one.

        The members are those of ``models_``, in its order, the class frequencies and, if there are any, the trees.
        """
        table = self._new_table(X)
        return self.fitted_.shares(table)

    marginals = delegate("analysis.ensemble_marginals", "marginals_of_ensemble")

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
    ended = {name: path for name, path in fitted.paths.items() if path.ended}
    return [
        *_growth_lines(fitted),
        *([f"compared on {fitted.tried_rows} of {fitted.rows} rows"] * (fitted.tried_rows < fitted.rows)),
        *(
            f"{name} {'were' if name == TREES else 'was'} left out: {reason}"
            for name, reason in fitted.skipped.items()
        ),
        *(
            f"column {column.name!r} was left out: {column.reason.removesuffix(': left out')}"
            for column in fitted.schema.columns
            if column.kind == IDENTIFIER
        ),
        *(
            f"{name} was not trained beyond total step {path.total_step[-1]:g}: {path.ended}"
            for name, path in ended.items()
        ),
    ]


def _growth_lines(fitted: FittedEnsemble) -> list[str]:
    """What the trees are grown on, and how many there are."""
    if fitted.grown is None:
        return []
    forests, trees = len(fitted.grown.forests), fitted.grown.tree_count
    start = f"{fitted.grown.share:g} of the log posterior of the members' average"
    weight = f"weight {fitted.grown.weight:.3f} beside the members' average"
    return [f"trees: {weight}; {counted(forests, 'forest')} of {counted(trees, 'tree')}, grown on {start}"]
