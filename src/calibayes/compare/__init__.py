"""Compare models and training rules by cross-validation on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.base import BaseEstimator, TransformerMixin
from threadpoolctl import threadpool_limits

from calibayes.core.abilities import Conjugate
from calibayes.core.notices import counted, discarded_warnings
from calibayes.core.protocols import AdaptsFamilies, Array
from calibayes.datasets import Dataset
from calibayes.encoders.numbers import Clusters
from calibayes.ensemble.bayes import BayesClassifier
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.tabular import KernelNB, NaiveBayes
from calibayes.estimators.tree_augmented import TreeAugmentedNB
from calibayes.families import Categorical, Diagonal, Full, Gaussian, Mixture, Tied, TiedDiagonal
from calibayes.model.binding import categorical, numeric, positions
from calibayes.model.decision import most_probable
from calibayes.model.estimator import GenerativeEstimator, families_of
from calibayes.model.recipe import TrainingOptions
from calibayes.model.splits import shuffled_folds
from calibayes.rules import rule_named
from calibayes.tables.conversion import learn_conversion
from calibayes.tables.read import read_frame
from calibayes.tables.table import Table

# -- Classifiers of scikit-learn that the models are compared with: ordinary preprocessing, nothing tuned ----

MOST_CATEGORIES = 254
"""Most levels of a column, besides missing values, that scikit-learn's gradient boosting treats as categories."""


class CalendarColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The columns of a data frame as the models of this package read them, for classifiers of scikit-learn.

    Dates, also those that are written as text, become days, with columns of levels for month, weekday and hour as far as these
    vary; durations become seconds, and objects that are all numbers become numbers. Identifiers (text of which nearly all values are
    distinct) and columns without a value are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"day": ["2024-01-31", "2024-02-29"], "kind": ["a", "b"]})
    >>> CalendarColumns().fit_transform(table)
           day kind day (month) day (weekday)
    0  19753.0    a         Jan           Wed
    1  19782.0    b         Feb           Thu
    """

    def fit(self, X: Any, y: Any = None) -> CalendarColumns:
        """Learn which columns hold dates."""
        table = read_frame(X)
        with discarded_warnings():
            self.conversion_ = learn_conversion(table, {}, levels=True)
        empty = {j for j in range(len(table.names)) if table.missing_mask(j).all()}
        self.left_out_ = empty.union(self.conversion_.identifiers)
        return self

    def transform(self, X: Any) -> Any:
        """The columns as numbers and levels; text that is no date in a column of dates is missing."""
        import pandas as pd

        with discarded_warnings():
            table = self.conversion_.apply(read_frame(X))
        used = [j for j in range(len(table.names)) if j not in self.left_out_]
        return pd.DataFrame({table.names[j]: self._column(X, table, j) for j in used}, index=X.index)

    def _column(self, X: Any, table: Table, j: int) -> Any:
        """A column as it was given, unless the table reads it as something else."""
        if j >= X.shape[1] or j in self.conversion_.converters:
            return table.column(j)
        is_read = getattr(X.dtypes.iloc[j], "kind", "O") == "O" and table.is_numeric(j)
        return table.column(j) if is_read else X.iloc[:, j]


def columns_by_type(frame: Any) -> tuple[list[str], list[str]]:
    """Names of the numeric columns among those that `CalendarColumns` makes of a data frame, and of all others."""
    made = CalendarColumns().fit_transform(frame)
    numbers = [name for name in made.columns if made[name].dtype.kind in "iuf"]
    return numbers, [name for name in made.columns if name not in numbers]


def logistic_regression(frame: Any) -> Any:
    """Numbers imputed by the median (with an indicator column) and standardized; everything else one-hot encoded."""
    from sklearn import compose, impute, linear_model, pipeline, preprocessing

    numbers, others = columns_by_type(frame)
    imputer = impute.SimpleImputer(strategy="median", add_indicator=True)
    scaled = pipeline.make_pipeline(imputer, preprocessing.StandardScaler())
    coded = preprocessing.OneHotEncoder(handle_unknown="ignore")
    columns = compose.make_column_transformer((scaled, numbers), (coded, others))
    return pipeline.make_pipeline(CalendarColumns(), columns, linear_model.LogisticRegression(max_iter=1000))


def gradient_boosting(frame: Any) -> Any:
    """Numbers as they are; everything else as categories of the trees, the rarest of too many together."""
    from sklearn import compose, ensemble, pipeline, preprocessing

    numbers, others = columns_by_type(frame)
    missing = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -1}
    coded = preprocessing.OrdinalEncoder(max_categories=MOST_CATEGORIES, **missing)
    columns = compose.make_column_transformer((coded, others), ("passthrough", numbers))
    categories = list(range(len(others)))
    trees = ensemble.HistGradientBoostingClassifier(categorical_features=categories, random_state=0)
    return pipeline.make_pipeline(CalendarColumns(), columns, trees)


BASELINES: Mapping[str, Callable[[Any], Any]] = {
    "sklearn-LogReg": logistic_regression,
    "sklearn-HistGB": gradient_boosting,
}
"""Name -> function that creates a classifier for the columns of a data frame of training rows. Their imports are slow and made on use."""

NO_RULE = "-"
"""The rule of a baseline in results."""

DESCRIPTION = (
    "sklearn-LogReg and sklearn-HistGB are scikit-learn's LogisticRegression (imputed, standardized, one-hot encoded "
    "columns) and HistGradientBoostingClassifier, not tuned. They get dates as the models of this package do: days, month, "
    "weekday and hour."
)
"""What the names mean, for a line below a table."""


# -- The models and rules that are compared, and which of them can be combined on a table --------------------

RULES = ("ml", "map", "rc", "tm", "gdt", "dfe", "gd")


def _gaussian(shape: Full) -> Callable[[], GenerativeEstimator]:
    """A Gaussian with this covariance shape over the numeric columns, independent categorical columns otherwise."""
    numbers = ("numbers", Gaussian(shape, prior="auto"), numeric)
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return lambda: GenerativeClassifier(families=[numbers, levels])


def _mixture() -> GenerativeEstimator:
    """MixtureDiscriminantAnalysis (three components per class, tied covariance) plus independent categorical columns."""
    numbers = ("numbers", Mixture(Gaussian(Tied(), prior="auto")), numeric, Clusters(3))
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return GenerativeClassifier(families=[numbers, levels], training=TrainingOptions(start="likelihood"))


MODELS: Mapping[str, Callable[[], Any]] = {
    "KernelNB": KernelNB,
    "BinnedNB": lambda: NaiveBayes(discretize="kmeans"),
    "TreeAugmentedNB": TreeAugmentedNB,
    "GaussianNB": _gaussian(Diagonal()),
    "Logistic": _gaussian(TiedDiagonal()),
    "LDA": _gaussian(Tied()),
    "QDA": _gaussian(Full()),
    "Mixture": _mixture,
    "BayesClassifier": BayesClassifier,
}
"""Name -> function that creates the model. The models differ in how they treat numeric columns: kernel densities (the
default of `NaiveBayes`), five k-means bins as in the papers, bins in a dependence tree, a Gaussian with one of four
covariance shapes, a mixture of three Gaussians. BayesClassifier is an ensemble."""

DEFAULT = ("BayesClassifier", "rc")
"""The model that is taken unless another one is better beyond doubt."""
ENSEMBLES = (DEFAULT[0],)
"""Models whose members have rules of their own; listed under "rc", which trains most members."""


def model_rule_pairs(frame: Any, models: Sequence[str], rules: Sequence[str]) -> list[tuple[str, str]]:
    """The (model, rule) combinations that are valid and distinct on a data frame; baselines have no rule.

    Without numeric columns all models except the tree and the ensemble are the same, and only KernelNB is kept. A rule
    is valid if every family of the model has the abilities that it needs. "map" is dropped where every family already
    has a prior, because it would equal "ml".
    """
    table = read_frame(frame)
    ours = [model for model in models if model not in BASELINES]
    usable = [model for model in ours if isinstance(MODELS[model], type) or numeric(table)]
    pairs = [(model, rule) for model in usable for rule in rules if _is_valid(model, rule, table)]
    return pairs + [(model, NO_RULE) for model in models if model in BASELINES]


def _is_valid(model: str, rule_name: str, table: Table) -> bool:
    if model in ENSEMBLES:
        return rule_name == "rc"
    rule = rule_named(rule_name)
    specifications = families_of(MODELS[model]())
    families = [family for _, family, selection, *_ in specifications if positions(selection, table)]
    able = all(isinstance(family, ability) for family in families for ability in rule.needs)
    if not able or not isinstance(rule, AdaptsFamilies) or Conjugate not in rule.needs:
        return able
    return any(rule.adapt(family) is not family for family in families)


# -- Train and score every model and rule on the same cross-validation folds ---------------------------------

MANY_CLASSES = 20
"""A numeric target with more distinct values, some of them rarer than the number of folds, is taken for a quantity."""


@dataclass(frozen=True)
class FoldResult:
    """Scores of one model with one rule on one fold.

    Attributes
    ----------
    model, rule : str
        The rule of a baseline is "-".
    error, log_loss : float
        On the held-out rows.
    training_error, soft_error : float
        On the training rows; the soft error is the mean of 1 - p(true class).
    updates : int
        Number of updates of the rule, summed over the members of an ensemble; 0 for a baseline.
    seconds : float
        Duration of the fit.
    notes : tuple of str
        Warnings of the fit.
    """

    model: str
    rule: str
    error: float
    log_loss: float
    training_error: float
    soft_error: float
    updates: int
    seconds: float
    notes: tuple[str, ...] = ()


def stratified_folds(target: Array, count: int, seed: int) -> list[tuple[Array, Array]]:
    """Training and held-out rows of ``count`` stratified folds.

    Raises ValueError if the target has one class, a class with fewer than ``count`` rows, or looks continuous.
    """
    classes, sizes = np.unique(target.astype(str), return_counts=True)
    if target.dtype.kind == "f" and len(classes) > MANY_CLASSES and sizes.min() < count:
        raise ValueError(
            f"the target has {len(classes)} distinct numbers and looks like a quantity; choose a target column of classes"
        )
    if len(classes) < 2:
        raise ValueError(f"the target has only one class, {str(classes[0])!r}; at least two are needed")
    if sizes.min() < count:
        rarest = f"class {str(classes[np.argmin(sizes)])!r} has {counted(int(sizes.min()), 'row')}"
        raise ValueError(f"{rarest}, fewer than the {count} folds; use fewer folds")
    fold = shuffled_folds(np.searchsorted(classes, target.astype(str)), count, seed)
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(count)]


def compare(
    data: Dataset,
    pairs: Sequence[tuple[str, str]],
    splits: Sequence[tuple[Array, Array]],
    jobs: int | None = None,
) -> Iterator[FoldResult]:
    """Yield the result of each (model, rule) pair on each split."""
    for model, rule in pairs:
        for split in splits:
            yield run_fold(data, model, rule, split, jobs)


def run_fold(
    data: Dataset, model: str, rule: str, split: tuple[Array, Array], jobs: int | None = None
) -> FoldResult:
    """Train on the training rows of a split and score on the held-out rows."""
    return fold_predictions(data, model, rule, split, jobs)[0]


def fold_predictions(
    data: Dataset, model: str, rule: str, split: tuple[Array, Array], jobs: int | None = None
) -> tuple[FoldResult, Array]:
    """The result of `run_fold`, and log p(class | x) of the held-out rows in ascending order, (m, k)."""
    training, held_out = (np.sort(rows) for rows in split)
    target, frame = np.asarray(data.target), data.data.iloc[training]
    if is_baseline := model in BASELINES:
        estimator = BASELINES[model](frame)
    else:
        rule_parameter = {} if model in ENSEMBLES else {"rule": rule}
        estimator = MODELS[model]().set_params(n_jobs=jobs, **rule_parameter)
    threads = threadpool_limits(jobs) if is_baseline else nullcontext()  # baselines have no parameter for it
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, threads:
        warnings.simplefilter("always")
        estimator.fit(frame, target[training])
    seconds = time.perf_counter() - start
    scores = _scores(estimator.classes_, _log_posterior(estimator, frame), target[training])
    log_posterior = _log_posterior(estimator, data.data.iloc[held_out])
    held_out_scores = _scores(estimator.classes_, log_posterior, target[held_out])
    members = getattr(estimator, "models_", {model: estimator}).values()
    histories = [member.history_["error"] for member in members if hasattr(member, "history_")]
    result = FoldResult(
        model,
        rule,
        error=held_out_scores["error"],
        log_loss=held_out_scores["log_loss"],
        training_error=scores["error"],
        soft_error=scores["soft_error"],
        updates=sum(len(errors) - 1 for errors in histories),
        seconds=seconds,
        notes=tuple(str(warning.message) for warning in caught),
    )
    return result, log_posterior


def _scores(classes: Array, log_posterior: Array, target: Array) -> Mapping[str, float]:
    """Error, soft error and log loss of predictions for rows with these labels."""
    truth = np.asarray(np.searchsorted(classes, target))
    true_class = log_posterior[np.arange(len(truth)), truth]
    return {
        "error": float(np.mean(most_probable(log_posterior) != truth)),
        "soft_error": float(np.mean(-np.expm1(true_class))),
        "log_loss": float(-np.mean(true_class)),
    }


def _log_posterior(estimator: Any, frame: Any) -> Array:
    """log p(class | x), (n, k); where a classifier has probabilities only, zeros are replaced as in sklearn's log_loss."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(frame))
    return np.log(np.maximum(estimator.predict_proba(frame), np.finfo(np.float64).eps))


