"""Semi-supervised and penalized training with few labels: held-out error and log loss on 15 tables, against rivals.

`python benchmarks/unlabeled.py` prints the tables of docs/lab/unlabeled-rows.md. It needs the folder of data sets that
CALIBAYES_DATA names. ``--quick`` uses two data sets that come with scikit-learn, and two splits. ``--jobs`` is the number of
processes. ``--rivals`` is a file of `unlabeled_mrc.py`.

The splits are those of `few_labels.py`. Two models are trained: naive Bayes over columns of at most five levels (quantile bins of the
training rows), and linear discriminant analysis over numbers and indicators of levels. No label of a test row, or of an
unlabeled row, is seen by a fit. Differences are paired by split: those of a table count as a gain or a loss if their mean is
further from 0 than two standard errors.

Comparators, written here from their papers: WANBIA-C (Zaidi, Cerquides, Carman and Webb 2013), one discriminatively trained
exponent for each column of a naive Bayes classifier, and the parametrization of Zaidi, Webb, Carman, Petitjean and Cerquides
(2016), one for each class and level, whose starting point is naive Bayes; and the coupling of Lasserre, Bishop and Minka
(2006).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from few_labels import scores, splits, tables
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from calibayes import CategoricalNB, LinearDiscriminantAnalysis, TradeOffCV
from calibayes.families import NormalInverseWishart
from calibayes.rules import EM, GDT, MAP, RC

RULES = {
    "labeled rows, MAP": MAP(),
    "EM": EM(),
    "EM, weight 0.1": EM(0.1),
    "labeled rows, RC": RC(),
    "RC from EM": RC(unlabeled=1.0),
    "RC from EM, weight 0.1": RC(unlabeled=0.1),
    "labeled rows, GDT 0.5": GDT(0.5),
    "GDT 0.5, unlabeled": GDT(0.5, unlabeled=1.0),
    "GDT 0.5, weight 0.1": GDT(0.5, unlabeled=0.1),
    "labeled rows, GDT 0.1": GDT(0.1),
    "GDT 0.1, unlabeled": GDT(0.1, unlabeled=1.0),
    "MSP, prior 0.3": GDT(0.0, prior_weight=0.3),
    "MSP, prior 1": GDT(0.0, prior_weight=1.0),
    "MSP, prior 3": GDT(0.0, prior_weight=3.0),
    "GDT 0.1, weight 0.1, prior 1": GDT(0.1, unlabeled=0.1, prior_weight=1.0),
}
BASE = "labeled rows, MAP"
PAIRS = (
    *(("EM", BASE), ("EM, weight 0.1", BASE), ("labeled rows, RC", BASE)),
    *(("RC from EM", "labeled rows, RC"), ("RC from EM, weight 0.1", "labeled rows, RC")),
    ("RC from EM, weight 0.1", "EM, weight 0.1"),
    ("labeled rows, GDT 0.5", BASE),
    *((f"GDT 0.5, {how}", "labeled rows, GDT 0.5") for how in ("unlabeled", "weight 0.1")),
    ("GDT 0.5, weight 0.1", "EM, weight 0.1"),
    ("labeled rows, GDT 0.1", BASE),
    ("GDT 0.1, unlabeled", "labeled rows, GDT 0.1"),
    *(
        (f"MSP, prior {weight}", other)
        for weight in ("0.3", "1", "3")
        for other in (BASE, "labeled rows, RC")
    ),
    *(("GDT 0.1, weight 0.1, prior 1", other) for other in (BASE, "MSP, prior 1", "EM, weight 0.1")),
)
SHOWN = (
    *(BASE, "EM", "EM, weight 0.1", "labeled rows, RC", "RC from EM", "RC from EM, weight 0.1"),
    *("labeled rows, GDT 0.5", "GDT 0.5, unlabeled", "GDT 0.1, unlabeled", "MSP, prior 1"),
    "GDT 0.1, weight 0.1, prior 1",
)
LAMS = (1.0, 0.75, 0.5, 0.25, 0.1, 0.03, 0.0)


def models(split):
    """Name -> estimator, training columns and test columns."""
    (X, X_test), numbers = split.levels, split.numbers
    sizes = np.maximum(X.max(axis=0), X_test.max(axis=0)) + 1
    return {
        "naive Bayes": (CategoricalNB(alpha=1.0, min_categories=sizes), X, X_test),
        "linear discriminant analysis": (LinearDiscriminantAnalysis(prior=NormalInverseWishart()), *numbers),
    }


def figures(split):
    """(model, rule) -> error and log loss on the test rows."""
    found, known = {}, ~np.isnan(split.labels)
    for name, (model, X, X_test) in models(split).items():
        for rule_name, rule in RULES.items():
            rows = np.ones(len(X), dtype=bool) if rule.uses_unlabeled else known
            fitted = model.set_params(rule=rule).fit(X[rows], split.labels[rows])
            found[name, rule_name] = scores(fitted.predict_log_proba(X_test), fitted.classes_, split.test)
    model, X, X_test = models(split)["naive Bayes"]
    start = model.set_params(rule="ml").fit(X[known], split.labels[known])
    for name, per_level in (("WANBIA-C", False), ("weight of each level", True)):
        log_posterior = weighted_naive_bayes(start, X[known], split.labels[known], X_test, per_level)
        found["naive Bayes", name] = scores(log_posterior, start.classes_, split.test)
    log_posterior = coupled_naive_bayes(start, X, split.labels, X_test)
    found["naive Bayes", "two coupled models"] = scores(log_posterior, start.classes_, split.test)
    return found


def weighted_naive_bayes(model, X, y, X_test, per_level):
    """log p(class | x) of the test rows under naive Bayes whose log probabilities have trained exponents.

    The exponents start at 1, which is naive Bayes, and maximize the conditional likelihood of the labeled rows.
    """
    tables, d = model.feature_log_prob_, X.shape[1]
    terms, test_terms = (
        np.stack([table[:, code].T for table, code in zip(tables, codes.T, strict=True)], axis=1)
        for codes in (X, X_test)
    )  # (n, d, k)
    labels, onehot = np.searchsorted(model.classes_, y), np.eye(len(model.classes_))
    shape = (d, max(table.shape[1] for table in tables), len(onehot)) if per_level else (d, 1, 1)

    def weights_of(theta, codes):
        weight = theta.reshape(shape)
        return weight[np.arange(d), codes] if per_level else weight[:, 0]

    def log_posterior(theta, codes, of_rows):
        return log_softmax(
            model.class_log_prior_ + np.sum(of_rows * weights_of(theta, codes), axis=1), axis=1
        )

    def loss(theta):
        log_p = log_posterior(theta, X, terms)
        by_term = (np.exp(log_p) - onehot[labels])[:, None, :] * terms
        gradient = np.zeros(shape)
        if per_level:
            np.add.at(gradient, (np.arange(d), X), by_term)
        else:
            gradient[:, 0, 0] = by_term.sum(axis=(0, 2))
        return -log_p[np.arange(len(labels)), labels].sum(), gradient.ravel()

    found = minimize(loss, np.ones(np.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return log_posterior(found.x, X_test, test_terms)


def coupled_naive_bayes(model, X, labels, X_test, deviation=1.0):
    """log p(class | x) of the test rows under the coupling of Lasserre, Bishop and Minka (2006).

    One naive Bayes classifier of log odds ``theta`` for p(class | x) of the labeled rows, another one for p(x) of all rows, and
    a normal prior on their difference with this standard deviation. Both start at naive Bayes of the labeled rows.
    """
    tables = model.feature_log_prob_
    first = np.cumsum([0, *(table.shape[1] for table in tables)])
    rows, test = (np.zeros((len(codes), first[-1])) for codes in (X, X_test))
    for Z, codes in ((rows, X), (test, X_test)):
        Z[np.arange(len(codes))[:, None], first[:-1] + codes] = 1.0
    known, k = ~np.isnan(labels), len(model.classes_)
    onehot = np.eye(k)[np.searchsorted(model.classes_, labels[known])]
    columns = [slice(*ends) for ends in pairwise(first)]

    def normalized(theta):
        parts = [log_softmax(theta[:, of_column], axis=1) for of_column in columns]
        return np.hstack([*parts, log_softmax(theta[:, -1:], axis=0)])

    def joint(log_p, Z):
        return Z @ log_p[:, :-1].T + log_p[:, -1]

    def gradient(log_p, Z, weights):
        counts, total = weights.T @ Z, weights.sum(axis=0)
        p = np.exp(log_p)
        return np.column_stack([counts - total[:, None] * p[:, :-1], total - total.sum() * p[:, -1]])

    def loss(both):
        theta, other = both.reshape(2, k, -1)
        log_p, log_q = normalized(theta), normalized(other)
        posterior = log_softmax(joint(log_p, rows[known]), axis=1)
        evidence = joint(log_q, rows)
        log_x = logsumexp(evidence, axis=1)
        pull = (theta - other) / deviation**2
        value = np.sum(posterior * onehot) + log_x.sum() - 0.5 * np.sum((theta - other) * pull)
        by_theta = gradient(log_p, rows[known], onehot - np.exp(posterior)) - pull
        by_other = gradient(log_q, rows, np.exp(evidence - log_x[:, None])) + pull
        return -value, -np.concatenate([by_theta.ravel(), by_other.ravel()])

    start = np.column_stack([np.hstack(tables), model.class_log_prior_])
    found = minimize(loss, np.tile(start.ravel(), 2), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return log_softmax(joint(normalized(found.x.reshape(2, k, -1)[0]), test), axis=1)


# -- The choice of lambda ------------------------------------------------------------------------------------


def choices(split):
    """Way -> seconds, chosen lambda, error and log loss: all training rows have labels."""
    (X, X_test), y = split.numbers, split.truth
    model = LinearDiscriminantAnalysis(prior=NormalInverseWishart())
    path = {"lams": LAMS, "random_state": 0}
    ways = {
        "five folds, a fit for each value": lambda: cold(model, X, y),
        "five folds, one path": lambda: TradeOffCV(model, **path).fit(X, y),
        "a fifth held out, one path": lambda: TradeOffCV(model, cv=one_split(), **path).fit(X, y),
    }
    found = {}
    for name, way in ways.items():
        began = time.perf_counter()
        fitted = way()
        seconds = time.perf_counter() - began
        lam = fitted.lam_ if hasattr(fitted, "lam_") else fitted.rule.lam
        found[name] = (seconds, lam, *scores(fitted.predict_log_proba(X_test), fitted.classes_, split.test))
    return found


def one_split():
    return StratifiedShuffleSplit(1, test_size=0.2, random_state=0)


def cold(model, X, y):
    """Plain cross-validation: a fit from maximum likelihood for each value and fold, then one with the best value."""

    def held_out_loss(lam, training, test):
        fitted = model.set_params(rule=GDT(lam)).fit(X[training], y[training])
        return scores(fitted.predict_log_proba(X[test]), fitted.classes_, y[test])[1]

    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    losses = [np.mean([held_out_loss(lam, *fold) for fold in folds]) for lam in LAMS]
    return model.set_params(rule=GDT(LAMS[int(np.argmin(losses))])).fit(X, y)


# -- The tables ----------------------------------------------------------------------------------------------


def figures_of(name, quick, number, with_choices):
    """The figures of each split of a table, and those of the choice of lambda."""
    warnings.simplefilter("ignore")  # few rows, few updates
    X, y = tables(quick)[name]
    made = list(splits(X, y, number))
    return name, [figures(split) for split in made], [choices(split) for split in made[:with_choices]]


def paired(results, model, rule, other, score):
    """Mean and two standard errors of a rule's figures less another's, for each table."""
    pairs = {}
    for name, found, _ in results:
        both = [(one[model, rule], one[model, other]) for one in found if (model, rule) in one]
        differences = [ours[score] - theirs[score] for ours, theirs in both]
        pairs[name] = np.mean(differences), 2 * np.std(differences, ddof=1) / np.sqrt(len(differences))
    return pairs


def show_means(results, model, rules):
    """Mean held-out error, and log loss, of each rule: a line for each table."""
    for score, title in ((0, "error, %"), (1, "log loss")):
        print(f"\n{model}, {title}\n\n| table | {' | '.join(rules)} |\n|{' --- |' * (len(rules) + 1)}")
        for name, found, _ in results:
            means = [np.mean([one[model, rule][score] for one in found]) for rule in rules]
            shown = [f"{100 * mean:.1f}" if score == 0 else f"{mean:.3f}" for mean in means]
            print(f"| {name} | {' | '.join(shown)} |")


def show_differences(results, model, pairs):
    print(f"\n{model}: differences (negative is better), and tables with a gain / a loss\n")
    print("| rule | less | error, points | gains / losses | log loss | gains / losses |\n|" + " --- |" * 6)
    for rule, other in pairs:
        cells = []
        for score, factor, digits in ((0, 100, 2), (1, 1, 3)):
            found = paired(results, model, rule, other, score).values()
            gains, losses = sum(m < -e for m, e in found), sum(m > e for m, e in found)
            mean = factor * np.mean([m for m, _ in found])
            cells += [f"{mean:+.{digits}f}", f"{gains} / {losses}"]
        print(f"| {rule} | {other} | {' | '.join(cells)} |")


def show_choices(results):
    print(
        "\n| choice of lambda | seconds | mean lambda | error, % | log loss | same lambda as the first |\n|"
        + " --- |" * 6
    )
    found = [one for _, _, of_table in results for one in of_table]
    first = next(iter(found[0]))
    for way in found[0]:
        seconds, lam, error, loss = np.mean([one[way] for one in found], axis=0)
        same = np.mean([one[way][1] == one[first][1] for one in found])
        print(f"| {way} | {seconds:.2f} | {lam:.2f} | {100 * error:.1f} | {loss:.3f} | {100 * same:.0f} % |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--choices", type=int, default=3, help="splits with a choice of lambda")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--rivals", type=Path, help="JSON file: table -> for each split, rival -> error and log loss"
    )
    options = parser.parse_args()
    number, with_choices = (2, 1) if options.quick else (options.splits, options.choices)
    results = []
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(figures_of, name, options.quick, number, with_choices)
            for name in tables(options.quick)
        ]
        for task in tasks:
            results.append(task.result())
            print(results[-1][0], file=sys.stderr, flush=True)
    rivals = {
        "naive Bayes": ["WANBIA-C", "weight of each level", "two coupled models"],
        "linear discriminant analysis": [],
    }
    if options.rivals:
        rivals["linear discriminant analysis"] = add_rivals(results, json.loads(options.rivals.read_text()))
    for model, others in rivals.items():
        show_means(results, model, SHOWN)
        against = [(rival, other) for rival in others for other in (BASE, "labeled rows, RC", "MSP, prior 1")]
        show_differences(results, model, [*PAIRS, *against])
    show_choices(results)


def add_rivals(results, given):
    """Add the scores of classifiers that ran elsewhere on the same splits; their names."""
    for name, found, _ in results:
        for split, of_split in zip(
            found, given[name], strict=False
        ):  # they may have run on the first splits only
            split.update({("linear discriminant analysis", rival): pair for rival, pair in of_split.items()})
    return list(next(iter(given.values()))[0])


if __name__ == "__main__":
    main()
