"""`VBDiscreteDAG(inference=...)`: published facts, laws over all kinds of inference, predictions, errors."""

import csv
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from reference import clusters as literal
from reference import discrete_network as reference
from reference.random_networks import random_data, random_network, random_tables

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.data import Rows
from skvbem.errors import EvidenceWarning, SearchWarning, TooLargeError
from skvbem.evidence import SCORES
from skvbem.fitting.evaluation import evaluation_of
from skvbem.models.network import queries
from skvbem.models.network.clusters import Partition
from skvbem.models.network.division import merge_gains
from skvbem.spaces import DAGSpace
from skvbem.vbem.driver import run
from skvbem.vbem.posteriors import VB

approx = pytest.approx
TABLES = Path(__file__).parents[2] / "data" / "clusters"
CHAINS = "[h1][h2|h1][h3|h2][g1][g2|g1][g3|g2][y1|h1:g1][y2|h2:g2][y3|h3:g3]"
CHAIN_LATENTS = ["h1", "h2", "h3", "g1", "g2", "g3"]
KINDS = {
    "chains": [["h1", "h2", "h3"], ["g1", "g2", "g3"]],
    "slices": [["h1", "g1"], ["h2", "g2"], ["h3", "g3"]],
    "mean_field": "mean_field",
}
#: Scores that any q(x) bounds the evidence by, with what they are asked with.
OF_ANY_Q = {"lower_bound": {}, "collapsed": {}, "collapsed_ascent": {}, "cheeseman_stutz": {"form": "vb"}}


def table(name):
    """Patterns and their counts."""
    with open(TABLES / f"{name}.csv", newline="") as file:
        _, *rows = csv.reader(file)
    values = np.array(rows, dtype=int)
    return values[:, :-1], values[:, -1]


def fit_chains(name, inference, **params):
    X, weight = table(name)
    structure = CHAINS.replace("y1", "x0").replace("y2", "x1").replace("y3", "x2")
    model = VBDiscreteDAG(structure, latents=CHAIN_LATENTS, inference=inference, **{"random_state": 0} | params)
    return model.fit(X, sample_weight=weight)


@pytest.mark.parametrize(
    ("kind", "bound", "gap"),
    [("chains", -1784.393, None), ("slices", -1796.438, None), ("mean_field", -1796.440, 0.481)],
)
def test_two_chains_behind_one_symbol(kind, bound, gap):
    """S-5: what cutting edges between hidden nodes costs, and how little of it the row gap tells."""
    model = fit_chains("factorial_chain_1_9", KINDS[kind])
    assert model.lower_bound_ == approx(bound, abs=2e-3)
    assert gap is None or model.row_gap_ == approx(gap, abs=2e-3)
    assert np.all(np.diff(model.lower_bounds_) > -1e-6)


EXACT = {"factorial_chain_0_9": -1963.976, "factorial_chain_1_9": -1784.074, "factorial_chain_0_6": -1986.633}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "bound", "gap"),
    [
        ("factorial_chain_0_9", "chains", -1964.287, 0.232),
        ("factorial_chain_0_9", "slices", -1975.652, 3.292),  # -1984.937 on record
        ("factorial_chain_0_9", "mean_field", -1975.922, 3.472),  # -1994.303 on record
        ("factorial_chain_1_9", "slices", -1792.653, 1.829),  # -1796.438 on record
        ("factorial_chain_1_9", "mean_field", -1792.851, 1.962),  # -1796.440 on record
        ("factorial_chain_0_6", "chains", -1986.633, None),
        ("factorial_chain_0_6", "slices", -1987.210, None),
        ("factorial_chain_0_6", "mean_field", -1987.210, 0.447),
    ],
)
def test_more_chains(name, kind, bound, gap):
    """S-5 and S-6: best optima of sixty starts, some of them better than those on record; none is above exact VB."""
    exact = fit_chains(name, "exact", n_init=20)
    assert exact.lower_bound_ == approx(EXACT[name], abs=2e-3)
    model = fit_chains(name, KINDS[kind], n_init=60)
    assert bound - 2e-3 <= model.lower_bound_ <= exact.lower_bound_ + 1e-6
    if gap is not None and model.lower_bound_ == approx(bound, abs=2e-3):
        assert model.row_gap_ == approx(gap, abs=5e-3)


