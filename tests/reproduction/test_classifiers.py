"""What holds of classifiers, in the record of a run, and one entry of it again."""

from pathlib import Path

import pytest
from reproduction import classifiers

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "pipelines.rst"
RECORDS = classifiers.read()


@pytest.mark.parametrize(("name", "gaps", "kind"), [("iris", 0.0, "naive"), ("zoo", 0.3, "tan")])
def test_an_entry_again(name, gaps, kind):
    """Seconds are those of the machine."""
    again = classifiers.measured(name, gaps, kind)[kind]
    record = RECORDS[f"{name}, {gaps:.0%} missing"][kind]
    assert again["accuracy"] == pytest.approx(record["accuracy"], abs=0.02)
    assert again["log_loss"] == pytest.approx(record["log_loss"], abs=0.01)


def test_all_tables_are_there_complete_and_with_gaps():
    names = {**classifiers.CATEGORIES, **classifiers.MEASUREMENTS}
    assert {*RECORDS} == {f"{name}, {gaps:.0%} missing" for name in names for gaps in classifiers.GAPS}


def test_with_gaps_no_filled_naive_bayes_has_a_lower_log_loss():
    for case, record in RECORDS.items():
        if not case.endswith(", 0% missing"):
            assert record["naive"]["log_loss"] < record["peer_naive"]["log_loss"], case


def test_the_page_shows_the_record():
    if not PAGE.exists():
        pytest.skip("no documentation beside the tests")
    said = " ".join(PAGE.read_text("utf-8").split())
    for row in classifiers.rows_of(RECORDS):
        assert " ".join(filter(None, row)) in said
