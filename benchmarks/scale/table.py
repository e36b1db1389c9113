"""A made-up table of mixed columns, written to Parquet block by block.

python -m benchmarks.scale.table build/scale/table.parquet --rows 30_000_000
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROW_GROUP = 2**20
NUMBERS, INTEGERS, TEXTS = 10, 5, 5
LEVELS = 20
MISSING_SHARE = 0.02
CLASSES = np.array(["no", "yes"])
LETTERS = np.array([f"level {code:02d}" for code in range(LEVELS)])


def some_rows(number: int, count: int) -> pa.Table:
    """The rows of a row group: ten numbers, five small integers, five texts, and the class that they depend on."""
    rng = np.random.default_rng([7, number])
    shape = rng.normal(size=(count, 3))
    numbers = shape @ loadings(3, NUMBERS) + rng.normal(size=(count, NUMBERS))
    numbers[:, NUMBERS // 2 :] = np.exp(numbers[:, NUMBERS // 2 :] / 2)  # half of the numbers are skewed
    integers = rng.poisson(np.exp(0.3 * shape @ loadings(3, INTEGERS) + 1.0))
    codes = np.clip(
        np.rint(shape @ loadings(3, TEXTS) * 2 + rng.normal(size=(count, TEXTS)) + 10), 0, LEVELS - 1
    )
    score = shape[:, 0] + 0.5 * shape[:, 1] * shape[:, 2] + 0.3 * np.log(numbers[:, -1])
    is_yes = rng.random(count) < 1.0 / (1.0 + np.exp(-1.5 * score))
    columns = {f"number {j}": _with_gaps(numbers[:, j], rng) for j in range(NUMBERS)}
    columns |= {f"count {j}": pa.array(integers[:, j].astype(np.int16)) for j in range(INTEGERS)}
    columns |= {f"text {j}": _texts(codes[:, j].astype(np.int8), rng) for j in range(TEXTS)}
    return pa.table({**columns, "target": pa.array(CLASSES[is_yes.astype(int)])})


def loadings(sources: int, columns: int) -> np.ndarray:
    """How columns depend on their common sources; the same for every row group."""
    places = np.arange(sources * columns).reshape(sources, columns)
    return np.cos(1.7 * places + 0.3)


def _with_gaps(values: np.ndarray, rng: np.random.Generator) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < MISSING_SHARE)


def _texts(codes: np.ndarray, rng: np.random.Generator) -> pa.Array:
    coded = pa.DictionaryArray.from_arrays(_with_gaps(codes, rng), pa.array(LETTERS))
    return coded.cast(pa.string())


def write_table(path: Path, rows: int) -> None:
    """Write a table of so many rows. It is complete once it has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with parquet.ParquetWriter(unfinished, some_rows(0, 1).schema) as writer:
        for number, start in enumerate(range(0, rows, ROW_GROUP)):
            writer.write_table(some_rows(number, min(ROW_GROUP, rows - start)))
            print(f"\r{start / rows:4.0%} of {rows:,} rows", end="", flush=True)
    unfinished.replace(path)
    print(f"\r{path}: {rows:,} rows, {path.stat().st_size / 2**20:,.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=30_000_000)
    options = parser.parse_args()
    write_table(options.path, options.rows)


if __name__ == "__main__":
    main()
