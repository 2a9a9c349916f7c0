"""Times of rows as users have them, of any container, as numbers; and times to come back in the same form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from skvbem._arguments import is_collection
from skvbem.reading.frequencies import Frequency, Months, Ticks, frequency_named
from skvbem.reading.tables import is_missing_value, library_of, show

# What dates are counted in: units of NumPy as they are, coarser ones in seconds.
_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False)
class Moments:
    """Times of rows.

    Parameters
    ----------
    ticks : Ticks
    missing : ndarray of bool, shape (n_rows,)
    again : callable of ndarray and bool
        Ticks of other times, on the clock or even, in the container that the times came in.
    declared : Frequency or None
        What the container says of it.
    is_binding : bool
        Whether it says so of any times in it, as that of periods does.
    are_periods : bool
        Whether times are periods, which are counted by when they begin.
    name : str or None
    """

    ticks: Ticks
    missing: np.ndarray
    again: Callable[[np.ndarray, bool], Any]
    declared: Frequency | None = None
    is_binding: bool = False
    name: Any = None
    are_periods: bool = False

    def frequency(self, given: Frequency | None) -> Frequency | None:
        """A frequency that is said of these times: of periods of months that of their first days."""
        return Months(given.n, 1) if self.are_periods and isinstance(given, Months) else given

    def named(self, frequency: Frequency | None) -> str:
        """The name of a frequency of these times, as messages show it."""
        name = str(frequency)
        return repr(name.removesuffix("S") if self.are_periods and isinstance(frequency, Months) else name)

    def shown(self, ticks: np.ndarray, on_clock: bool) -> list[str]:
        """Times as messages and tables have them."""
        return shown_times(self.again(ticks, on_clock))


def shown_times(times: Any) -> list[str]:
    """Times as tables show them: dates without a time of day where none has one."""
    if getattr(times, "dtype", None) is not None and getattr(times.dtype, "kind", "") == "f":
        return [f"{time:.12g}" for time in np.asarray(times).tolist()]
    texts = [str(time).replace("T", " ") for time in times]
    while texts and all(text.endswith("0") for text in texts) and all("." in text for text in texts):
        texts = [text[:-1] for text in texts]
    texts = [text.removesuffix(".") for text in texts]
    for end in (":00", " 00:00"):
        if texts and all(text.count(":") == (2 if end == ":00" else 1) and text.endswith(end) for text in texts):
            texts = [text.removesuffix(end) for text in texts]
    return texts


def read_moments(given: Any, what: str) -> Moments:
    """Times of rows.

    Parameters
    ----------
    given : index, series, array or list
        Dates, periods or numbers.
    what : str
        What they are, as messages call it.

    Raises
    ------
    TypeError, ValueError
        If they are none of these, or not one for each row.
    """
    if library_of(given, "Series") == "polars":
        return _of_polars(given, what)
    if library_of(given, "Index") == "pandas" or library_of(given, "Series") == "pandas":
        return _of_pandas(given, what)
    if hasattr(given, "freq") and hasattr(given, "dtype"):  # an extension array of pandas
        import pandas as pd

        return _of_pandas(pd.Index(given), what)
    if not is_collection(given):
        raise TypeError(f"{what} must be dates, periods or numbers, one for each row. Got {show(given)}.")
    array = given if isinstance(given, np.ndarray) else _as_array(list(given))
    if array.ndim != 1:
        raise ValueError(f"{what} must be one for each row, of shape (n_rows,). Got an array of shape {array.shape}.")
    return _of_array(array, what)


def _as_array(values: list) -> np.ndarray:
    if values and all(isinstance(value, (int, float, np.number, np.datetime64)) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _of_array(array: np.ndarray, what: str, name: Any = None) -> Moments:
    if np.ma.is_masked(array):
        raise ValueError(f"{what} must have no masked cell. Leave rows without a time out.")
    if array.dtype.kind in "OUST" and len(array):
        return _of_objects(array.tolist(), what, name)
    if array.dtype.kind == "m":
        unit = np.datetime_data(array.dtype)[0]
        numbers = array.astype(np.int64)
        again: Callable = lambda ticks, on_clock: np.asarray(ticks).astype(f"m8[{unit}]")  # noqa: E731
        return Moments(Ticks(numbers, numbers, ""), np.isnat(array), again, name=name)
    if array.dtype.kind == "M":
        return _of_dates(array, name)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{what} must hold dates, periods or numbers. Got {array.dtype}.")
    numbers = array.astype(np.int64 if array.dtype.kind in "iu" else float)
    if array.dtype.kind == "f" and np.isinf(numbers).any():
        raise ValueError(f"{what} must be finite. Row {int(np.isinf(numbers).argmax())} has {numbers.max()}.")
    missing = np.isnan(numbers) if array.dtype.kind == "f" else np.zeros(len(numbers), dtype=bool)
    return Moments(Ticks(numbers, numbers, ""), missing, lambda ticks, on_clock: np.asarray(ticks), name=name)


def _of_dates(array: np.ndarray, name: Any) -> Moments:
    """Dates of NumPy; what comes again has their unit, or a finer one where they need it."""
    given = np.datetime_data(array.dtype)[0]
    unit = given if given in _UNITS else "s"
    ticks = array.astype(f"M8[{unit}]").astype(np.int64)

    def again(ticks: np.ndarray, on_clock: bool) -> np.ndarray:
        dates = np.asarray(ticks).astype(f"M8[{unit}]")
        coarse = dates.astype(f"M8[{given}]")
        return coarse if (coarse == dates).all() else dates

    return Moments(Ticks(ticks, ticks, unit), np.isnat(array), again, name=name)


def _of_objects(values: list, what: str, name: Any) -> Moments:
    """Dates of Python, periods and stamps of pandas, or texts of the form 2020-01-31."""
    kinds = {type(value).__name__ for value in values if not is_missing_value(value)}
    if kinds and kinds <= {"Timestamp", "Period", "NaTType"}:
        import pandas as pd

        return _of_pandas(pd.Index(values), what, name)
    missing = [is_missing_value(value) for value in values]
    there = [value for value, is_gone in zip(values, missing) if not is_gone]
    if all(isinstance(value, datetime) and value.tzinfo is not None for value in there) and there:
        return _of_zone(values, np.array(missing), there[0].tzinfo, name)
    is_date = [isinstance(value, date) and getattr(value, "tzinfo", None) is None for value in there]
    try:
        if not all(is_date) and not all(isinstance(value, str) for value in there):
            raise ValueError
        array = np.array([np.datetime64("NaT") if gone else value for value, gone in zip(values, missing)], "M8[us]")
    except ValueError:
        odd = next((value for value in there if not isinstance(value, date)), there[0])
        raise TypeError(
            f"{what} must hold dates, periods or numbers. Got {show(odd)}. Make dates of texts first, as by "
            "pandas.to_datetime."
        ) from None
    are_days = (array.astype("M8[D]") == array) | np.isnat(array)
    return _of_dates(array.astype("M8[D]") if are_days.all() else array, name)


def _of_zone(values: list, missing: np.ndarray, zone: Any, name: Any) -> Moments:
    """Dates of Python in a time zone."""

    def ticks(of: Callable) -> np.ndarray:
        dates = [np.datetime64("NaT") if gone else of(value) for value, gone in zip(values, missing)]
        return np.array(dates, dtype="M8[us]").astype(np.int64)

    clock = ticks(lambda value: value.astimezone(zone).replace(tzinfo=None))
    even = ticks(lambda value: value.astimezone(UTC).replace(tzinfo=None))

    def again(ticks: np.ndarray, on_clock: bool) -> np.ndarray:
        plain = np.asarray(ticks).astype("M8[us]").tolist()
        of = _of_clock if on_clock else lambda value, zone: value.replace(tzinfo=UTC).astimezone(zone)
        dates = np.empty(len(plain), dtype=object)
        dates[:] = [of(value, zone) for value in plain]
        return dates

    return Moments(Ticks(clock, even, "us"), missing, again, name=name)


def _of_clock(value: datetime, zone: Any) -> datetime:
    """The first moment at which a clock shows a time, or would but for the hour that it leaves out."""
    return value.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def _of_pandas(given: Any, what: str, name: Any = None) -> Moments:
    """An index or a series of pandas; times come again as an index."""
    import pandas as pd

    index, name = pd.Index(given), getattr(given, "name", None) if name is None else name
    if isinstance(index, pd.PeriodIndex):
        return _of_periods(index, name)
    if isinstance(index, pd.DatetimeIndex):
        return _of_stamps(index, name)
    is_number = index.dtype.kind in "iuf"
    of_array = _of_array(index.to_numpy(dtype=float, na_value=np.nan) if is_number and index.hasnans else
                         index.to_numpy(), what, name)  # fmt: skip
    return replace(of_array, again=lambda ticks, on_clock: pd.Index(of_array.again(ticks, on_clock), name=name))


def _of_periods(index: Any, name: Any) -> Moments:
    """Periods of pandas, by when they begin."""
    import pandas as pd

    starts, frequency = index.to_timestamp(), frequency_named(index.freqstr)
    ticks, unit = starts.asi8, starts.unit

    def again(ticks: np.ndarray, on_clock: bool) -> Any:
        return pd.PeriodIndex(pd.DatetimeIndex(np.asarray(ticks).astype(f"M8[{unit}]")), freq=index.freq, name=name)

    return Moments(Ticks(ticks, ticks, unit), index.isna(), again, frequency, frequency is not None, name, True)


def _of_stamps(index: Any, name: Any) -> Moments:
    """Dates of pandas, of any unit and time zone."""
    import pandas as pd

    unit, zone, even = index.unit, index.tz, index.asi8
    clock = even if zone is None else index.tz_localize(None).asi8

    def again(ticks: np.ndarray, on_clock: bool) -> Any:
        dates = pd.DatetimeIndex(np.asarray(ticks).astype(f"M8[{unit}]"), name=name)
        if zone is None:
            return dates
        if not on_clock:
            return dates.tz_localize("UTC").tz_convert(zone)
        return dates.tz_localize(zone, ambiguous=np.ones(len(dates), bool), nonexistent="shift_forward")

    declared = None if index.freq is None else frequency_named(index.freqstr)
    return Moments(Ticks(clock, even, unit), index.isna(), again, declared, False, name)


def _of_polars(series: Any, what: str) -> Moments:
    """A series of polars; times come again as an array."""
    zone = getattr(series.dtype, "time_zone", None)
    if zone is not None:
        return _of_zone(series.to_list(), series.is_null().to_numpy(), ZoneInfo(zone), series.name)
    return _of_array(series.to_numpy(), what, series.name)
