"""The seed of tests whose assertions hold for any random numbers: the environment variable CALIBAYES_SEED, 0 by default."""

import os

import numpy as np

SEED = int(os.environ.get("CALIBAYES_SEED", "0"))


def generator(key=0):
    """A random generator for a part of a test; ``key`` (an integer or several) tells the parts of a test apart."""
    return np.random.default_rng(key if SEED == 0 else [SEED, *np.atleast_1d(key)])
