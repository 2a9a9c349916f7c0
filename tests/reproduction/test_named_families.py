"""What the record of named families says: counts that do not spread are never said to, and advice gains nats."""

import pytest
from reproduction import named_families as study
from reproduction.records import read_record

RECORD = read_record(study.RECORD)


def test_poisson_counts_are_named_so_and_others_where_rows_tell():
    rows = {(problem, n): named for problem, n, *named in study.table(RECORD)}
    assert all(rows["poisson", n] == [100.0, 0.0, 0.0] for n in study.ROWS)
    assert all(rows[problem, 2000][1] == 100.0 for problem in ("size 2", "size .5"))
    assert rows["zeros 40 %", 2000][2] == 100.0
    assert rows["zeros 10 %", 2000][2] > 90
    gains = [line["gain"] for line in RECORD if line["gain"]]
    assert min(gain["median"] for gain in gains) > 3
    assert min(gain["least"] for gain in gains) > -2


def test_a_line_again():
    line = next(each for each in RECORD if (each["problem"], each["n"]) == ("zeros 40 %", 50))
    again = study.measured("zeros 40 %", 50)
    assert again["named"] == line["named"]
    assert again["gain"]["median"] == pytest.approx(line["gain"]["median"], abs=0.02)
