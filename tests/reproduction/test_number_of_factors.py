"""The record of numbers of factors: what the guide says of it, and that single tables lead to the same counts."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import number_of_factors as study
from reproduction.records import read_record
from sklearn.decomposition import FactorAnalysis

GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "number_of_factors.rst"


@pytest.mark.skipif(not GUIDE.exists(), reason="no documentation beside the tests")
def test_the_guide_shows_the_record():
    lines = read_record(study.RESULTS)
    assert sorted(line["number"] for line in lines) == list(range(study.N_TABLES))
    table = GUIDE.read_text("utf-8").split(".. factors-begin")[1].split(".. factors-end")[0]
    shown = [
        [int(cell) for cell in line[53:].split()] for line in table.splitlines() if line[53:].strip()[:1].isdigit()
    ]
    assert len(shown) == len(study.METHODS)
    for name, numbers in zip(study.METHODS, shown):
        some = [
            lines,
            [line for line in lines if line["n"] <= 200],
            [line for line in lines if line["n"] >= 500],
            [line for line in lines if line["q"] == 0],
        ]
        right, few, many, _ = study.shares(lines, name)
        of_kinds = [right, few, many, *(study.shares(each, name)[0] for each in some[1:])]
        assert numbers == np.round(100 * np.array(of_kinds)).astype(int).tolist(), name


@pytest.mark.parametrize("number", [4, 63])
def test_tables_on_record_are_counted_again(number):
    line = next(line for line in read_record(study.RESULTS) if line["number"] == number)
    X, q = study.simulated(number)
    assert (len(X), X.shape[1], q) == (line["n"], line["d"], line["q"])
    assert study.by_bound(X) == line["auto"]
    assert study.by_parallel_analysis(X) == line["parallel"]
    assert study.by_minka(X) == line["minka"]


def test_few_rows_have_the_likelihood_of_all():
    X, _ = study.simulated(63)
    few, options = study.condensed(X), {"tol": 1e-10, "max_iter": 5000, "svd_method": "lapack"}
    assert FactorAnalysis(1, **options).fit(few).score(few) == pytest.approx(
        FactorAnalysis(1, **options).fit(X).score(X)
    )


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "N_TABLES", 3)
    counted = []
    monkeypatch.setattr(study, "counted", lambda number: counted.append(number) or {"number": number})
    path = tmp_path / "record.jsonl"
    path.write_text('{"number": 1}\n')
    study.run(path, minutes=1)
    assert counted == [0, 2]
    assert [line["number"] for line in read_record(path)] == [1, 0, 2]
    study.run(path, minutes=0)
    assert counted == [0, 2]
