"""Load a file with little memory, and print how it was refused: python -m tests.files.limited_load PATH"""

import sys
import time

import calibayes
from calibayes.files import ModelFileError
from tests.files.limits import limit_memory

MEMORY = 2**31


def main(path: str) -> None:
    assert limit_memory(MEMORY)
    begin = time.perf_counter()
    try:
        calibayes.load(path)
    except ModelFileError as error:
        print(f"{time.perf_counter() - begin:.1f} s: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
