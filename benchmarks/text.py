"""Naive Bayes on text, by maximum likelihood and calibrated, compared with scikit-learn: writes docs/text.md.

Two corpora: simulated documents whose words come in pairs, so that naive Bayes counts evidence twice, and the docstrings of
Python's standard library. Every model runs in a separate process; its peak resident memory, as reported by the operating
system, includes Python, the libraries and the table.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy import sparse

ROOT = Path(__file__).parents[1]
CLASSES, BACKGROUND, ZIPF, TOPIC, LENGTH, NEIGHBOR = 20, 0.7, 1.1, 0.05, 150, 0.5


# -- corpora -----------------------------------------------------------------------------------------------------------


def simulated_documents(documents, terms, seed=0):
    """Words of a background or of the class's topic, half of which also add the next term.

    Counts (documents, terms), classes, and which documents are for training.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, documents)
    document = np.repeat(np.arange(documents), rng.poisson(LENGTH, documents))
    zipf = np.arange(1, terms + 1) ** -ZIPF
    words = rng.choice(terms, size=len(document), p=zipf / zipf.sum())
    of_topic = rng.random(len(document)) >= BACKGROUND
    topics = rng.dirichlet(np.full(terms, TOPIC), size=CLASSES)
    for c, topic in enumerate(topics):
        mask = of_topic & (labels[document] == c)
        words[mask] = rng.choice(terms, size=int(mask.sum()), p=topic)
    doubled = rng.random(len(document)) < NEIGHBOR
    rows = np.concatenate([document, document[doubled]])
    columns = np.concatenate([words, (words[doubled] + 1) % terms])
    table = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(documents, terms)).tocsr()
    return table, labels, np.arange(documents) % 2 == 0


MIN_DOCUMENTS, MIN_WORDS, MAX_CLASSES = 60, 5, 12


def docstrings(share=1):
    """Docstrings of the standard library's packages: the package is the class, every other file is held out.

    Of each file one docstring in ``share`` is taken. None if the sources of the library are not installed.
    """
    library = Path(sysconfig.get_path("stdlib"))
    documents = defaultdict(list)
    packages = [
        p.parent
        for p in sorted(library.glob("*/__init__.py"))
        if p.parent.name not in ("test", "site-packages")
    ]
    for package in packages:
        for number, path in enumerate(sorted(package.rglob("*.py"))):
            documents[package.name] += [(words, number % 2 == 0) for words in words_of(path)[::share]]
    sizes = {name: Counter(train for _, train in rows) for name, rows in documents.items()}
    large = [name for name, size in sizes.items() if min(size[True], size[False]) >= MIN_DOCUMENTS / share]
    classes = sorted(large, key=lambda name: -len(documents[name]))[:MAX_CLASSES]
    if len(classes) < 4:
        return None
    rows = [(words, name, train) for name in sorted(classes) for words, train in documents[name]]
    terms = sorted({word for words, _, train in rows if train for word in words})
    position = {word: j for j, word in enumerate(terms)}
    cells = [(i, position[w]) for i, (words, _, _) in enumerate(rows) for w in words if w in position]
    i, j = np.array(cells).T
    table = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(len(rows), len(terms))).tocsr()
    return table, np.array([name for _, name, _ in rows]), np.array([train for _, _, train in rows])


