"""Public names, commands and options change on purpose only."""

from importlib import import_module

from tests.contract.public_names import PACKAGES, PATH, public_names


def test_public_names_and_options_are_those_of_the_list():
    listed, now = PATH.read_text(encoding="utf-8").splitlines(), public_names()
    removed, added = sorted({*listed} - {*now}), sorted({*now} - {*listed})
    advice = "if this is on purpose: python -m tests.contract.public_names, and a line in CHANGELOG.md"
    assert (removed, added) == ([], []), advice
    assert listed == now


def test_every_listed_name_is_there():
    for package in PACKAGES:
        module = import_module(package)
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__), package
