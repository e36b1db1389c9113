"""Load files with little memory, and print how each was refused: python -m tests.files.limited_load

A path is read from each line of the input. Each file is loaded by a process of its own, a copy of this one.
"""

import os
import sys
import time

import calibayes
from calibayes.files import ModelFileError
from tests.files.limits import limit_memory

MEMORY = 2**31


def load(path: str) -> None:
    assert limit_memory(MEMORY)
    begin = time.perf_counter()
    try:
        calibayes.load(path)
        print("the file was not refused", flush=True)
    except ModelFileError as error:
        print(f"{time.perf_counter() - begin:.1f} s: {error}", flush=True)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            load(line.rstrip("\n"))
            os._exit(0)
        if status := os.waitpid(child, 0)[1]:
            print(f"the process ended with status {status}", flush=True)


if __name__ == "__main__":
    main()
