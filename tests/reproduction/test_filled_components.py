"""What the record of filled components says: no optimum is lost where components stay empty."""

import pytest
from reproduction import filled_components as study
from reproduction.records import read_record

RECORD = read_record(study.RECORD)


def test_no_bound_is_lower_where_components_stay_empty():
    """Tables whose fits had an empty component on all rows, most of which was left alone."""
    assert {line["problem"] for line in RECORD} == {*study.PROBLEMS}
    *_, (name, _, n_asked, n_alone, loss, seconds) = study.table(RECORD)
    assert name == "all"
    assert int(n_asked) >= 40
    assert int(n_alone) > 0.8 * int(n_asked)
    assert float(loss) < 0.01
    assert float(seconds) < 0.9


def test_tables_are_drawn_again():
    line = next(line for line in RECORD if line["asked"])
    again = study.measured(line["problem"], line["n"], line["seed"])
    assert again["bounds"] == pytest.approx(line["bounds"], abs=0.01)
