"""What tests ask of every study of coverage: that draws hold as much as they say, and pages what the record has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction.interval_coverage import LEVELS
from reproduction.pages import check_page

GUIDE = Path(__file__).parents[2] / "doc" / "user_guide"
# Standard errors of a coverage, counted as if the intervals of one simulation were one, and what the ends of intervals
# vary by.
_REACH, _OF_ENDS = 3.0, 0.02


def check_draws_hold(records: list[dict], quantities: Iterable[str]) -> None:
    """Intervals of draws hold quantities as often as they say, in the simulations of one problem."""
    held = [each["held"]["draws"] for each in records]
    for what in quantities:
        of_each = np.array([each[what] for each in held if what in each], dtype=float)
        shares = of_each[:, :-1] / of_each[:, -1:]
        for level, share in zip(LEVELS, shares.T):
            # one more that holds nothing and one that holds all: where every interval holds, an error is not 0
            error = np.append(share, [0.0, 1.0]).std() / np.sqrt(len(share))
            assert share.mean() == pytest.approx(level, abs=_REACH * error + _OF_ENDS), what


def check_once(records: list[dict], problems: Iterable[str]) -> None:
    """Every simulation is on record once, and every problem has some."""
    names = [(each["problem"], each["n"], each["seed"]) for each in records]
    assert len(set(names)) == len(names)
    assert {name for name, *_ in names} == set(problems)


def check_study(name: str, study: Any) -> None:
    """A page of the guide has the tables of a study."""
    check_page(GUIDE / name, [*study.table(study.read()), *study.costs(study.read())])
