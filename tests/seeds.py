"""The seed of the tests that must pass for any random numbers: CALIBAYES_SEED, 0 by default."""

import os

SEED = int(os.environ.get("CALIBAYES_SEED", "0"))
