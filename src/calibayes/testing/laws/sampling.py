"""Samples come from the fitted density and keep given values."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import AllowsMissing, Sampling
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.fitting import fit, prepare
from calibayes.testing.laws.law import has, law


@law(has(Sampling))
def samples_follow_the_density(case: FamilyCase) -> None:
    """Parameters fitted to samples give the samples the same mean log density as the parameters they are drawn from.

    A structure is learned anew from the samples, so that the fitted parameters belong to another prepared family.
    """
    family = case.prepared()
    assert isinstance(family, Sampling)
    parameters = family.parameters(case.start())
    classes = np.arange(20_000) % case.k
    samples = family.sample(parameters, classes, case.generator())
    assert samples.shape == (len(classes), case.columns.shape[1])
    labels = np.eye(case.k)[classes]
    other = prepare(family, samples, labels)
    refitted = fit(other, samples, labels, steps=10)
    true, estimated = (
        fitted.log_density(samples, p)[np.arange(len(classes)), classes]
        for fitted, p in ((family, parameters), (other, refitted))
    )
    assert abs(float(np.mean(true - estimated))) < 0.02 + 10.0 / len(case.columns)


@law(has(Sampling, AllowsMissing))
def conditional_samples_keep_given_values(case: FamilyCase) -> None:
    family = case.prepared()
    assert isinstance(family, Sampling)
    given, classes = case.rows_with_missing(), np.arange(len(case.columns)) % case.k
    samples = family.sample(family.parameters(case.start()), classes, case.generator(), given)
    is_known = given == case.columns
    assert_allclose(samples[is_known], case.columns[is_known])
    assert np.isfinite(samples).all()
