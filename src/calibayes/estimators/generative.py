"""The general generative classifier: any families over any columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from calibayes.core.protocols import Array, Family
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import CATEGORICAL, NUMERIC, Schema
from calibayes.estimators import tabular
from calibayes.families import ClassPrior
from calibayes.model.binding import ColumnBinding, Selection, named_columns, read_sparse
from calibayes.model.estimator import GenerativeEstimator, Traits
from calibayes.model.parameters import estimator
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

NUMERIC_KIND = "gaussian"
"""The kind of numeric columns without a given kind."""


@estimator
class GenerativeClassifier(GenerativeEstimator):
    """A class prior times families over their own columns, trained by any rule.

    Parameters
    ----------
    families : list of (name, family, columns) or (name, family, columns, encoder), optional
        As in scikit-learn's ColumnTransformer: ``columns`` are names, positions, a slice, or one of
        `calibayes.numeric`, `calibayes.categorical`, `calibayes.every`. Columns that no family is bound to are not
        used. By default the kinds of the columns decide.
    kinds : mapping or "auto", optional
        Column, by name or position, -> "gaussian", "kernel", "binned", "poisson", "multinomial", "categorical",
        "bernoulli", "exponential", "gamma", "lognormal", "negative_binomial", "vonmises" or "dirichlet", instead of ``families``; "auto" chooses a density by held-out likelihood, as in `NaiveBayes`. Other columns: numbers are independent Gaussians, everything else is
        categorical with one pseudo-count per level. The columns of a kind are one family of that name. Dates and
        identifiers are treated as in `NaiveBayes`, unless ``families`` names the column.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed under every rule; ``ClassPrior(alpha=1)`` counts the classes with a
        pseudo-count. By default the classes are counted.
    rule : str or rule, default="rc"
        "ml", "map", "rc", "tm", "dfe", "gdt", "em", "gd", or an object of `calibayes.rules`.
    max_iter : int, default=64
        Largest number of updates. With mini-batches, of passes.
    stop : {"objective", "soft_error", None} or stop, or several, default="objective"
        Stop when the objective gains no more than 1e-4 per row; when the soft error rises (as in the papers); never; or
        an object of `calibayes.learn`. It also chooses the best state: that of the highest objective, or of the lowest
        soft error. With None or a limit of time or passes the rule chooses: the highest objective for "ml", "map",
        "gdt" and "em", the lowest soft error for the others.
    training : TrainingOptions, optional
        Options that are rarely changed: start, mini-batches, validation inside `fit`, temperature, callbacks.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true: `predict` then minimizes the expected cost.
    random_state : int or RandomState, optional
        Seed of random starts, mini-batches and validation rows.
    engine : Engine, optional
        Where computations over blocks of rows run, such as those of `calibayes.engines`; by default ``n_jobs`` decides.
    n_jobs : int, optional
        Threads over blocks of rows. The result is the same for any number, bit for bit.
    verbose : int, default=0
        Whether to report each update on the standard error stream.

    Attributes
    ----------
    classes_ : (k,) array
    data_statistics_ : mapping
        Family -> name -> array: sums over the data, additive over any split of the rows. For a family that finds a
        structure (a tree), the sums that the structure was found in.
    statistics_ : mapping or None
        The same, as the rule left them; None for gradient descent, which moves parameters.
    parameters_ : mapping
        Family -> name -> array, in the columns' own units.
    history_ : mapping
        "soft_error", "error", "log_loss", "objective", "step", "total_step", "frozen", "passes", "seconds" (and
        "validation_error", "validation_log_loss") -> array; entry 0 is the start, entry t the state after t updates.
        A closed form ("ml", "map" without hidden values) reads the rows once and has no history, unless there are
        validation rows, callbacks or ``verbose``. A model file has no "seconds".
    best_iter_ : int
        The entry of the history that was used.
    n_iter_ : int
        Number of updates, at least 1.
    schema_ : Schema
        The kind of each column and why, if ``families`` is not given; it prints as a table.
    fitted_ : Fitted
        The fitted model as one immutable value.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Full, Gaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GenerativeClassifier(families=[("flower", Gaussian(Full()), every)]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    families: Sequence[tuple[str, Family, Selection] | tuple[str, Family, Selection, Encoder]] | None = None
    kinds: tabular.ColumnKinds | Literal["auto"] | None = None
    priors: Array | ClassPrior | None = None
    class_weight: Mapping[Any, float] | str | None = None

    _traits = Traits(reads_text=True, runs_on_device=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = read_sparse(self._families())
        return tags

    def _families(self) -> Sequence[tuple[Any, ...]]:
        if self.families is None:
            given = tabular.check_kinds(self.kinds)
            numeric = tabular.AUTO if self.kinds == tabular.AUTO else NUMERIC_KIND
            return tabular.specifications(given, numeric, tabular.KindChoices())
        if self.kinds is not None:
            raise ValueError("give families or kinds, not both")
        return self.families

    def _given_columns(self, table: Table) -> dict[int, str]:
        """Position -> kind of the columns that ``kinds`` or ``families`` name."""
        if self.families is None:
            return tabular.given_columns(tabular.check_kinds(self.kinds), table)
        named = named_columns(self.families, table)
        return {j: CATEGORICAL if are_levels else NUMERIC for j, are_levels in named.items()}

    def _refuse_parts_of_rows(self) -> None:
        super()._refuse_parts_of_rows()
        if self.families is None:
            tabular.refuse_auto(self.kinds)

    def _schema(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        return tabular.kinds_schema(self.kinds, binding, summary) if self.families is None else None
