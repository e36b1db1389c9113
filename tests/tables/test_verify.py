"""Values that describe a training table verify that their fields agree: a file brings no pattern and no path of its own."""

import datetime
from dataclasses import replace

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from calibayes.tables.conversion import ColumnConversion, learn_conversion
from calibayes.tables.dates import FORMATS, Dates, Durations, formats_of
from calibayes.tables.origin import FromFrame
from calibayes.tables.read import read_array, read_frame
from tests.verification import verify_all

NAMES = ("when", "where", "how long")
TYPES = (np.dtype("M8[us]"), np.dtype(object), np.dtype("m8[us]"))
CONVERSION = ColumnConversion(NAMES, TYPES, {0: Dates(parts=("month",)), 2: Durations()}, {1: "given"})


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-31", "2023-02-01"],
        ["2024-01-31T10:30Z", "2023-02-01T10:30Z"],
        ["31/01/2024 10:30:59", "01/02/2023 10:30:59"],
        ["2024-01"],
        ["31 Jan 2024", "01 Feb 2024"],
    ],
    ids=str,
)
def test_formats_that_are_recognized_pass(texts):
    (form,) = formats_of(texts)
    form.verify()
    frame = pd.DataFrame({"when": texts})
    conversion = learn_conversion(read_frame(frame), {}, levels=True)
    assert Dates in verify_all(conversion)


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern": "(a+)+$"},
        {"written": "{year.__class__}"},
        {"name": "other"},
        {"time": "{hour.__class__}"},
        {"time": "T{hour:99999999d}"},
        {"has_offset": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_no_other_pattern_passes(form, changes):
    form.verify()
    with pytest.raises(ValueError, match=r"format|offset"):
        replace(form, **changes).verify()


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+02:00", "UTC-05:30", "Etc/GMT+5"])
def test_time_zones_pass(zone):
    Dates(zone).verify()


@pytest.mark.parametrize(
    "zone",
    [
        "",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "Europe/../Europe/Berlin",
        "Europe",
        "Nowhere",
        "a.b/c",
        "+99:99",
    ],
)
def test_what_is_no_time_zone_is_refused(zone):
    with pytest.raises(ValueError, match="no time zone"):
        Dates(zone).verify()


class Local(datetime.tzinfo):
    """A time zone whose text is no name of one, as those of some libraries."""

    def utcoffset(self, moment):
        return datetime.timedelta(hours=3)

    def __str__(self):
        return "tzfile('/usr/share/zoneinfo/Europe/Moscow')"


def test_a_time_zone_without_a_name_is_read_as_utc():
    cells = [[datetime.datetime(2024, month, 1, tzinfo=Local())] for month in range(1, 13)]
    conversion = learn_conversion(read_array(np.array(cells, dtype=object)), {}, levels=True)
    assert conversion.converters[0].zone == "UTC"
    verify_all(conversion)


@pytest.mark.parametrize(
    "dates",
    [
        Dates(parts=("weekday", "month")),
        Dates(parts=("month", "month")),
        Dates(parts=("year",)),
        Dates("UTC", are_days=True),
        Dates("UTC", form=FORMATS[0]),
        Dates(form=replace(FORMATS[0], time="T{hour:02d}:{minute:02d}", has_offset=True)),
    ],
    ids=repr,
)
def test_dates_that_training_cannot_make_are_refused(dates):
    with pytest.raises(ValueError, match=r"parts|zone"):
        dates.verify()


def test_a_conversion_passes():
    verify_all(CONVERSION)
    assert CONVERSION.converted_names == (*NAMES, "when (month)")


@pytest.mark.parametrize(
    "changes",
    [
        {"names": NAMES[:-1]},
        {"names": ("when", "when", "how long")},
        {"types": TYPES[:-1]},
        {"types": (*TYPES[:-1], np.dtype([("a", "f8")]))},
        {"converters": {3: Durations()}},
        {"converters": {-1: Durations()}},
        {"converters": {0: FORMATS[0]}},
        {"identifiers": {7: "given"}},
        {"identifiers": {0: "given"}},
    ],
    ids=str,
)
def test_a_conversion_of_other_columns_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        replace(CONVERSION, **changes).verify()


def test_many_names_like_that_of_a_derived_column():
    """Names that are taken are no reason to run out of the stack."""
    taken = tuple(f"when (month){'_' * times}" for times in range(2000))
    conversion = ColumnConversion(("when", *taken), converters={0: Dates(parts=("month",))})
    conversion.verify()
    assert len(set(conversion.converted_names)) == len(taken) + 2


def test_frames_of_libraries_in_memory_pass():
    frame = FromFrame(nw.Implementation.PANDAS, ("a", "b"), (False, True), (False, False))
    frame.verify()
    for changes in (
        {"library": nw.Implementation.DASK},
        {"library": nw.Implementation.UNKNOWN},
        {"library": "os"},
        {"labels": ("a",)},
        {"categorical": (False,)},
        {"days": ()},
    ):
        with pytest.raises(ValueError, match=r"library|must have"):
            replace(frame, **changes).verify()
