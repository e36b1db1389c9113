"""Products of rows with triangular matrices."""

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.kernels import gaussian_density
from tests.seeds import generator


def rows(n, d, seed=0):
    return generator(seed).normal(size=(n, d))


def _longest_wait(work):
    """Longest time that this thread waited while another one worked, as a share of all."""
    done, ticks = threading.Event(), [time.perf_counter()]

    def run():
        work()
        done.set()

    worker = threading.Thread(target=run)
    worker.start()
    while not done.is_set():
        ticks.append(time.perf_counter())
    worker.join()
    return np.diff(ticks).max() / (ticks[-1] - ticks[0])


class TestTriangular:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (300, 65), (1, 7), (0, 4), (4, 0)])
    def test_product_is_that_of_the_lower_triangle(self, dtype, n, d):
        wide, factor = rows(n, d + 5).astype(dtype), rows(d, d, seed=1).astype(dtype)
        x, edges = wide[:, 2 : 2 + d], (wide[:, :2].copy(), wide[:, 2 + d :].copy())
        expected = x @ np.tril(factor).T
        gaussian_density.multiply_triangular(x, factor)
        assert_allclose(
            x,
            expected,
            rtol=1e-4 if dtype == np.float32 else 1e-12,
            atol=1e-4 if dtype == np.float32 else 1e-12,
        )
        assert_array_equal(wide[:, :2], edges[0])
        assert_array_equal(wide[:, 2 + d :], edges[1])

    @pytest.mark.parametrize(
        ("x", "factor"),
        [
            (rows(3, 4), rows(3, 3)),
            (rows(3, 4).astype(np.float32), rows(4, 4)),
            (np.zeros((3, 4), dtype=int), np.zeros((4, 4), dtype=int)),
            (rows(4, 3).T, rows(4, 4)),
            (rows(3, 4), rows(4, 4).T),
        ],
    )
    def test_arrays_that_blas_cannot_read_are_refused(self, x, factor):
        with pytest.raises(ValueError, match=r"cannot multiply|row by row"):
            gaussian_density.multiply_triangular(x, factor)

    def test_other_threads_run_meanwhile(self):
        """If the lock were held, other threads would wait until the product is done."""
        x, factor = np.zeros((6000, 800)), np.tri(800)
        assert (
            min(_longest_wait(lambda: gaussian_density.multiply_triangular(x, factor)) for _ in range(3))
            < 0.5
        )

    def test_squares_of_float32_are_added_in_float64(self):
        x = np.full((3, 10_000), 1.0 + 2.0**-12, dtype=np.float32)
        found = gaussian_density.row_squares(x)
        assert found.dtype == np.float64
        assert_allclose(found, np.sum(x.astype(np.float64) ** 2, axis=1), rtol=3e-6)
