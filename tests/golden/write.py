"""Write the golden files of this version: `python -m tests.golden.write VERSION`.

Later versions of the library must load them and predict the same. `tests/golden/VERSION` has a model file for every
estimator and for what can be given to them, its predictions (`.npy`), the tables (`.json`), and `cases.json`: the table and the
method of each file. What is in a folder is never changed: only cases that it does not have are added.
"""

import json
import re
import sys
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


def file_name(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def write_case(folder, name, case):
    """Fit a model to a stored table, and write its file and its predictions."""
    X, y = (part[:MOST_ROWS] for part in case.table())
    stored = _stored_table(folder / f"{case.table.__name__}.json", X)
    X = table_from_json(stored)
    model = case.changed(deepcopy(case.estimator).fit(X, y), X, y)
    method = next(method for method in METHODS if hasattr(model, method))
    file = file_name(name)
    calibayes.save(model, folder / f"{file}.safetensors")
    np.save(folder / f"{file}.npy", np.asarray(getattr(model, method)(table_from_json(stored))))
    return {"file": file, "class": type(model).__name__, "table": case.table.__name__, "method": method}


def _stored_table(path, X):
    """The table in a file, which is written first if there is none."""
    if not path.exists():
        path.write_text(json.dumps(table_to_json(X), ensure_ascii=False) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def add_missing_cases(folder):
    """Write the cases that a folder does not have yet; returns their names."""
    listing = folder / "cases.json"
    listed = json.loads(listing.read_text(encoding="utf-8")) if listing.exists() else []
    known = {entry["file"] for entry in listed}
    added = {name: case for name, case in cases().items() if file_name(name) not in known}
    if added:
        listed += [write_case(folder, name, case) for name, case in added.items()]
        listing.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    return list(added)


def main(version):
    if version != calibayes.__version__:
        sys.exit(f"this is calibayes {calibayes.__version__}: it cannot write the golden files of {version}")
    folder = FOLDER / version
    folder.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        added = add_missing_cases(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {len(added)} cases added, {size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
