"""What holds of fits whose rows are elsewhere, in the record of a run."""

from pathlib import Path

import pytest
from reproduction import rows_on_workers
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = {line["way"]: line for line in read_record(rows_on_workers.RECORD)}
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixtures.rst"


def test_the_bound_is_the_same_and_statistics_come_back():
    alone = LINES["process"]
    for way in ("dask", "joblib"):
        assert LINES[way]["bound"] == pytest.approx(alone["bound"], rel=1e-9)
        assert LINES[way]["n_steps"] == alone["n_steps"]
        assert LINES[way]["bytes_of_step"] < 12_000
        assert LINES[way]["bytes"] == pytest.approx(8 * rows_on_workers.N_ROWS * rows_on_workers.D / 6, rel=0.1)
        assert max(LINES[way]["workers"]) < 0.8 * alone["seconds"]
    assert LINES["dask"]["peak"] < 300


def test_the_page_shows_the_record():
    check_page(PAGE, rows_on_workers.table_rows(list(LINES.values())))
