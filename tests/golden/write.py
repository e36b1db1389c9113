"""Write the golden files of a version, once: `python -m tests.golden.write VERSION`.

Later versions of the library must load them and predict the same. `tests/golden/VERSION` has a model file for every
estimator and for what can be given to them, its predictions (`.npy`), the tables (`.json`), and `cases.json`: the table and the
method of each file. An existing folder is never changed.
"""

import json
import re
import sys
import tempfile
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np

import calibayes
from calibayes.encoders import Grid
from calibayes.families import KernelPair, Silverman
from tests.files.cases import CASES, VARIANTS, ModelCase, counts, mixed
from tests.golden import further_cases
from tests.golden.stored_tables import table_from_json, table_to_json

FOLDER = Path(__file__).parent
SMALL_PAIR = ModelCase(
    calibayes.GenerativeClassifier(families=[("p", KernelPair(Silverman()), [0, 1], Grid(points=8))]), counts
)
"""Tables of pairs on the grid of the variant "pair" would make a file of a megabyte."""
SMALLER = ["a", "b", "text", "category", "flag"]
FURTHER = (
    *("BayesClassifier single", "NaiveBayes mixed"),
    *("GaussianNB texts", "GaussianNB single", "GaussianNB gappy", "QuadraticDiscriminantAnalysis single"),
    *("NaiveBayes gappy", "JointKernelClassifier gappy"),
)
"""Cases beside one of each estimator and all variants: types of columns and labels, float32, missing values."""
MOST_ROWS = 48
METHODS = ("predict_proba", "transform", "decision_function")


def few_columns():
    """Columns of the mixed table, so that the files of trees are small."""
    X, y = mixed()
    return X[SMALLER], y


def cases():
    """Name -> case: of each estimator that on a mixed table if it reads it, else that on counts."""
    by_estimator = {}
    for name, case in CASES.items():
        estimator = type(case.estimator).__name__
        if name not in VARIANTS and (case.table is mixed or estimator not in by_estimator):
            by_estimator[estimator] = case
    chosen = {**by_estimator, **VARIANTS, "pair": SMALL_PAIR}
    smaller = {name: case._replace(table=few_columns) for name, case in chosen.items() if case.table is mixed}
    return {**chosen, **smaller, **further_cases.CASES, **{name: CASES[name] for name in FURTHER}}


def write_case(folder, name, case):
    """Fit a model to a stored table, and write its file and its predictions."""
    X, y = (part[:MOST_ROWS] for part in case.table())
    stored = json.loads(_write_table(folder, case.table.__name__, X))
    model = deepcopy(case.estimator).fit(table_from_json(stored), y)
    method = next(method for method in METHODS if hasattr(model, method))
    file = re.sub(r"[^a-z0-9]+", "-", name.lower())
    calibayes.save(model, folder / f"{file}.safetensors")
    np.save(folder / f"{file}.npy", np.asarray(getattr(model, method)(table_from_json(stored))))
    return {"file": file, "class": type(model).__name__, "table": case.table.__name__, "method": method}


def _write_table(folder, name, X):
    text = json.dumps(table_to_json(X), ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return text


def main(version):
    folder = FOLDER / version
    if version != calibayes.__version__:
        sys.exit(f"this is calibayes {calibayes.__version__}: it cannot write the golden files of {version}")
    if folder.exists():
        sys.exit(
            f"{folder} exists: golden files are written once. Delete it only if {version} is not released yet."
        )
    with tempfile.TemporaryDirectory(dir=FOLDER) as part, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _write_all(Path(part) / version)
        (Path(part) / version).rename(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {size:,} bytes")


def _write_all(folder):
    folder.mkdir()
    written = [write_case(folder, name, case) for name, case in cases().items()]
    (folder / "cases.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
