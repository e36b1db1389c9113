"""`forget`: a model without some of its training rows, with a receipt that says what of it is exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis import merging
from calibayes.analysis.calibrate import with_training
from calibayes.analysis.receipts import ForgettingReceipt, sums_hash, utc_text
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array, ModelArrays
from calibayes.encoders.levels import Levels
from calibayes.engines import computing
from calibayes.families.joint_model import PRIOR
from calibayes.learn import train
from calibayes.model.checked_rows import Rows
from calibayes.model.estimator import holding, known_rows, recipe_of, refuse_parts_of_rows
from calibayes.model.fitted import Fitted, fold_temperature, needs_temperature
from calibayes.model.recipe import Assembly, Recipe
from calibayes.model.table_inputs import on_numpy
from calibayes.model.training_rows import TRAINING, TrainingReference, labels_of

NEEDS_REMAINING = (
    "a model that is no plain sum over rows (a rule that takes steps, or something hidden) is trained again on the rows that "
    "remain, and this model refers to none: it was loaded, copied or changed after `fit`. Give them: "
    "model.forget(X, y, remaining=(X_rest, y_rest))"
)
SUM_ROUNDING = 1e-9
"""Largest difference between sums of the same rows, as a share of the sums that were added or subtracted."""


def forget(
    self: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    remaining: tuple[Any, ...] | None = None,
    date: datetime | None = None,
) -> Any:
    """The model without these rows, as if they had never been part of the training (docs/forgetting.md).

    For ML and MAP the sums of the rows are subtracted, which is exact up to rounding. For other rules, and if something is
    hidden (components of a mixture, missing values under a full covariance), the model is trained again on the rows that
    remain, from their closed form: exactly a new training with the same encoders. Levels, bins and other encoders stay as
    they are in both cases. ``forgetting_receipt_`` of the result says what was removed, what is exact and what is not.

    Parameters
    ----------
    X, y, sample_weight
        Rows that were part of the training, with the same weights.
    remaining : (X, y) or (X, y, sample_weight), optional
        All other training rows, to train on. By default those of the last `fit`, as long as the model is in the process
        that fitted it. They must be the training rows without the forgotten ones: their sums are compared. For ML and MAP
        they are not needed, and only compared.
    date : datetime with a time zone, optional
        The date of the receipt; by default now.
    """
    check_is_fitted(self, "fitted_")
    fitted = self.fitted_
    fitted.require_changeable()
    if "privacy" in fitted.extras:
        raise ValueError(
            "the sums of a private model have noise, and rows cannot be subtracted: fit again without them"
        )
    refuse_parts_of_rows(self)
    when = utc_text(date)
    if not fitted.is_additive:
        merging.require_retrainable(fitted, self.training, self.training_table_.missing_cells)
    rows = known_rows(self, X, y, sample_weight)
    rest = _remaining_rows(self, rows, remaining)
    with computing(self.engine, self.n_jobs) as engine:
        left = _without(fitted, rows, rest, recipe_of(self, engine))
    receipt = receipt_of(self, left, rows, when)
    left = left.with_extra("receipts", (*self.forgetting_receipts_, receipt))
    made = holding(self, left, training_table_=self.training_table_ - rows.described())
    if rest is not None:
        labels = labels_of(rest.codes, fitted.classes)
        vars(made)[TRAINING] = TrainingReference(rest.table, labels, rest.weight / rest.factor)
    return made


def _without(fitted: Fitted, rows: Rows, rest: Rows | None, recipe: Recipe) -> Fitted:
    """The fitted model without rows: by subtraction, or trained on the rows that remain."""
    if fitted.is_additive:
        left = merging.forget(fitted, rows, recipe.engine)
        if rest is not None:
            _require_same_sums(fitted, left.data_statistics, rest, recipe)
        return left
    if rest is None:
        raise ValueError(NEEDS_REMAINING)
    if not len(rest.codes):
        raise ValueError("no row remains to train on: these are all rows of the training")
    removed = merging.sums_of_rows(fitted, rows, recipe.engine).statistics
    _require_same_sums(fitted, merging.difference(fitted, removed), rest, recipe)
    return retrained(fitted, rest, recipe)


def retrained(fitted: Fitted, rows: Rows, recipe: Recipe) -> Fitted:
    """A model trained by its rule on rows, from their closed form, with the encoders of a fitted model."""
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    trained = train(fitted.model, source, recipe.engine, recipe.plan(recipe.draw_seed()), len(fitted.classes))
    result = with_training(fitted, trained)
    temperature = float(recipe.options.temperature)
    if needs_temperature(recipe, rows):
        temperature = fold_temperature(recipe, fitted.classes, rows)
    return replace(result, temperature=temperature)


def _remaining_rows(model: Any, rows: Rows, given: Any) -> Rows | None:
    """The training rows without some: those given, or for a model that is no sum those it refers to; None without any."""
    fitted, reference = model.fitted_, vars(model).get(TRAINING)
    if given is not None:
        if not isinstance(given, tuple) or len(given) not in (2, 3):
            raise ValueError(f"remaining must be (X, y) or (X, y, sample_weight), got {type(given).__name__}")
        return known_rows(model, *given)
    if fitted.is_additive or reference is None:
        return None
    return rows_without(fitted, known_rows(model, *reference), rows)


def rows_without(fitted: Fitted, rows: Rows, removed: Rows) -> Rows:
    """Rows without others that are equal in the encoded columns, class and weight, each removed once.

    Raises ValueError if one of these is not among the rows.
    """
    to_remove = Counter(_row_keys(fitted, removed))
    keep = np.ones(len(rows.codes), dtype=bool)
    for position, key in enumerate(_row_keys(fitted, rows)):
        if to_remove[key] > 0:
            to_remove[key] -= 1
            keep[position] = False
    if lost := sum(to_remove.values()):
        raise ValueError(
            f"{lost} of {len(removed.codes)} rows to forget are not among the rows of the last fit, with the same labels and "
            "weights: give rows of the training, or the rows that remain (remaining=)"
        )
    return rows.only(keep)


def _row_keys(fitted: Fitted, rows: Rows) -> list[bytes]:
    """The encoded columns, class and weight of each row as bytes."""
    encoded: Mapping[str, Any] = rows.encoded(fitted.binding)
    parts = [rows.codes[:, None].astype(np.float64), rows.weight[:, None]]
    for columns in encoded.values():
        dense = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns)
        parts.append(np.where(np.isnan(dense := dense.astype(np.float64)), np.nan, dense) + 0.0)
    return [row.tobytes() for row in np.ascontiguousarray(np.concatenate(parts, axis=1))]


def _require_same_sums(fitted: Fitted, left: ModelArrays, rest: Rows, recipe: Recipe) -> None:
    """Raises ValueError unless the sums of the remaining rows are those of the model without the forgotten ones."""
    if problem := difference_of_sums(fitted, left, rest, recipe):
        raise ValueError(
            f"the remaining rows are not the training rows without those to forget: {problem}. Give exactly the other rows of "
            "the training, with their weights"
        )


def difference_of_sums(fitted: Fitted, left: ModelArrays, rest: Rows, recipe: Recipe) -> str:
    """The first sums in which rows differ from ``left`` by more than rounding, in words; empty if there are none."""
    of_rest = merging.sums_of_rows(fitted, rest, recipe.engine).statistics
    is_same = map_leaves(_are_same_sums, left, of_rest, fitted.data_statistics)
    for family, names in is_same.items():
        for name, same in names.items():
            if not same:
                return f"the sums {family}/{name} differ"
    return ""


def _are_same_sums(left: Array, of_rest: Array, before: Array) -> bool:
    scale = np.abs(left) + np.abs(of_rest) + np.abs(before)
    tolerance = SUM_ROUNDING * (scale + 0.1 * scale.max(initial=0.0))
    return bool((np.abs(left - of_rest) <= tolerance).all())


def receipt_of(
    model: Any, left: Fitted, rows: Rows, date: str, exact: tuple[str, ...] = ()
) -> ForgettingReceipt:
    """The record of a removal of rows from a model, of which ``left`` is what remains; ``exact`` in words, if special."""
    before, previous = model.fitted_, model.forgetting_receipts_
    return ForgettingReceipt(
        estimator=type(model).__name__,
        rule=left.rule.name,
        rows_forgotten=len(rows.codes),
        rows_left=(model.training_table_ - rows.described()).rows,
        weight_forgotten=float(rows.weight.sum()),
        weight_left=float(left.data_statistics[PRIOR]["count"].sum()),
        sums_before=sums_hash(before.data_statistics),
        sums_after=sums_hash(left.data_statistics),
        exact=exact or _exact(left),
        not_exact=_not_exact(left),
        date=date,
        previous=previous[-1].digest if previous else "",
    )


def _exact(left: Fitted) -> tuple[str, ...]:
    """What of a model is as if the rows had never been part of the training."""
    if left.is_additive:
        return ("sums over the training rows and parameters: the rows were subtracted, up to rounding",)
    return (
        "sums over the training rows: computed again from the rows that remain",
        f"parameters: trained by rule {left.rule.name!r} on the rows that remain, from their closed form, with the model's encoders",
    )


def _not_exact(left: Fitted) -> tuple[str, ...]:
    """What of a model the removed rows had a part in."""
    binding = left.binding
    clauses = [encoder.data_dependence for encoder in binding.encoders.values()]
    kinds = {name: {binding.types[j].kind for j in binding.chosen[name]} for name in binding.encoders}
    has_levels = (
        isinstance(encoder, Levels) or ("levels" in encoder.layout() and not kinds[name] <= set("fiu"))
        for name, encoder in binding.encoders.items()
    )
    if any(has_levels):
        clauses.append("levels: one that only forgotten rows had stays in the list, with count 0")
    if binding.conversion.sources or left.schema is not None:
        clauses.append("kinds, dates and identifiers of columns were found in the training rows")
    clauses += [f"{name}: chosen with the forgotten rows" for name in left.notes]
    return tuple(dict.fromkeys(clause for clause in clauses if clause))


# -- Check a receipt against models and rows -----------------------------------------------------------------


SAME_PROBABILITY = 1e-6
"""Largest difference between the posterior probabilities of a model and of its refit: far above rounding."""


class ReceiptCheck(NamedTuple):
    """One check of a receipt."""

    name: str
    passed: bool
    finding: str


@dataclass(frozen=True)
class ReceiptAudit:
    """The checks of a receipt, by `verify_receipt`; it prints as one line for each.

    Attributes
    ----------
    checks : tuple of (name, passed, finding)

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], [0, 0, 0, 1, 1, 1]
    >>> after = GaussianNB(rule="ml").fit(X, y).forget(X[:1], y[:1])
    >>> len(verify_receipt(after.forgetting_receipt_, after).checks) > 1
    True
    """

    checks: tuple[ReceiptCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(f"{'ok' if c.passed else 'FAILED':6} {c.name}: {c.finding}" for c in self.checks)


def verify_receipt(
    receipt: ForgettingReceipt,
    after: Any,
    *,
    before: Any = None,
    remaining: tuple[Any, ...] | None = None,
    key: bytes | None = None,
) -> ReceiptAudit:
    """Check a receipt against the models it names, and the model against a refit on the rows that remain.

    Parameters
    ----------
    receipt : ForgettingReceipt
    after : fitted model
        The model that `forget` returned, or the same from a file.
    before : fitted model, optional
        The model that the rows were removed from.
    remaining : (X, y) or (X, y, sample_weight), optional
        The training rows without the forgotten ones. Sums over them are compared with those of the model, and a model
        that is trained on them with the same encoders is compared in its posterior probabilities.
    key : bytes, optional
        The key that the receipt must be signed with.

    Returns
    -------
    ReceiptAudit
        ``passed`` is whether all checks passed that the arguments allow.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], [0, 0, 0, 1, 1, 1]
    >>> before = GaussianNB(rule="ml").fit(X, y)
    >>> after = before.forget(X[:1], y[:1])
    >>> verify_receipt(after.forgetting_receipt_, after, before=before).passed
    True
    """
    for model in (after, *([] if before is None else [before])):
        check_is_fitted(model, "fitted_")
    same = receipt.is_of(after)
    sums = "sums after", same, "those of the model" if same else "not those of the model"
    checks = [_is_recorded(receipt, after), sums]
    if before is not None:
        checks += _of_before(receipt, before, after)
    if remaining is not None:
        checks += _of_refit(receipt, after, remaining)
    if key is not None:
        signed = receipt.is_signed_by(key)
        checks.append(("signature", signed, "made with this key" if signed else "not made with this key"))
    return ReceiptAudit(tuple(ReceiptCheck(*check) for check in checks))


Check: TypeAlias = tuple[str, bool, str]
"""The fields of a `ReceiptCheck`."""


def _is_recorded(receipt: ForgettingReceipt, after: Any) -> Check:
    """Whether the last receipt of a model is this one, and each follows the one before."""
    chain = after.forgetting_receipts_
    is_last = bool(chain) and chain[-1].digest == receipt.digest
    links = ["", *(earlier.digest for earlier in chain)]
    follows = all(entry.previous == link for entry, link in zip(chain, links, strict=False))
    finding = f"the last of {len(chain)} removals that the model records" if is_last else "not recorded last"
    return "record", is_last and follows, finding


def _of_before(receipt: ForgettingReceipt, before: Any, after: Any) -> Iterator[Check]:
    same = sums_hash(before.data_statistics_) == receipt.sums_before
    yield "sums before", same, "those of the model before" if same else "not those of it"
    fewer, forgotten = before.training_table_.rows - after.training_table_.rows, receipt.rows_forgotten
    yield "rows", fewer == forgotten, f"{fewer} fewer, {forgotten} in the receipt"


def _of_refit(receipt: ForgettingReceipt, after: Any, remaining: tuple[Any, ...]) -> Iterator[Check]:
    """The sums and posterior probabilities of a model beside those of a training on the remaining rows."""
    fitted, rows = after.fitted_, known_rows(after, *remaining)
    given, left = len(rows.codes), receipt.rows_left
    yield "rows left", given == left, f"{given} given, {left} in the receipt"
    with computing(after.engine, after.n_jobs) as engine:
        recipe = recipe_of(after, engine)
        problem = difference_of_sums(fitted, fitted.data_statistics, rows, recipe)
        yield "sums of the rows left", not problem, problem or "those of the model, up to rounding"
        refit = holding(after, retrained(fitted, rows, recipe))
    ours, theirs = (np.asarray(on_numpy(model.predict_proba(rows.table))) for model in (after, refit))
    distance = float(np.abs(ours - theirs).max(initial=0.0))
    yield "refit", distance <= SAME_PROBABILITY, f"probabilities differ by {distance:.1e} at most"
