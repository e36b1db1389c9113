"""One model of the rows of several sites, which exchange parameters and sums over rows alone.

`calibrate` trains a model by asking each site for sums over its rows, once in each pass. A `Site` has rows in this process;
a site elsewhere is any object with a method ``sums(function)`` that passes the function on and returns the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Protocol, TypeVar, cast

from calibayes.analysis.calibrate import require_trainable, with_training
from calibayes.core.named_arrays import add
from calibayes.core.protocols import Block, Rule, Source
from calibayes.engines import Serial
from calibayes.learn import Plan, train
from calibayes.model.checked_rows import Reading
from calibayes.model.estimator import holding, require_sums
from calibayes.model.recipe import Assembly
from calibayes.model.table_inputs import InMemory
from calibayes.rules import rule_named

__all__ = ["Site", "SumsOfRows", "calibrate"]

Estimator = TypeVar("Estimator", bound=Any)


class SumsOfRows(Protocol):
    """A site: it returns sums over its rows, and no rows.

    Examples
    --------
    >>> class Local:
    ...     rows = (1, 2, 3)
    ...     def sums(self, function):
    ...         return function(self.rows)
    >>> Local().sums(sum)
    6
    """

    def sums(self, function: Callable[[Block], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The sum of a function of blocks over all rows of the site: name -> array or nested mapping."""


class Site:
    """The rows of a site, encoded as a merged model encodes them.

    Parameters
    ----------
    model : fitted generative classifier
        The model that the sites have merged.
    X : table
    y : (n,) labels
    sample_weight : (n,) array, optional

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.federated import calibrate
    >>> X, y = [[0.0], [2.0], [1.0], [6.0], [5.0], [0.5]], [0, 0, 1, 1, 1, 0]
    >>> model = GaussianNB(rule="ml").fit(X[:3], y[:3]).merge(GaussianNB(rule="ml").fit(X[3:], y[3:]))
    >>> calibrate(model, [Site(model, X[:3], y[:3]), Site(model, X[3:], y[3:])]).predict(X)
    array([0, 0, 0, 1, 1, 0])
    """

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        fitted = model.fitted_
        how = Reading(model.class_weight, classes=fitted.classes, reset=False)
        _, rows = InMemory(X, y, sample_weight).rows(model, None, how)
        self._source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)

    def sums(self, function: Callable[[Block], Mapping[str, Any]]) -> Mapping[str, Any]:
        """The sum of a function of blocks over the rows."""
        return Serial().total(function, self._source)


class _Sites:
    """An engine: the sum of a function over the rows of all sites, of which it sees the sums alone."""

    def total(self, function: Callable[[Block], Mapping[str, Any]], sites: Any) -> Any:
        return reduce(add, (site.sums(function) for site in sites))

    def each(self, function: Callable[[Block], Any], sites: Any) -> list[Any]:
        raise ValueError("the sites return sums over rows, not the results of single blocks")


def calibrate(model: Estimator, sites: Sequence[SumsOfRows], rule: str | Rule = "rc") -> Estimator:
    """A copy of a merged model that is trained on the rows of all sites.

    Parameters
    ----------
    model : fitted generative classifier
        A model of rule "ml" or "map", merged from those of the sites. Its ``max_iter`` and ``stop`` are used.
    sites : sequence of `SumsOfRows`
        `Site` objects, or others with the method ``sums``.
    rule : str or Rule, default="rc"
        How to train. Raises ValueError for a rule that needs families with another prior ("gdt", "em").

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.datasets import load_penguins
    >>> from calibayes.federated import Site, calibrate
    >>> X, y = load_penguins().data[["body_mass_g"]], load_penguins().target
    >>> parts = [(X[i::2], y[i::2]) for i in range(2)]
    >>> one, other = (GaussianNB(rule="ml").fit(*part) for part in parts)
    >>> merged = one.merge(other)
    >>> calibrate(merged, [Site(merged, *part) for part in parts]).rule
    'rc'
    """
    if not sites:
        raise ValueError("there are no sites: give at least one")
    require_sums(model)
    fitted, chosen = model.fitted_, rule_named(rule)
    require_trainable(chosen, fitted.model.families)
    plan = Plan(chosen, stop=model.stop, max_iter=model.max_iter)
    trained = train(fitted.model, cast("Source", sites), _Sites(), plan, len(fitted.classes))
    result = with_training(replace(fitted, rule=chosen), trained)
    return holding(model, result, rule=rule)