TIED = {
    "exact": (-781.709, None),  # -782.747 on record, of fewer starts
    "chains": (-783.782, 0.143),
    "slices": (-798.728, None),
    "mean_field": (-798.889, 3.583),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIED)
def test_a_tied_factorial_chain(kind):
    """S-7: tables tied over time, 150 sequences of four symbols."""
    X, weight = table("tied_factorial_hmm")
    structure = "".join(
        [f"[{c}0]" + "".join(f"[{c}{t}|{c}{t - 1}]" for t in (1, 2, 3)) for c in "hg"]
        + [f"[x{t}|h{t}:g{t}]" for t in range(4)]
    )
    clusters = {
        "chains": [[f"{c}{t}" for t in range(4)] for c in "hg"],
        "slices": [[f"h{t}", f"g{t}"] for t in range(4)],
    }
    bound, gap = TIED[kind]
    model = VBDiscreteDAG(
        structure,
        latents=[f"{c}{t}" for c in "hg" for t in range(4)],
        ties=[["h1", "h2", "h3"], ["g1", "g2", "g3"], ["x0", "x1", "x2", "x3"]],
        inference=clusters.get(kind, kind),
        n_init=30,
        random_state=0,
    ).fit(X, sample_weight=weight)
    assert bound - 5e-3 <= model.lower_bound_ <= bound + 0.5
    if gap is not None and model.lower_bound_ == approx(bound, abs=5e-3):
        assert model.row_gap_ == approx(gap, abs=0.02)


RINGS = {"ring_0": (-2756.381, -2756.348), "ring_1": (-2643.330, -2640.057), "ring_3": (-2734.969, -2735.005)}


@pytest.mark.slow
@pytest.mark.parametrize("name", RINGS)
def test_rings(name):
    """S-12: of four binary causes in a ring, which two are kept together matters by nats."""
    X, weight = table(name)
    structure = "[h0][h1][h2][h3][x0|h0:h1][x1|h1:h2][x2|h2:h3][x3|h3:h0]"
    for pairs, bound in zip(([["h0", "h1"], ["h2", "h3"]], [["h1", "h2"], ["h3", "h0"]]), RINGS[name]):
        model = VBDiscreteDAG(
            structure, latents=["h0", "h1", "h2", "h3"], inference=pairs, n_init=20, random_state=0
        ).fit(X, sample_weight=weight)
        assert bound - 2e-3 <= model.lower_bound_ <= bound + 0.1


GAINS = {
    "ring_0": {"03": 0.053, "23": 0.025, "01": 0.0, "12": 0.0},
    "ring_3": {"01": 0.071, "12": 0.039, "03": 0.031, "23": 0.029},
}


@pytest.mark.parametrize("name", GAINS)
def test_gains_pick_the_better_pairs_of_a_ring(name):
    """S-12: what joining two causes gains at mean field; pairs that share no item gain exactly nothing."""
    X, weight = table(name)
    structure = "[h0][h1][h2][h3][x0|h0:h1][x1|h1:h2][x2|h2:h3][x3|h3:h0]"
    fit = VBDiscreteDAG(structure, latents=["h0", "h1", "h2", "h3"], inference="mean_field", n_init=20, random_state=0)
    fitted = fit.fit(X, sample_weight=weight)._fitted_
    natural, _ = VB.of(fitted.model.prior, fitted.statistics[:, None])
    codes = np.stack([np.searchsorted(levels, column) for levels, column in zip(fit.categories_, X.T)], axis=1)
    rows = Rows(("x0", "x1", "x2", "x3"), codes.astype(np.int8), weight.astype(float))
    found = merge_gains(fitted.model.compile(rows), natural[:, 0])
    names = {f"{a}{b}": gain for (a, b), gain in found.items()}
    assert set(names) == {"01", "12", "23", "03"}
    assert {pair: names[pair] for pair in GAINS[name]} == approx(GAINS[name], abs=2e-3)
    pairings = {"01|23": RINGS[name][0], "12|03": RINGS[name][1]}
    assert max(names, key=names.get) in max(pairings, key=pairings.get).split("|")


