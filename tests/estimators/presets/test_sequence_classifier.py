"""Sequences: probabilities as a slow count of contexts gives them, kinds of input, pieces, weights, files, errors."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import calibayes as cb
from calibayes.encoders.sequence_codes import sequences_as_text
from calibayes.families import Dirichlet, Multinomial
from calibayes.rules import GDT, RC
from calibayes.sequences import HiddenMarkov, MarkovChain, SequenceClassifier, Sequences, explain_positions

START = "^"
CHAIN = MarkovChain(order=2, back_off=3.0, alpha=0.5)


def rows(n=60, seed=0, symbols="acgt", least=0):
    """Sequences of several lengths; in each class another symbol tends to follow."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = []
    for label in y:
        codes = [int(rng.integers(len(symbols)))]
        for _ in range(int(rng.integers(least, 9))):
            step = label if rng.random() < 0.6 else rng.integers(len(symbols))
            codes.append(int(codes[-1] + step) % len(symbols))
        X.append([symbols[code] for code in codes])
    return X, y


def with_gaps(X, seed=1):
    rng = np.random.default_rng(seed)
    return [[None if rng.random() < 0.15 else symbol for symbol in sequence] for sequence in X]


def contexts(sequence, order):
    """(context, symbol, place) of each known position: as many symbols before it as the order, if all are known."""
    for place, symbol in enumerate(sequence):
        context = []
        for lag in range(1, order + 1):
            before = START if place - lag < 0 else sequence[place - lag]
            if before is None:
                break
            context.insert(0, before)
        if symbol is not None:
            yield tuple(context), symbol, place


class SlowChain:
    """The Markov chain of one class, from dictionaries of counts."""

    def __init__(self, X, weight, symbols, family):
        self.symbols, self.family, self.counts = symbols, family, {}
        for sequence, row_weight in zip(X, weight, strict=True):
            for context, symbol, place in contexts(sequence, family.order):
                where = min(place, family.positions)
                for length in range(len(context) + 1):  # also for all shorter contexts
                    key = where, context[len(context) - length :], symbol
                    self.counts[key] = self.counts.get(key, 0.0) + row_weight

    def probability(self, where, context, symbol):
        counts = {s: self.counts.get((where, context, s), 0.0) for s in self.symbols}
        if context:
            smoothing, pseudo = self.family.back_off, self.probability(where, context[1:], symbol)
        else:
            per_symbol = (
                self.family.prior.pseudo_count(len(self.symbols)) if self.family.prior else self.family.alpha
            )
            smoothing, pseudo = len(self.symbols) * per_symbol, 1.0 / len(self.symbols)
        return (counts[symbol] + smoothing * pseudo) / (sum(counts.values()) + smoothing)

    def log_density(self, sequence):
        known = [symbol if symbol in self.symbols else None for symbol in sequence]
        found = contexts(known, self.family.order)
        return sum(
            math.log(self.probability(min(place, self.family.positions), context, symbol))
            for context, symbol, place in found
        )


def slow_joint(X, y, weight, new, family):
    symbols = sorted({symbol for sequence in X for symbol in sequence if symbol is not None})
    columns = []
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        chain = SlowChain([X[i] for i in own], weight[own], symbols, family)
        share = weight[own].sum() / weight.sum()
        columns.append([math.log(share) + chain.log_density(sequence) for sequence in new])
    return np.array(columns).T


@pytest.mark.parametrize(
    "family",
    [
        MarkovChain(order=0, alpha=1.0),
        MarkovChain(order=1, prior=Dirichlet(2.0), back_off=4.0),
        CHAIN,
        MarkovChain(order=3, back_off=0.5, alpha=0.1),
        MarkovChain(order=1, back_off=1.0, alpha=1.0, positions=3),
    ],
    ids=repr,
)
def test_probabilities_are_those_of_slow_counts(family):
    """With gaps, weights, and symbols and lengths that did not occur in training."""
    (X, y), weight = rows(), np.random.default_rng(3).uniform(0.2, 2.0, 60)
    X = with_gaps(X)
    new = [*with_gaps(rows(20, seed=5)[0]), ["a", "z", "c", "g"], [], [None], list("acgtacgtacgtacgt")]
    model = SequenceClassifier(family=family, rule="ml").fit(X, y, weight)
    assert_allclose(model.predict_joint_log_proba(new), slow_joint(X, y, weight, new, family), rtol=1e-10)


