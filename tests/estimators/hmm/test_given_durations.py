"""Chains with durations at parameters that a user gives, against chains of all cells, which are states with ages."""

from itertools import groupby, product

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import poisson

from skvbem import VBHMM, load, save
from skvbem.durations import Hazards, Stages

approx = pytest.approx
RATES = np.array([1.0, 4.0, 12.0])
NEXT = np.array([[0.0, 0.3, 0.7], [1.0, 0.0, 0.0], [0.4, 0.6, 0.0]])
FIRST = np.array([0.2, 0.5, 0.3])
FAMILIES = {
    "single": (Hazards(4, bins="single"), {"hazards": np.random.default_rng(0).uniform(0.1, 0.9, (3, 4))}),
    "doubling": (
        Hazards(5, prior="transitions", first="any"),
        {
            "hazards": np.random.default_rng(1).uniform(0.1, 0.9, (3, 4)),
            "first_ages": np.random.default_rng(2).dirichlet(np.ones(5), 3),
        },
    ),
    "stages": (Stages(3), {"stage_ends": np.array([0.2, 0.5, 0.9])}),
    "stages begun": (
        Stages(2, first="any"),
        {"stage_ends": np.array([0.2, 0.5, 0.9]), "first_ages": np.array([[0.5, 0.5], [1.0, 0.0], [0.1, 0.9]])},
    ),
}


def given(name, **change):
    durations, stays = FAMILIES[name]
    options = {"emission": "poisson", "durations": durations, "stays": stays, **change}
    startprob, transmat = options.pop("startprob", FIRST), options.pop("transmat", NEXT)
    return VBHMM.from_parameters(startprob, transmat, {"rates": RATES[:, None]}, **options)


def all_cells(name):
    """First cells (3 D,), and steps (3 D, 3 D) between them, by the definition of each family."""
    durations, stays = FAMILIES[name]
    bin_of = {1: 0, 2: 1, 3: 2, 4: 2 if name == "doubling" else 3, 5: 3}  # ages 1, 2, 3-4, 5-8
    are_stages = isinstance(durations, Stages)
    n_ages = durations.n_stages if are_stages else durations.max_age
    cells = list(product(range(3), range(1, n_ages + 1)))
    ages = stays.get("first_ages", np.eye(n_ages)[[0, 0, 0]])
    first, steps = np.array([FIRST[k] * ages[k, a - 1] for k, a in cells]), np.zeros((len(cells), len(cells)))
    for (k, a), (j, b) in product(cells, cells):
        end = stays["stage_ends"][k] if are_stages else stays["hazards"][k, bin_of[a]]
        at = cells.index((k, a)), cells.index((j, b))
        if are_stages and k == j:
            steps[at] = end if b == a + 1 else (1 - end) * (b == a)
        elif k == j:
            steps[at] = (1 - end) * (b == min(a + 1, n_ages))
        elif b == 1 and (a == n_ages or not are_stages):
            steps[at] = end * NEXT[k, j]
    return first, steps, np.repeat(np.arange(3), n_ages)


