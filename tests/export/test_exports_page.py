"""The page that says which models are exported is up to date and complete."""

from pathlib import Path

import calibayes
from benchmarks.front.exports import SAMPLES, page

PAGE = Path(__file__).parents[2] / "docs" / "exports.md"


def test_the_page_is_up_to_date():
    """Write it with `python -m benchmarks.front.exports --page docs/exports.md`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_classifier_is_on_the_page():
    public = (getattr(calibayes, name) for name in calibayes.__all__)
    classifiers = {
        thing.__name__ for thing in public if isinstance(thing, type) and hasattr(thing, "predict_proba")
    }
    assert {type(sample.model).__name__ for sample in SAMPLES} == classifiers
