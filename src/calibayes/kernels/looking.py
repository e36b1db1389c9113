"""One look at rows of levels: how good a posterior is, and the sums of the weights that follow from it."""

from __future__ import annotations

from calibayes.core.protocols import Array
from calibayes.kernels.assessment import Seen
from calibayes.kernels.counts import look_up, weighted_counts
from calibayes.kernels.logspace import assess
from calibayes.kernels.moments import zeroth
from calibayes.kernels.native import looking as native
from calibayes.kernels.native import twin


@twin(native.look)
def look(
    codes: Array,
    table: Array,
    first: Array,
    log_prior: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float,
) -> Seen:
    """`look_up` of a table (k, cells), `assess` and `weighted_counts` one after the other, without what lies between."""
    log_joint = log_prior + look_up(codes, table, first)
    found = assess(log_joint, labels, weight, held_out, generative, decided)
    weights = found.weights
    return Seen(found._replace(weights=None), weighted_counts(codes, weights, first), zeroth(weights))
