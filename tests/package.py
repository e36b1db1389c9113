"""Build the files of a release in dist/, check them as a package index would, and install the wheel: python tests/package.py

Run in an environment with build, check-wheel-contents and twine, which the wheel is installed into (`check.py --package`).
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NEEDED = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "src/calibayes/kernels/native/module.cpp",
)
"""Files without which the source distribution cannot be built."""
MOST_BYTES = 8_000_000
HAS_NATIVE_KERNELS = "from calibayes.kernels.dispatch import native_kernels as n; assert not n.is_missing, n"


def run(*command: str) -> None:
    subprocess.run([sys.executable, *command], check=True, cwd=ROOT)


def check_source(path: Path) -> None:
    """Raises ValueError if the source distribution lacks a file or is large."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    lacking = [name for name in NEEDED if name not in names]
    if lacking or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes and lacks {lacking}")


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    run("-m", "build", "--outdir", str(DIST))
    (source,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    check_source(source)
    run("-m", "twine", "check", "--strict", str(source), str(wheel))
    run("-m", "check_wheel_contents", str(wheel))
    run("-m", "pip", "install", "--quiet", "--force-reinstall", str(wheel))
    run("-c", HAS_NATIVE_KERNELS)
    print(f"{source.name} {source.stat().st_size:,} bytes, {wheel.name} {wheel.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