# -- Average the fold results of each model and rule, and rank them by held-out log loss ---------------------

LEVEL = 0.05
"""Probability that any difference is called significant where there is none."""


@dataclass(frozen=True)
class MeanResult:
    """Means over the folds of one model with one rule, and standard deviations of the held-out scores."""

    model: str
    rule: str
    error: float
    error_spread: float
    log_loss: float
    log_loss_spread: float
    training_error: float
    soft_error: float
    updates: float
    seconds: float


def rank_results(results: Sequence[FoldResult]) -> list[MeanResult]:
    """Mean results by increasing held-out log loss, ties by error.

    The log loss of the probabilities differs less from fold to fold than the error, which counts decisions.
    """
    means = [_mean_result(*pair, group) for pair, group in by_model(results).items()]
    return sorted(means, key=lambda result: (round(result.log_loss, 12), result.error))


def by_model(results: Sequence[FoldResult]) -> dict[tuple[str, str], list[FoldResult]]:
    """(model, rule) -> its results, in the order of the folds."""
    groups: dict[tuple[str, str], list[FoldResult]] = {}
    for result in results:
        groups.setdefault((result.model, result.rule), []).append(result)
    return groups


def _mean_result(model: str, rule: str, group: Sequence[FoldResult]) -> MeanResult:
    names = ("error", "log_loss", "training_error", "soft_error", "updates", "seconds")
    values = {name: [getattr(result, name) for result in group] for name in names}
    means = {name: float(np.mean(numbers)) for name, numbers in values.items()}
    with np.errstate(invalid="ignore"):  # infinite log losses have no standard deviation
        spreads = {f"{name}_spread": float(np.std(values[name])) for name in ("error", "log_loss")}
    return MeanResult(model, rule, **means, **spreads)