def test_maximum_likelihood_is_relative_frequency():
    """Without pseudo-counts: a symbol that never followed a context has probability 0, up to rounding."""
    X, y = ["abab", "abba", "bbbb", "bbba"], [0, 0, 1, 1]
    model = SequenceClassifier(family=MarkovChain(order=1), rule="ml").fit(X, y)
    # class 0: first a, a; after a: b, b, b; after b: a, b, a
    assert_allclose(
        np.exp(model.predict_joint_log_proba(["ab", "ba"])[:, 0]), [0.5, 0.5 * 2 / 3 * 1e-12], atol=1e-9
    )


def test_no_context_is_a_multinomial_of_symbols():
    X, y = rows()
    counts = np.array([[sequence.count(symbol) for symbol in "acgt"] for sequence in X], dtype=float)
    chain = SequenceClassifier(
        family=MarkovChain(order=0, alpha=1.0), rule=RC(step=0.1), max_iter=5, stop=None
    )
    words = cb.GenerativeClassifier(
        families=[("n", Multinomial(alpha=1.0), cb.every)], rule=RC(step=0.1), max_iter=5, stop=None
    )
    assert_allclose(chain.fit(X, y).predict_proba(X), words.fit(counts, y).predict_proba(counts), rtol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "rc", "dfe", GDT(0.3), "gd"], ids=str)
def test_no_context_at_all_positions_is_naive_bayes(rule):
    X = [sequence[:4] for sequence in rows(least=4)[0]]
    y, table = rows()[1], np.array(X, dtype=object)
    family = MarkovChain(order=0, alpha=1.0, positions=4)
    options = {"rule": rule, "max_iter": 6, "stop": None}
    chain = SequenceClassifier(family=family, **options).fit(X, y)
    table = np.concatenate(
        [table, np.array([list("acgt")] * 4, dtype=object).T], axis=0
    )  # every level in every column
    weight = np.append(np.ones(len(y)), np.full(4, 1e-300))
    naive = cb.CategoricalNB(alpha=1.0, **options).fit(table, np.append(y, [0, 1, 2, 0]), weight)
    assert_allclose(chain.predict_proba(X), naive.predict_proba(table[:-4]), rtol=1e-7)


@pytest.mark.parametrize("rule", ["rc", "tm", "dfe", "gdt", "gd", "map"])
def test_rules_lower_the_training_log_loss(rule):
    X, y = rows(120)
    losses = []
    for chosen in ("ml", rule):
        model = SequenceClassifier(family=MarkovChain(order=1, alpha=1.0, back_off=2.0), rule=chosen).fit(
            X, y
        )
        losses.append(-np.mean(model.predict_log_proba(X)[np.arange(len(y)), y]))
    assert losses[1] <= losses[0] + 1e-12


def kinds(X):
    cells = pd.Series(X, dtype=object)
    return {
        "list of lists": X,
        "list of strings": ["".join(sequence) for sequence in X],
        "array of strings": np.array(["".join(sequence) for sequence in X]),
        "column of an array": np.array(["".join(sequence) for sequence in X], dtype=object)[:, None],
        "pandas lists": pd.DataFrame({"dna": cells}),
        "pandas strings": pd.DataFrame({"dna": cells.str.join("")}),
        "pandas series": cells,
        "pandas arrays": pd.DataFrame({"dna": cells.map(np.array)}),
        "polars lists": pl.DataFrame({"dna": X}),
        "polars strings": pl.DataFrame({"dna": ["".join(sequence) for sequence in X]}),
        "pyarrow lists": pa.table({"dna": X}),
    }


@pytest.mark.parametrize("kind", kinds(rows(6)[0]))
def test_kinds_of_input_give_the_same_model(kind):
    X, y = rows()
    expected = SequenceClassifier().fit(X, y).predict_proba(X)
    given = kinds(X)[kind]
    model = SequenceClassifier().fit(given, y)
    assert_allclose(model.predict_proba(given), expected, rtol=1e-12)
    assert model.score(given, y) == np.mean(model.predict(given) == y)


