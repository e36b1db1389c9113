"""A classifier of sequences: strings, or lists of symbols, in one or more columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from calibayes.core.protocols import Array
from calibayes.encoders.sequence_codes import Sequences, sequences_as_text
from calibayes.families import ClassPrior
from calibayes.families.joint_model import PRIOR
from calibayes.families.markov_chain import MarkovChain
from calibayes.model.attributes import delegate
from calibayes.model.binding import every
from calibayes.model.checked_rows import TrainingRows
from calibayes.model.estimator import GenerativeEstimator, Traits
from calibayes.model.parameters import estimator
from calibayes.model.recipe import Specification
from calibayes.tables.read import is_path


def _refuse_filling(model: Any) -> Any:
    raise AttributeError(
        f"{type(model).__name__} cannot fill gaps of sequences: they are left out or summed over"
    )


NO_FILLING: Any = property(_refuse_filling)

DEFAULT_FAMILY = MarkovChain(order=2, back_off=5.0, alpha=1.0)


@estimator
class SequenceClassifier(GenerativeEstimator):
    """A generative classifier of sequences: each class has a Markov chain or a hidden Markov model, trained by any rule.

    X is a list of sequences, or a data frame or array with one or more columns of sequences, which are independent given the
    class. A sequence is a string, or a list of texts or whole numbers. None or NaN inside a list is a gap; an empty or
    missing sequence, and a symbol that did not occur in training, are no evidence.

    Events of child rows, such as the purchases of a customer, are a column of lists: sort them by time, group them by the key
    and collect one column, for example ``events.sort_values("time").groupby("customer")["item"].agg(list)``.

    Parameters
    ----------
    family : MarkovChain or HiddenMarkov, default=MarkovChain(order=2, back_off=5.0, alpha=1.0)
        The density of each column. A hidden Markov model is trained by expectation maximization, from whose result other
        rules start, unless the training option ``start`` says otherwise. Its fields can be set as ``family__order``, for example in a grid search.
    separator : str, optional
        What separates the symbols of a string, such as " " or ">"; by default each character is a symbol.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes.sequences import SequenceClassifier
    >>> X = ["abab", "baba", "aabb", "bbaa"]
    >>> model = SequenceClassifier().fit(X, ["in turn", "in turn", "in pairs", "in pairs"])
    >>> model.predict(["ababab"])
    array(['in turn'], dtype='<U8')
    """

    family: Any = DEFAULT_FAMILY
    separator: str | None = None
    priors: Array | ClassPrior | None = None

    _traits = Traits(start="likelihood", reads_text=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical, tags.input_tags.string = True, True
        tags.input_tags.two_d_array = False  # numbers are no sequences
        return tags

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return [("sequences", self._family(), every, Sequences(self.separator))]

    def _family(self) -> Any:
        if getattr(self.family, "reads", None) != "sequences":
            raise ValueError(
                f"family must be a density of sequences such as MarkovChain(), got {self.family!r}"
            )
        return self.family

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        """One family for each column, of the column's name."""
        names = rows.summary.names
        families = [
            (f"{name} (column)" if name == PRIOR else name, self._family(), [j], Sequences(self.separator))
            for j, name in enumerate(names)
        ]
        return Specification(families, self._class_prior(len(classes)))

    explain_positions = delegate("analysis.positions")
    fill = NO_FILLING

    def _readable(self, X: Any) -> Any:
        return sequences_as_text(X)

    # A list of strings would be read as paths of files by all other estimators.

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        return super().fit(as_column(X), y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        return super().partial_fit(as_column(X), y, classes, sample_weight)

    def predict(self, X: Any) -> Array:
        return super().predict(as_column(X))

    def predict_proba(self, X: Any) -> Array:
        return super().predict_proba(as_column(X))

    def predict_log_proba(self, X: Any) -> Array:
        return super().predict_log_proba(as_column(X))

    def predict_joint_log_proba(self, X: Any) -> Array:
        return super().predict_joint_log_proba(as_column(X))

    def decision_function(self, X: Any) -> Array:
        return super().decision_function(as_column(X))

    def score_samples(self, X: Any) -> Array:
        return super().score_samples(as_column(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(as_column(X), y, sample_weight)


def as_column(X: Any) -> Any:
    """A list of strings as a column of them; anything else unchanged."""
    return sequences_as_text(X) if isinstance(X, list | tuple) and is_path(X) else X
