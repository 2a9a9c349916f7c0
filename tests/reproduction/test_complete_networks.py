"""Networks without hidden nodes against bnlearn 4.8.3: likelihood, BIC, K2 and BDeu scores, to the printed digits."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from skvbem import VBDiscreteDAG, datasets

approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"
GPL = DATA / "third_party" / "gpl"
FILES = {"asia5000": GPL / "asia5000.csv", "learning_test": GPL / "learning_test.csv"}


def scores(structure, frame):
    """The six numbers that bnlearn prints."""
    ml = VBDiscreteDAG(structure, method="ml", n_init=1).fit(frame)
    found = {"loglik": ml.log_likelihood_, "bic": -ml.goodness_of_fit(frame).bic / 2, "nparams": ml.n_free_parameters_}
    found["k2"] = VBDiscreteDAG(structure, n_init=1).fit(frame).lower_bound_
    for size in (1, 10):
        model = VBDiscreteDAG(structure, prior="bdeu", equivalent_sample_size=size, n_init=1).fit(frame)
        found[f"bde{size}"] = model.lower_bound_
    return found


def lizard_rows():
    with (DATA / "lizards_bnlearn_scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", lizard_rows(), ids=lambda row: row["model"])
def test_lizards(row):
    frame = datasets.load_lizards(as_frame=True).data
    found = scores(row["model"], frame)
    for name, value in row.items():
        if name != "model":
            assert found[name] == approx(float(value), rel=1e-12), name


@pytest.mark.parametrize("name", FILES)
def test_samples_of_bnlearn(name):
    if not FILES[name].exists():
        pytest.skip("third-party data are not part of the source distribution")
    frame = pd.read_csv(FILES[name])
    reference = json.loads((DATA / "complete_dags.ref.json").read_text())[name]
    found = scores(reference["dag"], frame)
    for ours, theirs in (("loglik",) * 2, ("bic",) * 2, ("k2",) * 2, ("bde1", "bde_iss1"), ("bde10", "bde_iss10")):
        assert found[ours] == approx(reference[theirs], abs=6e-3), ours