def test_gaps_are_the_same_in_every_kind_of_input():
    X = with_gaps(rows()[0])
    y = rows()[1]
    expected = SequenceClassifier().fit(X, y).predict_proba(X)
    missing = [[np.nan if symbol is None else symbol for symbol in sequence] for sequence in X]
    joined = [">".join(symbol or "" for symbol in sequence) + ">" * (len(sequence) == 1) for sequence in X]
    for given, options in ((missing, {}), (pl.DataFrame({"x0": X}), {}), (joined, {"separator": ">"})):
        assert_allclose(
            SequenceClassifier(**options).fit(given, y).predict_proba(given), expected, rtol=1e-12
        )


def test_whole_numbers_are_symbols():
    X, y = rows(symbols=[3, 17, 200])
    texts = [[str(symbol) for symbol in sequence] for sequence in X]
    floats = [[float(symbol) for symbol in sequence] for sequence in X]
    expected = SequenceClassifier().fit(texts, y).predict_proba(texts)
    for given in (X, floats):
        assert_allclose(SequenceClassifier().fit(given, y).predict_proba(given), expected, rtol=1e-12)


def test_empty_and_missing_sequences_are_no_evidence():
    X, y = rows(61)
    model = SequenceClassifier(rule="ml").fit(X, y)
    frequencies = np.bincount(y) / len(y)
    for nothing in ([""], [[]], [[None, None]], ["zz"], np.array([[None], ["a"]], dtype=object)):
        assert_allclose(model.predict_proba(nothing)[0], frequencies, rtol=1e-12)


def test_columns_are_independent_given_the_class():
    X, y = rows()
    other = rows(seed=8)[0]
    frame = pd.DataFrame({"a": pd.Series(X), "b": pd.Series(other)})
    both, first, second = (
        SequenceClassifier(rule="ml").fit(part, y).predict_joint_log_proba(part)
        for part in (frame, frame[["a"]], frame[["b"]])
    )
    assert_allclose(both, first + second - np.log(np.bincount(y) / len(y)), rtol=1e-12)


@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize("family", [CHAIN, MarkovChain(order=2), MarkovChain(order=1, positions=2)], ids=repr)
def test_pieces_are_the_whole(rule, family):
    """Also where a later piece has symbols that the first one has not."""
    X, y = rows()
    X = [*rows(12, symbols="gc")[0], *X]
    y = np.append(np.arange(12) % 3, y)
    whole = SequenceClassifier(family=family, rule=rule).fit(X, y)
    model = SequenceClassifier(family=family, rule=rule)
    for low, high in ((0, 12), (12, 30), (30, 72)):
        model.partial_fit(X[low:high], y[low:high], classes=[0, 1, 2])
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-10)
    halves = [
        SequenceClassifier(family=family, rule=rule).fit(X[part], y[part])
        for part in (slice(0, 12), slice(12, 72))
    ]
    assert_allclose(halves[0].merge(halves[1]).predict_proba(X), whole.predict_proba(X), rtol=1e-10)


def test_forgotten_rows_leave_no_trace():
    X, y = rows()
    model = SequenceClassifier(rule="ml").fit(X, y).forget(X[-2:], y[-2:])
    expected = SequenceClassifier(rule="ml").fit(X[:-2], y[:-2])
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-9)


def test_weights_act_as_repeated_rows():
    X, y = rows()
    weight = np.arange(len(y)) % 4
    repeated = [sequence for sequence, times in zip(X, weight, strict=True) for _ in range(times)]
    options = {"rule": RC(step=0.1), "max_iter": 10, "stop": None}
    expected = SequenceClassifier(**options).fit(repeated, np.repeat(y, weight))
    assert_allclose(
        SequenceClassifier(**options).fit(X, y, weight).predict_proba(X), expected.predict_proba(X), rtol=1e-9
    )


