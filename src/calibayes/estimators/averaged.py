"""What an average of posteriors is asked: probabilities, decisions, who brought them."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array, Layout
from calibayes.engines import thread_count
from calibayes.estimators.deciding import ByPosterior
from calibayes.estimators.members import Path
from calibayes.estimators.reading import Reading
from calibayes.families import ClassPrior
from calibayes.kernels.posterior.averaging import mix
from calibayes.kernels.threads import thread_limit
from calibayes.posterior import log_normalize
from calibayes.tables.read import Table

FREQUENCIES = "class frequencies"
"""The member that says the same of every row."""


class Averaged(ByPosterior, ClassifierMixin, Reading):  # type: ignore[misc]
    """The weighted average of what several trained models say."""

    weights_: dict[str, float]
    models_: dict[str, Any]
    paths_: dict[str, Path]
    skipped_: dict[str, str]
    n_jobs: int | None
    rows_: int
    tried_rows_: int
    class_prior_: Array
    out_of_fold_log_loss_: float
    out_of_fold_error_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _log_posteriors(self, table: Table) -> Array:
        """What each member says, class frequencies last, (members, n, k)."""
        with thread_limit(thread_count(self.n_jobs)):
            said = [model.predict_log_proba(table) for model in self.models_.values()]
        constant = np.broadcast_to(np.log(self.class_prior_), (table.n, len(self.classes_)))
        return np.stack([*said, constant])

    @property
    def _weights(self) -> Array:
        """Of the members that are used, class frequencies last."""
        return np.array([self.weights_[name] for name in (*self.models_, FREQUENCIES)])

    def _averaged(self, said: Array) -> Array:
        """log p(class | x) by all members together, where classes are as frequent as they are now, (n, k)."""
        log_posterior, shift = mix(said, self._weights), getattr(self, "_shift", None)
        return log_normalize(log_posterior if shift is None else log_posterior + shift)[0]

    def _table(self, X: Any) -> Table:
        check_is_fitted(self)
        return self._read(X, reset=False)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return self._averaged(self._log_posteriors(self._table(X)))

    def with_priors(self, priors: Array) -> Self:
        """This model where classes are as frequent as ``priors`` (k,) say: for a world that has shifted, no refit.

        Posterior odds are multiplied by how the new frequencies differ from those of training.
        """
        check_is_fitted(self)
        names = tuple(str(name) for name in self.classes_)
        new = ClassPrior(fixed=priors).bind(Layout(names, ())).parameters({})["log_probability"]
        shifted = copy.copy(self)
        shifted._now, shifted._shift = np.exp(new), new - np.log(self.class_prior_)
        return shifted

    def summary(self) -> str:
        """A plain-text table: weight, tau, held-out log loss and error of each member, and what was not done."""
        check_is_fitted(self)
        lines: list[tuple[str, ...]] = [("member", "weight", "tau", "log loss", "error")]
        for name, weight in self.weights_.items():
            path = self.paths_.get(name)
            told = (path.stop, path.log_loss[path.best], path.error[path.best]) if path else (np.nan,) * 3
            lines.append((name, f"{weight:.3f}", *(("" if np.isnan(v) else f"{v:.4g}") for v in told)))
        lines.append(
            ("together", "1.000", "", f"{self.out_of_fold_log_loss_:.4g}", f"{self.out_of_fold_error_:.4g}")
        )
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        texts = [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*texts, *self._saved()])

    def _saved(self) -> list[str]:
        """What was not done, and why."""
        ended = {name: path for name, path in self.paths_.items() if path.ended}
        return [
            *([f"tried on {self.tried_rows_} of {self.rows_} rows"] if self.tried_rows_ < self.rows_ else []),
            *(f"{name} was left out: {why}" for name, why in self.skipped_.items()),
            *(f"{name} was not taken beyond tau {p.tau[-1]:g}: {p.ended}" for name, p in ended.items()),
        ]

    def shares(self, X: Any) -> Array:
        """How much of the probability of the most probable class each member brings, (n, members); rows sum to one.

        The members are those of ``models_``, in its order, and the class frequencies.
        """
        said = self._log_posteriors(self._table(X))
        weighted = said + log_weights(self._weights)[:, None, None]
        best = np.argmax(self._averaged(said), axis=1)
        own = weighted[:, np.arange(said.shape[1]), best].T
        return np.exp(own - np.logaddexp.reduce(own, axis=1, keepdims=True))


def log_weights(weights: Array) -> Array:
    """Logs of weights, of which some may be zero."""
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))
