"""Generative uses: new rows, rows given what is known of them, missing cells filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.abilities import AllowsMissing, Filling, Sampling
from calibayes.core.protocols import Array
from calibayes.encoders.numbers import Encoder, MissingIsValue
from calibayes.estimators.checks import whole_number
from calibayes.estimators.explaining import Explaining
from calibayes.families.model import PRIOR
from calibayes.posterior import log_normalize
from calibayes.tables.read import Table, missing


@dataclass(eq=False, repr=False, kw_only=True)
class Generating(Explaining):
    """Rows that the model makes up."""

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
    ) -> tuple[Any, Array]:
        """New rows and their classes, drawn from the model.

        Parameters
        ----------
        n_samples : int, default=1
        y : label or (n_samples,) labels, optional
            Classes to draw from; by default they are drawn too, given what is known.
        given : mapping, optional
            Column (name or position) -> value that all rows have: the others are drawn given those.
        random_state : int or RandomState, optional

        Returns
        -------
        X : data frame or array of shape (n_samples, d)
            Of the kind that the model was fitted to. Columns that no family models are missing.
        y : (n_samples,) array
        """
        self._check_learned()
        n = whole_number("n_samples", n_samples, 1)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        known = self._known(given or {}, n)
        codes = self._drawn_classes(self._encode_given(known.rows(np.arange(n) == 0), given or {}), y, n, rng)
        encoded = self._encode_given(known, given or {})
        drawn = {}
        for name, family in self._model.families.items():
            if not isinstance(family, Sampling):
                raise ValueError(f"family {name!r} ({type(family).__name__}) cannot be sampled")
            drawn[name] = family.sample(self.parameters_[name], codes, rng, encoded.get(name))
        return self._like_training(self._decoded(known, drawn, rng)), self.classes_[codes]

    def fill(self, X: Any) -> Any:
        """The rows with missing cells filled, given what is known of each row.

        Numbers are filled by their mean, levels by the most probable one, and binned numbers by the middle of the most
        probable bin. Returns a table of the kind that the model was fitted to.
        """
        self._check_learned()
        table = self._read(X, reset=False)
        posterior = np.exp(log_normalize(np.concatenate(self._of_table(table, lambda joint: joint)))[0])
        encoded = {name: self._open(name).encode(table) for name in self._model.families}
        filled = {}
        for name, family in self._model.families.items():
            if isinstance(family, Filling):
                filled[name] = family.fill(encoded[name], self.parameters_[name], posterior)
        return self._like_training(self._decoded(table, filled, None))

    def _known(self, given: Mapping[Any, Any], n: int) -> Table:
        """Rows with nothing in them but what is given."""
        names = self._bound.names
        positions = {name: j for j, name in enumerate(names)} | dict(enumerate(range(len(names))))
        unknown = [name for name in given if name not in positions]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r}; the columns are {', '.join(names)}")
        values = {positions[name]: value for name, value in given.items()}
        if len(values) < len(given):
            raise ValueError("a column is given twice, by name and by position")
        return Table(names, tuple(self._kept(j, values.get(j), n) for j in range(len(names))))

    def _kept(self, j: int, value: Any, n: int) -> Array:
        """A column of one value, or of missing cells, of the type that it had in training."""
        numeric = self._bound.types[j].kind in "fiu"
        if value is None:
            return np.full(n, np.nan) if numeric else np.full(n, None, dtype=object)
        return np.full(n, float(value)) if numeric else np.array([value] * n, dtype=object)

    def _encode_given(self, known: Table, given: Mapping[Any, Any]) -> dict[str, Array]:
        """The columns of families that something is given of."""
        encoded = {}
        for name, family in self._model.families.items():
            own = {self._bound.names[j] for j in self._bound.chosen[name]} | set(self._bound.chosen[name])
            if own & set(given):
                if not isinstance(family, AllowsMissing) and len(own & set(given)) < len(
                    self._bound.chosen[name]
                ):
                    raise ValueError(f"{type(family).__name__} columns can only be given all together")
                encoded[name] = self._open(name).encode(known)
        return encoded

    def _open(self, family: str) -> Encoder:
        """The encoder of a family's columns, to which a missing cell is one to be guessed."""
        encoder = self._bound.encoders[family]
        return encoder.with_missing_unknown() if isinstance(encoder, MissingIsValue) else encoder

    def _drawn_classes(self, encoded: Mapping[str, Array], y: Any, n: int, rng: np.random.Generator) -> Array:
        """Codes drawn from p(class | what is known), or those asked for."""
        if y is not None:
            classes = self.classes_.tolist()
            labels = [y] * n if np.ndim(y) == 0 else list(y)
            strange = [label for label in labels if label not in classes]
            if strange or len(labels) != n:
                raise ValueError(
                    f"{(strange or [y])[0]!r} is not among the classes {classes}, or not {n} labels"
                )
            return np.array([classes.index(label) for label in labels])
        log_joint = self.parameters_[PRIOR]["log_probability"][None]
        for name, columns in encoded.items():
            log_joint = log_joint + self._model.families[name].log_density(columns, self.parameters_[name])
        posterior = np.exp(log_normalize(log_joint)[0][0])
        return np.sort(rng.choice(len(self.classes_), size=n, p=posterior / posterior.sum()))

    def _decoded(
        self, table: Table, encoded: Mapping[str, Array], rng: np.random.Generator | None
    ) -> list[Array]:
        """Encoded columns back as they were; cells that were there already stay untouched."""
        columns = [table.column(j) for j in range(len(table.names))]
        for name, array in encoded.items():
            decoded = self._bound.encoders[name].decode(array, rng)
            for j, column in zip(self._bound.chosen[name], decoded, strict=True):
                absent = missing(columns[j])
                if not absent.any():
                    continue
                whole = self._bound.types[j].kind in "iu" and column.dtype.kind == "f"
                made = np.rint(column) if whole else column
                columns[j] = np.where(absent, made, columns[j]) if not absent.all() else made
        return columns

    def _like_training(self, columns: list[Array]) -> Any:
        """Columns as a table of the kind that the model was fitted to."""
        return self._bound.origin.made_of(self._bound.names, self._bound.types, columns)
