"""Behaviors of `VBHMM` with durations against definitions: priors, known states, weights, gaps, pieces, grids."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skvbem import VBHMM, VBMixture
from skvbem.durations import Hazards, Stages
from skvbem.emissions import Gaussian
from skvbem.estimators.hmm.durations import semi_markov_rows
from skvbem.models.hmm import semi_markov
from skvbem.models.hmm.transitions import Transitions

approx = pytest.approx
FAMILIES = [
    Hazards(8),
    Hazards(4, bins="single", prior="transitions", first="any"),
    Hazards(5, bins="single", prior=(1.0, 2.0)),
    Stages(3),
    Stages(2, prior=(1.0, 1.0), first="any"),
]
CONVERGED = {"tol": 1e-11, "max_iter": 5000, "n_init": 2, "random_state": 0}


def stays(rng, n_states, n_steps):
    """States that last for three to eight steps."""
    states = [int(rng.integers(n_states))]
    while len(states) < n_steps:
        others = [k for k in range(n_states) if k != states[-1]]
        states += [int(rng.choice(others))] * int(rng.integers(3, 9))
    return np.array(states[:n_steps])


def sequences(rng, lengths=(50, 1, 69, 40), apart=4.0):
    """Sequences of one column of two states, and the states."""
    states = [stays(rng, 2, n) for n in lengths]
    return [apart * s[:, None] + rng.normal(size=(len(s), 1)) for s in states], states


def fitted(durations, X, n_states=2, *, emission="gaussian", sample_weight=None, **more):
    model = VBHMM(n_states, durations=durations, emission=emission, **{**CONVERGED, **more})
    return model.fit(X, sample_weight=sample_weight)


# Priors and known states ----------------------------------------------------------------------------------------------


def alternatives(durations):
    """Pairs of counts of leaving and staying, each as probable as the others, as `Hazards` and `Stages` say."""
    if durations.prior != "hierarchical":
        return [tuple(durations.prior)]
    n_stages = durations.n_stages if isinstance(durations, Stages) else 1
    longest = 512 * next(2**j for j in range(20) if 2**j >= n_stages)
    lasts = [2 ** (half / 2 + 0.25) for half in range(60) if n_stages < 2 ** (half / 2 + 0.25) < longest]
    means = [n_stages / steps for steps in lasts]
    return [(strength * mean, strength * (1 - mean)) for mean in means for strength in (1, 4, 16, 64, 256)]


@pytest.mark.parametrize("durations", [Hazards(4), Stages(1), Stages(2), Stages(3), Stages(4), Stages(5)], ids=str)
def test_octaves_of_the_hierarchical_prior(durations):
    pairs = durations.concentrations(np.ones(1), np.ones(1))[:, 0, 0]
    expected = np.array(alternatives(durations))
    assert pairs[np.lexsort(pairs.T)] == approx(expected[np.lexsort(expected.T)])


@pytest.mark.parametrize("durations", [Hazards(5, first="any"), Stages(3, first="any"), Hazards(5)], ids=str)
def test_first_ages_have_a_total_of_one_count(durations):
    ages = semi_markov_rows(durations, Transitions(np.ones((2, 2)))).first_ages
    if durations.first == "new":
        assert ages is None
    else:
        assert ages == approx(np.full((2, len(durations.bins_of_ages)), 1 / len(durations.bins_of_ages)))


def age_bin(age, durations):
    """The bin of an age from 1 on: 1, 2, 3-4, 5-8, ..."""
    age = min(age, durations.max_age)
    return age - 1 if durations.bins == "single" else next(b for b in range(20) if age <= 2**b)


def evidence_of_known(states, durations, n_states, concentration):
    """Log evidence of known states: ends of stays by age, the last of which is cut off, next states, first states."""
    counts, jumps, first = np.zeros((n_states, 20, 2)), np.zeros((n_states, n_states)), np.zeros(n_states)
    for path in states:
        first[path[0]] += 1
        age = 1
        for here, then in pairwise(path):
            counts[here, age_bin(age, durations), int(here == then)] += 1
            jumps[here, then] += here != then
            age = age + 1 if here == then else 1
    total = gammaln(n_states) - gammaln(n_states + first.sum()) + gammaln(1 + first).sum()
    for k in range(n_states):
        row, a = np.delete(jumps[k], k), concentration
        total += gammaln(len(row) * a) - gammaln(len(row) * a + row.sum()) + (gammaln(a + row) - gammaln(a)).sum()
        pairs = alternatives(durations)
        terms = [sum(betaln(p + n, q + m) - betaln(p, q) for n, m in counts[k]) for p, q in pairs]
        total += logsumexp(terms) - np.log(len(pairs))
    return total


@pytest.mark.parametrize(
    "durations",
    [Hazards(1), Hazards(6), Hazards(6, bins="single"), Hazards(5, prior=(0.5, 2.0)), Hazards(100, bins="single")],
    ids=str,
)
def test_known_states_have_the_evidence_of_their_stays(durations, rng):
    """Nothing is hidden, so that the bound is the evidence, of ages beyond all stays, too."""
    states = [stays(rng, 3, n) for n in (40, 1, 25)]
    rows, n = np.concatenate(states), np.zeros((3, 2))
    X = rng.integers(0, 2, size=(len(rows), 1))
    for k, x in zip(rows, X[:, 0]):
        n[k, x] += 1
    of_rows = (gammaln(1 + n).sum(axis=1) - gammaln(2 + n.sum(axis=1))).sum()
    model = VBHMM(3, emission="categorical", transmat_prior=0.7, durations=durations, random_state=0)
    parts = np.cumsum([len(s) for s in states])[:-1]
    names = np.array(["a", "b", "c"], dtype=object)
    model.fit(np.split(X, parts), labels=[names[s] for s in states])
    assert model.lower_bound_ == approx(of_rows + evidence_of_known(states, durations, 3, 0.7), abs=1e-9)
    assert model.component_names_.tolist() == ["a", "b", "c"]


def test_batches_take_up_the_prior_of_all_before(rng):
    """States that can be told make the bounds of batches, each given those before, add up to that of the whole."""
    X, _ = sequences(rng, (60, 80, 70), apart=60.0)
    known = Gaussian(mean_prior=[30.0], mean_precision_prior=1e-3, covariance_prior=[[1.0]])
    start = {"durations": Hazards(8), "emission": known, "n_init": 4, "random_state": 0, "tol": 1e-11}
    batches, total = VBHMM(2, **start), 0.0
    for sequence in X:
        total += batches.partial_fit([sequence]).batch_lower_bound_
    whole = VBHMM(2, **start).fit(X)
    assert total == approx(whole.lower_bound_, abs=0.02)
    assert batches.means_ == approx(whole.means_, rel=1e-6)
    hazards = [model.parameters_["chain"]["hazards"] for model in (batches, whole)]
    assert hazards[0] == approx(hazards[1], abs=1e-6)


# Sequences ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_weights_are_repeats_and_order_and_threads_change_nothing(durations, rng):
    X, _ = sequences(rng, apart=2.0)
    bound = fitted(durations, [*X, X[0], X[3], X[3]]).lower_bound_
    assert fitted(durations, X, sample_weight=[2, 1, 1, 3]).lower_bound_ == approx(bound, abs=1e-7)
    backward = [X[k] for k in (3, 0, 2, 1)]
    assert fitted(durations, backward, sample_weight=[3, 2, 1, 1], n_jobs=2).lower_bound_ == approx(bound, abs=1e-7)
    ids = np.repeat(np.arange(4), list(map(len, X)))
    mixed = np.argsort(np.concatenate([np.linspace(0, 1, len(each)) for each in X]), kind="stable")
    ids, rows = ids[mixed], np.concatenate(X)[mixed]
    one = VBHMM(2, durations=durations, emission="gaussian", **CONVERGED).fit(rows, sequence_id=ids)
    assert one.lower_bound_ == approx(fitted(durations, X).lower_bound_, abs=1e-7)


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_unseen_steps_at_an_end_say_nothing_and_are_forecasts(durations, rng):
    X, _ = sequences(rng, (60, 30))
    longer = [np.vstack([of_sequence, np.full((4, 1), np.nan)]) for of_sequence in X]
    model, other = fitted(durations, X), fitted(durations, longer)
    assert other.lower_bound_ == approx(model.lower_bound_, abs=1e-8)
    ahead = model.forecast(X, 4).state_probabilities
    for k, probability in enumerate(model.predict_proba(longer)):
        assert probability[-4:] == approx(ahead[k], abs=1e-9)


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_a_gap_is_an_average_over_what_may_stand_there(durations, rng):
    """Of a column of letters: probabilities of a sequence with a gap are sums over letters in it."""
    letters = stays(rng, 2, 40)[:, None]
    model = fitted(durations, letters, emission="categorical", n_init=1)
    gap = letters.astype(float)
    gap[17:19] = np.nan
    filled = []
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            other = gap.copy()
            other[17:19, 0] = a, b
            filled.append(model.score_samples([other])[0])
    assert model.score_samples([gap])[0] == approx(logsumexp(filled), abs=1e-9)


@pytest.mark.parametrize("durations", [Hazards(8), Stages(3)], ids=str)
def test_sequences_of_one_step_are_a_mixture(durations, rng):
    X = np.concatenate([rng.normal(-3, 1, 30), rng.normal(3, 1, 30)])[:, None]
    chain = fitted(durations, list(X[:, None]))
    mixture = VBMixture(2, weight_concentration_prior=1.0, emission="gaussian", **CONVERGED).fit(X)
    assert chain.lower_bound_ == approx(mixture.lower_bound_, abs=1e-6)


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_one_state_has_no_durations(durations, rng):
    X, _ = sequences(rng)
    one, plain = fitted(durations, X, 1), fitted("geometric", X, 1)
    assert one.lower_bound_ == plain.lower_bound_
    assert np.isinf(one.duration_distribution().means).all()


@pytest.mark.parametrize("emission", ["gaussian", "poisson", "categorical"])
@pytest.mark.parametrize("durations", FAMILIES, ids=str)
@pytest.mark.filterwarnings("ignore:Column 'x0' of X holds")
def test_constant_data_have_a_finite_bound(durations, emission):
    model = fitted(durations, np.full((40, 1), 3.0), emission=emission, n_init=1)
    assert np.isfinite(model.lower_bound_)
    assert model.predict_proba(np.full((5, 1), 3.0)).sum(axis=1) == approx(1.0)


@pytest.mark.parametrize("durations", [Hazards(8), Stages(3)], ids=str)
def test_masks_hold(durations, rng):
    X = np.concatenate([rng.normal(5 * k, 1, 20) for k in range(3)])[:, None]
    model = fitted(durations, [X, X], 3, transmat_mask="left-to-right")
    assert model.transmat_ == approx(np.diag([1.0, 1.0], 1))
    assert model.predict(X).tolist() == np.repeat([0, 1, 2], 20).tolist()
    assert np.isinf(model.duration_distribution().means[2])
    assert (np.diff(model.sample(200, random_state=0)[1]) >= 0).all()


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_pieces_of_a_long_sequence_are_one(durations, rng, monkeypatch):
    X, _ = sequences(rng, (700, 30), apart=1.5)
    model = fitted(durations, X, n_init=1)
    probability, bound = np.concatenate(model.predict_proba(X)), model.lower_bound_
    drawn = model.sample(700, random_state=1)[1]
    monkeypatch.setattr(semi_markov, "_AT_ONCE", 1)
    assert fitted(durations, X, n_init=1).lower_bound_ == approx(bound, abs=1e-8)
    assert np.concatenate(model.predict_proba(X)) == approx(probability, abs=1e-9)
    assert len(np.unique(model.sample(700, random_state=1)[1])) == len(np.unique(drawn)) == 2


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_filters_forecasts_and_residuals_are_of_the_steps_before(durations, rng):
    """Each by its definition, from the posteriors of shorter sequences at the same parameters."""
    X, _ = sequences(rng, (30,), apart=2.0)
    model, X = fitted(durations, X), X[0]
    scale = np.sqrt(model.covariances_.ravel())
    residuals = model.pseudo_residuals(X).normal.ravel()
    filtered = model.filter(X)
    for t in (1, 2, 7, 29):
        before = X[:t]
        assert filtered[t - 1] == approx(model.predict_proba(before)[-1], abs=1e-9)
        ahead = model.forecast(before, 1).state_probabilities[0, 0]
        below = ahead @ norm.cdf((X[t, 0] - model.means_.ravel()) / scale)
        assert residuals[t] == approx(norm.ppf(below), abs=1e-6)
    hidden = X.copy()
    hidden[10] = np.nan
    expected = model.predict_proba(hidden)[10] @ model.means_.ravel()
    assert model.impute(hidden)[10, 0] == approx(expected)


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_copies_and_grids(durations, rng):
    X, _ = sequences(rng, (60, 50, 40))
    model = VBHMM(2, durations=durations, n_init=1, random_state=0).fit(X)
    assert clone(model).fit(X).lower_bound_ == model.lower_bound_
    name = "max_age" if isinstance(durations, Hazards) else "n_stages"
    before = durations.get_params()
    other = clone(model).set_params(**{f"durations__{name}": 2})
    assert other.durations.get_params() == {**before, name: 2}
    assert durations.get_params() == before
    assert clone(model).set_params(durations="geometric").fit(X).lower_bound_ != model.lower_bound_
    choices = ["geometric", durations, Stages(4)]
    search = GridSearchCV(VBHMM(2, n_init=1, random_state=0), {"durations": choices}, cv=3).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    nested = GridSearchCV(VBHMM(2, durations=durations, n_init=1, random_state=0), {f"durations__{name}": [1, 4]}, cv=3)
    low, high = nested.fit(X).cv_results_["mean_test_score"]
    assert nested.best_params_ == {f"durations__{name}": 4 if high > low else 1}


def test_a_fit_that_fails_leaves_nothing_behind(rng):
    X, _ = sequences(rng, (30,))
    fresh = VBHMM(2, durations=Hazards(0))
    with pytest.raises(ValueError, match="'max_age' parameter of Hazards"):
        fresh.fit(X)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    model = VBHMM(2, durations=Hazards(4), n_init=1, random_state=0).fit(X)
    before = vars(model).copy()
    model.set_params(durations=Stages(0))
    with pytest.raises(ValueError, match="'n_stages' parameter of Stages"):
        model.fit(X)
    assert all(vars(model)[name] is of for name, of in before.items() if name != "durations")
    assert model.set_params(durations=Hazards(4)).predict(X)[0].shape == (30,)


@pytest.mark.parametrize("method", ["ml", "map"])
def test_points_of_hazards(method, rng):
    """Relative frequencies of known stays, by the mode with the counts of the prior."""
    states = [stays(rng, 2, 60)]
    names = np.array(["a", "b"], dtype=object)
    durations, counts = Hazards(4, bins="single", prior=(1.5, 2.5)), np.zeros((2, 4, 2))
    age = 1
    for here, then in pairwise(states[0]):
        counts[here, min(age, 4) - 1, int(here == then)] += 1
        age = age + 1 if here == then else 1
    counts += np.array([1.5, 2.5]) if method == "map" else 0.0
    model = VBHMM(2, emission="categorical", durations=durations, method=method, random_state=0)
    model.fit([states[0][:, None]], labels=[names[states[0]]])
    found, sums = model.parameters_["chain"]["hazards"], counts.sum(axis=2)
    assert found[sums > 0] == approx((counts[..., 0] / np.maximum(sums, 1e-9))[sums > 0], abs=1e-6)


def test_modes_of_a_hierarchical_prior_are_refused(rng):
    """Its density has several; which of them steps reach would decide how probable a point is."""
    X, _ = sequences(rng, (60,))
    model = VBHMM(2, durations=Hazards(4), transmat_prior="unit", n_init=2, random_state=0)
    for kind in ("laplace", "cheeseman_stutz"):
        with pytest.raises(ValueError, match="so that there is no MAP fit"):
            model.fit(X).log_evidence(X, kind=kind)
    with pytest.raises(ValueError, match="so that there is no MAP fit"):
        clone(model).set_params(method="map").fit(X)