def test_blocks_and_files_give_the_same_model(tmp_path, monkeypatch):
    X, y = rows(700)
    table = pd.DataFrame({"dna": ["".join(sequence) for sequence in X], "y": y})
    expected = SequenceClassifier().fit(table[["dna"]], y)
    path = tmp_path / "sequences.parquet"
    table.to_parquet(path, row_group_size=90)
    monkeypatch.setattr("calibayes.tables.row_blocks.BYTES_PER_BLOCK", 2**9)
    for model in (SequenceClassifier().fit(table[["dna"]], y), SequenceClassifier().fit(path, y="y")):
        assert_allclose(
            model.predict_proba(table[["dna"]]), expected.predict_proba(table[["dna"]]), rtol=1e-6
        )


@pytest.mark.parametrize("family", [CHAIN, HiddenMarkov(states=2, alpha=0.5)], ids=repr)
def test_threads_give_the_same_bits(family, monkeypatch):
    X, y = rows(700)
    monkeypatch.setattr("calibayes.tables.row_blocks.BYTES_PER_BLOCK", 2**9)
    models = [SequenceClassifier(family=family, n_jobs=n, max_iter=4, stop=None).fit(X, y) for n in (1, 2)]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


@pytest.mark.parametrize("family", [CHAIN, HiddenMarkov(states=2, alpha=0.5)], ids=repr)
def test_rows_without_a_label_raise_the_likelihood_of_all_rows(family):
    X, y = rows(150)
    known = [None if i % 2 else label for i, label in enumerate(y)]
    model = SequenceClassifier(family=family, rule="em", max_iter=20, stop=None).fit(X, known)
    objective = model.history_["objective"]
    assert objective[-1] > objective[0]
    if isinstance(
        family, HiddenMarkov
    ):  # whose steps are exact; back-off smooths towards other probabilities in each step
        assert (np.diff(objective) > -1e-6).all()


def test_files_pickles_and_clones(tmp_path):
    X, y = rows()
    model = SequenceClassifier(
        family=MarkovChain(order=1, positions=2, alpha=1.0), max_iter=5, stop=None
    ).fit(X, y)
    cb.save(model, tmp_path / "model.safetensors")
    for copied in (
        cb.load(tmp_path / "model.safetensors"),
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X, y),
    ):
        np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    assert cb.load(tmp_path / "model.safetensors").get_params()["family"] == model.family


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"symbols": ("b", "a")}, "ascending, each once"),
        ({"symbols": ("a", "a")}, "ascending, each once"),
        ({"symbols": ()}, "without symbols"),
        ({"length": 0}, "sequences of 0 positions"),
        ({"length": 10**12}, "sequences of 1000000000000 positions"),
        ({"indices": (-1,)}, "negative position"),
    ],
)
def test_damaged_encoders_are_refused(changes, message):
    encoder = Sequences(indices=(0,), symbols=("a", "b"), length=3)
    encoder.verify()
    with pytest.raises(ValueError, match=message):
        replace(encoder, **changes).verify()


def test_scikit_learn_selects_the_order():
    X, y = rows(150)
    search = GridSearchCV(
        SequenceClassifier(rule="ml"), {"family__order": [0, 1]}, cv=3, scoring="neg_log_loss"
    )
    assert search.fit(X, y).best_params_ == {"family__order": 1}
    assert cross_val_score(search.best_estimator_, X, y, cv=3).mean() > 0.4


def test_other_estimators_and_columns_beside_sequences():
    X, y = rows()
    table = pd.DataFrame(
        {"dna": ["".join(sequence) for sequence in X], "age": y + np.linspace(0.0, 1.5, len(y))}
    )
    families = [("dna", CHAIN, ["dna"], Sequences()), ("age", cb.families.Gaussian(), ["age"])]
    model = cb.GenerativeClassifier(families=families, rule="rc").fit(table, y)
    explained = model.explain(table[:3])
    assert explained.overall().keys() == {"dna", "age"}


