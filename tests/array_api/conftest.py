"""Array libraries that the tests run with: array-api-strict on a device that is not the CPU, and PyTorch if installed."""

import importlib.util
from dataclasses import dataclass
from typing import Any

import array_api_strict
import numpy as np
import pytest


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
    import torch

    return Library(torch, torch.device("cpu"))


@pytest.fixture(
    params=[strict, *([pytorch] if importlib.util.find_spec("torch") else [])], ids=lambda make: make.__name__
)
def library(request):
    return request.param()
