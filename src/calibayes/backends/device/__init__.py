"""Kernels for arrays on a device, of any library with the array API: PyTorch, CuPy, array-api-strict.

Importing this package registers the device versions of the kernels.
"""

from calibayes.backends.device import gaussian_kernels, level_kernels
from calibayes.backends.device.array import placement_of

__all__ = ["gaussian_kernels", "level_kernels", "placement_of"]
