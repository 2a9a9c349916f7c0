"""Times of sequences: the grid they lie on, the steps between them, and those to come, against pandas and polars."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from skvbem import TimeAxis
from skvbem.reading.frequencies import frequency_named
from skvbem.reading.sequences import read_sequences

BERLIN, AHEAD = "Europe/Berlin", 5


def dates(start, n, freq, **options):
    return lambda: pd.date_range(start, periods=n, freq=freq, **options)


def periods(start, n, freq):
    return lambda: pd.period_range(start, periods=n, freq=freq)


# Name -> function of no argument that makes an index, as long as the rows and the steps ahead of them are.
INDICES = {
    "days": dates("2023-12-20", 40, "D"),
    "days over a leap day": dates("2024-02-10", 40, "D"),
    "days over a century without a leap day": dates("1900-02-20", 30, "D"),
    "days at noon": dates("2021-03-01 12:00", 30, "D"),
    "every other day": dates("2021-02-20", 30, "2D"),
    "weeks on Sundays": dates("2021-01-03", 30, "W"),
    "weeks on Wednesdays": dates("2021-12-01", 30, "W-WED"),
    "fortnights": dates("2021-01-04", 30, "14D"),
    "business days": dates("2021-01-01", 40, "B"),
    "business days at closing": dates("2021-01-01 17:30", 40, "B"),
    "month starts": dates("2019-11-01", 40, "MS"),
    "month ends": dates("2019-11-30", 40, "ME"),
    "month ends from February on": dates("2023-02-28", 30, "ME"),
    "every other month end": dates("2019-12-31", 30, "2ME"),
    "the 15th of months": lambda: pd.date_range("2020-01-01", periods=30, freq="MS") + pd.Timedelta(14, "D"),
    "the 30th of months, or the last": lambda: pd.DatetimeIndex(
        [pd.Timestamp("2023-11-30") + pd.DateOffset(months=k) for k in range(24)]
    ),
    "business month ends": dates("2020-01-31", 40, "BME"),
    "business month starts": dates("2020-01-01", 40, "BMS"),
    "quarter starts": dates("2018-01-01", 30, "QS"),
    "quarter ends": dates("2018-03-31", 30, "QE"),
    "quarter ends of a year to January": dates("2018-01-31", 30, "QE-JAN"),
    "business quarter ends": dates("2018-03-31", 30, "BQE"),
    "half years": dates("2010-06-30", 30, "6ME"),
    "year starts": dates("1990-01-01", 30, "YS"),
    "year ends": dates("1990-12-31", 30, "YE"),
    "year ends in June": dates("1990-06-30", 30, "YE-JUN"),
    "leap days' years": dates("2000-02-29", 30, "YE-FEB"),
    "hours": dates("2021-12-31 20:00", 40, "h"),
    "minutes": dates("2021-12-31 23:40", 40, "min"),
    "quarters of hours": dates("2021-12-31 20:15", 40, "15min"),
    "seconds": dates("2021-12-31 23:59:40", 40, "s"),
    "milliseconds": dates("2021-12-31 23:59:59.990", 40, "ms"),
    "microseconds": dates("2021-12-31 23:59:59.999990", 40, "us"),
    "nanoseconds": dates("2021-12-31 23:59:59.999999990", 40, "ns"),
    "days in Berlin, clocks forward": dates("2021-03-15", 40, "D", tz=BERLIN),
    "days in Berlin, clocks back": dates("2021-10-15", 40, "D", tz=BERLIN),
    "hours in Berlin, clocks forward": dates("2021-03-27 12:00", 40, "h", tz=BERLIN),
    "hours in Berlin, clocks back": dates("2021-10-30 12:00", 40, "h", tz=BERLIN),
    "24 hours in Berlin, clocks back": dates("2021-10-15", 40, "24h", tz=BERLIN),
    "half past two in Berlin, twice on one day": lambda: pd.DatetimeIndex(
        [pd.Timestamp(f"2021-10-{day} 02:30").tz_localize(BERLIN, ambiguous=True) for day in range(1, 32)]
    ),
    "month ends in New York": dates("2021-01-31", 30, "ME", tz="America/New_York"),
    "business days in New York": dates("2021-03-01", 30, "B", tz="America/New_York"),
    "weeks in UTC": dates("2021-01-03", 30, "W", tz="UTC"),
    "half hours in Kolkata": dates("2021-01-03", 30, "30min", tz="Asia/Kolkata"),
    "periods of days": periods("2024-02-10", 40, "D"),
    "periods of weeks": periods("2021-01-03", 30, "W-SAT"),
    "periods of months": periods("2019-11", 40, "M"),
    "periods of quarters": periods("2018Q1", 30, "Q"),
    "periods of quarters to January": periods("2018Q1", 30, "Q-JAN"),
    "periods of years": periods("1990", 30, "Y"),
    "periods of two months": periods("2019-11", 30, "2M"),
    "periods of hours": periods("2021-12-31 20:00", 40, "h"),
    "years as whole numbers": lambda: pd.Index(np.arange(1950, 1990)),
    "every tenth whole number": lambda: pd.Index(np.arange(0, 400, 10)),
    "tenths": lambda: pd.Index(np.arange(40) * 0.1 + 2000.0),
    "quarters of years as numbers": lambda: pd.Index(1990 + np.arange(40) / 4),
}
GONE = [3, 4, 8, 15, 16, 17]


def read(times, n=None, **axis):
    """Sequences of one column, whose rows have times."""
    return read_sequences(np.arange(float(n or len(times)))[:, None], None, None, "Owner", TimeAxis(times, **axis))


def equal(found, wanted):
    """Whether times are the same, whatever says so."""
    found, wanted = pd.Index(found), pd.Index(wanted)
    if wanted.dtype.kind == "f":
        return np.allclose(np.asarray(found, float), wanted, rtol=1e-12, atol=0)
    return list(found) == list(wanted)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("is_declared", [True, False])
def test_next_times_and_missing_steps(name, is_declared):
    whole = INDICES[name]()
    given = whole[:-AHEAD]
    if not is_declared and isinstance(given, pd.DatetimeIndex):
        given = pd.DatetimeIndex(given, freq=None)
        given.freq = None
    sequences = read(given)
    assert sequences.order is None
    assert sequences.times.n_filled == 0
    ahead = sequences.times.at(0, len(given) + np.arange(AHEAD))
    assert type(ahead) is type(whole)
    assert equal(ahead, whole[-AHEAD:])
    kept = np.delete(np.arange(len(given)), GONE)
    gapped = read(given[kept], gaps="missing")
    assert gapped.times.n_filled == len(GONE)
    assert gapped.lengths.tolist() == [len(given)]
    assert gapped.n_rows == len(kept)
    assert np.array_equal(np.flatnonzero(gapped.order < 0), GONE)
    assert np.array_equal(gapped.order[gapped.order >= 0], np.arange(len(kept)))
    assert equal(gapped.times.at(0, np.arange(len(whole))), whole)
    assert gapped.times.first_filled == gapped.times.shown(0, [GONE[0]])[0]


@pytest.mark.parametrize("name", INDICES)
def test_a_frequency_is_its_name(name):
    """What a fit keeps is the name of its frequency, which makes the same one again."""
    frequency = read(INDICES[name]()).times.frequency
    again = frequency_named(str(frequency))
    assert again == frequency if again is not None else float(str(frequency)) == pytest.approx(frequency.size)


@pytest.mark.parametrize("name", INDICES)
def test_shuffled_times(name):
    index = INDICES[name]()
    places = np.random.default_rng(0).permutation(np.delete(np.arange(len(index)), GONE))
    with pytest.raises(ValueError, match="not in order"):
        read(index[places])
    sequences = read(index[places], order="sort", gaps="missing")
    steps = np.full(len(index), -1)
    steps[places] = np.arange(len(places))
    assert np.array_equal(sequences.order, steps)
    assert np.array_equal(sequences.of_rows(np.arange(len(index))), places)
    assert np.array_equal(sequences.latest(np.arange(len(places)))[steps >= 0], steps[steps >= 0])


@pytest.mark.parametrize("name", INDICES)
def test_times_twice(name):
    index = INDICES[name]()
    twice = index[np.insert(np.arange(len(index)), 7, 7)]
    with pytest.raises(ValueError, match=r"Rows 7 and 8 of X have one time"):
        read(twice)
    assert read(twice.unique()).times.n_filled == 0
    of_two = read_sequences(
        np.zeros((2 * len(index), 1)), np.repeat([0, 1], len(index)), None, "Owner", index.append(index)
    )
    assert of_two.lengths.tolist() == [len(index)] * 2


def polars_times():
    pl = pytest.importorskip("polars")
    begin, end = datetime(2021, 3, 20), datetime(2021, 4, 28)
    zoned = {"time_zone": BERLIN, "eager": True}
    return {
        "dates": pl.date_range(date(2024, 2, 10), date(2024, 3, 20), "1d", eager=True),
        "months": pl.date_range(date(2020, 1, 1), date(2022, 8, 1), "1mo", eager=True),
        "quarters": pl.date_range(date(2015, 1, 1), date(2022, 7, 1), "1q", eager=True),
        "days": pl.datetime_range(begin, end, "1d", eager=True),
        "milliseconds": pl.datetime_range(begin, begin + timedelta(seconds=30), "500ms", time_unit="ms", eager=True),
        "hours": pl.datetime_range(begin, begin + timedelta(hours=40), "1h", eager=True),
        "days in Berlin": pl.datetime_range(begin, end, "1d", **zoned),
        "hours in Berlin": pl.datetime_range(datetime(2021, 3, 27), datetime(2021, 3, 28, 20), "1h", **zoned),
        "numbers": pl.Series(np.arange(1990, 2030)),
    }


@pytest.mark.parametrize(
    "name",
    ["dates", "months", "quarters", "days", "milliseconds", "hours", "days in Berlin", "hours in Berlin", "numbers"],
)
def test_polars(name):
    whole = polars_times()[name]
    given = whole[:-AHEAD]
    ahead = read(given).times.at(0, len(given) + np.arange(AHEAD))
    assert ahead.tolist() == whole[-AHEAD:].to_list()
    kept = np.delete(np.arange(len(given)), GONE)
    gapped = read(given[kept.tolist()], gaps="missing")
    assert gapped.times.n_filled == len(GONE)
    assert np.asarray(gapped.times.at(0, np.arange(len(whole)))).tolist() == whole.to_list()


@pytest.mark.parametrize(
    "times",
    [
        np.arange("2024-01", "2027-05", dtype="datetime64[M]"),
        np.arange("1990", "2030", dtype="datetime64[Y]"),
        np.arange("2024-02-10", "2024-03-21", dtype="datetime64[D]"),
        np.arange("2024-02-10T00", "2024-02-11T16", dtype="datetime64[h]"),
        np.arange("2024-02-10T00:00:00", "2024-02-10T00:00:40", dtype="datetime64[s]"),
        np.arange(40) * np.timedelta64(90, "s"),
        np.array([date(2024, 2, 10) + timedelta(k) for k in range(40)], dtype=object),
        [datetime(2024, 2, 10) + timedelta(hours=k) for k in range(40)],
        [datetime(2021, 3, 27, k % 24, tzinfo=ZoneInfo("UTC")) + timedelta(days=k // 24) for k in range(40)],
        [str(date(2024, 2, 10) + timedelta(k)) for k in range(40)],
        [*map(float, range(40))],
    ],
    ids=str,
)
def test_arrays_and_lists(times):
    given = times[:-AHEAD]
    ahead = read(given).times.at(0, len(given) + np.arange(AHEAD))
    wanted = np.array(times[-AHEAD:], dtype="datetime64[D]") if isinstance(times[0], str) else np.array(times[-AHEAD:])
    assert np.array_equal(ahead, wanted)
    kept = [time for k, time in enumerate(given) if k not in GONE]
    assert read(np.array(kept) if isinstance(times, np.ndarray) else kept, gaps="missing").times.n_filled == len(GONE)


IRREGULAR = {
    "the 15th and the last of months": pd.date_range("2020-01-31", periods=10, freq="ME").union(
        pd.date_range("2020-01-01", periods=10, freq="MS") + pd.Timedelta(14, "D")
    ),
    "Mondays, Wednesdays and Fridays": pd.DatetimeIndex(
        [day for day in pd.date_range("2020-01-01", periods=40) if day.weekday() in (0, 2, 4)]
    ),
    "events": pd.DatetimeIndex(["2020-01-01", "2020-01-02 07:13", "2020-01-05", "2020-01-09 12:00", "2020-02-01"]),
    "numbers": pd.Index([0.0, 1.0, 2.5, 3.7, 9.1]),
    "a stray day among weeks": pd.date_range("2020-01-05", periods=20, freq="W").insert(4, pd.Timestamp("2020-01-27")),
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_irregular_times(name):
    times = IRREGULAR[name]
    with pytest.raises(ValueError, match="not regular"):
        read(times)
    rows = read_sequences(np.zeros((len(times), 1)), None, None, "Owner", False)
    assert rows.times is None
    assert rows.lengths.tolist() == [len(times)]


def test_a_given_frequency_takes_what_shows_none():
    days = IRREGULAR["Mondays, Wednesdays and Fridays"]
    sequences = read(days, frequency="B", gaps="missing")
    assert sequences.lengths.tolist() == [len(pd.bdate_range(days[0], days[-1]))]
    numbers = read([0.0, 1.0, 2.5], frequency=0.5, gaps="missing")
    assert numbers.order.tolist() == [0, -1, 1, -1, -1, 2]
    with pytest.raises(ValueError, match=r"row 2 of X, 2\.7, is no step of the frequency '0\.5' from 0 on"):
        read([0.0, 1.0, 2.7], frequency=0.5)
    with pytest.raises(ValueError, match="is no step of the frequency 'ME'"):
        read(days, frequency="ME")
    quarters = pd.PeriodIndex(["2020Q1", "2020Q2", "2020Q4"], freq="Q")
    for name in ("QE", "QS", "QE-DEC"):
        assert read(quarters, frequency=name, gaps="missing").order.tolist() == [0, 1, -1, 2]
    with pytest.raises(ValueError, match="'frequency' parameter of TimeAxis"):
        TimeAxis(frequency="often")


def test_far_too_many_steps():
    days = pd.date_range("2020-01-01", periods=30, freq="D").append(pd.DatetimeIndex(["2220-01-31"]))
    with pytest.raises(ValueError, match="between rows 29 and 30, of 2020-01-30 and 2220-01-31"):
        read(days)


def test_sequences_share_a_frequency():
    """Sequences of one row, and of two with a gap, have the frequency that the others show."""
    frames = [
        pd.DataFrame({"x": np.arange(float(len(times)))}, index=times)
        for times in (
            pd.date_range("2020-01-01", periods=10, freq="D"),
            pd.DatetimeIndex(["2021-05-05"]),
            pd.DatetimeIndex(["2021-05-05", "2021-05-09"]),
        )
    ]
    sequences = read_sequences(frames, None, None, "Owner", TimeAxis(gaps="missing"))
    assert sequences.lengths.tolist() == [10, 1, 5]
    assert sequences.rows_of_each.tolist() == [10, 1, 2]
    assert sequences.times.at(1, [1]).tolist() == [pd.Timestamp("2021-05-06")]
    assert [len(rows) for rows in sequences.split(np.arange(13))] == [10, 1, 2]
    one = sequences.only(2)
    assert one.lengths.tolist() == [5]
    assert one.table.column(0).values[::4].tolist() == [0.0, 1.0]
    assert one.table.column(0).missing.tolist() == [False, True, True, True, False]
    table = pd.concat(frames)
    ids = np.repeat(["a", "b", "c"], [10, 1, 2])
    shuffled = np.random.default_rng(1).permutation(13)
    by_id = read_sequences(table.iloc[shuffled], ids[shuffled], None, "Owner", TimeAxis(order="sort", gaps="missing"))
    assert dict(zip(by_id.ids, by_id.lengths.tolist())) == {"a": 10, "b": 1, "c": 5}
