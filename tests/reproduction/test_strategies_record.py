"""What holds of strategies of searches, in the record of a run, and searches of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import strategies
from reproduction.pages import check_page
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "searching.rst"
LINES = read_record(strategies.RECORD)


@pytest.mark.skipif(not strategies.known_networks.FILES.exists(), reason="no networks beside the tests")
@pytest.mark.parametrize("name", ["greedy", "structural", pytest.param("mc3", marks=pytest.mark.slow)])
def test_a_search_again(name):
    before = next(line for line in LINES if line["problem"] == "asia")
    search = strategies.searched("asia", before["n"], before["seed"], strategies.STRATEGIES[name])
    assert search.best_score_ == pytest.approx(before["best"][name], abs=2e-3)
    assert 1000 * strategies.error_of_edges(search) == pytest.approx(before["edges"][name], abs=0.1)


def test_tables_are_the_first_ones_and_recorded_once():
    """None was left out because of what it came to."""
    for problem, n in {(line["problem"], line["n"]) for line in LINES}:
        seeds = [line["seed"] for line in LINES if (line["problem"], line["n"]) == (problem, n)]
        assert sorted(seeds) == [*range(len(seeds))]


def test_every_strategy_wins_somewhere():
    """Fewest nats behind or smallest errors of edges, or as good as others in less time."""

    def means(what, problem, n):
        mine = [line[what] for line in LINES if (line["problem"], line["n"]) == (problem, n)]
        return {name: np.mean([values[name] for values in mine]) for name in strategies.strategies_for(problem)}

    best = {n: means("edges", "asia", n) for n in (500, 2000)}
    assert min(best[500], key=best[500].get) == "mc3"
    seconds, reached = means("seconds", "bipartite", 500), means("best", "bipartite", 500)
    assert reached["mc3"] >= max(reached.values()) - strategies.TIED
    assert seconds["mc3"] < 0.6 * seconds["greedy, 10 restarts"]
    for network in ("child", "alarm"):  # orders
        reached = means("best", network, 2000)
        assert reached["structural"] >= max(reached.values()) - strategies.TIED
        assert reached["structural"] > reached["structural, no orders"] + 1.0
    seconds, reached = means("seconds", "mixed", 500), means("best", "mixed", 500)
    assert min(seconds, key=seconds.get) == "greedy"
    assert reached["greedy"] >= max(reached.values()) - strategies.TIED


def test_the_page_shows_the_record():
    check_page(PAGE, strategies.reached(LINES))
