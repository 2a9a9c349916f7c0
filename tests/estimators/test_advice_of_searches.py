"""Advice in messages about searches: copied, followed, and it works."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimators.advice import Case, both, check, each_keyword, each_line, each_name, keywords, with_slow

from skvbem import DAGSpace, StructureSearchCV, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.search.strategies import Exact, Exhaustive

CODES = pd.DataFrame(np.random.default_rng(20261127).integers(0, 2, size=(40, 3)), columns=list("abc"))
IS_SET = np.zeros((40, 3), dtype=bool)
IS_SET[:10, 0] = True
FEW = {"random_state": 0, "n_init": 1}
CROSSED = {"structure": {"a": ["g", "h"], "b": ["g", "h"], "c": ["g", "h"]}, "latents": {"g": 2, "h": 2}, **FEW}
IN_CLUSTERS = VBDiscreteDAG(inference="structured", **FEW)
TIED = VBDiscreteDAG("[h][a|h][b|h][c|h]", latents={"h": 2}, ties={"b": ("h", "a")}, **FEW)
CLASSES = VBMixture(2, emission="categorical", **FEW)


def search(estimator=None, space=None, interventions=None, **options):
    estimator = VBDiscreteDAG(prior="bdeu") if estimator is None else estimator
    space = DAGSpace(CODES.columns) if space is None else space
    where = {} if interventions is None else {"interventions": interventions}
    return StructureSearchCV(estimator, space, random_state=0, **options).fit(CODES, **where)


def routed(text):
    """A search under the configuration and the requests that a message names."""
    (of_sklearn,) = keywords(text)["enable_metadata_routing"]
    with sklearn.config_context(enable_metadata_routing=of_sklearn):
        estimator = VBDiscreteDAG(prior="bdeu")
        for request in re.findall(r"set_\w+_request\(\w+=True\)", text):
            estimator = eval("estimator." + request, {"estimator": estimator})
        return search(estimator, cv=3, interventions=IS_SET, max_candidates=3)


def search_of_numbers(latents, **options):
    rows = CODES.assign(a=np.arange(40) % 7 + 0.5, b=np.where(np.arange(40) < 3, np.nan, np.arange(40) % 5 + 0.25))
    space = DAGSpace(CODES.columns, latents=latents, max_parents=1)
    numbers = [("a", "gaussian", ["a"]), ("b", "gaussian", ["b"]), ("c", "categorical", ["c"])]
    return StructureSearchCV(VBNetwork(emission=numbers, **FEW), space, random_state=0, **options).fit(rows)


def hidden(estimator, strategy):
    space = DAGSpace(["a", "b", "c"], latents={"h": 2}, max_parents=1)
    return search(estimator, space, strategy=strategy, max_candidates=3)


CASES = {
    "a search that completes rows, by clusters": Case(
        lambda: search(IN_CLUSTERS, DAGSpace(["a", "b", "c"], latents={"h": 2}, max_parents=1), strategy="structural"),
        "needs inference='exact': it completes rows by q(x). Take ",
        each_name(lambda name: hidden(IN_CLUSTERS, name)),
    ),
    "a search of tied tables": Case(
        lambda: hidden(TIED, "structural"),
        "without 'ties'. Take ",
        each_name(lambda name: hidden(VBDiscreteDAG(**FEW), name), among="greedy|exhaustive"),
    ),
    "pruning by another score": Case(
        lambda: search(CLASSES, {"n_components": [1, 2]}, strategy=Exhaustive(prune=True), scoring="lower_bound"),
        "Leave 'prune' False",
        each_name(lambda name: search(strategy=Exhaustive(**{name: False}), scoring="lower_bound")),
    ),
    "an evidence of rows held out": Case(
        lambda: search(cv=3, scoring="bic"),
        "holds rows out ('cv'). Leave ",
        both(
            each_name(lambda name: search(scoring="bic", **{name: None}), among="cv"),
            each_keyword(lambda **advice: search(cv=3, **advice)),
        ),
    ),
    "scores by another evidence of rows held out": Case(
        lambda: search(cv=3, rescoring="evidence"),
        "is by the evidence of all rows: leave ",
        each_name(lambda name: search(rescoring="evidence", max_candidates=3, **{name: None})),
    ),
    "averages of rows held out": Case(
        lambda: search(cv=3, averaging=True),
        "needs a posterior: leave ",
        each_name(lambda name: search(averaging=True, max_candidates=3, **{name: None})),
    ),
    "a search without a best": Case(
        lambda: search(refit=False, max_candidates=3).predict(CODES),
        "no fitted best estimator to ask. Fit ",
        both(
            each_line(
                r"estimator\.set_params\(.*?_\)",
                lambda best: best.fit(CODES),
                estimator=VBDiscreteDAG(),
                search=search(refit=False, max_candidates=3),
            ),
            each_keyword(lambda **advice: search(max_candidates=3, **advice).score(CODES)),
        ),
    ),
    "bounds in clusters beside exact ones": Case(
        lambda: search(VBDiscreteDAG(**CROSSED), {"inference": ["exact", "mean_field"]}, scoring="lower_bound"),
        "Give all the same 'inference', or take ",
        each_keyword(lambda **advice: search(VBDiscreteDAG(**CROSSED), {"inference": ["mean_field"]}, **advice)),
    ),
    "a structural search of mixtures": Case(
        lambda: search(CLASSES, {"n_components": [1, 2]}, strategy="structural"),
        "Take 'greedy' for others",
        each_name(lambda name: search(CLASSES, {"n_components": [1, 2]}, strategy=name), among="greedy"),
    ),
    "a structural search of numbers below latents": Case(
        lambda: search_of_numbers({"h": 2}, strategy="structural"),
        "for a network of numbers. Take 'greedy' for others",
        each_name(lambda name: search_of_numbers({"h": 2}, strategy=name, max_candidates=3), among="greedy"),
    ),
    "memory of the exact strategy": Case(
        lambda: search(strategy=Exact(max_memory=1)),
        "are allowed. Raise ",
        each_name(
            lambda name: search(strategy=Exact(**{name: 2**20}) if name == "max_memory" else name, max_candidates=3)
        ),
    ),
    "interventions of rows held out": Case(
        lambda: search(cv=3, interventions=IS_SET),
        "reach the scores of rows held out by metadata routing alone: call ",
        lambda text: [lambda: routed(text)],
    ),
}


SLOW = {"an evidence of rows held out"}


@pytest.mark.filterwarnings("ignore::skvbem.errors.EvidenceWarning")
@pytest.mark.parametrize("name", with_slow(CASES, SLOW))
def test_advice_is_followed(name):
    check(CASES[name])
