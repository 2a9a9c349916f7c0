"""States of a latent that share their counts anew: what stays, what changes, and what a fit gains by it."""

import numpy as np
import pytest

from skvbem import DAG, VBDiscreteDAG
from skvbem.datasets import load_zoo
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.models import DiscreteDAG
from skvbem.optima.network import StatesSharedOut

approx = pytest.approx
#: Two linked latents of three and two states above three columns, one of which both know.
DAG_OF_TWO = DAG.from_edges(
    [("h", "g"), ("h", "x"), ("h", "y"), ("g", "y"), ("g", "z")], nodes=["h", "g", "x", "y", "z"]
)
CARDINALITIES = {"h": 3, "g": 2, "x": 2, "y": 3, "z": 2}


@pytest.fixture
def of_two(rng):
    prior = {node: np.ones([CARDINALITIES[n] for n in DAG_OF_TWO.family(node)]) for node in DAG_OF_TWO.nodes}
    model = DiscreteDAG(DAG_OF_TWO, CARDINALITIES, prior)
    return model, rng.gamma(1.0, 10.0, model.layout.n_cells)


def moved(model, statistics, rng, latents=(0, 1), n=12, smoothing=0.0):
    """Kinds of proposals, with the latent whose table changed and all tables of each."""
    kinds, columns = StatesSharedOut(model, latents, statistics, rng, smoothing).proposals(n)
    assert columns.shape == (model.layout.n_cells, n)
    tables = [model.tables(np.ascontiguousarray(column)) for column in columns.T]
    before = model.tables(statistics)
    names = ["h" if not np.array_equal(after["x"], before["x"]) else "g" for after in tables]
    return list(zip(kinds, names, tables))


def test_counts_of_everything_else_stay(of_two, rng):
    model, statistics = of_two
    before = model.tables(statistics)
    found = moved(model, statistics, rng)
    assert {(kind, latent) for kind, latent, _ in found} == {
        ("split, join", "h"),
        ("divide anew", "h"),
        ("draw again", "g"),
    }
    for _, latent, after in found:
        for node in DAG_OF_TWO.nodes:
            family = DAG_OF_TWO.family(node)
            if latent not in family:
                assert np.array_equal(after[node], before[node])
                continue
            assert not np.array_equal(after[node], before[node])
            axis = family.index(latent)
            assert after[node].sum(axis=axis) == approx(before[node].sum(axis=axis))
            assert (after[node] >= 0).all()


def test_one_state_is_divided_in_the_room_of_two_that_are_joined(of_two, rng):
    model, statistics = of_two
    before = model.tables(statistics)["h"]
    for kind, latent, tables in moved(model, statistics, rng):
        after = tables["h"]
        if kind == "split, join":  # one state has the counts of two, the other two those of the third
            joined = [
                (a, b, c)
                for a in range(3)
                for b in range(3)
                for c in range(b)
                if after[a] == approx(before[b] + before[c])
            ]
            assert len(joined) == 1
        elif latent == "h":
            assert sum(after[k] == before[k] for k in range(3)) == 1


def test_tied_tables_keep_their_counts(rng):
    """A table of steps has a state twice, before and after: its cells are shared out one way after the other."""
    dag = DAG.from_edges([("h0", "h1"), ("h1", "h2"), ("h0", "y0"), ("h1", "y1"), ("h2", "y2")])
    ties = {"h2": ("h0", "h1"), "y1": ("h0", "y0"), "y2": ("h0", "y0")}
    states = {node: 3 if node.startswith("h") else 2 for node in dag.nodes}
    prior = {node: np.ones([states[n] for n in dag.family(node)]) for node in dag.nodes if node not in ties}
    model = DiscreteDAG(dag, states, prior, ties)
    statistics = rng.gamma(1.0, 10.0, model.layout.n_cells)
    latents = [model.position[node] for node in ("h0", "h1", "h2")]
    _, columns = StatesSharedOut(model, latents, statistics, rng).proposals(8)
    before = model.tables(statistics)
    for column in columns.T:
        after = model.tables(np.ascontiguousarray(column))
        assert not np.array_equal(after["h1"], before["h1"])
        for node in ("h0", "h1", "y0"):
            assert after[node].sum() == approx(before[node].sum())


def test_the_only_latent_of_two_states_is_not_moved(of_two, rng):
    model, statistics = of_two
    assert StatesSharedOut(model, [1], statistics, rng).proposals(5)[0] == []
    assert StatesSharedOut(model, [], statistics, rng).proposals(5)[1].shape == (model.layout.n_cells, 0)
    assert set(StatesSharedOut(model, [0], statistics, rng).proposals(5)[0]) == {"split, join", "divide anew"}


def test_what_was_ruled_out_may_occur_in_a_proposal_by_maximum_likelihood(of_two, rng):
    model, statistics = of_two
    model.tables(statistics)["x"][:, 0] = 0.0
    states = [tables["x"] for _, latent, tables in moved(model, statistics, rng, latents=[0], smoothing=0.1)]
    assert all((x[:, 0] > 0).sum() == 2 and x.sum() == approx(model.tables(statistics)["x"].sum()) for x in states)


def test_moves_leave_an_optimum_that_all_starts_ended_in():
    X = load_zoo(as_frame=True).data
    options = {"n_init": 2, "random_state": 4}
    every, default = (VBDiscreteDAG(latents=4, init=init, **options).fit(X) for init in ("random", "auto"))
    assert default.lower_bound_ > every.lower_bound_ + 1.0
    assert default.restarts_.moves[-1].kind in ("split, join", "divide anew")
    again = VBDiscreteDAG(latents=4, init=dict(default.tables_), tol=1e-8).fit(X)
    assert default.lower_bound_ == approx(again.lower_bound_, abs=1e-3)


def test_what_a_row_leaves_hidden_at_times_is_no_latent():
    """Moves change what no row observes: a missing cell does not make a column a latent."""
    X = [[0, 1, None], [1, 1, 0], [0, 0, 1], [1, None, 0]] * 5
    model = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    reading = read(model, X)
    assert kind_of(model).compiled(model, model._fitted_.model, reading, 1).latents == (0,)
