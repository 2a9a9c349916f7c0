"""Jobs of people who come from pgmpy, bnlearn and pyAgrum, with bnlearn's figures or sums over all states."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from skvbem import DAG, DAGSpace, StructureSearchCV, VBDiscreteDAG, read_bif, write_bif
from skvbem.datasets import load_berkeley_admissions, load_coleman_panel, load_lizards, load_titanic

pd = pytest.importorskip("pandas")
approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"
ASIA = DATA / "third_party" / "cc-by-sa" / "asia.bif"
ASIA_ROWS = DATA / "third_party" / "gpl" / "asia5000.csv"
LIZARDS = pd.read_csv(DATA / "lizards_bnlearn_scores.csv").to_dict("records")


@pytest.mark.skipif(not ASIA.exists(), reason="the network is in a checkout only, under its own license")
def test_ask_a_network_from_a_file():
    """'Load asia.bif: how probable is lung cancer for a smoker with a bad x-ray?'"""
    asia = read_bif(ASIA)
    answer = asia.query("lung", {"smoke": "yes", "xray": "yes"})["lung":"yes"]
    rows = pd.DataFrame(list(itertools.product(["yes", "no"], repeat=8)), columns=asia.dag.nodes)
    weight = np.exp(asia.log_likelihood(rows)) * (rows["smoke"] == "yes") * (rows["xray"] == "yes")
    assert answer == approx(weight[rows["lung"] == "yes"].sum() / weight.sum())
    assert answer == approx(0.6460, abs=1e-4)


@pytest.mark.parametrize("row", LIZARDS, ids=lambda row: row["model"])
def test_scores_of_a_graph_are_those_of_bnlearn(row):
    """'Score this graph by BDeu, K2 and BIC.'"""
    X = load_lizards(as_frame=True).data
    bdeu = {size: VBDiscreteDAG(row["model"], prior="bdeu", equivalent_sample_size=size).fit(X) for size in (1, 10)}
    k2 = VBDiscreteDAG(row["model"]).fit(X)
    assert bdeu[1].lower_bound_ == approx(row["bde1"])
    assert bdeu[10].lower_bound_ == approx(row["bde10"])
    assert k2.lower_bound_ == approx(row["k2"])
    assert k2.log_evidence(X, kind="bic").value == approx(row["bic"])


def test_tables_with_bdeu_pseudo_counts():
    """'Estimate the tables of a given graph with BDeu(10).'"""
    X = load_titanic(as_frame=True).data
    model = VBDiscreteDAG([("class", "survived")], prior="bdeu", equivalent_sample_size=10).fit(X)
    counts = pd.crosstab(X["class"], X["survived"])
    expected = (counts + 10 / 8).div(counts.sum(axis=1) + 10 / 4, axis=0)
    np.testing.assert_allclose(model.tables_["survived"].values, expected)


@pytest.mark.skipif(not ASIA_ROWS.exists(), reason="the table is in a checkout only, under its own license")
def test_hill_climbing_finds_the_graph_of_bnlearn():
    """'hc(asia, score = "bic").'"""
    X = pd.read_csv(ASIA_ROWS)
    reference = json.loads((DATA / "complete_dags.ref.json").read_text())["asia5000"]["hc_bic"]
    climb = StructureSearchCV(
        VBDiscreteDAG(), DAGSpace(X.columns), strategy="greedy", scoring="bic", random_state=0
    ).fit(X)
    assert climb.best_score_ == approx(reference["bic"], abs=0.01)
    assert climb.best_structure_.essential() == DAG(reference["dag"]).essential()


def test_how_sure_each_edge_is():
    """'Probabilities of edges, without a bootstrap.' The sum over all 25 graphs of three columns."""
    X = load_lizards(as_frame=True).data
    model = VBDiscreteDAG(prior="bdeu", equivalent_sample_size=10)
    search = StructureSearchCV(model, DAGSpace(X.columns), random_state=0).fit(X)
    graphs = [setting["structure"] for setting in DAGSpace(X.columns)]
    scores = np.array([model.set_params(structure=graph).fit(X).lower_bound_ for graph in graphs])
    weight = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    has_edge = [("Species", "Height") in graph.edges for graph in graphs]
    assert search.edge_probabilities_["parent":"Species", "child":"Height"] == approx(weight[has_edge].sum(), abs=1e-4)


def test_the_effect_of_a_cause_with_a_confounder():
    """'What would class do to survival, adjusted for sex and age?' The formula of back doors, from counts."""
    X = load_titanic(as_frame=True).data
    others = ["sex", "age"]
    edges = [(a, b) for a in others for b in ("class", "survived")] + [("sex", "age"), ("class", "survived")]
    model = VBDiscreteDAG(edges, method="ml").fit(X[X["class"].isin(["1st", "3rd"])])
    frame = X[X["class"].isin(["1st", "3rd"])]
    saved = (frame["survived"] == "yes").groupby([frame["class"], frame["sex"], frame["age"]], observed=True).mean()
    shares = frame.groupby(others, observed=True).size() / len(frame)
    for which in ("1st", "3rd"):
        assert model.query("survived", do={"class": which})["survived":"yes"] == approx((saved[which] * shares).sum())


def test_a_hidden_node():
    """'EM with a latent node, and does it fit?' Goodman (1974) has 1.27 on 4 degrees of freedom."""
    X = load_coleman_panel(as_frame=True).data
    edges = [("h", "k"), ("h", "A"), ("h", "C"), ("k", "B"), ("k", "D")]
    model = VBDiscreteDAG(edges, latents=["h", "k"], method="ml", random_state=0).fit(X)
    fit = model.goodness_of_fit(X)
    assert (round(fit.g2, 2), fit.degrees_of_freedom) == (1.27, 4)


def test_save_a_network_and_read_it_again(tmp_path):
    """'Write BIF, read it elsewhere, get the same answers.'"""
    X = load_berkeley_admissions(as_frame=True).data
    model = VBDiscreteDAG([("sex", "department"), ("department", "admitted")]).fit(X)
    write_bif(model.network_, tmp_path / "berkeley.bif")
    again = read_bif(tmp_path / "berkeley.bif")
    assert (
        again.query("admitted", {"sex": "male"})["admitted":"yes"]
        == model.query("admitted", {"sex": "male"})["admitted":"yes"]
    )
