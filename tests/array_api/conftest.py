"""Array libraries that the tests run with: array-api-strict on a device that is not the CPU, and PyTorch if installed."""

import importlib.util
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
from array_api_compat import array_namespace

from calibayes.backends.device.array import Placement
from calibayes.backends.device.tree_kernels import CompiledColumns, CompiledRows
from calibayes.backends.device.tree_rows import TorchColumns, TorchRows, is_compiled
from tests.array_api import cuda_on_host

torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None


@dataclass
class Library:
    """An array library and a device."""

    xp: Any
    device: Any

    def array(self, values):
        return self.xp.asarray(np.asarray(values), device=self.device)

    def numpy(self, array):
        assert type(array) is type(self.xp.asarray(0.0)), type(array)
        assert array.device == self.device
        if self.xp is array_api_strict:
            return np.asarray(self.xp.asarray(array, device=self.xp.Device("CPU_DEVICE")))
        return array.numpy()


def strict():
    return Library(array_api_strict, array_api_strict.Device("device1"))


def pytorch():
    return Library(torch, torch.device("cpu"))


@pytest.fixture(params=[strict, *([pytorch] if torch else [])], ids=lambda make: make.__name__)
def library(request):
    return request.param()


class Kind(NamedTuple):
    """A device of PyTorch, and the classes of rows that trees are grown on and of columns."""

    device: str
    rows: Any
    columns: Any

    @property
    def place(self):
        return placement(self.device)

    def on(self, rows, units):
        return self.rows(self.place, rows, units)

    def array(self, values):
        """An array on the device; without PyTorch kernels run on the host, which the arrays of NumPy are good for."""
        return torch.asarray(values, device=self.device) if torch else values


def placement(device):
    if torch is None:
        return Placement(array_api_compat.numpy, None)
    array = torch.zeros(1, device=device)
    return Placement(array_namespace(array), array.device)


def kinds():
    """PyTorch's operations and compiled kernels, on a GPU if there is one."""
    by_operations, compiled = Kind("cpu", TorchRows, TorchColumns), Kind("cpu", CompiledRows, CompiledColumns)
    on_host = [compiled] if cuda_on_host.COMPILER else []
    if torch is None:
        return on_host
    if not torch.cuda.is_available():
        return [by_operations, *on_host]
    on_gpu = [kind._replace(device="cuda") for kind in (by_operations, compiled)]
    return [by_operations, *on_gpu[: 1 + is_compiled(placement("cuda"))]]


@pytest.fixture(scope="session")
def kernels_on_host(tmp_path_factory):
    """A library like CuPy that compiles kernels for the host."""
    return cuda_on_host.cupy(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=kinds(), ids=lambda kind: f"{kind.rows.__name__} on {kind.device}")
def kind(request, monkeypatch):
    if request.param.rows is CompiledRows and request.param.device == "cpu":
        monkeypatch.setitem(sys.modules, "cupy", request.getfixturevalue("kernels_on_host"))
    return request.param
