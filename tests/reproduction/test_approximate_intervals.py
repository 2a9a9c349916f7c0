"""What holds of intervals of factors within a second, in the record of a run, and a table of it again."""

import pytest
from reproduction import approximate_intervals as study
from reproduction.records import read_record

LINES = read_record(study.RECORD)


def test_linear_response_is_nearer_to_its_level_than_q():
    (response, seconds), (q, _) = (study.shares(LINES, method) for method in study.METHODS)
    assert len(LINES) == 40
    assert seconds < 0.3
    assert all(response[name] > q[name] + 0.1 for name in response)
    assert all(response[name] > 0.9 for name in ("noise_variances", "uniquenesses", "covariances"))
    assert response["means"] > 0.8


@pytest.mark.slow
def test_a_table_again():
    new = study.measured(0)
    (old,) = (line for line in LINES if line["number"] == 0)
    for method in study.METHODS:
        assert all(abs(new[method][name] - old[method][name]) <= 1 for name in new["of"])