def two_causes(structure, name="two_causes_1920", **params):
    X, weight = table(name)
    latents = [node for node in "ab" if f"[{node}]" in structure]
    return VBDiscreteDAG(structure, latents=latents, random_state=0, **params).fit(X, sample_weight=weight)


def test_mean_field_prefers_one_cause():
    """S-13: the truth of two causes leads one cause by 10.94 nats exactly, and by 3.16 under mean field."""
    truth, one = "[a][b][x0|a][x1|a:b][x2|a:b][x3|b]", "[a][x0|a][x1|a][x2|a][x3|a]"
    both = two_causes(truth, inference="mean_field", n_init=20)
    assert both.lower_bound_ == approx(-10694.484, abs=5e-3)
    assert both.row_gap_ == approx(1.657, abs=2e-2)
    single = two_causes(one, inference="mean_field")
    assert single.lower_bound_ == approx(-10697.639, abs=5e-3)
    assert single.row_gap_ == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "structure", "exact", "mean_field", "gap"),
    [
        ("two_causes_1920", "[a][b][x0|a][x1|a:b][x2|a:b][x3|b]", -10686.697, -10694.484, 1.657),
        ("two_causes_1920", "[a][b][x0|a][x1|a][x2|a:b][x3|b]", -10696.502, -10702.120, 0.035),
        ("two_causes_1920", "[a][b][x0|a:b][x1|a:b][x2|a:b][x3|a:b]", -10703.557, -10705.121, 0.028),
        ("two_causes_1920", "[a][x0|a][x1|a][x2|a][x3|a]", -10697.639, -10697.639, 0.0),
        ("two_causes_480", "[a][b][x0|a][x1|a][x2|a:b][x3|a:b]", -2913.623, -2913.623, 0.0),  # -2916.728, 0.010
    ],
)
def test_losses_of_two_causes(name, structure, exact, mean_field, gap):
    """S-13: best optima of several starts; of the last one forty starts find a better one than was on record."""
    model = two_causes(structure, name, inference="mean_field", n_init=40)
    assert mean_field - 5e-3 <= model.lower_bound_ <= exact + 5e-3
    if model.lower_bound_ == approx(mean_field, abs=5e-3):
        assert model.row_gap_ == approx(gap, abs=2e-2)
    assert two_causes(structure, name, n_init=20).lower_bound_ == approx(exact, abs=5e-3)


SMALL = {
    0: ("[h0][h1][x0|h0:h1][x1][x2|h0:h1:x1]", (0.5, 2.0, 1.0, 1.0, 1.0), {"h0": 2, "h1": 2}, (2, 2, 2),
        [[1, 0, 1], [1, 0, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]], (-12.71747659, -15.68646140, -15.69327030)),
    1: ("[h0][h1|h0][x0|h0][x1|h0:h1:x0][x2|h1]", (2.0, 0.5, 1.0, 0.5, 0.5), {"h0": 3, "h1": 3}, (2, 2, 3),
        [[1, 0, 0], [0, 0, 1], [0, 1, 1]], (-7.85025397, -13.00547579, -13.11057702)),
    2: ("[h0][h1][h2|h1][x0|h0:h1:h2][x1|h0:h1:h2]", (2.0, 1.0, 1.0, 0.5, 0.5), {"h0": 2, "h1": 2, "h2": 2}, (3, 2),
        [[0, 1], [2, 1], [1, 1], [0, 1]], (-6.98686981, -11.67960823, -11.71774310)),
}  # fmt: skip


