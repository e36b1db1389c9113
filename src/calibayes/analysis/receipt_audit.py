"""What an auditor runs: is a receipt that of a model, and is the model that of the rows that remain?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis.forget import difference_of_sums, retrained, training_rows_of
from calibayes.analysis.receipts import ForgettingReceipt, sums_hash
from calibayes.engines import computing
from calibayes.model.door import on_numpy
from calibayes.model.estimator import holding, recipe_of

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
    checks = [_is_recorded(receipt, after), _has_sums(receipt, after)]
    if before is not None:
        checks += _of_before(receipt, before, after)
    if remaining is not None:
        checks += _of_refit(receipt, after, remaining)
    if key is not None:
        signed = receipt.is_signed_by(key)
        checks.append(
            ReceiptCheck("signature", signed, "made with this key" if signed else "not made with this key")
        )
    return ReceiptAudit(tuple(checks))


def _is_recorded(receipt: ForgettingReceipt, after: Any) -> ReceiptCheck:
    """Whether the last receipt of a model is this one, and each follows the one before."""
    chain = after.forgetting_receipts_
    is_last = bool(chain) and chain[-1].digest == receipt.digest
    links = [*("" for _ in chain[:1]), *(earlier.digest for earlier in chain[:-1])]
    follows = all(entry.previous == link for entry, link in zip(chain, links, strict=True))
    finding = f"the last of {len(chain)} removals that the model records" if is_last else "not recorded last"
    return ReceiptCheck("record", is_last and follows, finding)


def _has_sums(receipt: ForgettingReceipt, after: Any) -> ReceiptCheck:
    same = receipt.is_of(after)
    return ReceiptCheck("sums after", same, "those of the model" if same else "not those of the model")


def _of_before(receipt: ForgettingReceipt, before: Any, after: Any) -> Iterator[ReceiptCheck]:
    same = sums_hash(before.data_statistics_) == receipt.sums_before
    yield ReceiptCheck("sums before", same, "those of the model before" if same else "not those of it")
    fewer = before.training_table_.rows - after.training_table_.rows
    yield ReceiptCheck(
        "rows", fewer == receipt.rows_forgotten, f"{fewer} fewer, {receipt.rows_forgotten} in the receipt"
    )


def _of_refit(receipt: ForgettingReceipt, after: Any, remaining: tuple[Any, ...]) -> Iterator[ReceiptCheck]:
    """The sums and posterior probabilities of a model beside those of a training on the remaining rows."""
    fitted, rows = after.fitted_, training_rows_of(after, *remaining)
    yield ReceiptCheck(
        "rows left",
        len(rows.codes) == receipt.rows_left,
        f"{len(rows.codes)} given, {receipt.rows_left} in the receipt",
    )
    with computing(after.engine, after.n_jobs) as engine:
        recipe = recipe_of(after, engine)
        problem = difference_of_sums(fitted, fitted.data_statistics, rows, recipe)
        yield ReceiptCheck(
            "sums of the rows left", not problem, problem or "those of the model, up to rounding"
        )
        refit = holding(after, retrained(fitted, rows, recipe))
    ours, theirs = (np.asarray(on_numpy(model.predict_proba(rows.table))) for model in (after, refit))
    distance = float(np.abs(ours - theirs).max(initial=0.0))
    yield ReceiptCheck(
        "refit", distance <= SAME_PROBABILITY, f"probabilities differ by {distance:.1e} at most"
    )