def of_cells(name):
    """The geometric chain of all cells, and the state of each."""
    first, steps, state = all_cells(name)
    return VBHMM.from_parameters(first, steps, {"rates": RATES[state, None]}, emission="poisson"), state


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_those_of_all_cells(name, rng):
    model, (chain, state) = given(name), of_cells(name)
    X = [rng.poisson(5.0, (n, 1)).astype(float) for n in (1, 7, 30)]
    X[2][10:14] = np.nan
    assert model.score_samples(X) == approx(chain.score_samples(X), rel=1e-12)
    member = np.eye(3)[state]
    for mine, theirs in zip(model.predict_proba(X), chain.predict_proba(X)):
        assert mine == approx(theirs @ member, abs=1e-12)
    assert model.decode(X)[1] == approx(chain.decode(X)[1], rel=1e-12)
    ahead, of_chain = model.forecast(X, 4), chain.forecast(X, 4)
    assert ahead.state_probabilities == approx(of_chain.state_probabilities @ member, abs=1e-12)
    assert ahead.expected["x0"] == approx(of_chain.expected["x0"], rel=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_long_run_is_that_of_all_cells(name):
    """Shares of cells, and steps until a stay is over from the first age on, by linear equations."""
    run, (_, steps, state) = given(name).long_run(), all_cells(name)
    equations = np.vstack([steps.T - np.eye(len(steps)), np.ones(len(steps))])
    shares = np.linalg.lstsq(equations, np.r_[np.zeros(len(steps)), 1.0], rcond=None)[0]
    assert run.stationary == approx(np.bincount(state, shares), rel=1e-10)
    for k in range(3):
        within = steps[np.ix_(state == k, state == k)]
        assert run.mean_stays[k] == approx(np.linalg.solve(np.eye(len(within)) - within, np.ones(len(within)))[0])
    assert np.isnan(run.stationary_interval).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_of_a_fit_make_the_same_model(name, tmp_path):
    durations = FAMILIES[name][0]
    X = given(name).sample(120, random_state=0)[0]
    fit = VBHMM(3, emission="poisson", durations=durations, n_init=1, random_state=0).fit(X)
    chain, emission = fit.parameters_["chain"], fit.parameters_["poisson"]
    same = VBHMM.from_parameters(
        fit.startprob_, fit.transmat_, emission, emission="poisson", durations=durations, stays=chain
    )
    assert same.score(X) == approx(fit.score(X), rel=1e-12)
    assert same.parameters_["chain"].keys() == chain.keys()
    for each, values in chain.items():
        assert same.parameters_["chain"][each] == approx(values, rel=1e-14)
    save(same, tmp_path / "model.json")
    assert load(tmp_path / "model.json").score(X) == same.score(X)


def test_stays_that_are_known():
    """Of three steps exactly."""
    hazards = {"hazards": [[0.0, 0.0, 1.0]] * 3}
    _, states = given("single", durations=Hazards(3, bins="single"), stays=hazards).sample(300, random_state=0)
    assert {len(list(stay)) for _, stay in groupby(states)} == {3}


def test_poisson_stays_of_seven_symbols():
    """The evidence of another program: stays of 1 + Poisson(rate) steps, rates Ga(1, 1/2), the last stay cut off.

    Probabilities of paths, as of symbols that show their states, are products over states of averages over rates.
    """
    paths, symbols, lasts = np.array(list(product([0, 1], repeat=7))), np.array([0, 0, 1, 1, 0, 0, 1]), np.arange(7)
    shown = {"emission": "categorical", "categories": {"x0": [0, 1]}, "durations": Hazards(7, bins="single")}

    def of_paths(*rates):
        stays = {"hazards": [np.minimum(poisson.pmf(lasts, r) / poisson.sf(lasts - 1, r), 1.0) for r in rates]}
        chain = VBHMM.from_parameters([0.5, 0.5], [[0, 1], [1, 0]], {"probabilities": np.eye(2)}, stays=stays, **shown)
        return np.exp(chain.score_samples([path[:, None] for path in paths]))

    roots, widths = np.polynomial.legendre.leggauss(60)
    roots, widths = 3.5 * (roots + 1), 3.5 * widths  # of the rate: beyond 49 its prior has 2e-11
    weights = widths * roots * np.exp(-(roots**2) / 2)
    first, second = (sum(w * of_paths(*(root**2, 1.0)[::side]) for root, w in zip(roots, weights)) for side in (1, -1))
    of_path = first * second / of_paths(1.0, 1.0)
    counts = np.array([[np.bincount(symbols[path == k], minlength=2) for k in (0, 1)] for path in paths])
    of_symbols = np.exp(betaln(*np.moveaxis(counts + 1.0, -1, 0))).prod(axis=1)
    assert np.log(of_path @ of_symbols) == approx(-5.29703476, abs=1e-8)


def test_a_fit_goes_on_from_what_is_given():
    """It keeps the order of states, and is the maximum that it starts beside."""
    X = given("stages").sample(400, random_state=1)[0]
    start = given("stages", method="ml", warm_start=True, tol=1e-10)
    before = start.score(X)
    rates = start.fit(X).parameters_["poisson"]["rates"][:, 0]
    assert start.score(X) > before
    assert rates == approx(RATES, rel=0.2)
    steps = start.parameters_["chain"]["stage_ends"]
    assert steps == approx(FAMILIES["stages"][1]["stage_ends"], abs=0.15)


def test_a_state_that_is_never_left(rng):
    words = [np.repeat([0.0, 9.0], [4, 5])[:, None], np.repeat([0.0, 9.0], [7, 2])[:, None]]
    options = {"emission": "poisson", "transmat_mask": "left-to-right", "durations": Hazards(2, bins="single")}
    fit = VBHMM(2, n_init=1, random_state=0, **options).fit(words)
    known = {"stays": fit.parameters_["chain"], **options}
    models = [
        VBHMM.from_parameters([1, 0], transmat, fit.parameters_["poisson"], **known)
        for transmat in (fit.transmat_, [[0, 1], [0, 1]])
    ]
    assert [model.score(words) for model in models] == approx([fit.score(words)] * 2, rel=1e-12)
    assert models[0].long_run().stationary.tolist() == [0, 1]
    assert models[0].long_run().mean_stays[1] == np.inf
    with pytest.raises(ValueError, match="'hazards' of VBHMM are > 0 of a state that a prior or mask never leaves"):
        VBHMM.from_parameters(
            [1, 0], [[0, 1], [0, 1]], fit.parameters_["poisson"], **known | {"stays": {"hazards": np.full((2, 2), 0.5)}}
        )


def test_a_single_state_has_no_stays():
    one = {"emission": "poisson", "durations": Hazards(4)}
    model = VBHMM.from_parameters([1.0], [[1.0]], {"rates": [[2.0]]}, **one)
    assert model.long_run().mean_stays.tolist() == [np.inf]
    with pytest.raises(ValueError, match=r"A single state of VBHMM lasts for ever\. Leave 'stays' out"):
        VBHMM.from_parameters([1.0], [[1.0]], {"rates": [[2.0]]}, stays={"hazards": [[0.5]]}, **one)


HAZARDS = FAMILIES["doubling"][1]
REFUSED = {
    "no stays": ({"stays": None}, "needs 'stays', a mapping with 'hazards' and 'first_ages' alone"),
    "others": ({"stays": {"stage_ends": [0.5] * 3}}, "needs 'stays', a mapping with 'hazards' and 'first_ages' alone"),
    "by age": ({"stays": HAZARDS | {"hazards": np.full((3, 5), 0.5)}}, r"of the shape \(3, 4\), .* the shape \(3, 5\)"),
    "above one": ({"stays": HAZARDS | {"hazards": np.full((3, 4), 1.5)}}, r"from 0 to 1\. Got"),
    "words": ({"stays": HAZARDS | {"hazards": "few"}}, "'hazards' parameter of VBHMM must be an array of probab"),
    "ages": ({"stays": HAZARDS | {"first_ages": np.ones((3, 5))}}, "'first_ages' of VBHMM must hold numbers >= 0 that"),
    "staying": ({"transmat": np.full((3, 3), 1 / 3)}, "next state, which is another: its diagonal must be 0. Got"),
    "rows": ({"transmat": NEXT / 2}, "'transmat' of VBHMM must hold numbers >= 0 that sum to one"),
    "shape": ({"transmat": np.eye(2)[::-1]}, r"'transmat' of VBHMM must have the shape \(3, 3\)"),
    "geometric": ({"durations": "geometric"}, "'stays' of VBHMM go with 'durations', such as Hazards"),
    "learned": ({"learn_prior": True}, "learn_prior=True of VBHMM multiplies"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_chain_with_durations(name):
    change, part = REFUSED[name]
    with pytest.raises(ValueError, match=part):
        given("doubling", **change)
