"""Kernels for arrays on a device, of any library with the array API: PyTorch, CuPy, array-api-strict.

Importing this package registers the device versions of the kernels.
"""

from calibayes.kernels.device import gaussian, levels, moments, numpy_functions, posterior
from calibayes.kernels.device.array import DeviceArray
from calibayes.kernels.device.placement import Placement, is_on_device, placement_of, to_numpy

__all__ = [
    "DeviceArray",
    "Placement",
    "gaussian",
    "is_on_device",
    "levels",
    "moments",
    "numpy_functions",
    "placement_of",
    "posterior",
    "to_numpy",
]
