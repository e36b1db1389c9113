"""Kill a process that saves two models to one path in turns: python -m tests.files.kill_save PATH FIRST SECOND

For each number that is read from the input, a process saves for so many seconds and is killed; then "killed" is printed.
"""

import itertools
import os
import signal
import sys
import time

import calibayes


def main(path: str, first: str, second: str) -> None:
    models = [calibayes.load(first), calibayes.load(second)]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            for model in itertools.cycle(models):
                calibayes.save(model, path)
        time.sleep(float(line))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
