"""Naive Bayes with kernel densities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from calibayes.encoders.bins import AdaptiveBins
from calibayes.encoders.grid import Grid
from calibayes.encoders.numbers import Encoder
from calibayes.estimators.checks import number
from calibayes.estimators.kinds import Choices
from calibayes.estimators.naive_bayes import Tabular
from calibayes.families import KernelDensity, OverBins, Silverman
from calibayes.families.kernel.bandwidths import Bandwidth, bandwidth_named


class Binning(NamedTuple):
    """What columns lie on, and the bandwidth that goes with it unless another one is given."""

    cells: Callable[[], Encoder]
    bandwidth: Callable[[], Bandwidth] = OverBins


BINNINGS: Mapping[str, Binning] = {
    "adaptive": Binning(AdaptiveBins),
    "grid": Binning(Grid, Silverman),
}
"""Short name -> binning."""


def binning_named(given: str | Encoder) -> Binning:
    """The binning that a name stands for, or that of a given encoder."""
    if isinstance(given, str) and given in BINNINGS:
        return BINNINGS[given]
    if isinstance(given, str | type) or not hasattr(given, "encode"):
        names = ", ".join(repr(known) for known in BINNINGS)
        raise ValueError(f"binning must be one of {names}, or an encoder such as Grid(), got {given!r}")
    encoder: Encoder = given
    return Binning(lambda: encoder)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelNB(Tabular):
    """Naive Bayes over a table as it is: a kernel density for each column of numbers, levels for everything else.

    Parameters
    ----------
    binning : {"adaptive", "grid"} or encoder of `calibayes.tables`, default="adaptive"
        What numbers are counted on: bins that are fine where rows are dense, one a value for few values, with a density
        that is constant in each; or a uniform grid, with a density that is linear between its points. Beyond the
        training rows the density stays that of the outer bin, so that a far value speaks for no class more than the
        farthest known one does, but `score_samples` does not see how far it is; on a grid it falls off (Lomax).
    bandwidth : {"normal", "silverman", "sheather_jones", "bins"}, float or rule of `calibayes.families`, optional
        How wide the kernel is, found before training and then fixed. A number is in the columns' own units, and needs a
        grid. By default "bins", which widens with the number of bins and falls with that of the rows a class, or
        "silverman" on a grid.
    prior_rows : float, default=3
        Rows in each class and column that lie as those of all classes together do.
    kinds, rare_levels, max_levels, alpha, force_alpha, prior, fit_prior, class_prior
        As in `NaiveBayes`; ``alpha`` and ``prior`` are those of levels.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Attributes
    ----------
    schema_ : Schema
        The kind of each column and why; it prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import KernelNB
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KernelNB().fit(X, y).score(X, y) >= KernelNB(rule="ml").fit(X, y).score(X, y))
    True
    """

    binning: str | Encoder = "adaptive"
    bandwidth: str | float | Bandwidth | None = None
    prior_rows: float = 3.0

    numeric_kind: ClassVar[str] = "kernel"

    def _choices(self) -> Choices:
        binning = binning_named(self.binning)
        rule = binning.bandwidth() if self.bandwidth is None else bandwidth_named(self.bandwidth)
        family = KernelDensity(rule, number("prior_rows", self.prior_rows, 0.0, 1e300))
        return Choices(self._smoothing(), levels=self._levels(), kernel=family, cells=binning.cells())