def words_of(path):
    """The words of each docstring in a file."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    split = [re.findall(r"[a-z]{2,}", text.lower()) for text in texts]
    return [words for words in split if len(words) >= MIN_WORDS]


# -- models ------------------------------------------------------------------------------------------------------------


def models():
    """Name -> the model."""
    from sklearn import naive_bayes
    from sklearn.linear_model import LogisticRegression

    import calibayes as cb
    from calibayes.learn import LastState
    from calibayes.rules import GDT

    return {
        "MultinomialNB, ml": cb.MultinomialNB(rule="ml"),
        "MultinomialNB, rc": cb.MultinomialNB(),
        "MultinomialNB, rc, validation_fraction=0.2": cb.MultinomialNB(
            training=cb.TrainingOptions(validation_fraction=0.2), random_state=0
        ),
        "MultinomialNB, rc, 20 updates": cb.MultinomialNB(max_iter=20, stop=LastState()),
        "MultinomialNB, GDT(0.5)": cb.MultinomialNB(rule=GDT(0.5)),
        "MultinomialNB, GDT(0.5), validation_fraction=0.2": cb.MultinomialNB(
            rule=GDT(0.5), training=cb.TrainingOptions(validation_fraction=0.2), random_state=0
        ),
        "ComplementNB": cb.ComplementNB(),
        "PoissonNB, ml": cb.PoissonNB(rule="ml"),
        "PoissonNB, rc": cb.PoissonNB(),
        "scikit-learn MultinomialNB": naive_bayes.MultinomialNB(),
        "scikit-learn ComplementNB": naive_bayes.ComplementNB(),
        "scikit-learn LogisticRegression": LogisticRegression(max_iter=200),
    }


def evaluate(name, folder):
    """Scores and seconds of one model on a corpus, and the peak memory of this process."""
    from sklearn.metrics import log_loss

    table = sparse.csr_array(sparse.load_npz(folder / "table.npz"))
    with np.load(folder / "rows.npz") as rows:
        labels, train = rows["labels"], rows["train"]
    model = models()[name]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table[train], labels[train])
    fit_seconds = time.perf_counter() - start
    start = time.perf_counter()
    probability = model.predict_proba(table[~train])
    return {
        "error": float(np.mean(model.classes_[probability.argmax(axis=1)] != labels[~train])),
        "log_loss": float(log_loss(labels[~train], probability, labels=model.classes_)),
        "updates": int(np.max(getattr(model, "n_iter_", 1))),
        "fit": fit_seconds,
        "predict": time.perf_counter() - start,
        "memory": peak_memory(),
    }


def peak_memory():
    """Peak resident bytes of this process.

    On Linux ru_maxrss is inherited from the parent process, so VmHWM is used there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def evaluate_apart(name, folder):
    """`evaluate` in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--folder", folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def comparison(corpus, evaluated=evaluate_apart):
    """Every model on a corpus: lines of a Markdown table."""
    table, labels, train = corpus
    lines = [
        "| model | held-out error | held-out log loss | updates | fit, s | predict, s | peak memory, MiB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder) / "table.npz", table)
        np.savez(Path(folder) / "rows.npz", labels=labels, train=train)
        for name in models():
            result = evaluated(name, Path(folder))
            lines.append(
                "| {} | {error:.4f} | {log_loss:.3f} | {updates} | {fit:.2f} | {predict:.2f} | {mebi:.0f} |".format(
                    name, mebi=result["memory"] / 2**20, **result
                )
            )
            print(lines[-1], flush=True)
    return lines


def description(corpus):
    """Sizes of a corpus, in words."""
    table, labels, train = corpus
    return (
        f"{train.sum()} documents for training, {(~train).sum()} held out, {table.shape[1]} terms, "
        f"{len(np.unique(labels))} classes, {table.nnz} stored cells."
    )


MARK = "<!-- What follows is written by benchmarks/text.py. -->"
HOW = (
    "Made by `python benchmarks/text.py{}` with Python {}, scikit-learn {}, SciPy {}. Every model runs in a separate process; "
    "peak memory is that of the process (VmHWM on Linux, else `ru_maxrss`), including Python, the libraries and the whole "
    "table. Models have their defaults except for what their names say; logistic regression has at most 200 iterations."
)
RECIPE = (
    f"Seed 0. The length is Poisson({LENGTH}). A word comes with probability {BACKGROUND} from a Zipf({ZIPF}) background, else "
    f"from its class's topic, Dirichlet({TOPIC}) over the terms. Each word w also adds word w + 1 with probability {NEIGHBOR}, "
    "so naive Bayes counts evidence twice."
)
SPLIT = "The class of a docstring is its package. Every other file of a package is held out, so no file is in both parts."


def page(quick):
    """The part of the page that is written by this script."""
    import scipy
    import sklearn

    simulated = simulated_documents(*((2_000, 5_000) if quick else (20_000, 50_000)))
    real = docstrings(share=8 if quick else 1)
    evaluated = evaluate if quick else evaluate_apart
    versions = (platform.python_version(), sklearn.__version__, scipy.__version__)
    lines = [HOW.format(" --quick" if quick else "", *versions), ""]
    lines += [
        "## Simulated documents",
        "",
        f"{description(simulated)} {RECIPE}",
        "",
        *comparison(simulated, evaluated),
        "",
    ]
    if real is not None:
        lines += [
            "## Docstrings of the standard library",
            "",
            f"{description(real)} {SPLIT}",
            "",
            *comparison(real, evaluated),
            "",
        ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="about a tenth of the documents, all models in one process; print only",
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(evaluate(given.one, given.folder)))
    elif given.quick:
        print(page(quick=True))
    else:
        target = ROOT / "docs" / "text.md"
        text = target.read_text(encoding="utf-8") if target.exists() else f"# Text\n\n{MARK}\n"
        target.write_text(f"{text.split(MARK)[0]}{MARK}\n\n{page(quick=False)}", encoding="utf-8")


if __name__ == "__main__":
    main()
