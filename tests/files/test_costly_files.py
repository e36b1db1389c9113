"""Files that are made to take time or memory are refused within seconds and two gigabytes."""

import json
import os
import signal
import subprocess
import sys
from threading import Timer

import numpy as np
import pytest

from tests.files.forging import header_text, put_together, signed
from tests.files.hostile_containers import parts

MOST_SECONDS = 60
"""Far above what a file takes, and far below what it would take without a limit."""


def of_document(change):
    """A file whose document is changed."""
    changed = parts()
    change(changed)
    return put_together(changed)


def in_contents(text):
    """A file with a JSON text as a further key of its contents."""

    def change(p):
        written = json.dumps(p.document)
        p.document = written.replace('"kept_rows"', f'"more": {text}, "kept_rows"', 1)

    return of_document(change)


def in_parameters(value):
    return of_document(lambda p: p.model["parameters"].update(verbose=value))


def shared_by_many(p):
    """A list of 200,000 numbers that 100,000 values refer to, each of which is checked."""
    schedule = {"$type": "Schedule", "lengths": {"$same": 1000}}
    p.model["parameters"]["verbose"] = [{"$list": [0.5] * 200_000, "$id": 1000}, *[schedule] * 100_000]


def tensor_used_by_many(p):
    """A tensor of a megabyte that is used 100,000 times."""
    p.tensors["large"] = np.zeros(2**17)
    p.model["parameters"]["verbose"] = [{"$tensor": "large"}] * 100_000


def tensor_shared_by_many(p):
    """A tensor of a megabyte that 100,000 values refer to."""
    p.tensors["large"] = np.zeros(2**17)
    schedule = {"$type": "Schedule", "lengths": {"$same": 1000}}
    p.model["parameters"]["verbose"] = [{"$tensor": "large", "$id": 1000}, *[schedule] * 100_000]


def million_tensors():
    """A header of a million tensors of one byte."""
    entry = ',"t{0}":{{"dtype":"U8","shape":[1],"data_offsets":[{0},{1}]}}'
    entries = "".join(entry.format(n, n + 1) for n in range(1_000_000))
    return signed(header_text(parts(), {}, b"")[:-1] + entries + "}", bytes(1_000_000))


def wide_text():
    """A header of 90 MB in which every character takes four bytes of memory."""
    text = header_text(parts(), {}, b"")
    return signed(text[:-1] + ',"' + "\U0001f600" * 22_000_000 + '":1}')


COSTLY = {
    "six million numbers": lambda: in_contents("[" + "0," * 6_000_000 + "0]"),
    "objects": lambda: in_contents("[" + '{"a":0},' * 1_000_000 + "0]"),
    "lists in lists": lambda: in_contents("[" + "[[[[[[[[]]]]]]]]," * 200_000 + "0]"),
    "text of 90 MB": lambda: in_contents('"' + "a" * 90_000_000 + '"'),
    "text of 90 MB of wide characters": wide_text,
    "key of 40 MB with 200,000 values": lambda: in_contents(
        '{"' + "k" * 40_000_000 + '": [' + "[0]," * 200_000 + "0]}"
    ),
    "million tensors": million_tensors,
    "arrays of long texts": lambda: in_parameters([{"$array": ["a"] * 6, "type": "<U9999999"}] * 1000),
    "list shared by many": lambda: of_document(shared_by_many),
    "tensor used by many": lambda: of_document(tensor_used_by_many),
    "tensor shared by many": lambda: of_document(tensor_shared_by_many),
}


@pytest.fixture(scope="module")
def loading():
    """A process that loads files with little memory, and the leader of the group of those that it starts."""
    command = [sys.executable, "-m", "tests.files.limited_load"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        yield process
        process.stdin.close()


def answer(process, path):
    """What the process says about a file; it is killed if it takes too long."""
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    timer = Timer(MOST_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory need Linux")
@pytest.mark.xdist_group("costly files")
@pytest.mark.parametrize("name", COSTLY)
def test_costly_files_are_refused_within_bounds(name, loading, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(COSTLY[name]())
    said = answer(loading, path)
    path.unlink()
    assert " s: " in said, said or "the process was killed"
