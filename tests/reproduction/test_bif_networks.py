"""Networks of the literature, two nodes hidden and a tenth of the cells missing: exact inference, and fits that end."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest

from skvbem import read_bif
from skvbem.data import Rows
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.network import queries
from skvbem.optima.plan import best_of
from skvbem.vbem import posteriors
from skvbem.vbem.driver import RELATIVE_SLACK

approx = pytest.approx
FILES = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"
HIDDEN = {
    "asia": ("either", "bronc"),
    "sachs": ("PKC", "Mek"),
    "child": ("Disease", "LungParench"),
    "alarm": ("CO", "VENTLUNG"),
}


def incomplete_sample(name, n_rows, seed=0):
    """The network, its true parameters, and rows drawn from it of which much is not seen."""
    if not (FILES / f"{name}.bif").exists():
        pytest.skip("third-party data are not part of the source distribution")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # printed tables miss one by their rounding
        network = read_bif(FILES / f"{name}.bif")
    cards = {node: len(states) for node, states in network.states.items()}
    model = DiscreteDAG(network.dag, cards, {node: np.ones_like(table) for node, table in network.tables.items()})
    point = model.flat(network.tables)
    rng = np.random.default_rng(seed)
    drawn = queries.sample(model, point, n_rows, rng)
    columns = tuple(node for node in network.dag.nodes if node not in HIDDEN[name])
    codes = np.stack([drawn[node] for node in columns], axis=1).astype(np.int8)
    codes[rng.random(codes.shape) < 0.1] = -1
    return model, point, Rows(columns, codes)


def check_fit(name, n_rows, n_starts, max_iter):
    model, point, rows = incomplete_sample(name, n_rows)
    program = model.compile(rows)
    ascent = DirichletAscent(model, program, posteriors.VB)
    rng = np.random.default_rng(1)
    starts = ascent.expect(np.log(np.stack([model.prior.sample(rng) for _ in range(n_starts)], axis=1)))
    fit = best_of(ascent, starts, tol=1e-2, max_iter=max_iter)
    slack = RELATIVE_SLACK * (abs(fit.objective) + ascent.magnitude)
    assert np.diff(fit.trace).min() >= -slack
    assert np.isfinite(fit.restart_objectives).all()
    mean = (model.prior + fit.statistics).mean()
    likelihood = queries.log_likelihood(model, mean, rows).sum()
    assert fit.objective < likelihood
    at_truth = queries.log_likelihood(model, point, rows).sum()
    assert likelihood > at_truth - 0.01 * abs(at_truth)
    return program


def test_asia_by_enumeration():
    """Likelihoods and posteriors of rows against all 256 joint states."""
    model, point, rows = incomplete_sample("asia", 200)
    tables = model.tables(point)
    nodes = model.dag.nodes
    states = np.array([*itertools.product(range(2), repeat=8)])
    joint = np.ones(256)
    for node in nodes:
        joint *= tables[node][tuple(states[:, nodes.index(member)] for member in model.dag.family(node))]
    scores = queries.log_likelihood(model, point, rows)
    marginals = queries.marginals(model, point, rows, HIDDEN["asia"])
    for i, codes in enumerate(rows.codes):
        fits = np.ones(256, dtype=bool)
        for column, code in zip(rows.names, codes):
            fits &= (code < 0) | (states[:, nodes.index(column)] == code)
        assert scores[i] == approx(np.log(joint[fits].sum()), abs=1e-11)
        for node in HIDDEN["asia"]:
            p = joint[fits & (states[:, nodes.index(node)] == 1)].sum() / joint[fits].sum()
            assert marginals[node][i, 1] == approx(p, abs=1e-11)


@pytest.mark.parametrize("name", ["asia", "sachs"])
def test_small_networks(name):
    assert check_fit(name, 1000, 3, 200).treewidth <= 4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "widest"), [("asia", 4), ("sachs", 5), ("child", 5), ("alarm", 8)])
def test_ten_thousand_rows(name, widest):
    assert check_fit(name, 10_000, 2, 300).treewidth <= widest
