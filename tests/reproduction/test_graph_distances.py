"""Distances of graphs from the truth: the record of a run, the page, and a line of it again."""

from pathlib import Path

import numpy as np
from reproduction import graph_distances as study
from reproduction.pages import check_page
from reproduction.records import read_record

from skvbem import DAG

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixed_networks.rst"


def test_searches_are_nearer_to_the_truth_than_peers():
    for kind in study.KINDS:
        means = {
            method: np.mean([line["distance"] for line in LINES if line["kind"] == kind and line["method"] == method])
            for method in study.METHODS
        }
        assert min(means, key=means.__getitem__) == "hidden scale"
    assert len(LINES) == study.N_TABLES * len(study.KINDS) * len(study.METHODS)


def test_distances_are_those_of_classes():
    """Of a collider and a chain: two arrows more, and none where graphs are equivalent."""
    collider, chain, other = (study.marks_of(DAG.from_string(text)) for text in (
        "[a][b][c|a:b]", "[a][b|c][c|a]", "[a|c][b|c][c]"))  # fmt: skip
    assert study.distance(chain, other) == 0
    assert study.distance(collider, chain) == 2


def test_the_page_has_the_table():
    check_page(PAGE, study.rows_of(LINES))


def test_a_table_again():
    line = next(line for line in LINES if line["method"] == "hidden scale" and line["kind"] == "determined")
    again = study.measured(line["kind"], line["seed"], line["method"])
    assert (again["distance"], again["skeleton"]) == (line["distance"], line["skeleton"])
