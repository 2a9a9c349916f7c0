"""What holds of the default priors of searches over networks, in the record of a full run, and a part of it again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import default_prior as study

approx = pytest.approx
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "searching.rst"
KNOWN = study.lines_of("known")


def test_the_record_is_large_enough():
    for name in study.NETWORKS:
        assert len(study.lines_of("known", name)) >= 50
    assert len(study.lines_of("drawn")) >= 200
    assert len(study.lines_of("pairs")) >= 200
    assert all(len(study.lines_of("independent", p)) >= 70 for p in (4, 10, 20))


def test_hardly_an_edge_among_independent_columns():
    """At most one in fifty pairs is more probably joined than not; 99 of 100 tables have none that seems certain."""
    certain = []
    for p in (4, 10, 20):
        lines = [line[study.DEFAULT] for line in study.lines_of("independent", p)]
        assert np.mean([line["false_over_half"] for line in lines]) <= 0.02 * p * (p - 1) / 2
        certain += [line["largest_false"] > 0.95 for line in lines]
    assert np.mean(certain) <= 0.01


@pytest.mark.parametrize("peer", study.PEERS)
def test_edges_of_known_networks_are_foretold_better_than_under_other_scores(peer):
    differences = study.losses(KNOWN, study.DEFAULT) - study.losses(KNOWN, peer)
    error = differences.std(axis=0) / np.sqrt(len(differences))
    assert (differences.mean(axis=0) < -2 * error).all()


def networks_where_other_scores_are_better(n_rows):
    """Networks and scores by which edges are foretold better by more than two standard errors, in tables so long."""
    better = set()
    for name in study.NETWORKS:
        lines = [line for line in study.lines_of("known", name) if line["of"][1] >= n_rows]
        for peer in study.PEERS:
            differences = study.losses(lines, study.DEFAULT) - study.losses(lines, peer)
            error = differences.std(axis=0) / np.sqrt(len(differences))
            if (differences.mean(axis=0) > 2 * error + 1e-9).any():
                better.add((name, peer.partition(",")[0]))
    return better


def test_few_networks_have_a_better_score():
    assert networks_where_other_scores_are_better(300) == {("asia", "BIC"), ("sachs", "BDeu(10)"), ("child", "K2")}
    assert networks_where_other_scores_are_better(1000) == {("asia", "BIC")}


def test_odds_of_edges_a_little_higher_are_no_better():
    """1 / (p - 1): as good where there are edges, within a hundredth; more false ones among few columns."""
    differences = study.losses(KNOWN, study.DEFAULT) - study.losses(KNOWN, "bdla, 1/(p-1)")
    assert (np.abs(differences.mean(axis=0)) < [2e-4, 2e-3]).all()
    false = [
        np.mean([line[prior]["false_over_half"] for line in study.lines_of("independent", 4)])
        for prior in (study.DEFAULT, "bdla, 1/(p-1)")
    ]
    assert 2 * false[0] < false[1]


def test_probabilities_of_networks_drawn_from_the_prior_are_calibrated():
    (intercept, slope), errors = study.calibration(study.lines_of("drawn"))
    assert abs(intercept) < 2 * errors[0]
    assert abs(slope - 1) < 2 * errors[1]


def test_directions_that_are_not_there_are_seldom_claimed():
    claimed = [line[study.DEFAULT]["direction"] > 0.95 for line in study.lines_of("pairs")]
    assert np.mean(claimed) <= 0.02


def test_gaps_between_graphs_that_say_the_same_are_those_of_the_guide():
    gaps = {tables: [line["gaps"][tables] for line in study.lines_of("directed")] for tables in ("bdla", "K2")}
    text = " ".join(PAGE.read_text("utf-8").split())
    half, most = np.median(gaps["bdla"]), max(gaps["bdla"])
    assert (
        f"In {len(gaps['bdla'])} pairs of columns drawn with a direction the scores of the two graphs differed" in text
    )
    assert f"by {half:.1f} nats in half of them, and by {most:.1f} at most" in text
    assert f"under K2 by {np.median(gaps['K2']):.1f} and {max(gaps['K2']):.1f}" in text
    assert max(line["gaps"]["BDeu(1)"] for line in study.lines_of("directed")) < 1e-6
    claimed = [line[study.DEFAULT]["direction"] > 0.95 for line in study.lines_of("pairs")]
    assert f"{100 * np.mean(claimed):.1f} % had a direction with P > 0.95" in text


def test_the_tables_of_the_guide():
    page = [line.split() for line in PAGE.read_text("utf-8").splitlines()]
    for row in (*study.table_of_networks(), *study.table_of_independent_columns()):
        assert " ".join(row).split() in page


BEDS = {
    "known": (study.known, ["asia", 1000, 3]),
    "drawn": (study.drawn, [200, 5]),
    "pairs": (study.pair, [300, 7]),
    "directed": (study.directed, [100, 4]),
    "independent": (study.independent, [4, "zipf", 2, 1000, 1]),
}


@pytest.mark.parametrize("bed", [pytest.param(bed, marks=[pytest.mark.slow] * (bed == "drawn")) for bed in BEDS])
def test_a_part_of_the_record_again(bed):
    again, of = BEDS[bed]
    line = next(line for line in study.lines_of(bed) if line["of"] == of)
    found = again(*of)
    for prior in ["gaps"] if bed == "directed" else study.PRIORS:
        assert found[prior] == approx(line[prior], abs=2e-4)
