"""The classifier that a person should use without thinking."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.generative import Generative
from calibayes.estimators.members import Member, Path, Setting
from calibayes.estimators.mixing import unnamed
from calibayes.estimators.mixture_reasons import Reasoning
from calibayes.estimators.posterior_mixture import named
from calibayes.estimators.reading import Rows
from calibayes.estimators.standard_members import STANDARD, member_of, standard_members
from calibayes.estimators.stopped import Stopped

DENSITY = "kernel"
"""The member that models every column in its own terms, and so can draw whole rows."""


@dataclass(eq=False, repr=False, kw_only=True)
class BayesClassifier(Reasoning):
    """Generative models trained to decide well, averaged: a table as it is goes in, probabilities come out.

    The members are kernel naive Bayes ("kernel"), Gaussian classes with one covariance ("tied") and with a covariance
    each, shrunk ("full"), kernels over all columns together ("near", `JointKernelClassifier`), and from 1,000 rows on
    naive Bayes in which each column may hang on one other ("tree"). Each is trained as far as inner folds say, the
    kernels over all columns by their bandwidth and by how much wider kernels count, the others by risk-based
    calibration; what they say of held-out rows also says how much each counts. One whose passes take long (100 million
    multiplications) comes last, and is followed only while all together gain by it; `summary` says where that was. The
    class frequencies are a member too, so that no class is ever held for impossible. Numbers, text, booleans, categories,
    missing cells and weights are taken as they come.

    Parameters
    ----------
    families : list, optional
        Members instead of the standard ones: names of those ("near", "kernel", "tied", "full", "tree"),
        (name, family), (name, family, encoder), or (name, estimator of this package).
    density : str, optional
        The member that `score_samples`, `sample`, `fill` and `outlier_threshold` ask; by default "kernel", or the first
        where that is none. "near" has `score_samples` alone.
    cv : int, splitter or list of splits, optional
        Inner folds; by default five, three from 3,000 rows on, of about 20,000 rows where there are more: those are
        enough to say how far to train and what each member counts. Rows that were seen twice, or have weight 2, are dealt
        out as two rows, up to about eight times as many as there are.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j where i is true: `predict` then decides at least expected cost.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``, as in scikit-learn.
    time_limit : float, optional
        Seconds after which paths end where they are and further members are left out.
    random_state : int or RandomState, optional
        Seeds the folds; by default they are the same every time.
    n_jobs : int, optional
        Threads over blocks of rows. The result is the same for any number, bit for bit.
    verbose : int, default=0
        Whether to show on the standard error stream how far it is: a bar on a terminal, else a line for each value of tau.

    Attributes
    ----------
    classes_ : (k,) array
    weights_ : mapping
        Name -> how much a member counts; "class frequencies" is the last. Members count nothing, and are not trained on
        all rows, whose weight would be less than two fifths of an even share. Each begins with half a row in which it
        alone was right; where all together are no better than the class frequencies, those alone count.
    models_ : mapping
        Name -> trained estimator, of the members that count.
    paths_ : mapping
        Name -> held-out log loss and error along the member's path, and the tau that was taken.
    skipped_ : mapping
        Name -> why a member was left out.
    density_ : estimator
        The member of ``density`` before calibration, at tau 0: calibration makes decisions better and densities worse.
    out_of_fold_log_loss_, out_of_fold_error_ : float
        Of the mixture on the rows it was weighted on.
    rows_, tried_rows_ : int
        Rows it was trained on, and how many of them the members were tried on; "near" is asked about fewer where those
        are many, and weights are found on the rows that all were asked about.

    Examples
    --------
    >>> from calibayes import BayesClassifier
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = BayesClassifier().fit(penguins.columns, penguins.target)
    >>> list(model.weights_)
    ['near', 'tied', 'full', 'kernel', 'class frequencies']
    """

    families: Sequence[Any] | None = None
    density: str | None = None

    def _members(self, rows: Rows) -> Mapping[str, Member | str]:
        k = len(self.classes_)
        if self.families is None:
            return standard_members(None, rows, k)
        names = [entry for entry in self.families if isinstance(entry, str)]
        strange = [name for name in names if name not in STANDARD]
        if strange:
            raise ValueError(f"unknown member {strange[0]!r}; the members are {', '.join(STANDARD)}")
        listed = named([(entry, None) if isinstance(entry, str) else entry for entry in self.families])
        made = standard_members(names, rows, k) if names else {}
        return {name: made[name] if name in made else member_of(name, *parts) for name, *parts in listed}

    def _finish(self, setting: Setting, members: Mapping[str, Member]) -> None:
        super()._finish(setting, members)
        name = self.density or (DENSITY if DENSITY in members else next(iter(members)))
        if name not in members:
            raise ValueError(f"density={name!r} is not among the members {', '.join(members)}")
        member, start = members[name], Path(np.zeros(1), np.zeros(1), np.zeros(1), 0)
        path = start if isinstance(member, Stopped) else self.paths_[name]
        used = self.models_.get(name) or member.trained(setting, path)
        unnamed(used, setting.rows.table)
        self.density_ = uncalibrated(used)

    # -- the density of one member ---------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,), by the member of ``density_``: an average of posteriors has no density of its own."""
        return self._dense().score_samples(self._table(X))

    def outlier_threshold(self, X: Any, share: float = 0.01) -> float:
        """The log density below which a further row falls with probability ``share``; see `GenerativeClassifier`."""
        return float(self._dense("outlier_threshold").outlier_threshold(self._table(X), share))

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
    ) -> tuple[Any, Array]:
        """New rows and their classes, drawn from ``density_``; see `GenerativeClassifier.sample`."""
        rows, classes = self._dense("sample").sample(n_samples, y, given, random_state)
        return rows, classes

    def fill(self, X: Any) -> Any:
        """The rows with missing cells filled by ``density_``; see `GenerativeClassifier.fill`."""
        return self._dense("fill").fill(self._table(X))

    def _dense(self, method: str = "score_samples") -> Any:
        """The member of ``density_``, where classes are as frequent as they are now; a sentence where it cannot do that."""
        check_is_fitted(self)
        shifted = getattr(self, "_shift", None) is not None
        for wanted in (method, *(("with_priors",) if shifted else ())):
            if not hasattr(self.density_, wanted):
                raise ValueError(
                    f"{type(self.density_).__name__} has no `{wanted}`: let `density` name another member, such as {DENSITY!r}"
                )
        return self.density_.with_priors(self._now) if shifted else self.density_


def uncalibrated(model: Any) -> Any:
    """A trained model where its path began, if it has come along one."""
    if not isinstance(model, Generative) or getattr(model, "data_statistics_", None) is None:
        return model
    start = copy.copy(model)
    start.statistics_ = start._state = model._model.statistics_of(model.data_statistics_)
    start.parameters_ = model._model.parameters(start.statistics_)
    return start
