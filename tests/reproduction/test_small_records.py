"""A line of the records of clusters and of chains of hidden Markov models is measured again."""

import pytest
from reproduction import chain_evidences, clusters
from reproduction.records import read_record

approx = pytest.approx


def test_a_loss_by_clusters_again():
    """Of a seed whose bounds few starts reach."""
    line = next(each for each in read_record(clusters.RESULTS) if each["seed"] == 2)
    again = clusters.measured(2)
    for name in clusters.PARTITIONS:
        assert again[name]["of_few"] == approx(line[name]["of_few"], abs=1e-3)
        assert line[name]["best"] >= line[name]["of_few"] - 1e-9
    assert (clusters.losses(read_record(clusters.RESULTS), "steps") > 0).all()


def test_chains_again():
    line = next(each for each in read_record(chain_evidences.RESULTS) if each["problem"] == "earthquakes, 3")
    model, X = chain_evidences.fitted("earthquakes, 3")
    assert model.lower_bound_ == approx(line["bound"], abs=1e-3)
    again = chain_evidences.asked(model, X, 0)
    assert abs(again["value"] - line["long"]["value"]) < 4 * again["error"]
    assert again["value"] == approx(line["runs"][0]["value"], abs=0.05)
