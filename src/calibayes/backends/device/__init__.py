"""Kernels for arrays on a device, of any library with the array API: PyTorch, CuPy, array-api-strict.

Importing this package registers the device versions of the kernels.
"""

from calibayes.backends.device import gaussian_kernels, level_kernels
from calibayes.backends.device.array import DeviceArray, Placement, is_on_device, placement_of, to_numpy

__all__ = [
    "DeviceArray",
    "Placement",
    "gaussian_kernels",
    "is_on_device",
    "level_kernels",
    "placement_of",
    "to_numpy",
]