def fold_interval(scores: Array, tests: int = 1) -> tuple[float, float, float]:
    """Mean over folds and its confidence interval, corrected for shared training rows (Nadeau and Bengio 2003).

    The intervals of so many ``tests`` cover all means together with 95 % (Bonferroni). NaN ends: fewer than two folds, or scores
    that are not finite.

    >>> fold_interval(np.array([0.1, 0.1, 0.1]))
    (0.1, 0.1, 0.1)
    """
    folds, mean = len(scores), float(np.round(scores.mean(), 15))
    if folds < 2 or not np.isfinite(mean):
        return mean, float("nan"), float("nan")
    error = np.sqrt((1 / folds + 1 / (folds - 1)) * scores.var(ddof=1))
    half = float(stdtrit(folds - 1, 1.0 - LEVEL / (2 * tests)) * np.round(error, 12))
    return mean, mean - half, mean + half


def differences(
    results: Sequence[FoldResult], reference: tuple[str, str]
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """(model, rule) -> log loss minus that of the reference, fold by fold: mean and interval of all pairs together."""
    losses = {pair: np.array([fold.log_loss for fold in group]) for pair, group in by_model(results).items()}
    tests = max(len(losses) - 1, 1)
    with np.errstate(invalid="ignore"):  # two infinite log losses: their difference is not known
        return {pair: fold_interval(own - losses[reference], tests) for pair, own in losses.items()}


def recommended(results: Sequence[FoldResult]) -> tuple[str, str] | None:
    """The default model, unless another one of this package has a lower log loss beyond doubt, fold by fold.

    Without the default it is the model of lowest log loss. None if only baselines were compared.
    """
    ranked = [(each.model, each.rule) for each in rank_results(results) if each.rule != NO_RULE]
    if DEFAULT not in ranked:
        return ranked[0] if ranked else None
    apart = differences(results, DEFAULT)
    return next((pair for pair in ranked if apart[pair][2] < 0.0), DEFAULT)


def not_distinguishable(results: Sequence[FoldResult]) -> list[tuple[str, str]]:
    """The models and rules whose log loss is not higher than the lowest one beyond doubt, in the order of their ranks."""
    first, *others = [(each.model, each.rule) for each in rank_results(results)]
    apart = differences(results, first)
    return [pair for pair in others if not apart[pair][1] > 0.0]


def method_name(model: str, rule: str) -> str:
    """A model and its rule as text."""
    return model if rule == NO_RULE or model in ENSEMBLES else f"{model}, {rule}"


def describe_best(results: Sequence[FoldResult]) -> str:
    """The lowest log loss, what cannot be distinguished from it, the best of the other side, and which model to take."""
    ranking = rank_results(results)
    best, chosen = ranking[0], recommended(results)
    others = [result for result in ranking if (result.rule == NO_RULE) != (best.rule == NO_RULE)]
    whose = "this package" if best.rule == NO_RULE else "scikit-learn"
    other = f" Best of {whose}: {_named(others[0])}." if others else ""
    close = len(not_distinguishable(results))
    ties = (
        f" Not distinguishable from it on these folds: {close} of {len(ranking) - 1} others." if close else ""
    )
    kept = " No other model of this package is better beyond doubt than the default, BayesClassifier."
    is_kept = chosen == DEFAULT and (best.model, best.rule) != DEFAULT
    return f"Lowest log loss on held-out rows: {_named(best)}{_likelihood_clause(best, ranking)}.{other}{ties}{kept if is_kept else ''}"


def _named(result: MeanResult) -> str:
    trained = "" if result.rule == NO_RULE else f" trained by {result.rule}"
    return f"{result.model}{trained} ({result.error:.1%} error, log loss {result.log_loss:.3f})"


def _likelihood_clause(best: MeanResult, ranking: Sequence[MeanResult]) -> str:
    """The same model trained by maximum likelihood, if that is another result."""
    found = [result for result in ranking if result.model == best.model and result.rule == "ml"]
    if not found or best.rule == "ml":
        return ""
    error = "the same error" if found[0].error == best.error else f"{found[0].error:.1%} error"
    return f"; the same model trained by maximum likelihood: {error}, log loss {found[0].log_loss:.3f}"


# -- Compare models and training rules by cross-validation on the same folds ---------------------------------

__all__ = [
    "BASELINES",
    "MODELS",
    "RULES",
    "CalendarColumns",
    "FoldResult",
    "MeanResult",
    "compare",
    "describe_best",
    "model_rule_pairs",
    "rank_results",
    "recommended",
    "run_fold",
    "stratified_folds",
]
