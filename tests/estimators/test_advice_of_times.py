"""Advice in messages about times of rows: copied, followed, and it works."""

import numpy as np
import pandas as pd
import pytest
from estimators.advice import Case, check, each_line, each_name

from skvbem import VBHMM, TimeAxis, VBLinearDynamicalSystem

RNG = np.random.default_rng(20261128)
DAYS = pd.date_range("2024-02-01", periods=40, freq="D")
X = pd.DataFrame({"x": RNG.normal(size=40)}, index=DAYS)
WORKDAYS = X[DAYS.day_of_week.isin([0, 2, 4])]
GAPPED = X.drop(DAYS[[5, 6, 17]])
TWICE = pd.concat([X, X]).sort_index(kind="stable")
FITTED = VBLinearDynamicalSystem(1, n_init=1, predictive="mean", random_state=0).fit(X)
TIME = r"(?<=time=)(?:TimeAxis\(.*?\)|False)"


def fit(X, **options):
    return VBHMM(1, n_init=1, random_state=0).fit(X, **options)


def times(followed):
    """Calls with each value of `time` in the advice."""
    return each_line(TIME, lambda time: followed(time=time), TimeAxis=TimeAxis)


CASES = {
    "no frequency": Case(
        lambda: fit(WORKDAYS),
        " If many steps are missing, say the frequency, as in ",
        times(lambda **advice: fit(WORKDAYS, **advice)),
    ),
    "no frequency, as rows": Case(
        lambda: fit(WORKDAYS),
        "Bring X to a regular frequency, such as by its 'resample', or ",
        times(lambda **advice: fit(WORKDAYS, **advice)),
    ),
    "no frequency, as an array": Case(
        lambda: fit(WORKDAYS),
        ", or X.to_numpy(): steps are then ",
        each_line(r"X\.to_numpy\(\)", fit, X=WORKDAYS),
    ),
    "a time off the grid": Case(
        lambda: fit(WORKDAYS, time=TimeAxis(frequency="ME")),
        ", is no step of the frequency ",
        times(lambda **advice: fit(WORKDAYS, **advice)),
    ),
    "rows out of order": Case(
        lambda: fit(X[::-1]), "Sort the rows by time, or pass ", times(lambda **advice: fit(X[::-1], **advice))
    ),
    "rows of one time": Case(
        lambda: fit(TWICE),
        "If they belong to several sequences, give ",
        each_name(lambda name: fit(TWICE, **{name: np.tile([0, 1], 40)})),
    ),
    "rows of one time, aggregated": Case(
        lambda: fit(TWICE),
        "aggregate them first, such as by the ",
        lambda text: [lambda: fit(getattr(TWICE.groupby(level=0), text.split("by the ")[1].split()[0])())],
    ),
    "a time far away": Case(
        lambda: fit(X.set_axis(DAYS[:-1].insert(39, pd.Timestamp("2204-01-01")))),
        "Mend these times, or pass ",
        times(lambda **advice: fit(X.set_axis(DAYS[:-1].insert(39, pd.Timestamp("2204-01-01"))), **advice)),
    ),
    "missing steps that are refused": Case(
        lambda: fit(GAPPED, time=TimeAxis(gaps="refuse")),
        ". Add rows with missing cells there, or pass ",
        times(lambda **advice: fit(GAPPED, **advice)),
    ),
    "missing steps": Case(
        lambda: fit(GAPPED), ": steps without an observed cell take their place. Pass ",
        times(lambda **advice: fit(GAPPED, **advice)),
    ),
    "another frequency than that of the fit": Case(
        lambda: FITTED.score(X[::2]),
        "; if it has that frequency with many steps missing, pass ",
        times(lambda **advice: FITTED.score(X[::2], **advice)),
    ),
    "dates of some sequences": Case(
        lambda: fit([X, X.reset_index(drop=True)]),
        "Give all of them one, or pass ",
        times(lambda **advice: fit([X, X.reset_index(drop=True)], **advice)),
    ),
    "dates in two units": Case(
        lambda: fit([X, X.set_axis(DAYS.as_unit("s"))]),
        "Make them alike, such as by ",
        each_line(
            r"X\[\d\]\.index\.astype\(X\[0\]\.index\.dtype\)",
            lambda index: fit([X, X.set_axis(index)]),
            X=[X, X.set_axis(DAYS.as_unit("s"))],
        ),
    ),
    "an axis without times": Case(
        lambda: fit(X.reset_index(drop=True), time=TimeAxis(gaps="refuse")),
        "Say where times are: ",
        each_line(r"TimeAxis\('index'\)", lambda time: fit(X.reset_index(drop=True), time=time), TimeAxis=TimeAxis),
    ),
    "dates that no unit holds": Case(
        lambda: FITTED.forecast(X.set_axis(pd.DatetimeIndex(DAYS + pd.Timedelta(86900, "D")).as_unit("ns")), 100),
        "Count them in seconds, such as by ",
        lambda text: [
            lambda: FITTED.forecast(X.set_axis((DAYS + pd.Timedelta(86900, "D")).as_unit(text.split("'")[1])), 100)
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_is_followed(name):
    check(CASES[name])
