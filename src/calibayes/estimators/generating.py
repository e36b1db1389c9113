"""Generative uses: new rows, rows given what is known of them, missing cells filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.abilities import Filling, Sampling
from calibayes.core.protocols import Array
from calibayes.estimators.checks import whole_number
from calibayes.estimators.explaining import Explaining
from calibayes.families.product import PRIOR
from calibayes.posterior import log_normalise
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
        codes = self._drawn_classes(known if given else None, y, n, rng)
        encoded = self._encode(known) if given else {}
        drawn = {}
        for name, family in self._model.families.items():
            if not isinstance(family, Sampling):
                raise ValueError(f"family {name!r} ({type(family).__name__}) cannot be sampled")
            drawn[name] = family.sample(self.parameters_[name], codes, rng, encoded.get(name))
        return self._like_training(self._decoded(known, drawn, rng)), self.classes_[codes]

    def fill(self, X: Any) -> Any:
        """The rows with missing cells filled: numbers by their mean, levels by the most probable, given what is known.

        Returns a table of the kind that the model was fitted to.
        """
        self._check_learned()
        table = self._read(X, reset=False)
        posterior = np.exp(log_normalise(self._log_joint(table))[0])
        encoded = self._encode(table)
        filled = {}
        for name, family in self._model.families.items():
            if not isinstance(family, Filling):
                raise ValueError(f"family {name!r} ({type(family).__name__}) cannot fill missing cells")
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
        return Table(names, tuple(self._kept(j, values.get(j), n) for j in range(len(names))))

    def _kept(self, j: int, value: Any, n: int) -> Array:
        """A column of one value, or of missing cells, of the type that it had in training."""
        numeric = self._bound.types[j].kind in "fiu"
        if value is None:
            return np.full(n, np.nan) if numeric else np.full(n, None, dtype=object)
        return np.full(n, float(value)) if numeric else np.array([value] * n, dtype=object)

    def _drawn_classes(self, known: Table | None, y: Any, n: int, rng: np.random.Generator) -> Array:
        """Codes drawn from p(class | what is known), or those asked for."""
        if y is not None:
            labels = np.broadcast_to(np.asarray(y, dtype=self.classes_.dtype), n)
            strange = labels[~np.isin(labels, self.classes_)]
            if len(strange):
                raise ValueError(f"{strange[0]!r} is not among the classes {self.classes_.tolist()}")
            return np.searchsorted(self.classes_, labels)
        log_prior = self.parameters_[PRIOR]["log_probability"]
        posterior = np.exp(log_prior if known is None else log_normalise(self._log_joint(known))[0][0])
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
                columns[j] = np.where(absent, column, columns[j]) if not absent.all() else column
        return columns

    def _like_training(self, columns: list[Array]) -> Any:
        """Columns as a table of the kind that the model was fitted to."""
        return self._bound.origin.made_of(self._bound.names, self._bound.types, columns)
