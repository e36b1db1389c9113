"""The page of benchmarks/speed.py follows from the measured times."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def races(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from races import guard, page, race, scaling, timing

    return {"guard": guard, "page": page, "race": race, "scaling": scaling, "timing": timing}


def result(races, ours, theirs, goal=None, work="work", processor=None):
    took = races["timing"].Duration
    ours, theirs = took(ours, ours), took(theirs, theirs if processor is None else processor)
    return races["race"].Result(work, "peer", ours, theirs, goal)


def test_a_ratio_is_how_much_longer_the_peer_takes(races):
    found = result(races, 0.5, 2.0, goal=3.0)
    assert found.ratio == 4.0
    assert found.met
    assert not result(races, 0.5, 1.0, goal=3.0).met
    assert result(races, 0.5, 0.1).met


def test_faster_peers_are_named(races):
    slow, fast = result(races, 3.0, 1.0, work="slow work"), result(races, 1.0, 3.0, work="fast work")
    text = races["page"].where_peers_are_faster([slow, fast])
    assert "3.00 times as long as peer takes (slow work)" in text
    assert "fast work" not in text
    assert "No peer" in races["page"].where_peers_are_faster([fast])


def test_missed_targets_are_named(races):
    missed, reached = result(races, 1.0, 1.0, 2.0, "a"), result(races, 1.0, 4.0, 2.0, "b")
    assert "a (ratio 1.00" in races["page"].missed([missed, reached])
    assert "b (" not in races["page"].missed([missed, reached])
    assert "Every target" in races["page"].missed([reached])


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_exponents_are_slopes_of_logarithms(races, power):
    sizes = (10, 20, 40, 80)
    curve = races["scaling"].Curve("model", "n", sizes, tuple(3e-6 * size**power for size in sizes))
    assert curve.exponent == pytest.approx(power)


def test_contestants_run_in_turns_and_the_best_counts(races):
    order, took = [], races["timing"].Duration
    times = {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, 6.0, 4.0])}

    def contestant(name):
        def run():
            order.append(name)
            seconds = next(times[name])
            return took(seconds, 2.0 * seconds)

        return run

    best = races["timing"].in_turns({name: contestant(name) for name in times}, 3)
    assert order == ["a", "b"] * 3
    assert best == {"a": took(1.0, 2.0), "b": took(4.0, 8.0)}


def test_the_guard_calls_a_race_slow_if_both_ratios_are_low(races):
    low = races["guard"]._low
    begins = next(iter(races["guard"].FLOORS))
    slow = result(races, 1.0, 0.1, 1.7, f"{begins} small")
    noisy = result(races, 1.0, 0.1, 1.7, f"{begins} small", processor=50.0)
    assert low([slow, noisy]) == [slow]
    assert low([result(races, 1.0, 0.1, None, f"{begins} small")]) == []


def test_a_pass_is_timed_without_the_last_update(races):
    watch = races["timing"].Stopwatch()
    watch.times = [(0.0, 0.0), (2.0, 3.0), (5.0, 8.0), (5.5, 8.1)]
    assert watch.shortest() == races["timing"].Duration(2.0, 3.0)
