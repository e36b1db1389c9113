"""Held-out error, log loss, Brier score, calibration and time of BayesClassifier and other classifiers, on fixed folds.

`python benchmarks/accuracy.py --group GROUP --store FOLDER --pages docs` runs what is not in the store yet, one file for
each data set, fold and model, and then replaces the section of that group on docs/accuracy.md and
docs/accuracy-appendix.md. The groups are defined in benchmarks/accuracy_groups.py. Data sets are the files NAME.csv.gz
(last column: target) in the folder that CALIBAYES_DATA names. ``--images`` adds MNIST (mnist.npz in that folder, raw
pixels, the first 10,000 training rows and the test rows). ``--quick`` runs all models on the penguins that ship.

`python benchmarks/accuracy.py leaderboard` compares models on larger tables, and writes docs/leaderboard.md
(benchmarks/leaderboard).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_groups import GROUPS
from accuracy_models import ALL_MODELS, OURS
from accuracy_page import PAGE, write_pages
from accuracy_scores import posterior_scores
from accuracy_version import code_digest
from leaderboard.command import main as leaderboard
from sklearn.model_selection import StratifiedKFold

from calibayes.datasets import load_penguins

FOLDS = 5
IMAGES, IMAGE_MODELS = 10_000, ("BayesClassifier", "LDA", "QDA", "SVC")
SEPARATE = ("adult", "connect-4", "splice-uci", "hill-valley-noise")
"""Large or duplicated tables, reported separately and not in the averages."""


def loaders_of(quick, names):
    """Name -> function that loads columns and target."""
    if quick:
        return {"penguins": penguins}
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets, or give --quick")
    files = sorted(path.name.removesuffix(".csv.gz") for path in Path(folder).glob("*.csv.gz"))
    chosen = names or [name for name in files if name not in SEPARATE]
    return {
        name: lambda name=name: frequent_classes(pd.read_csv(Path(folder) / f"{name}.csv.gz"))
        for name in chosen
    }


def penguins():
    return frequent_classes(load_penguins().frame)


def frequent_classes(table):
    """Columns and target, without classes that have fewer rows than there are folds."""
    target = table.iloc[:, -1]
    mask = target.map(target.value_counts()) >= FOLDS
    table = table[mask].reset_index(drop=True)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def splits(target):
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(target)), target))


def load_images():
    """Columns, target, and the one split of MNIST."""
    with np.load(Path(os.environ["CALIBAYES_DATA"]) / "mnist.npz") as file:
        parts = [(file[f"x_{part}"][:IMAGES], file[f"y_{part}"][:IMAGES]) for part in ("train", "test")]
    pixels = np.concatenate([x.reshape(len(x), -1) for x, _ in parts])
    frame = pd.DataFrame(pixels, columns=[f"p{j}" for j in range(pixels.shape[1])])
    rows = np.arange(len(frame))
    return frame, np.concatenate([y for _, y in parts]), (rows[:IMAGES], rows[IMAGES:])


def evaluate(make, frame, target, split):
    """Scores and seconds of one model on one fold."""
    train, test = split
    model = make(frame.iloc[train])
    start, processor_start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame.iloc[train], target[train])
        fitted = time.perf_counter()
        truth = np.searchsorted(model.classes_, target[test])
        predicted = np.searchsorted(model.classes_, model.predict(frame.iloc[test]))
        has_posterior = hasattr(model, "predict_proba")
        posterior = model.predict_proba(frame.iloc[test]) if has_posterior else None
    seconds = {
        "fit": fitted - start,
        "predict": time.perf_counter() - fitted,
        "processor": time.process_time() - processor_start,
    }
    scores = {"rows": len(test), "error": float(np.mean(predicted != truth)), **seconds}
    return scores if posterior is None else {**scores, **posterior_scores(posterior, truth)}


def result_path(store, data, model, fold, digest):
    name = f"{model}-{digest}" if model in OURS else model
    return store / data / name.replace(", ", "-") / f"{fold}.json"


def run(store, models, loaders, digest):
    """Evaluate what is not in the store yet."""
    for data, load in loaders.items():
        frame, target = load()
        for fold, split in enumerate(splits(target)):
            for model in models:
                evaluate_once(result_path(store, data, model, fold, digest), model, frame, target, split)


def evaluate_once(path, model, frame, target, split):
    """Evaluate and store one result, unless it is stored already."""
    if path.exists():
        return
    result = evaluate(ALL_MODELS[model], frame, target, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".half")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(path)
    print(f"{path.parent.parent.name} {model} fold {path.stem}: {100 * result['error']:.2f} %", flush=True)


def image_results(store, digest, compute):
    """Model -> its result on the images, if stored."""
    paths = {model: result_path(store, "mnist", model, 0, digest) for model in IMAGE_MODELS}
    if compute:
        frame, target, split = load_images()
        for model, path in paths.items():
            evaluate_once(path, model, frame, target, split)
    return {model: json.loads(path.read_text()) for model, path in paths.items() if path.exists()}


def stored_results(store, models, names, digest):
    """Data set -> model -> results of its folds, where all folds are stored."""
    results = {}
    for data in names:
        for model in models:
            paths = [result_path(store, data, model, fold, digest) for fold in range(FOLDS)]
            if all(path.exists() for path in paths):
                results.setdefault(data, {})[model] = [json.loads(path.read_text()) for path in paths]
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the penguins only")
    parser.add_argument("--group", choices=list(GROUPS), default="development")
    parser.add_argument("--store", type=Path, default=Path("build/accuracy"), help="folder of results")
    parser.add_argument("--pages", type=Path, help="folder of the pages, such as docs; by default the store")
    parser.add_argument("--data", nargs="*", help="names of data sets instead of those of the group")
    parser.add_argument("--models", nargs="*", choices=list(ALL_MODELS), help="instead of those of the group")
    parser.add_argument("--images", action="store_true", help="evaluate on MNIST too")
    parser.add_argument("--digest", help="version of the library whose results to show; by default this one")
    given = parser.parse_args()
    group = GROUPS[given.group]
    models = given.models or list(group.models)
    loaders = loaders_of(given.quick, given.data or list(group.data))
    digest = given.digest or code_digest()
    run(given.store, models, loaders, digest)
    results = stored_results(given.store, models, loaders, digest)
    separate = stored_results(given.store, models, SEPARATE, digest)
    pages = given.pages or given.store
    write_pages(group, results, models, pages, separate, image_results(given.store, digest, given.images))
    print(pages / PAGE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["leaderboard"]:
        leaderboard(sys.argv[2:])
    else:
        main()