@pytest.mark.parametrize("seed", SMALL)
def test_three_small_models(seed):
    """S-1, S-2: evidence > exact bound >= mean field < collapsed < evidence; best optima, better ones are possible."""
    structure, prior, latents, sizes, rows, (evidence, exact, mean_field) = SMALL[seed]
    columns = [f"x{k}" for k in range(len(sizes))]
    params = {
        "latents": latents,
        "prior": dict(zip([*latents, *columns], prior)),
        "categories": {name: range(size) for name, size in zip(columns, sizes)},
        "random_state": 0,
        "n_init": 40,
    }
    X = np.array(rows)
    model = VBDiscreteDAG(structure, inference="mean_field", **params).fit(X)
    assert model.log_evidence(X, kind="exact").value == approx(evidence, abs=1e-7)
    assert mean_field - 1e-4 <= model.lower_bound_ < evidence
    tight = VBDiscreteDAG(structure, **params).fit(X)
    assert tight.lower_bound_ >= max(exact - 1e-4, model.lower_bound_)
    if len(latents) > 2:
        pairs = [VBDiscreteDAG(structure, inference=[[*pair]], **params).fit(X) for pair in combinations(latents, 2)]
        best = max(each.lower_bound_ for each in pairs)
        assert max(model.lower_bound_, -11.71773203 - 1e-5) <= best + 1e-5 <= tight.lower_bound_ + 2e-5
    assert model.lower_bound_ < model.log_evidence(X, kind="collapsed").value < evidence


def small(seed, **params):
    """One of the three small models of S-2, fitted by mean field, with its rows and evidence."""
    structure, prior, latents, sizes, rows, (evidence, _, _) = SMALL[seed]
    columns = [f"x{k}" for k in range(len(sizes))]
    model = VBDiscreteDAG(
        structure,
        latents=latents,
        prior=dict(zip([*latents, *columns], prior)),
        categories={name: range(size) for name, size in zip(columns, sizes)},
        **{"inference": "mean_field", "random_state": 0, "n_init": 10} | params,
    )
    return model.fit(np.array(rows)), np.array(rows), evidence


def check_ais(found, evidence):
    """Within three standard errors, with weights that may be trusted."""
    assert abs(found.value - evidence) < 3 * found.standard_error
    assert found.details["effective_sample_size"] > 50
    assert found.doubts == ()


@pytest.mark.parametrize("seed", SMALL)
def test_chains_by_clusters_find_the_evidence(seed):
    """S-14 in short: hidden states are part of what chains walk over."""
    model, X, evidence = small(seed)
    found = model.log_evidence(X, kind="ais", n_chains=300, n_steps=96)
    check_ais(found, evidence)
    assert found.standard_error < 0.15
    again = small(seed, n_jobs=2)[0].log_evidence(X, kind="ais", n_chains=300, n_steps=96)
    assert again.value == found.value


@pytest.mark.slow
@pytest.mark.parametrize("seed", SMALL)
def test_longer_chains_by_clusters_find_the_evidence(seed):
    """S-14: 600 steps of 3000 chains have a standard error of about 0.01."""
    model, X, evidence = small(seed)
    found = model.log_evidence(X, kind="ais", n_chains=3000, n_steps=600)
    check_ais(found, evidence)
    assert found.standard_error < 0.02


