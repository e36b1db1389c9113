"""Dates as numbers and levels of the calendar, and dates that are written as text."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from calibayes.tables.dates import (
    DATE,
    calendar_levels,
    dates_of,
    days_of,
    formats_of,
    local_dates,
    time_zone,
    varying_parts,
)
from calibayes.tables.read import read_frame


def test_days_and_back():
    dates = np.array(["1969-12-31T23:59:59.999999", "2024-02-29T12:00", "NaT", "2080-01-01"], dtype=DATE)
    assert_array_equal(dates_of(days_of(dates)), dates)
    assert days_of(dates)[1] == (datetime.date(2024, 2, 29) - datetime.date(1970, 1, 1)).days + 0.5


@pytest.mark.parametrize("part", ["month", "weekday", "hour"])
def test_the_calendar_is_that_of_pandas(part):
    dates = pd.Series(pd.date_range("1960-01-01", "2030-01-01", periods=1000))
    expected = {
        "month": dates.dt.month_name().str[:3],
        "weekday": dates.dt.day_name().str[:3],
        "hour": dates.dt.strftime("%H"),
    }
    assert calendar_levels(dates.to_numpy().astype(DATE), part).tolist() == expected[part].tolist()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC"])
def test_data_frames_keep_the_time_zone(zone):
    times = pd.Series(pd.date_range("2024-03-30 23:00", periods=3, freq="7h", tz=zone))
    table = read_frame(pd.DataFrame({"time": times}))
    assert table.zones == {0: zone}
    assert_array_equal(
        table.column(0), times.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy().astype(DATE)
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "+05:30", "UTC"])
def test_a_clock_in_a_time_zone(zone):
    dates = pd.Series(pd.date_range("2023-01-01", "2024-12-31", freq="7h", tz="UTC"))
    shown = dates.dt.tz_convert(time_zone(zone)).dt.tz_localize(None)
    utc = dates.dt.tz_localize(None).to_numpy().astype(DATE)
    assert_array_equal(local_dates(utc, zone), shown.to_numpy().astype(DATE))


@pytest.mark.parametrize(
    ("dates", "parts"),
    [
        (["2024-01-01", "2024-02-01", "2024-03-01"], ("month",)),
        (["2024-01-01", "2024-01-02"], ("weekday",)),
        (["2024-01-01", "2024-01-08"], ()),
        (["2024-01-01T10:00", "2024-02-02T11:00", "NaT"], ("month", "weekday", "hour")),
        (["NaT"], ()),
    ],
)
def test_parts_of_the_calendar_that_vary(dates, parts):
    assert varying_parts(np.array(dates, dtype=DATE)) == parts


@pytest.mark.parametrize(
    ("texts", "name", "first"),
    [
        (["2024-02-29", "2023-01-01"], "YYYY-MM-DD", datetime.datetime(2024, 2, 29)),
        (["2024-02-29 10:30", "2023-01-01 00:00"], "YYYY-MM-DD", datetime.datetime(2024, 2, 29, 10, 30)),
        (["2024-02-29T10:30:01.5+02:00"], "YYYY-MM-DD", datetime.datetime(2024, 2, 29, 8, 30, 1, 500_000)),
        (["2024/2/9"], "YYYY/MM/DD", datetime.datetime(2024, 2, 9)),
        (["2024-05", "2023-12"], "YYYY-MM", datetime.datetime(2024, 5, 1)),
        (["1.2.2024"], "DD.MM.YYYY", datetime.datetime(2024, 2, 1)),
        (["1/2/2024", "31/1/2024"], "DD/MM/YYYY", datetime.datetime(2024, 2, 1)),
        (["1/2/2024 5:00 PM", "1/31/2024 12:05 am"], "MM/DD/YYYY", datetime.datetime(2024, 1, 2, 17)),
        (["2 Jan 2024", "31 January 2023"], "DD Mon YYYY", datetime.datetime(2024, 1, 2)),
        (["Jan 2, 2024"], "Mon DD, YYYY", datetime.datetime(2024, 1, 2)),
    ],
)
def test_formats_that_are_recognized(texts, name, first):
    (form,) = formats_of(texts)
    assert form.name == name
    assert form.read(texts[0]).date == first
    assert form.read(form.write(first.replace(microsecond=0))).date == first.replace(microsecond=0)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-02-30"],  # no such day
        ["2024-13"],
        ["2024-02-01", "soon"],
        ["2024-02-01", "01.02.2024"],  # two formats
        ["2024-02-01T10:00Z", "2024-02-01T10:00"],  # an offset in some
        ["2024"],
        ["12:30"],
        ["1-2-3"],
        ["2 Foo 2024"],
        ["1/2/24"],
    ],
)
def test_text_that_is_no_dates(texts):
    assert formats_of(texts) == []
