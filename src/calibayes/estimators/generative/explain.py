"""Terms of the joint log density of a fitted model, by class prior and column."""

from __future__ import annotations

import numpy as np

from calibayes.core.abilities import Reasons
from calibayes.core.protocols import Array
from calibayes.encoders.encoder import Derived
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.interface.explanation import summed_by_source
from calibayes.families.model import PRIOR
from calibayes.tables.table import Table


def joint_terms(fitted: Fitted, table: Table) -> tuple[tuple[str, ...], Array]:
    """Names and terms (n, k, names), whose sum over names is log p(x, class) up to a term that all classes share.

    Raises ValueError if the log density of a family is not a sum over columns.
    """
    parameters, encoded = fitted.learned(), fitted.binding.encode(table)
    names, terms = ["class prior"], [parameters[PRIOR]["log_probability"][None, :, None]]
    for name, family in fitted.model.families.items():
        if not isinstance(family, Reasons):
            raise ValueError(
                f"family {name!r} ({type(family).__name__}) cannot be explained: its log density is no sum over columns"
            )
        family_terms = family.terms(encoded[name], parameters[name])
        encoder, groups = fitted.binding.encoders[name], family.groups
        if isinstance(encoder, Derived) and len(groups) == len(encoder.sources):
            groups, family_terms = _by_source(fitted.binding.columns(name), encoder.sources, family_terms)
        names += groups
        terms.append(family_terms)
    n = len(terms[1])
    matrix = np.concatenate([np.broadcast_to(t, (n, *t.shape[1:])) for t in terms], axis=2)
    return summed_by_source(tuple(names), matrix, fitted.binding.conversion.sources)


def _by_source(
    columns: tuple[str, ...], sources: tuple[int, ...], terms: Array
) -> tuple[tuple[str, ...], Array]:
    """The terms of encoded columns, summed by the column of the table that each was derived from."""
    positions = sorted(set(sources))
    sums = np.stack([terms[:, :, np.array(sources) == j].sum(axis=2) for j in positions], axis=2)
    return tuple(columns[j] for j in positions), sums
