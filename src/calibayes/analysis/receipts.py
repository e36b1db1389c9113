"""The record of a removal of training rows: what was removed, what is exact, and hashes that tie it to the models."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from calibayes._version import __version__
from calibayes.core.verify import require, require_instance

HEX_DIGITS = 64
"""Length of a SHA-256 checksum in hexadecimal digits."""


@dataclass(frozen=True)
class ForgettingReceipt:
    """The record of a removal of training rows by `forget`.

    Attributes
    ----------
    estimator, rule : str
        Class of the model and its training rule.
    rows_forgotten, rows_left : int
        Numbers of rows with a positive weight.
    weight_forgotten, weight_left : float
        Sums of their weights.
    sums_before, sums_after : str
        SHA-256 of the sums over the training rows (``data_statistics_``), bit by bit: see `sums_hash`.
    exact, not_exact : tuple of str
        What is as if the rows had never been part of the training, and what is not, in words.
    date : str
        Date and time, UTC.
    version : str
        Version of calibayes.
    previous : str
        ``digest`` of the receipt of the removal before this one; empty for the first.
    signature : str
        HMAC-SHA256 of the ``digest``, hexadecimal; empty if nobody has signed.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]], [0, 0, 0, 1, 1, 1]
    >>> GaussianNB(rule="ml").fit(X, y).forget(X[:1], y[:1]).forgetting_receipt_.rows_forgotten
    1
    """

    estimator: str
    rule: str
    rows_forgotten: int
    rows_left: int
    weight_forgotten: float
    weight_left: float
    sums_before: str
    sums_after: str
    exact: tuple[str, ...]
    not_exact: tuple[str, ...]
    date: str
    version: str = __version__
    previous: str = ""
    signature: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of all fields but the signature, as JSON with sorted names."""
        record = {name: value for name, value in asdict(self).items() if name != "signature"}
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()

    def signed(self, key: bytes) -> ForgettingReceipt:
        """This receipt with a signature that only holders of the key can make or check (HMAC-SHA256)."""
        return replace(self, signature=_signature(key, self.digest))

    def is_signed_by(self, key: bytes) -> bool:
        """Whether the signature was made with this key, for exactly these fields."""
        return hmac.compare_digest(self.signature, _signature(key, self.digest))

    def is_of(self, model: Any) -> bool:
        """Whether the sums of a fitted model are, bit by bit, those after this removal."""
        return sums_hash(model.data_statistics_) == self.sums_after

    def to_json(self) -> str:
        """All fields and the digest as JSON text, for records outside of the model file."""
        return json.dumps({**asdict(self), "digest": self.digest}, indent=2)

    @staticmethod
    def from_json(text: str) -> ForgettingReceipt:
        """The receipt of a text from `to_json`. Raises ValueError if a field was changed since."""
        given = json.loads(text)
        digest, names = given.pop("digest", ""), {field.name for field in fields(ForgettingReceipt)}
        if set(given) != names:
            raise ValueError(f"this is no receipt: {sorted(set(given) ^ names)} is missing or unknown")
        given |= {name: tuple(given[name]) for name in ("exact", "not_exact")}
        receipt = ForgettingReceipt(**given)
        receipt.verify()
        if receipt.digest != digest:
            raise ValueError("a field of this receipt was changed: its digest is another one")
        return receipt

    def verify(self) -> None:
        """Raises ValueError if the fields, which may come from a file, are impossible."""
        counts = (self.rows_forgotten, self.rows_left, self.weight_forgotten, self.weight_left)
        require(all(0 <= count < np.inf for count in counts), "a receipt with negative or infinite counts")
        for name in ("sums_before", "sums_after", "previous", "signature"):
            value = getattr(self, name)
            is_hash = len(value) == HEX_DIGITS and set(value) <= set("0123456789abcdef")
            may_lack = name in ("previous", "signature") and not value
            require(is_hash or may_lack, f"{name} of a receipt is no SHA-256 checksum")

    def __str__(self) -> str:
        lines = [
            f"{self.estimator} ({self.rule}), {self.date}, calibayes {self.version}",
            f"forgotten: {self.rows_forgotten} rows of weight {self.weight_forgotten:.6g}",
            f"left: {self.rows_left} rows of weight {self.weight_left:.6g}",
            f"sums before {self.sums_before[:16]}..., after {self.sums_after[:16]}...",
            *(f"exact: {text}" for text in self.exact),
            *(f"not exact: {text}" for text in self.not_exact),
            f"digest {self.digest[:16]}..., {'signed' if self.signature else 'not signed'}",
        ]
        return "\n".join(lines)


def sums_hash(statistics: Mapping[str, Any]) -> str:
    """SHA-256 of sums over rows: family -> name -> array.

    Each array is hashed as ``family/name``, its shape, and its numbers as little-endian float64, in the order of the
    names. Nothing is rounded: equal hashes mean equal bits.
    """
    digest = hashlib.sha256()
    for name, array in sorted(_leaves("", statistics)):
        numbers = np.ascontiguousarray(array, dtype="<f8")
        digest.update(f"{name} {numbers.shape}\n".encode())
        digest.update(numbers.tobytes())
    return digest.hexdigest()


def utc_text(date: Any) -> str:
    """Date and time in UTC to the second, by default now. Raises ValueError without a time zone."""
    if date is None:
        date = datetime.now(UTC)
    elif not isinstance(date, datetime) or date.tzinfo is None:
        raise ValueError(f"date must be a datetime with a time zone, such as datetime.now(UTC), got {date!r}")
    return f"{date.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _leaves(path: str, tree: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, Mapping):
        yield path, tree
        return
    for name, part in tree.items():
        yield from _leaves(f"{path}/{name}" if path else name, part)


def _signature(key: Any, digest: str) -> str:
    if not isinstance(key, bytes) or not key:
        raise ValueError("the key of a signature must be bytes, and not empty")
    return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()


def verify_extra(fitted: Any, receipts: Any) -> None:
    """Raises ValueError unless these are receipts, which may come from a model file."""
    require_instance("receipts", receipts, tuple)
    for receipt in receipts:
        require_instance("a receipt", receipt, ForgettingReceipt)