def test_chains_by_clusters_sum_out_what_is_exact():
    """Rows with gaps: some are divided, some have one hidden node alone, some nothing; weights are repeats."""
    rng = np.random.default_rng(4)
    X = rng.integers(2, size=(5, 3)).astype(float)
    X[0, :2], X[1, 2] = np.nan, np.nan
    categories = {f"x{k}": [0, 1] for k in range(3)}
    params = {
        "latents": ["a", "b"],
        "categories": categories,
        "random_state": 0,
        "n_init": 4,
        "inference": "mean_field",
    }
    model = VBDiscreteDAG("[a][b][x0|a][x1|a:b][x2|x1]", **params).fit(X, sample_weight=[1, 2, 1, 1, 1])
    evidence = model.log_evidence(X, sample_weight=[1, 2, 1, 1, 1], kind="exact").value
    options = {"kind": "ais", "n_chains": 300, "n_steps": 96}
    check_ais(model.log_evidence(X, sample_weight=[1, 2, 1, 1, 1], **options), evidence)
    with pytest.raises(ValueError, match=r"The option 'fractions' .* needs an exact q\(x\)"):
        model.log_evidence(X, sample_weight=[1, 2, 1, 1, 1], kind="ais", fractions=(0.5,))


def bound_from(network, X, params):
    """Exact VB started from tables; they may be a saddle point, which no fit is let start from."""
    try:
        return VBDiscreteDAG(init=network, **params).fit(X).lower_bound_
    except ValueError as error:
        assert "that is a saddle point" in str(error)  # noqa: PT017
        return -np.inf


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Latent .* (some must stay empty|has no children)")
def test_fifty_small_models(rng):
    """S-1, and S-3 in its order of magnitude, on models of our own: on few rows mean field loses next to nothing."""
    n, losses = 0, []
    while n < 50:
        network, columns = random_network(rng, int(rng.integers(4, 7)), n_hidden=int(rng.integers(2, 4)), max_parents=3)
        data = random_data(rng, network, columns, int(rng.integers(2, 5)))
        fast = FastNetwork(network, network.full(float(rng.choice([0.5, 1.0, 2.0]))))
        if fast.model.with_partition(Partition()).compile(rows_of(data)).is_exact:
            continue
        n += 1
        latents = {node: network.cards[node] for node in network.cards if node not in columns}
        params = {
            "structure": {node: network.parents[node] for node in network.cards},
            "latents": latents,
            "categories": {node: range(network.cards[node]) for node in columns},
            "random_state": 0,
        }
        X = pandas_of(data)
        mean_field = VBDiscreteDAG(inference="mean_field", **params).fit(X)
        evidence = mean_field.log_evidence(X, kind="exact").value
        collapsed = mean_field.log_evidence(X, kind="collapsed").value
        exact = VBDiscreteDAG(**params).fit(X).lower_bound_
        exact = max(exact, bound_from(mean_field.network_, X, params))
        losses.append((evidence - exact, exact - mean_field.lower_bound_, collapsed - exact))
        assert mean_field.lower_bound_ <= exact + 1e-6
        assert exact <= evidence + 1e-9
        assert mean_field.lower_bound_ - 1e-9 <= collapsed <= evidence + 1e-9
    of_evidence, of_mean_field, of_collapsed = np.median(losses, axis=0)
    assert 1.0 < of_evidence < 8.0
    assert of_mean_field < 0.05
    assert 0.5 < of_collapsed < 4.0
    assert np.max(losses, axis=0)[1] < 1.0


def pandas_of(data):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(np.asarray(data.cells), columns=list(data.columns))


def test_structured_is_exact_where_that_fits():
    exact, structured = (fit_chains("factorial_chain_1_9", kind, n_init=3) for kind in ("exact", "structured"))
    assert structured.lower_bound_ == exact.lower_bound_
    assert all(np.array_equal(structured.tables_[node], exact.tables_[node]) for node in CHAIN_LATENTS)
    assert structured.row_gap_ == 0.0
    assert structured.inference_ == exact.inference_


