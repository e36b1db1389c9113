"""Held-out error, log loss, Brier score, calibration and time of BayesClassifier and its peers, on fixed folds.

`python benchmarks/accuracy.py --store FOLDER` runs what is not in the folder yet, one file for each data set, fold and
model, and then writes docs/accuracy.md from what is there. Data sets are the files NAME.csv.gz (last column: target)
in the folder that CALIBAYES_DATA names. ``--quick`` is a run of everything on the penguins that ship. ``--tuned`` and
``--ebm`` add tuned peers, and the EBM of interpret-core. ``--images`` adds MNIST (mnist.npz in the folder, raw pixels, the
first 10,000 training rows and the test rows).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_models import EBM, EVERYTHING, OURS, PEERS, TUNED
from accuracy_page import write_page
from sklearn.model_selection import StratifiedKFold

import calibayes
from calibayes.datasets import load_penguins

FOLDS, BINS = 5, 15
IMAGES, IMAGE_MODELS = 10_000, ("BayesClassifier", "LDA", "QDA", "SVC")
LEAST = 1e-15
"""Probabilities are held to at least this, as scikit-learn's log loss does."""
APART = ("adult", "connect-4", "splice-uci", "hill-valley-noise")
"""Large or doubled tables, which the averages leave out; they are shown by themselves."""


def tables(quick, only):
    """Name -> function that loads columns and target."""
    if quick:
        return {"penguins": penguins}
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA must name the folder of data sets; or give --quick")
    names = sorted(path.name.removesuffix(".csv.gz") for path in Path(folder).glob("*.csv.gz"))
    chosen = only or [name for name in names if name not in APART]
    return {name: lambda name=name: frequent(pd.read_csv(Path(folder) / f"{name}.csv.gz")) for name in chosen}


def penguins():
    data = load_penguins()
    columns = {name: data.columns.column(j) for j, name in enumerate(data.columns.names)}
    return frequent(pd.DataFrame({**columns, "target": data.target}))


def frequent(table):
    """Columns and target, without classes that have fewer rows than there are folds."""
    target = table.iloc[:, -1]
    keep = target.map(target.value_counts()) >= FOLDS
    table = table[keep].reset_index(drop=True)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def splits(target):
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(target)), target))


def images():
    """Columns, target, and the one split of MNIST."""
    with np.load(Path(os.environ["CALIBAYES_DATA"]) / "mnist.npz") as file:
        parts = [(file[f"x_{part}"][:IMAGES], file[f"y_{part}"][:IMAGES]) for part in ("train", "test")]
    pixels = np.concatenate([x.reshape(len(x), -1) for x, _ in parts])
    frame = pd.DataFrame(pixels, columns=[f"p{j}" for j in range(pixels.shape[1])])
    rows = np.arange(len(frame))
    return frame, np.concatenate([y for _, y in parts]), (rows[:IMAGES], rows[IMAGES:])


def measured(make, frame, target, split):
    """What one model did on one fold."""
    train, test = split
    model = make(frame.iloc[train])
    began, worked = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame.iloc[train], target[train])
        fitted = time.perf_counter()
        truth = np.searchsorted(model.classes_, target[test])
        decided = np.searchsorted(model.classes_, model.predict(frame.iloc[test]))
        probable = hasattr(model, "predict_proba")
        posterior = model.predict_proba(frame.iloc[test]) if probable else None
    seconds = {
        "fit": fitted - began,
        "predict": time.perf_counter() - fitted,
        "processor": time.process_time() - worked,
    }
    scores = {"rows": len(test), "error": float(np.mean(decided != truth)), **seconds}
    return scores if posterior is None else {**scores, **of_posterior(posterior, truth)}


def of_posterior(posterior, truth):
    true = posterior[np.arange(len(truth)), truth]
    onehot = np.eye(posterior.shape[1])[truth]
    sure, right = posterior.max(axis=1), posterior.argmax(axis=1) == truth
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    return {
        "log_loss": float(-np.mean(np.log(np.clip(true, LEAST, 1.0)))),
        "brier": float(np.mean(np.sum((posterior - onehot) ** 2, axis=1))),
        "bin_rows": np.bincount(bins, minlength=BINS).tolist(),
        "bin_sure": np.bincount(bins, sure, minlength=BINS).tolist(),
        "bin_right": np.bincount(bins, right, minlength=BINS).tolist(),
    }


def code_digest():
    """A name for the code of the library: our own results are for one state of it."""
    digest = hashlib.sha256()
    for path in sorted(Path(calibayes.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def place(store, data, model, fold, digest):
    """Where a result is kept."""
    name = f"{model}-{digest}" if model in OURS else model
    return store / data / name.replace(", ", "-") / f"{fold}.json"


def run(store, models, loaders, digest):
    """Compute what is not there yet."""
    for data, load in loaders.items():
        frame, target = load()
        for fold, split in enumerate(splits(target)):
            for model in models:
                keep(place(store, data, model, fold, digest), model, frame, target, split)


def keep(path, model, frame, target, split):
    """Compute one result, unless it is there."""
    if path.exists():
        return
    result = measured(EVERYTHING[model], frame, target, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    half.write_text(json.dumps(result))
    half.replace(path)
    print(f"{path.parent.parent.name} {model} fold {path.stem}: {100 * result['error']:.2f} %", flush=True)


def of_images(store, digest, compute):
    """Model -> its result on the images, where there is one."""
    paths = {model: place(store, "mnist", model, 0, digest) for model in IMAGE_MODELS}
    if compute:
        given = images()
        for model, path in paths.items():
            keep(path, model, *given)
    return {model: json.loads(path.read_text()) for model, path in paths.items() if path.exists()}


def gathered(store, models, names, digest):
    """Data set -> model -> results of its folds, where all are there."""
    found = {}
    for data in names:
        for model in models:
            paths = [place(store, data, model, fold, digest) for fold in range(FOLDS)]
            if all(path.exists() for path in paths):
                found.setdefault(data, {})[model] = [json.loads(path.read_text()) for path in paths]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", type=Path, default=Path("build/accuracy"))
    parser.add_argument("--page", type=Path, help="where to write the page, such as docs/accuracy.md")
    parser.add_argument("--note", help="what to say of the data sets on the page")
    parser.add_argument("--data", nargs="*", help="names of data sets; by default all but the large ones")
    parser.add_argument("--models", nargs="*", choices=list(EVERYTHING))
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--ebm", action="store_true")
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--digest", help="code whose results to show; by default the code as it is")
    given = parser.parse_args()
    models = given.models or [*OURS, *PEERS, *(TUNED if given.tuned else ()), *(EBM if given.ebm else ())]
    loaders = tables(given.quick, given.data)
    digest = given.digest or code_digest()
    run(given.store, models, loaders, digest)
    results = gathered(given.store, models, loaders, digest)
    page = given.page or given.store / "accuracy.md"
    apart = gathered(given.store, models, APART, digest)
    write_page(results, models, page, apart, of_images(given.store, digest, given.images), given.note)
    print(page)


if __name__ == "__main__":
    main()
