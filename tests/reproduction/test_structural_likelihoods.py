"""Likelihoods of structural time series are those of statsmodels, whose numbers are in the record of a run."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import structural_likelihoods as study
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "structural.rst"
LINES = {line["problem"]: line for line in read_record(study.RESULTS)}


@pytest.mark.parametrize("name", study.BLOCKS)
def test_likelihoods_are_those_of_statsmodels(name):
    """At the variances of a fit to 1e-4 nats; no fit there is higher by more."""
    line = LINES[name]
    y = np.array([np.nan if value is None else value for value in line["series"]])[:, None]
    here = study.log_likelihood(study.fitted(name, y), y)
    assert here == pytest.approx(line["at_ours"], abs=1e-4)
    assert here >= line["of_fit"] - 1e-4


@pytest.mark.skipif(not PAGE.exists(), reason="no documentation beside the tests")
def test_the_guide_shows_the_record():
    page = PAGE.read_text("utf-8")
    assert [row for row in study.table([*LINES.values()]) if f"   {', '.join(row)}\n" not in page] == []
