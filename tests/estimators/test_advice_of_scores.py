"""Advice in messages about scores, draws of the posterior and comparisons: copied, followed, and it works."""

from functools import partial
from inspect import signature
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from estimators.advice import Case, both, check, each_keyword, each_line, each_name, with_slow

from skvbem import (
    VBHMM,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
    bootstrap_lrt,
    compare,
    three_step,
)
from skvbem.blocks import blocks_of
from skvbem.emissions import Gaussian, Multinomial
from skvbem.evidence.registry import SCORES

RNG = np.random.default_rng(20261127)
NUMBERS = RNG.normal(size=(40, 3))
SERIES = NUMBERS[:10, :2]
CODES = pd.DataFrame(RNG.integers(0, 2, size=(40, 3)), columns=list("abc"))
COUNTS = RNG.integers(0, 4, size=(40, 3))
GAPS = np.where(RNG.random((40, 3)) < 0.2, np.nan, NUMBERS)
WEIGHT = RNG.uniform(0.5, 2, 40)
FEW = {"random_state": 0, "n_init": 1}
SHORT = {
    "auto": {"time_budget": 0.3},
    "bridge": {"n_chains": 2, "burn_in": 8, "n_draws": 16, "n_components": 2},
    "ais": {"n_chains": 4, "n_steps": 16},
    "importance_gibbs": {"n_draws": 64},
}

MIXTURE = VBMixture(2, **FEW).fit(NUMBERS)
CLASSES = VBMixture(2, emission="categorical", **FEW).fit(CODES)
NEAR_0 = VBMixture(3, weight_concentration_prior=1e-6, **FEW).fit(NUMBERS[:, :1])
FACTORS = VBFactorAnalysis(2, random_state=0).fit(NUMBERS)
SYSTEM = VBLinearDynamicalSystem(1, **FEW).fit(SERIES)
TURNING = VBLinearDynamicalSystem(2, **FEW).fit(SERIES)
ONE = VBLinearDynamicalSystem(1, noise_rate_prior=1.0, learn_prior=False, **FEW).fit(SERIES)
HIDDEN = VBDiscreteDAG("[h][a|h][b|h][c|h]", latents=["h"], prior="bdla", **FEW)
CROSSED = {"structure": {"a": ["g", "h"], "b": ["g", "h"], "c": ["g", "h"]}, "latents": {"g": 2, "h": 2}, **FEW}
BLOCKS = blocks_of([NUMBERS[:20], NUMBERS[20:]])
IN_BLOCKS = VBMixture(2, **FEW).fit(BLOCKS)
FRACTIONS = VBMixture(2, emission="categorical", **FEW).fit(CODES, sample_weight=WEIGHT)
CLUSTERS = VBDiscreteDAG(**CROSSED, inference="mean_field").fit(CODES)
CROSSED_FIT = VBDiscreteDAG(**CROSSED).fit(CODES)
DOUBLED = pd.concat([CODES, CODES], ignore_index=True)
TWICE = (VBMixture(2, emission="categorical", **FEW).fit(DOUBLED), DOUBLED)
TEXTS = pd.DataFrame({"n": [f"{k}" for k in range(80)]})
TINY = VBDiscreteDAG(**CROSSED, inference="mean_field").fit(CODES[:5])
LATENT = VBDiscreteDAG(latents=2, method="map", **FEW).fit(CODES)
NAMED = ["u", "v"] * 20
PAIRS = [*combinations("fghij", 2)]
LOOPS = {"structure": {"".join(pair): pair for pair in PAIRS}, "latents": dict.fromkeys("fghij", 2), **FEW}
TEN = pd.DataFrame(RNG.integers(0, 2, size=(20, 10)), columns=list(LOOPS["structure"]))
APART = CODES[CODES.a != CODES.b]
AT_EDGE = VBDiscreteDAG("[a][b|a][c]", prior=2.0, method="ml").fit(APART)
LONG = {"time_budget": 0.3}
LIKELY = {k: VBMixture(k, emission="categorical", method="ml", **FEW).fit(CODES) for k in (1, 2)}


