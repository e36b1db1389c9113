"""The folder of the tests' data sets; scikit-learn's array API checks are switched on."""

import gc
import os
import sys

os.environ.setdefault("SCIPY_ARRAY_API", "1")

from pathlib import Path

import pytest


def pytest_collection_finish():
    """Take what was collected, some 20,000 tests, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures that a test or an example has left open, of which matplotlib warns when there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def data_file():
    """Path of a data set in the folder that CALIBAYES_DATA names; without that variable the test is skipped."""

    def find(name: str) -> Path:
        folder = os.environ.get("CALIBAYES_DATA")
        if folder is None:
            pytest.skip("CALIBAYES_DATA is not set")
        path = Path(folder) / f"{name}.csv.gz"
        assert path.exists(), f"CALIBAYES_DATA is set, but {path} is not there"
        return path

    return find