def test_explanations_of_columns_sum_to_the_log_odds():
    X, y = rows()
    frame = pd.DataFrame({"a": pd.Series(X), "b": pd.Series(rows(seed=8)[0])})
    model = SequenceClassifier(rule="ml").fit(frame, y)
    explained = model.explain(frame)
    joint = [
        SequenceClassifier(rule="ml").fit(frame[[name]], y).predict_joint_log_proba(frame[[name]])
        for name in "ab"
    ]
    expected = [scores - np.log(np.bincount(y) / len(y)) for scores in joint]
    order = np.arange(len(y))
    for place, scores in enumerate(expected, 1):
        odds = scores[order, explained.chosen] - scores[order, explained.other]
        assert_allclose(explained.contributions[:, place], odds, rtol=1e-9)


@pytest.mark.parametrize("family", [CHAIN, HiddenMarkov(states=2, alpha=0.5)], ids=repr)
def test_contributions_of_positions_sum_to_the_log_odds(family):
    X, y = rows()
    X = with_gaps(X)
    model = SequenceClassifier(family=family, max_iter=3, stop=None).fit(X, y)
    new = [*X[:9], [], ["a", "z", None], list("acgtacgtacgt")]
    explained = model.explain_positions(new)
    joint = model.predict_joint_log_proba(new)
    chosen, other = (
        np.searchsorted(model.classes_, labels) for labels in (explained.chosen, explained.other)
    )
    every = np.arange(len(new))
    assert_allclose(explained.log_odds, joint[every, chosen] - joint[every, other], rtol=1e-10)
    assert_allclose(explained.log_odds, model.explain(new).log_odds, rtol=1e-10)
    frequencies = model.parameters_["class_prior"]["log_probability"]
    assert_allclose(explained.rest, frequencies[chosen] - frequencies[other], atol=1e-9)
    assert explained.symbols[9:11] == ((), ("a", "z", None))
    assert explained.contributions[10, 1:3].tolist() == [0.0, 0.0]
    assert np.isnan(explained.contributions[9]).all()
    lines = explained.frame()
    assert len(lines) == sum(map(len, new))
    assert_allclose(lines.groupby("row")["contribution"].sum()[11], np.nansum(explained.contributions[11]))
    assert explained.overall().shape == (12,)


def test_contributions_of_positions_are_ratios_of_conditional_probabilities():
    X, y = rows()
    model, parts = SequenceClassifier(family=CHAIN, rule="ml").fit(X, y), [X[c::3] for c in range(3)]
    slow = [SlowChain(part, np.ones(len(part)), list("acgt"), CHAIN) for part in parts]
    explained = model.explain_positions(["acg"], against=2)
    chosen = int(explained.chosen[0])
    for place, (context, symbol) in enumerate([(("^", "^"), "a"), (("^", "a"), "c"), (("a", "c"), "g")]):
        ratio = slow[chosen].probability(0, context, symbol) / slow[2].probability(0, context, symbol)
        assert explained.contributions[0, place] == pytest.approx(np.log(ratio), rel=1e-10)


def test_positions_of_one_of_several_columns():
    X, y = rows()
    frame = pd.DataFrame({"a": pd.Series(X), "b": pd.Series(rows(seed=8)[0]), "y": y})
    model = SequenceClassifier().fit(frame[["a", "b"]], y)
    explained = model.explain_positions(frame[["a", "b"]], "b")
    assert explained.column == "b"
    assert_allclose(explained.log_odds, model.explain(frame[["a", "b"]]).log_odds, rtol=1e-9)
    assert "by positions of b" in repr(explained)
    for column, message in (
        (None, "several columns of sequences: name one of"),
        ("c", "'c' is no column of sequences"),
    ):
        with pytest.raises(ValueError, match=message):
            model.explain_positions(frame[["a", "b"]], column)
    with pytest.raises(ValueError, match="no column of sequences"):
        explain_positions(cb.GaussianNB().fit(np.arange(8.0)[:, None], [0, 1] * 4), [[1.0]])


