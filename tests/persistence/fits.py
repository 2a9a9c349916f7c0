"""Small fits of every kind, and the data they were made of."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl

from skvbem import (
    VBHMM,
    UndirectedGraph,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.durations import Hazards, Stages
from skvbem.emissions import FactorGaussian, Multinomial, Poisson, Regression, Softmax
from skvbem.structural import Autoregression, Level, Season, Trend

rng = np.random.default_rng(0)
N = 40
NUMBERS = rng.normal(size=(N, 3)) + np.repeat([3.0, 0.0], N // 2)[:, None]
NUMBERS[3, 1] = np.nan
CODES = rng.integers(0, 3, size=(N, 3)).astype(float)
CODES[2, 0] = np.nan
MIXED = pd.DataFrame(
    {
        "word": rng.choice(["u", "v"], N),
        "truth": rng.choice([True, False], N),
        "kind": pd.Categorical(rng.choice(["x", "y", "z"], N), categories=["z", "y", "x"]),
        "code": rng.integers(0, 3, N),
        "size": rng.normal(size=N),
        "count": rng.poisson(3, N).astype(float),
    }
)
MIXED.loc[3, "word"] = None
MIXED.loc[5, "size"] = np.nan
STATES = MIXED[["word", "truth", "kind", "code"]]
POLARS = pl.DataFrame({"word": STATES["word"].fillna("w").tolist(), "truth": STATES["truth"].tolist()})
KINDS = {"poisson": ["count"], "gaussian": ["size"], "categorical": ["word", "code"]}
OPTIONS = {"random_state": 0, "n_init": 2, "max_iter": 100}
INTERVALS = pd.DataFrame({"size": pd.cut(NUMBERS[:, 0], 3), "word": STATES["word"]})
INPUTS = {"inputs": np.cos(np.arange(N))[:, None], "output_inputs": rng.normal(size=(N, 2))}
THREE = {"x0": ["h"], "x1": ["h"], "x2": ["h"]}


def _networks(method):
    edges = {"word": ["h"], "truth": ["h"], "kind": ["h"], "code": ["word"]}
    mixed = {"word": ["z"], "size": ["z"], "count": ["z"], "code": ["word"]}
    columns = MIXED[[*mixed]]
    factor = {"x0": ["z", "f"], "x1": ["f"], "x2": ["f", "g"], "g": ["x0"]}
    hidden = {"z": 2, "f": "number", "g": "number"}
    return {
        "dag": (VBDiscreteDAG(edges, latents={"h": 2}, method=method, **OPTIONS), STATES, {}),
        "dag of arrays": (VBDiscreteDAG(THREE, latents={"h": 2}, method=method, **OPTIONS), CODES, {}),
        "network": (VBNetwork(mixed, latents={"z": 2}, emission=KINDS, method=method, **OPTIONS), columns, {}),
        "hidden numbers": (VBNetwork(factor, latents=hidden, method=method, **OPTIONS), NUMBERS, {}),
    }


def _others(method):
    sequences = {"lengths": [N // 2, N // 2]}
    return {
        "mixture": (VBMixture(2, method=method, **OPTIONS), NUMBERS, {}),
        "mixture of frames": (VBMixture(2, method=method, **OPTIONS), MIXED, {}),
        "hmm": (VBHMM(2, method=method, **OPTIONS), NUMBERS, sequences),
        "hmm of frames": (VBHMM(2, method=method, **OPTIONS), STATES, sequences),
        "factors": (VBFactorAnalysis(1, method=method, **OPTIONS), NUMBERS, {}),
        "system": (VBLinearDynamicalSystem(1, method=method, **OPTIONS), NUMBERS, {}),
    }


def _special():
    one = UndirectedGraph(["x0", "x1", "x2"], [("x0", "x1"), ("x1", "x2")])
    two = {"x0": ["h", "g"], "x1": ["h", "g"], "x2": ["h"]}
    tied = {"latents": {"h": 2}, "ties": {"x1": "x0"}}
    counts = np.nan_to_num(CODES) + 1
    return {
        "undirected": (VBDiscreteDAG(one, prior="bdeu", **OPTIONS), CODES, {}),
        "tied": (VBDiscreteDAG(THREE, **tied, **OPTIONS), CODES, {}),
        "strengths of tables": (VBDiscreteDAG({"x1": ["x0"], "x2": ["x1"]}, prior="bdla", **OPTIONS), CODES, {}),
        "strengths and a class": (VBDiscreteDAG(THREE, latents={"h": 2}, prior="bdla", **OPTIONS), CODES, {}),
        "learned prior": (VBDiscreteDAG(THREE, latents={"h": 2}, learn_prior=True, **OPTIONS), CODES, {}),
        "mean field": (VBDiscreteDAG(two, latents={"h": 2, "g": 2}, inference="mean_field", **OPTIONS), CODES, {}),
        "intervals": (VBDiscreteDAG({"word": ["size"]}, **OPTIONS), INTERVALS, {}),
        "polars": (VBDiscreteDAG({"word": ["h"], "truth": ["h"]}, latents={"h": 2}, **OPTIONS), POLARS, {}),
        "sticks": (VBMixture(3, weight_concentration_prior_type="dirichlet_process", **OPTIONS), NUMBERS, {}),
        "diagonal": (VBMixture(2, covariance_type="diag", **OPTIONS), NUMBERS, {}),
        "tied covariance": (VBMixture(2, covariance_type="tied", **OPTIONS), NUMBERS, {}),
        "any number": (VBMixture("auto", **OPTIONS), NUMBERS, {}),
        "any factors": (VBMixture(2, emission=FactorGaussian(n_factors="auto"), **OPTIONS), NUMBERS, {}),
        "ones": (VBMixture(2, emission="bernoulli", **OPTIONS), (CODES > 1) * 1.0, {}),
        "times": (VBMixture(2, emission="exponential", **OPTIONS), abs(NUMBERS), {}),
        "on a number": (
            VBNetwork([("h", "x0"), ("h", "x1"), ("x0", "x1")], latents={"h": 2}, **OPTIONS),
            NUMBERS[:, ::2],
            {},
        ),
        "after itself": (VBHMM(2, emission=Regression(lags=1), **OPTIONS), NUMBERS[:, :1], {}),
        "rates": (VBMixture(2, emission=Poisson(rate_prior="hierarchical"), **OPTIONS), np.nan_to_num(CODES), {}),
        "with inputs": (VBLinearDynamicalSystem(1, initial="learned", **OPTIONS), NUMBERS, INPUTS),
        "trials": (VBMixture(2, emission=Multinomial(), **OPTIONS), counts, {}),
        "stays": (VBHMM(2, durations=Hazards(3, first="any"), **OPTIONS), NUMBERS, {}),
        "blocks": (VBLinearDynamicalSystem(blocks=[Trend(), Season(4)], **OPTIONS), NUMBERS, {}),
        "after last values": (VBLinearDynamicalSystem(blocks=[Level(), Autoregression(2)], **OPTIONS), NUMBERS, {}),
        "stages": (VBHMM(2, durations=Stages(3, prior="transitions"), **OPTIONS), NUMBERS, {}),
        "learned chain": (VBHMM(2, learn_prior=True, **OPTIONS), NUMBERS, {}),
        "turned": (VBFactorAnalysis(2, rotation="promax", **OPTIONS), np.c_[NUMBERS, CODES * NUMBERS], {}),
        "by a generator": (VBMixture(2, **OPTIONS | {"random_state": np.random.RandomState(3)}), NUMBERS, {}),
    }


SETTINGS = {
    **{f"{name}, {m}": case for m in ("vb", "map", "ml") for name, case in (_networks(m) | _others(m)).items()},
    **_special(),
}


#: Steps of pipelines, which hold a fitted estimator.
STEPS = {
    "classifier": (VBClassifier(random_state=0), NUMBERS, {"y": np.array(["sick", "well"])[np.arange(N) % 2]}),
    "imputer": (VBImputer(VBMixture(2, **OPTIONS)), NUMBERS, {}),
}

#: Mixtures and chains that covariates drive. Scores that fit anew climb from earlier maxima: equal but for rounding.
MEMBERSHIPS = {
    "covariates": (
        VBMixture(2, emission="bernoulli", membership=Softmax([2, 3], selected=[3]), **OPTIONS),
        np.c_[np.nan_to_num(CODES[:, :2]) > 0, np.nan_to_num(NUMBERS[:, :2])].astype(float),
        {},
    ),
    "covariates by ml": (
        VBMixture(2, emission="bernoulli", membership=Softmax(2), **OPTIONS | {"method": "ml"}),
        np.c_[np.nan_to_num(CODES[:, :2]) > 0, NUMBERS[:, 0]].astype(float),
        {},
    ),
    "covariates of a root": (
        VBDiscreteDAG({"x0": ["h"], "x1": ["h"]}, latents={"h": 2}, covariates={"h": Softmax([2, 3])}, **OPTIONS),
        np.c_[np.nan_to_num(CODES[:, :2]) > 0, np.nan_to_num(NUMBERS[:, :2])].astype(float),
        {},
    ),
    "an edge from numbers": (
        VBNetwork(
            {"h": ["x2"], "x0": ["h"], "x1": ["h"], "x3": ["x2"]},
            latents={"h": 2},
            emission={"categorical": [0, 1], "gaussian": [2, 3]},
            **OPTIONS,
        ),
        np.c_[np.nan_to_num(CODES[:, :2]) > 0, np.nan_to_num(NUMBERS[:, :2])].astype(float),
        {},
    ),
    "a driven chain": (
        VBHMM(2, emission="bernoulli", transitions=Softmax(2), start=Softmax([2, 3], selected=[3]), **OPTIONS),
        np.c_[np.nan_to_num(CODES[:, :2]) > 0, np.nan_to_num(NUMBERS[:, :2])].astype(float),
        {"lengths": [N // 2, N - N // 2]},
    ),
}


def drawn(fit, X, where):
    """Five rows that a fit draws, given the inputs or covariates of the first ones if it has any."""
    given = {key: values[:5] for key, values in where.items() if "inputs" in key}
    if any(getattr(fit, name, None) is not None for name in ("membership", "transitions", "covariates")):
        given["given"] = X[:5]
    return fit.sample(5, random_state=7, **given)


@cache
def fitted(name):
    """(fitted estimator, its data, what else its methods take)."""
    estimator, X, where = (SETTINGS | STEPS | MEMBERSHIPS)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, **where), X, {key: value for key, value in where.items() if key != "y"}