def scored(model, X):
    return lambda kind: model.log_evidence(X, kind=kind, **SHORT.get(kind, {}))


def intervals_of_states(**advice):
    VBLinearDynamicalSystem(2, **FEW, **advice).fit(SERIES).credible_intervals(SERIES, method="linear_response")


def option_taken(kind, option):
    assert option in signature(SCORES[kind].compute).parameters


def free(model, X):
    """A case of a score that asks for an identifiable dimension."""
    fit = model.set_params(**FEW).fit(X)
    return Case(
        lambda: fit.log_evidence(X, kind="bic", dimension="identifiable"),
        "Take dimension=",
        each_keyword(lambda **advice: fit.log_evidence(X, kind="bic", **advice)),
    )


CASES = {
    "annealed bridge of factors": Case(
        lambda: FACTORS.log_evidence(NUMBERS, kind="annealed_bridge"),
        "or states that turn. Take ",
        each_name(scored(FACTORS, NUMBERS)),
    ),
    "options of clusters": Case(
        lambda: CLUSTERS.log_evidence(CODES, kind="ais", conditional_ess=0.9),
        "start from the best VB fit. Leave the option out",
        each_keyword(
            lambda **advice: (
                VBDiscreteDAG(**CROSSED, **advice).fit(CODES).log_evidence(CODES, kind="ais", conditional_ess=0.9)
            )
        ),
    ),
    "scores of clusters": Case(
        lambda: CLUSTERS.log_evidence(CODES, kind="bic"),
        "has a lower bound of that. Take ",
        both(
            each_name(scored(TINY, CODES[:5]), among="(?!cheeseman)[a-z_]{3,}"),
            each_keyword(
                lambda **advice: (
                    CLUSTERS.log_evidence(CODES, kind="cheeseman_stutz", **advice)
                    if "form" in advice
                    else VBDiscreteDAG(**CROSSED, **advice).fit(CODES).log_evidence(CODES, kind="bic")
                )
            ),
        ),
    ),
    "entropy of states": Case(
        lambda: ONE.log_evidence(SERIES, kind="mled"),
        "entropy depends on their unit",
        each_name(scored(ONE, SERIES)),
    ),
    "entropy of states, by default": Case(
        lambda: SYSTEM.log_evidence(SERIES, kind="mled"),
        "Take ",
        each_name(scored(SYSTEM, SERIES)),
    ),
    "hidden hyperparameters": Case(
        lambda: VBMixture(2, emission="gaussian", **FEW).fit(NUMBERS).log_evidence(NUMBERS, kind="exact"),
        "measurements has. Take ",
        both(
            each_name(scored(MIXTURE, NUMBERS)),
            each_line(
                r"Gaussian\([^)]*\)",
                lambda emission: (
                    VBMixture(1, emission=emission, **FEW).fit(NUMBERS).log_evidence(NUMBERS, kind="exact")
                ),
                Gaussian=Gaussian,
            ),
        ),
    ),
    "steps of chains": Case(
        lambda: VBMixture(2, max_iter=2, **FEW).fit(NUMBERS).log_evidence(NUMBERS, kind="bic"),
        " fit of this score did not converge. Raise ",
        each_name(lambda name: VBMixture(2, **FEW, **{name: 5000}).fit(NUMBERS).log_evidence(NUMBERS, kind="bic")),
    ),
    "rows in blocks": Case(
        lambda: IN_BLOCKS.log_evidence(BLOCKS, kind="ais"),
        "that only passes over rows: ",
        each_name(scored(IN_BLOCKS, BLOCKS)),
    ),
    "a bend alone": Case(
        lambda: CLASSES.log_evidence(CODES, kind="smc", bend=3.0),
        "Give 'n_steps', too",
        each_name(
            lambda name: CLASSES.log_evidence(
                CODES, kind="smc", **{"n_steps": 8, "bend": 3.0} if name == "n_steps" else {}
            )
        ),
    ),
    "missing cells of a full covariance": Case(
        lambda: (
            VBMixture(1, emission=Gaussian(covariance_prior=None, mean_precision_prior=1.0), **FEW)
            .fit(GAPS)
            .log_evidence(GAPS, kind="exact")
        ),
        "For the former take ",
        both(
            each_keyword(
                lambda **advice: (
                    VBMixture(1, emission=Gaussian(covariance_prior=None, mean_precision_prior=1.0, **advice), **FEW)
                    .fit(GAPS)
                    .log_evidence(GAPS, kind="exact")
                )
            ),
            each_name(scored(MIXTURE, NUMBERS), among="ais"),
        ),
    ),
    "modes of probabilities": Case(
        lambda: VBMixture(4, emission="categorical", method="map", map_basis="probability", **FEW).fit(CODES[:4]),
        "in the probability basis",
        each_keyword(
            lambda **advice: VBMixture(4, emission="categorical", method="map", **FEW, **advice).fit(CODES[:4])
        ),
    ),
    "modes of networks": Case(
        lambda: VBDiscreteDAG(latents=2, prior=0.5, method="map", map_basis="probability", **FEW).fit(CODES),
        "not enough expected counts",
        each_keyword(lambda **advice: VBDiscreteDAG(latents=2, prior=0.5, method="map", **FEW, **advice).fit(CODES)),
    ),
    "dimension of mixtures of counts": free(VBMixture(2, emission=Multinomial()), COUNTS),
    "dimension of chains of counts": free(VBHMM(2, emission=Multinomial()), COUNTS),
    "dimension of networks of counts": free(VBNetwork(latents=2, emission={"multinomial": [0, 1, 2]}), COUNTS),
    "known states": Case(
        lambda: SYSTEM.log_evidence(SERIES, kind="collapsed"),
        "parts of the prior are learned. Take ",
        both(
            each_name(scored(SYSTEM, SERIES)),
            each_keyword(
                lambda **advice: (
                    VBLinearDynamicalSystem(1, noise_rate_prior=1.0, **FEW, **advice)
                    .fit(SERIES)
                    .log_evidence(SERIES, kind="collapsed")
                )
            ),
        ),
    ),
    "a mode that turns": Case(
        lambda: TURNING.log_evidence(SERIES, kind="laplace"),
        "change nothing observed, so that there is none. Take ",
        both(each_name(scored(TURNING, SERIES), among="auto|ais"), each_keyword(intervals_of_states)),
    ),
    "sums over states": Case(
        lambda: ONE.log_evidence(SERIES, kind="exact"),
        "and states are real numbers. Take ",
        each_name(scored(ONE, SERIES)),
    ),
    "hidden strengths": Case(
        lambda: HIDDEN.fit(CODES).log_evidence(CODES, kind="ais_metropolis"),
        "the strength of each table is hidden. Take ",
        each_name(scored(HIDDEN, CODES)),
    ),
    "modes of hidden strengths": Case(
        lambda: HIDDEN.fit(CODES).log_evidence(CODES, kind="laplace", form="map"),
        "the strength of each table is hidden",
        each_name(scored(HIDDEN, CODES)),
    ),
    "a MAP fit of hidden strengths": Case(
        lambda: HIDDEN.set_params(method="map").fit(CODES),
        "so that there is no MAP fit. Take ",
        both(
            each_name(
                lambda name: (
                    HIDDEN.set_params(prior=name, method="map").fit(CODES)
                    if name in {"bdeu", "per_row"}
                    else HIDDEN.set_params(prior="bdla", method="vb").fit(CODES).log_evidence(CODES, kind=name)
                ),
                among="(?!prior|ml)[a-z_]+",
            ),
            each_keyword(lambda **advice: HIDDEN.set_params(prior="bdla", **advice).fit(CODES)),
        ),
    ),
    "draws of blocks": Case(
        lambda: IN_BLOCKS.sample_posterior(BLOCKS),
        "which must be in memory; X comes in blocks. Take ",
        each_keyword(lambda **advice: IN_BLOCKS.credible_intervals(BLOCKS, **advice)),
    ),
    "draws of fractions": Case(
        lambda: FRACTIONS.sample_posterior(CODES, sample_weight=WEIGHT),
        "one by one, and need whole-number sample weights. Take ",
        each_keyword(lambda **advice: FRACTIONS.credible_intervals(CODES, sample_weight=WEIGHT, **advice)),
    ),
    "draws after batches": Case(
        lambda: VBMixture(2, **FEW).fit(NUMBERS).partial_fit(NUMBERS).sample_posterior(NUMBERS),
        "updated by partial_fit. Fit all data, or take ",
        each_keyword(lambda **advice: VBMixture(2, **FEW).partial_fit(NUMBERS).credible_intervals(**advice)),
    ),
    "a bootstrap of one sequence": Case(
        lambda: VBHMM(1, **FEW).fit(NUMBERS).bootstrap(NUMBERS, 2, kind="nonparametric"),
        "and there is one only. Take ",
        each_keyword(lambda **advice: VBHMM(1, **FEW).fit(NUMBERS).bootstrap(NUMBERS, 2, **advice)),
    ),
    "a bootstrap of fractions": Case(
        lambda: FRACTIONS.bootstrap(CODES, n_draws=2, sample_weight=WEIGHT, kind="parametric"),
        "and needs whole-number sample weights. Take ",
        each_keyword(lambda **advice: FRACTIONS.bootstrap(CODES, n_draws=2, sample_weight=WEIGHT, **advice)),
    ),
    "draws of a point": Case(
        lambda: LIKELY[2].sample_posterior(CODES),
        "is a point. Take ",
        both(
            each_line(
                r"standard_errors\(X\)|bootstrap\(X\)",
                standard_errors=LIKELY[2].standard_errors,
                X=CODES,
                bootstrap=partial(LIKELY[2].bootstrap, n_draws=2),
            ),
            each_keyword(lambda **advice: LIKELY[2].set_params(**advice).fit(CODES).sample_posterior(CODES)),
        ),
    ),
    "errors of a posterior": Case(
        lambda: CLASSES.standard_errors(CODES),
        "is a posterior. Take credible_intervals",
        both(
            each_line(
                "credible_intervals", lambda method: method(CODES), credible_intervals=CLASSES.credible_intervals
            ),
            each_name(
                lambda name: VBMixture(1, emission="categorical", method=name, **FEW).fit(CODES).standard_errors(CODES)
            ),
        ),
    ),
    "ratios of bounds": Case(
        lambda: bootstrap_lrt(CLASSES, CLASSES, CODES),
        "Fit both with ",
        both(
            each_keyword(
                lambda **advice: bootstrap_lrt(
                    *(VBMixture(k, emission="categorical", **FEW, **advice).fit(CODES) for k in (1, 2)), CODES, n_boot=2
                )
            ),
            each_line(r"compare\(.*\)", compare=compare, small=CLASSES, large=CLASSES, X=CODES),
        ),
    ),
    "comparisons without fits": Case(
        lambda: compare(CLASSES, CODES),
        "and then their data, as in ",
        each_line(r"compare\(.*\)", compare=compare, two=CLASSES, three=CLASSES, X=CODES),
    ),
    "comparisons of what is no fit": Case(
        lambda: compare([3], CODES),
        "compare takes fitted estimators of this library, such as ",
        each_line(r"\[VBMixture.*\]", lambda fits: compare(fits, NUMBERS), VBMixture=VBMixture, X=NUMBERS),
    ),
    "imprecise bridges": Case(
        lambda: MIXTURE.log_evidence(NUMBERS, kind="bridge", **SHORT["bridge"]),
        " nats is rough, above ",
        each_name(
            lambda name: (
                MIXTURE.log_evidence(NUMBERS, kind=name, **LONG) if name == "auto" else option_taken("bridge", name)
            )
        ),
    ),
    "an error that is not reached": Case(
        lambda: CLASSES.log_evidence(
            CODES, kind="auto", error=1e-9, exact_terms=0, n_draws=64, n_particles=32, max_particles=64
        ),
        " were wanted. Take ",
        each_name(partial(option_taken, "auto")),
    ),
    "tails of weights": Case(
        lambda: CLASSES.log_evidence(CODES, kind="importance", n_draws=64, fractions=(0.0,)),
        "the tail of the weights has Pareto shape",
        each_name(scored(CLASSES, CODES)),
    ),
    "response at no maximum": Case(
        lambda: VBMixture(2, max_iter=1, **FEW).fit(NUMBERS).credible_intervals(NUMBERS, method="linear_response"),
        "Fit with a smaller 'tol' or more starts, or take ",
        each_keyword(
            lambda **advice: VBMixture(2, **FEW).fit(NUMBERS).credible_intervals(NUMBERS, n_draws=20, **advice)
        ),
    ),
    "response of weights near 0": Case(
        lambda: NEAR_0.credible_intervals(NUMBERS[:, :1], method="linear_response"),
        "a prior weight is near 0. Take ",
        each_keyword(lambda **advice: NEAR_0.credible_intervals(NUMBERS[:, :1], n_draws=20, **advice)),
    ),
    "labels of the fit": Case(
        lambda: VBMixture(2, **FEW).fit(NUMBERS, labels=NAMED).log_evidence(NUMBERS),
        "This fit knew labels of rows: give ",
        each_name(lambda name: VBMixture(2, **FEW).fit(NUMBERS, labels=NAMED).log_evidence(NUMBERS, **{name: NAMED})),
    ),
    "labels of another fit": Case(
        lambda: VBMixture(2, **FEW).fit(NUMBERS, labels=NAMED).goodness_of_fit(NUMBERS, labels=["other"] * 40),
        "Leave 'labels' out, or fit with them",
        each_name(lambda name: VBMixture(2, **FEW).fit(NUMBERS, **{name: NAMED}).goodness_of_fit(NUMBERS)),
    ),
    "labels of rows drawn anew": Case(
        lambda: VBMixture(2, **FEW).fit(NUMBERS, labels=NAMED).bootstrap(NUMBERS, 2, kind="parametric", labels=NAMED),
        "for simulated data; a bootstrap of ",
        each_keyword(
            lambda **advice: (
                VBMixture(2, **FEW).fit(NUMBERS, labels=NAMED).bootstrap(NUMBERS, 2, labels=NAMED, **advice)
            )
        ),
    ),
    "a table of hidden nodes": Case(
        lambda: VBDiscreteDAG(**LOOPS, max_table_cells=16).fit(TEN),
        "or set inference=",
        each_keyword(lambda **advice: VBDiscreteDAG(**LOOPS, max_table_cells=16, **advice).fit(TEN)),
    ),
    "joint states of a covariance": Case(
        lambda: LATENT.log_evidence(CODES, kind="laplace", max_states=1),
        "Raise it, or take the variant ",
        each_name(lambda name: LATENT.log_evidence(CODES, kind="laplace", max_states=1, variant=name)),
    ),
    "a density of probabilities of 0": Case(
        lambda: AT_EDGE.log_evidence(APART, kind="bicp", form="ml"),
        "the prior density of its point, which has ",
        each_keyword(lambda **advice: AT_EDGE.log_evidence(APART, kind="bicp", **advice)),
    ),
    "classes of several hidden nodes": Case(
        lambda: three_step(CROSSED_FIT, CODES, NUMBERS[:, :1]),
        "Give one as 'latent'",
        each_name(lambda name: three_step(CROSSED_FIT, CODES, NUMBERS[:, :1], **{name: "g"})),
    ),
    "columns of many levels": Case(
        lambda: three_step(*TWICE, TEXTS),
        "are the most. Join levels, or make numbers of it by ",
        each_line(r"astype\(float\)", lambda numbers: three_step(*TWICE, numbers), astype=TEXTS.astype),
    ),
}


SLOW = {
    "an error that is not reached",
    "known states",
    "a mode that turns",
    "sums over states",
    "response at no maximum",
}


@pytest.mark.filterwarnings("ignore::skvbem.errors.EvidenceWarning")
@pytest.mark.parametrize("name", with_slow(CASES, SLOW))
def test_advice_is_followed(name):
    check(CASES[name])