def test_events_of_child_rows_are_a_column_of_lists():
    """As the docstring says; customers without events have an empty sequence."""
    events = pd.DataFrame(
        {"customer": [1, 2, 1, 3, 2, 1], "time": [3, 1, 1, 2, 5, 2], "item": list("cabdea")}
    )
    lists = events.sort_values("time").groupby("customer")["item"].agg(list)
    customers = pd.DataFrame({"customer": [1, 2, 3, 4]})
    paths = customers["customer"].map(lists).to_frame("path")
    assert paths["path"].tolist()[:3] == [["b", "a", "c"], ["a", "e"], ["d"]]
    model = SequenceClassifier().fit(paths, [0, 1, 0, 1])
    assert_allclose(
        model.predict_proba(paths.iloc[[3]]),
        np.exp(model.parameters_["class_prior"]["log_probability"])[None],
    )


def test_closed_form_cross_validation_is_a_fit_for_each_fold():
    """Also where all rows with a symbol are in one fold."""
    X, y = rows()
    X = [*X, list("aacz"), list("zzcc")]
    y, folds = np.append(y, [1, 2]), np.append(np.arange(60) // 3 % 4, [3, 3])
    model = SequenceClassifier(rule="ml")
    found = cb.cross_validate_closed_form(model, sequences_as_text(X), y, groups=folds)
    losses = []
    for fold in range(4):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = clone(model).fit([X[i] for i in rest], y[rest])
        losses.append(-np.mean(fitted.predict_log_proba([X[i] for i in own])[np.arange(len(own)), y[own]]))
    assert_allclose(found.log_loss, losses, rtol=1e-9)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(8.0).reshape(4, 2), "'x0' holds 0.0, a float, where a sequence is expected"),
        (np.array([[1], [2], [3], [4]]), "'x0' holds 1, a int, where a sequence is expected"),
        ([[1.5, 2.0]] * 4, "holds the number 1.5, which is no symbol"),
        ([[{"a": 1}]] * 4, "a dict: its items must be texts or whole numbers"),
        ([["a\x1fb"]] * 4, "are used to store lists"),
        ([""] * 4, "holds empty sequences only"),
        ([None] * 4, "no column of X has a known value"),
        ([["a"], 3, ["b"], ["c"]], "mixes values of types|where a sequence is expected"),
    ],
)
def test_other_cells_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        SequenceClassifier().fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MarkovChain(order=-1),
            "order of a MarkovChain must be a whole number from 0 to 100, got -1",
        ),
        (lambda: MarkovChain(order=1.5), "order of a MarkovChain must be a whole number"),
        (lambda: MarkovChain(positions=True), "positions of a MarkovChain must be a whole number"),
        (lambda: MarkovChain(back_off=-1.0), "back_off of a MarkovChain must be a number from 0 on"),
        (lambda: MarkovChain(alpha=np.nan), "alpha of a MarkovChain must be a number"),
        (lambda: MarkovChain(prior=1.0), "must be a Dirichlet"),
        (lambda: MarkovChain(prior=Dirichlet(), alpha=1.0), "not both"),
        (lambda: MarkovChain(order=10**9), "order of a MarkovChain must be a whole number from 0 to 100"),
        (lambda: SequenceClassifier().fit(["ab" * 2**20, "b"], [0, 1]), "cut it into windows"),
        (lambda: Sequences(separator=""), "separator must be a text"),
        (
            lambda: SequenceClassifier(family=cb.families.Gaussian()).fit(["a", "b"], [0, 1]),
            "a density of sequences",
        ),
        (lambda: SequenceClassifier(family=MarkovChain(order=12)).fit(*rows()), "choose a lower order"),
        (
            lambda: cb.GenerativeClassifier(families=[("s", CHAIN, cb.every, Sequences())]).fit(
                [["a", "b"]] * 2, [0, 1]
            ),
            "give each column a family of its own",
        ),
        (
            lambda: cb.GenerativeClassifier(families=[("s", CHAIN, [0], cb.encoders.Dense())]).fit(
                [[1.0], [2.0]], [0, 1]
            ),
            "use the encoder Sequences",
        ),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sampling_and_filling_say_why_they_cannot():
    model = SequenceClassifier().fit(*rows())
    with pytest.raises((TypeError, ValueError), match=r"MarkovChain|sequences"):
        model.sample(3)
    with pytest.raises(AttributeError, match="cannot fill gaps of sequences"):
        model.fill(["ab"])