def causes_and_findings(n_causes=8, n_findings=12, n_parents=3, n_rows=40):
    """A structure of two layers, and rows of findings with gaps."""
    rng = np.random.default_rng(3)
    names = [f"c{k}" for k in range(n_causes)]
    edges = [
        (cause, f"x{k}") for k in range(n_findings) for cause in rng.choice(names, n_parents, replace=False).tolist()
    ]
    X = rng.integers(2, size=(n_rows, n_findings)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    return edges, {"latents": names, "random_state": 0, "n_init": 2}, X


def test_structured_divides_what_does_not_fit():
    edges, params, X = causes_and_findings()
    with pytest.raises(TooLargeError, match=r"or set inference='structured', a looser bound"):
        VBDiscreteDAG(edges, max_table_cells=16, **params).fit(X)
    model = VBDiscreteDAG(edges, inference="structured", max_table_cells=16, **params).fit(X)
    assert 1 < len(set(model.inference_.values())) < 8
    assert all(latent in cluster for latent, cluster in model.inference_.items())
    assert 2 ** (model.treewidth_ + 1) <= 16
    assert model.row_gap_ > 0
    mean_field = VBDiscreteDAG(edges, inference="mean_field", **params).fit(X)
    assert mean_field.lower_bound_ < model.log_evidence(X, kind="collapsed").value
    assert VBDiscreteDAG(edges, inference="structured", **params).fit(X).row_gap_ == 0.0


def test_scores_of_any_q_are_ordered_and_others_name_them():
    X, weight = table("factorial_chain_1_9")
    model = fit_chains("factorial_chain_1_9", "mean_field", n_init=2)
    values = {kind: model.log_evidence(X, sample_weight=weight, kind=kind, **o).value for kind, o in OF_ANY_Q.items()}
    assert values["lower_bound"] == model.lower_bound_
    assert values["cheeseman_stutz"] <= values["collapsed"]
    assert values["lower_bound"] < values["collapsed"] <= values["collapsed_ascent"]
    for kind in SCORES:
        if kind not in {*OF_ANY_Q, "exact", "ais"}:
            with pytest.raises(ValueError, match="Take 'collapsed', the tightest bound there is"):
                model.log_evidence(X, sample_weight=weight, kind=kind)
    with pytest.raises(ValueError, match="Take 'collapsed', the tightest"):
        model.log_evidence(X, sample_weight=weight, kind="cheeseman_stutz")
    with pytest.warns(EvidenceWarning, match="weights are worth"):
        model.log_evidence(X, sample_weight=weight, kind="ais", n_chains=16, n_steps=4)


@pytest.mark.parametrize(("method", "name"), [("map", "log_posterior_bound_"), ("ml", "log_likelihood_bound_")])
def test_points_publish_bounds(method, name):
    model = fit_chains("factorial_chain_1_9", "mean_field", n_init=1, max_iter=2000, tol=1e-3, method=method)
    exact = fit_chains("factorial_chain_1_9", "exact", n_init=4, max_iter=2000, tol=1e-3, method=method)
    assert getattr(model, name) <= getattr(exact, name.replace("bound_", "")) + 1e-6
    assert not hasattr(model, name.replace("bound_", ""))
    assert name.replace("_", " ").strip() in str(model.summary())


def test_weights_are_repeats_and_threads_change_nothing():
    X, weight = table("two_causes_480")
    structure = "[a][b][x0|a][x1|a:b][x2|a:b][x3|b]"
    params = {"latents": ["a", "b"], "inference": "mean_field", "random_state": 0, "n_init": 2}
    once = VBDiscreteDAG(structure, **params).fit(X, sample_weight=weight)
    repeated = np.repeat(X, weight, axis=0)
    again = VBDiscreteDAG(structure, n_jobs=2, **params).fit(repeated[::-1])
    assert again.lower_bound_ == approx(once.lower_bound_, abs=1e-6)
    total = sum(float(np.sum(once.counts_[node])) for node in ("a", "x1"))
    assert total == approx(2 * weight.sum())


def literal_q(network, log_tables, row, clusters, n_sweeps=200):
    q = literal.uniform(network, literal.parts_of(network, row, clusters))
    for _ in range(n_sweeps):
        q, _ = literal.sweep(network, log_tables, row, q)
    return q, literal.free_energy(network, log_tables, row, q)


def test_questions_are_answered_by_clusters(rng, monkeypatch):
    def empty(shape, dtype=float, **options):  # values that nobody has put there show
        return np.full(shape, np.nan if np.issubdtype(dtype, np.floating) else 0, dtype=dtype, **options)

    monkeypatch.setattr(np, "empty", empty)
    n = 0
    while n < 12:
        network, columns = random_network(rng, 6, n_hidden=2, max_parents=3)
        data = random_data(rng, network, columns, 5, missing_rate=0.2)
        fast = FastNetwork(network, network.full(1.0))
        tables = random_tables(rng, network)
        model, point = fast.model.with_partition(Partition()), fast.flat(tables)
        if model.compile(rows_of(data), wanted=["h0", "h1"]).is_exact:
            continue
        n += 1
        found = queries.log_likelihood(model, point, rows_of(data))
        exact = queries.log_likelihood(fast.model, point, rows_of(data))
        assert np.all(found <= exact + 1e-9)
        marginals = queries.marginals(model, point, rows_of(data), ["h0", "h1"])
        modes = queries.joint_mode(model, point, rows_of(data), ["h0", "h1"])
        joint = queries.joint(model, point, rows_of(data), ["h1", "h0"])
        assert joint.sum(axis=(1, 2)) == approx(np.ones(5))
        log_tables = reference.each(np.log, tables)
        for i, (row, _) in enumerate(data.rows()):
            q, energy = literal_q(network, log_tables, row, [])
            assert found[i] == approx(energy, abs=1e-6)
            if all(network.ancestral(row) >= {h} for h in ("h0", "h1")):
                for h in ("h0", "h1"):
                    assert marginals[h][i] == approx([q[(h,)][(s,)] for s in range(network.cards[h])], abs=1e-4)
        assert all(np.all((codes >= 0) & (codes < network.cards[h])) for h, codes in modes.items())


def test_modes_of_clusters_cannot_be_bettered_by_one(rng):
    """Each cluster of a decoded row is the most probable given the others; with one cluster it is the joint mode."""
    for _ in range(10):
        network, columns = random_network(rng, 6, n_hidden=3, max_parents=3)
        data = random_data(rng, network, columns, 6)
        fast, tables = FastNetwork(network, network.full(1.0)), random_tables(rng, network)
        hidden = [node for node in network.cards if node not in columns]
        modes = queries.joint_mode(fast.model.with_partition(Partition()), fast.flat(tables), rows_of(data), hidden)
        log_tables = reference.each(np.log, tables)
        for i, (row, _) in enumerate(data.rows()):
            states = {**row, **{h: int(modes[h][i]) for h in hidden}}
            here = reference.log_joint(network, log_tables, {node: states[node] for node in network.cards})
            for h in hidden:
                for s in range(network.cards[h]):
                    other = {node: {**states, h: s}[node] for node in network.cards}
                    assert reference.log_joint(network, log_tables, other) <= here + 1e-12


def test_estimator_answers_questions():
    X, _ = table("two_causes_480")
    structure = "[a][b][x0|a][x1|a:b][x2|a:b][x3|b]"
    gappy = X[:60].astype(float)
    gappy[::7, 1] = np.nan
    model = VBDiscreteDAG(structure, latents=["a", "b"], inference="mean_field", random_state=0, n_init=2).fit(gappy)
    for of_cause in model.predict_proba(gappy):
        assert of_cause.sum(axis=1) == approx(np.ones(60))
    completed = model.impute(gappy)
    assert not np.isnan(completed.astype(float)).any()
    assert model.decode(gappy).shape == (60, 2)
    both = model.query(["a", "b"], {"x1": gappy[1, 1]})
    one = model.query("a", {"x1": gappy[1, 1]})
    assert np.asarray(both).sum() == approx(1.0)
    assert np.asarray(both).sum(axis=1) == approx(np.asarray(one))
    again = VBDiscreteDAG(
        structure, latents=["a", "b"], inference="mean_field", random_state=0, init=model.network_
    ).fit(gappy)
    assert again.lower_bound_ == approx(model.lower_bound_, abs=1e-3)
    warm = model.set_params(warm_start=True)
    before = model.lower_bound_
    assert warm.fit(gappy).lower_bound_ == approx(before, abs=1e-3)


def test_optima_that_a_fit_keeps_are_run_on_without_their_clusters():
    """Clusters of the best alone are kept; those of other optima, and of rows drawn again, begin uniform."""
    X = np.random.default_rng(0).integers(0, 3, (40, 3))
    structure = "[h][g][x0|h:g][x1|h:g][x2|h]"
    model = VBDiscreteDAG(structure, latents=["h", "g"], inference="mean_field", random_state=0).fit(X)
    evaluation = evaluation_of(model, X)
    optima = evaluation.ended_optima()
    assert optima.shape == (len(model.fitted.statistics), 3)
    ascent = model._run_.plan.method.ascent(evaluation.model, evaluation.data, VB, 1)
    ends = run(ascent, ascent.with_uniform_clusters(optima), tol=1e-6, max_iter=2000).objective
    assert ends[0] == approx(model.lower_bound_, abs=1e-2)
    assert np.all(np.diff(ends) < 1e-6)
    assert len(model.bootstrap(X, 2, random_state=0)) == 2


def test_clusters_of_other_rows_are_refused():
    """Before a kernel reads beyond their end."""
    model = fit_chains("factorial_chain_1_9", "mean_field", n_init=1)
    program = evaluation_of(model, *table("factorial_chain_1_9")).data
    natural = np.zeros((model.fitted.model.n_cells, 1))
    for n_state in (0, program.n_state - 1):
        with pytest.raises(ValueError, match="reshape"):
            program.swept(natural, np.full((n_state, 1), 0.5))


def test_learned_priors_go_on_from_the_clusters_kept():
    model = fit_chains("factorial_chain_1_9", "mean_field", n_init=2)
    learned = fit_chains("factorial_chain_1_9", "mean_field", n_init=2, learn_prior=True)
    assert learned.lower_bound_ > model.lower_bound_


@pytest.mark.parametrize(
    ("inference", "message"),
    [
        ([["h1", "h2"], ["h2"]], "must be disjoint clusters; 'h2' is in two"),
        ([["h1", "k"]], "names 'k', which is no latent"),
        (["h1"], "a list of lists of latents"),
        ("loopy", "must be a str among"),
    ],
)
def test_wrong_clusters_are_refused(inference, message):
    with pytest.raises(ValueError, match=message):
        fit_chains("factorial_chain_1_9", inference)


def test_a_search_tells_of_candidates_with_looser_bounds():
    X, weight = table("two_causes_480")
    estimator = VBDiscreteDAG("[a][b][x0|a][x1|a:b][x2|a:b][x3|b]", latents=["a", "b"], random_state=0, n_init=1)
    space = {"inference": ["exact", "mean_field"]}
    with pytest.warns(SearchWarning, match=r"1 of 2 candidates have bounds by a q\(x\) in clusters"):
        search = StructureSearchCV(estimator, space, scoring="lower_bound").fit(X, sample_weight=weight)
    assert search.cv_results_["inference"].tolist() == ["exact", "clusters"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SearchWarning)
        StructureSearchCV(estimator, space, scoring="collapsed").fit(X, sample_weight=weight)


def test_structural_search_says_that_it_needs_exact_inference():
    X, _ = table("two_causes_480")
    estimator = VBDiscreteDAG(latents=["a"], inference="mean_field", random_state=0, n_init=1)
    space = DAGSpace(["x0", "x1", "x2"], latents={"a": 2})
    with pytest.raises(ValueError, match="needs inference='exact'"):
        StructureSearchCV(estimator, space, strategy="structural").fit(X[:, :3])
