"""The members of `BayesClassifier`: families that see different things in a table, and what people give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibayes.encoders.bins import AdaptiveBins, InformedBins
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.dense import Dense
from calibayes.encoders.missing_as_level import MissingAsLevel
from calibayes.encoders.principal import PrincipalComponents
from calibayes.estimators.columns import METHODS, every
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.members import AsItIs, Member
from calibayes.estimators.nearby import Nearby
from calibayes.estimators.reading import Rows
from calibayes.estimators.stopped import Stopped
from calibayes.estimators.training import Training
from calibayes.families import (
    Full,
    Gaussian,
    KernelDensity,
    OneTree,
    OverBins,
    SignificantEdges,
    Tied,
    Tree,
    WithinClasses,
)
from calibayes.rules import rule_named

MOST_WORK = 4e9
"""Most multiplications in a pass for second moments of all classes, k n d^2."""
DIRECTIONS = 64
"""PrincipalComponents directions that stand for a table of too many columns."""
COSTLY = 1e8
"""Multiplications from which on a pass takes long: about a hundredth of a second."""
MOST_CELLS = 1e7
"""Most cells of a covariance matrix, d^2."""
MOST_PAIRS = 1e9
"""Most cells of pairs of columns that are counted in a pass, n d^2."""
ROWS_FOR_PAIRS = 1000
"""Tables of two columns need rows: with fewer a tree has hardly ever had a weight in out-of-fold mixtures."""


@dataclass(frozen=True)
class Size:
    """How large a table is to a member."""

    n: int
    k: int
    d: int
    """Columns of numbers and indicators."""
    columns: int
    """Columns of the table."""

    @property
    def work(self) -> float:
        """Multiplications in a pass for second moments of all classes."""
        return float(self.k) * self.n * self.d**2


def _kernel(size: Size) -> GenerativeClassifier:
    """Kernel densities and levels, column by column; what is missing has its own cell."""
    family = KernelDensity(OverBins())
    return GenerativeClassifier(
        families=[("kernel", family, every, MissingAsLevel(ByColumnType(AdaptiveBins())))]
    )


def _tied(size: Size) -> GenerativeClassifier:
    """One covariance for all classes, hardly shrunk: what tells classes apart may lie across close columns."""
    family = Gaussian(Tied(), prior=WithinClasses(rows=50.0, diagonal=0.1, floor=0.1))
    return GenerativeClassifier(families=[("tied", family, every, Dense())])


def _full(size: Size) -> GenerativeClassifier:
    """A covariance for each class, shrunk far towards what all classes have in common.

    Where that would be too much work it is one of the directions in which the table varies most.
    """
    prior = WithinClasses(rows=0.0, rows_per_column=20.0, diagonal=0.5, floor=0.1)
    encoder = Dense() if size.work <= MOST_WORK else PrincipalComponents(DIRECTIONS)
    return GenerativeClassifier(families=[("full", Gaussian(Full(), prior=prior), every, encoder)])


def _tree(size: Size) -> GenerativeClassifier:
    """Each column may hang on one other. Cells are coarse, but cut where the classes change: the kernels see the rest."""
    family = Tree(alpha=1.0, search=OneTree(SignificantEdges()), back_off=5.0)
    encoder = MissingAsLevel(ByColumnType(InformedBins(few=16, parts=4)))
    return GenerativeClassifier(families=[("tree", family, every, encoder)])


@dataclass(frozen=True)
class Standard:
    """A member that comes by itself: how it is made, when it would take too long, and when it joins."""

    member: Callable[[Size], Member]
    too_much: Callable[[Size], str] = lambda size: ""
    joins: Callable[[Size], bool] = lambda size: True
    work: Callable[[Size], float] = lambda size: 0.0
    """Multiplications in a pass, where these are what takes time."""


def _along(
    make: Callable[[Size], GenerativeClassifier],
    passes: int,
    work: Callable[[Size], float] = lambda size: 0.0,
) -> Callable[[Size], Stopped]:
    """How a member is made that comes along a path of so many passes."""
    return lambda size: Stopped(make(size), passes, costly=work(size) > COSTLY)


def _wide(size: Size) -> str:
    if size.d**2 <= MOST_CELLS:
        return ""
    return f"a covariance of {size.d} columns has more than {MOST_CELLS:.0e} cells"


def _least_work(size: Size) -> float:
    """Multiplications in a pass for second moments of all columns, or of their directions where those are too many."""
    return size.work if size.work <= MOST_WORK else float(size.k) * size.n * min(size.d, DIRECTIONS) ** 2


def _heavy(size: Size) -> str:
    few, work = min(size.d, DIRECTIONS), _least_work(size)
    if work <= MOST_WORK:
        return _wide(size)
    return (
        f"{size.k} classes x {size.n} rows x {few}^2 directions are {work:.1e} multiplications a pass, "
        f"more than {MOST_WORK:.0e}"
    )


def _crowded(size: Size) -> str:
    if float(size.n) * size.columns**2 <= MOST_PAIRS:
        return ""
    return f"{size.n} rows x {size.columns}^2 columns are too many pairs of columns to count"


STANDARD: Mapping[str, Standard] = {
    "near": Standard(lambda size: Nearby()),
    "tied": Standard(_along(_tied, 80), _wide),
    "full": Standard(_along(_full, 60, _least_work), _heavy, work=_least_work),
    "kernel": Standard(_along(_kernel, 120)),
    "tree": Standard(_along(_tree, 60), _crowded, lambda size: size.n >= ROWS_FOR_PAIRS),
}
"""Name -> member, those first whose paths are short: the long ones end where they have no use beside them. One whose
passes take long comes last of all."""


def standard_members(names: Sequence[str] | None, rows: Rows, k: int) -> dict[str, Member | str]:
    """The members of these names, or those that join by themselves; or why one is left out."""
    columns = len(rows.table.names)
    encoded = Dense().fit(rows.table, range(columns), rows.weight)
    size = Size(len(rows.codes), k, len(encoded.names), columns)
    if names is None:
        names = [name for name, member in STANDARD.items() if member.joins(size)]
    costly_last = sorted(names, key=lambda name: STANDARD[name].work(size) > COSTLY)
    return {name: STANDARD[name].too_much(size) or STANDARD[name].member(size) for name in costly_last}


def member_of(name: str, given: Any, *rest: Any) -> Member:
    """A family (with its encoder), or an estimator: along its path where it has one, else as it is."""
    if not isinstance(given, type) and all(hasattr(given, method) for method in METHODS):
        return Stopped(GenerativeClassifier(families=[(name, given, every, *rest)]))
    if isinstance(given, type) or rest or not hasattr(given, "predict_log_proba"):
        raise ValueError(f"{name!r} must be a family or an estimator with probabilities, got {given!r}")
    return Stopped(given) if isinstance(given, Training) and _has_path(given) else AsItIs(given)


def _has_path(estimator: Training) -> bool:
    """Whether it is trained by full updates from the statistics of the data, so that tau says how far."""
    plain = estimator.start == "data" and estimator.batch_size is None
    return plain and estimator.validation_fraction is None and not rule_named(estimator.rule).closed_form
