"""As much of CuPy as the kernels of trees need, on the host: tests run the CUDA source where there is no GPU."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

COMPILER = shutil.which("g++") if sys.platform == "linux" else None
KERNELS = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(')
DYNAMIC = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


class ndarray(np.ndarray):
    """An array that says where it is."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self, order="C"):
        return np.array(self, order=order)


def array(values, dtype=None):
    """A copy, as on a device."""
    return np.array(values, dtype, order="C").view(ndarray)


class Device:
    """The host, with few multiprocessors."""

    def __init__(self, number):
        assert number in (None, 0)
        self.attributes = {"MultiProcessorCount": 2}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class Kernel:
    """A kernel of the compiled library."""

    max_dynamic_shared_size_bytes = 2**15

    def __init__(self, launch):
        self.launch = launch
        launch.restype = ctypes.c_bool

    def __call__(self, grid, block, arguments, shared_mem):
        assert shared_mem <= self.max_dynamic_shared_size_bytes + 2**13
        values = [
            np.uint64(value.ctypes.data) if isinstance(value, ndarray) else value for value in arguments
        ]
        assert all(isinstance(value, np.generic) for value in values)
        kept = [np.array(value) for value in values]
        pointers = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
        sizes = (ctypes.c_uint * 3)(*grid, *[1] * (3 - len(grid)))
        assert self.launch(sizes, ctypes.c_uint(*block), ctypes.c_size_t(shared_mem), pointers)


class RawModule:
    """Source of CUDA, compiled for the host."""

    folder: Path

    def __init__(self, code, options):
        assert "--fmad=false" in options
        code = DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(shared_words.data());", code)
        header = Path(__file__).with_suffix(".hpp").read_text(encoding="utf-8")
        launchers = "".join(f"LAUNCH({name})\n" for name in KERNELS.findall(code))
        source, library = self.folder / "kernels.cpp", self.folder / "kernels.so"
        source.write_text(header + code + launchers, encoding="utf-8")
        options = ["-std=c++17", "-O1", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-shared", "-fPIC"]
        subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def get_function(self, name):
        return Kernel(getattr(self.library, f"launch_{name}"))


def cupy(folder):
    """The library; kernels are compiled in a folder."""
    compiling = type("RawModule", (RawModule,), {"folder": folder})
    return SimpleNamespace(
        ndarray=ndarray,
        asarray=array,
        ascontiguousarray=array,
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(ndarray),
        flatnonzero=lambda values: np.flatnonzero(values).view(ndarray),
        from_dlpack=lambda values: array(np.from_dlpack(values)),
        cuda=SimpleNamespace(Device=Device),
        RawModule=compiling,
    )
