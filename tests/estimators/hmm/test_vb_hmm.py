"""`VBHMM` from the user's side: three forms of sequences, published numbers, answers, scores."""

import json
import pickle
import time
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from reference.hidden_markov import dirichlet
from scipy import stats
from scipy.special import digamma, gammaln
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import VBHMM, StructureSearchCV, VBMixture
from skvbem.datasets import load_earthquakes, load_fetal_lamb
from skvbem.emissions import Categorical, Gaussian
from skvbem.errors import TooLargeError
from skvbem.evidence import certify_evidence, evidence_table
from skvbem.fitting.evaluation import at_draw
from skvbem.fitting.fit import read

approx = pytest.approx
DATA = Path(__file__).parents[2] / "data"
CODES = {"emission": "categorical"}


def reference(name):
    return json.loads((DATA / f"{name}.ref.json").read_text())


def third_party(name):
    path = DATA / "third_party" / "gpl" / f"{name}.csv"
    return pd.read_csv(path) if path.exists() else pytest.skip("third-party data are not here")


def chains(rng, lengths=(60, 40, 50), stay=0.9, apart=5.0, d=2):
    """Sequences of two states that stay for a while, and the states."""
    sequences, paths = [], []
    for n in lengths:
        switch = rng.random(n) > stay
        states = (rng.integers(0, 2) + np.cumsum(switch)) % 2
        sequences.append(rng.normal(size=(n, d)) + apart * states[:, None])
        paths.append(states)
    return sequences, paths


def as_rows(sequences):
    """Rows and ids of sequences."""
    return np.concatenate(sequences), np.repeat(np.arange(len(sequences)), list(map(len, sequences)))


def same_fit(one, other, rel=1e-9):
    """One optimum, whichever of the starts that met it was the best by a rounding."""
    assert one.lower_bound_ == approx(other.lower_bound_, rel=rel)
    mine, theirs = (np.lexsort(each.means_.T) for each in (one, other))
    for name in ("startprob_", "counts_", "means_", "covariances_"):
        assert getattr(one, name)[mine] == approx(getattr(other, name)[theirs], rel=1e-3, abs=1e-4), name
    assert one.transmat_[np.ix_(mine, mine)] == approx(other.transmat_[np.ix_(theirs, theirs)], abs=1e-4)


# Published numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["earthquakes", "fetal_lamb"])
def test_published_poisson_chains(name):
    """Maximum likelihood of Zucchini & MacDonald's and Leroux & Puterman's sequences, to the digits of the file."""
    X = {"earthquakes": load_earthquakes, "fetal_lamb": load_fetal_lamb}[name]().data
    for k, known in reference(name)["by_K"].items():
        # at four states an optimum that one start of hundreds finds
        starts = {"n_init": 400, "random_state": 1} if k == "4" else {"n_init": 5, "random_state": 0}
        fit = VBHMM(int(k), emission="poisson", method="ml", tol=1e-9, **starts).fit(X)
        assert fit.log_likelihood_ == approx(known["max_loglik"], abs=2e-6)
        assert fit.bic(X) == approx(known["bic_minus2_form"], abs=4e-6)
        assert fit.n_free_parameters_ == known["n_params"]
        order = np.argsort(fit.parameters_["poisson"]["rates"][:, 0])
        assert fit.parameters_["poisson"]["rates"][order, 0] == approx(known["emission"], rel=1e-3)
        assert fit.startprob_[order] == approx(known["startprob"], abs=1e-4)
        assert fit.transmat_[np.ix_(order, order)] == approx(np.array(known["transmat"]), abs=2e-3)


def test_published_gaussian_chains():
    frame, known = third_party("speed"), reference("speed_rt")["by_K"]
    X, series = frame[["rt"]], frame["series"]
    for k in ("1", "2", "3"):
        fit = VBHMM(int(k), method="ml", n_init=10, random_state=0).fit(X, sequence_id=series)
        assert fit.log_likelihood_ == approx(known[k]["max_loglik"], abs=2e-5)
        assert fit.n_free_parameters_ == known[k]["n_params"]


def test_published_panel_of_categories():
    """237 sequences as 51 weighted ones: maximum likelihood, and bounds of a plain program under Dirichlet(1)."""
    frame, known = third_party("marijuana_panel_counts"), reference("marijuana_panel")
    panel, weight = list(frame.iloc[:, :5].to_numpy()[:, :, None]), frame["V6"].to_numpy()
    for k in (1, 2, 3):
        ml = VBHMM(k, method="ml", n_init=5, tol=1e-9, random_state=0, **CODES).fit(panel, sample_weight=weight)
        assert ml.log_likelihood_ == approx(known["by_K"][str(k)]["max_loglik"], abs=2e-5)
        assert ml.bic(panel, weight) == approx(known["by_K"][str(k)]["bic_minus2_form"], abs=4e-5)
        vb = VBHMM(k, n_init=5, random_state=0, **CODES).fit(panel, sample_weight=weight)
        assert vb.lower_bound_ == approx(known["vb"]["values"][f"K{k}"]["vb_bound"], abs=2e-5)
        assert vb.n_samples_ == 1185


# Forms of sequences ---------------------------------------------------------------------------------------------------


def test_three_forms_of_sequences_are_one(rng):
    sequences, _ = chains(rng)
    X, ids = as_rows(sequences)
    lengths = list(map(len, sequences))
    model = VBHMM(2, n_init=3, random_state=0)
    listed = clone(model).fit(sequences)
    names = np.array(["b", "c", "a"])[ids]
    shuffled = np.argsort(np.arange(len(X)) % 7, kind="stable")  # sequences that are told by turns
    order = np.argsort(ids[shuffled], kind="stable")
    forms = [
        ((X,), {"sequence_id": ids}),
        ((X,), {"lengths": lengths}),
        ((X,), {"sequence_id": names.astype(object)}),
        ((tuple(map(pd.DataFrame, sequences)),), {}),
        (([s.tolist() for s in sequences],), {}),
    ]
    for (data,), where in forms:
        fit = clone(model).fit(data, **where)
        same_fit(fit, listed)
        for method in ("predict", "predict_proba", "filter", "transform"):
            found = getattr(fit, method)(data, **where)
            expected = getattr(listed, method)(sequences)
            found = np.concatenate(found) if isinstance(found, list) else found
            assert found == approx(np.concatenate(expected))
        assert fit.score_samples(data, **where) == approx(listed.score_samples(sequences))
        assert fit.score(data, **where) == approx(listed.score_samples(sequences).sum() / len(X))
        assert fit.forecast(data, **where).state_probabilities == approx(listed.forecast(sequences).state_probabilities)
    told_by_turns = X[shuffled][order], ids[shuffled][order]  # rows of a sequence in the order in which they stand
    expected = clone(model).fit([told_by_turns[0][told_by_turns[1] == k] for k in range(3)])
    fit = clone(model).fit(X[shuffled], sequence_id=ids[shuffled])
    same_fit(fit, expected)
    together = np.empty(len(X), dtype=int)
    together[order] = np.concatenate(expected.predict([told_by_turns[0][told_by_turns[1] == k] for k in range(3)]))
    assert np.array_equal(fit.predict(X[shuffled], sequence_id=ids[shuffled]), together)


def test_rows_without_ids_are_one_sequence(rng):
    (sequence,), _ = chains(rng, [80])
    rows = VBHMM(2, n_init=2, random_state=0).fit(sequence)
    listed = VBHMM(2, n_init=2, random_state=0).fit([sequence])
    same_fit(rows, listed)
    assert len(rows.score_samples(sequence)) == 1
    assert isinstance(listed.predict([sequence]), list)
    assert rows.fit_predict(sequence).shape == (80,)
    assert rows.fit_transform(sequence).shape == (80, 2)


def test_order_of_sequences_threads_and_seeds(rng):
    sequences, _ = chains(rng, rng.integers(1, 60, size=12))
    model = VBHMM(3, n_init=4, random_state=3)
    fit = clone(model).fit(sequences)
    threads = clone(model).set_params(n_jobs=2).fit(sequences)
    assert threads.lower_bound_ == fit.lower_bound_
    assert np.array_equal(threads.transmat_, fit.transmat_)
    order = rng.permutation(len(sequences))
    same_fit(clone(model).fit([sequences[k] for k in order]), fit, rel=1e-8)


def test_weights_are_repeated_sequences(rng):
    sequences, _ = chains(rng, [20, 30, 25, 10])
    weight = np.array([2, 0, 1, 3])
    repeated = [sequences[k] for k in np.repeat(np.arange(4), weight)]
    model = VBHMM(2, n_init=3, random_state=0)
    weighted, plain = clone(model).fit(sequences, sample_weight=weight), clone(model).fit(repeated)
    same_fit(weighted, plain)
    assert weighted.n_samples_ == plain.n_samples_ == 95
    X, ids = as_rows(sequences)
    same_fit(clone(model).fit(X, sequence_id=ids, sample_weight=weight[ids]), plain)
    turns = np.argsort(np.arange(len(X)) % 3, kind="stable")
    by_turns = clone(model).fit(X[turns], sequence_id=ids[turns], sample_weight=weight[ids[turns]])
    told = [X[turns][ids[turns] == k] for k in np.repeat(np.arange(4), weight)]
    same_fit(by_turns, clone(model).fit(told))
    assert weighted.score(sequences, sample_weight=weight) == approx(plain.score(repeated))
    assert weighted.bic(sequences, weight) == approx(plain.bic(repeated), abs=1e-4)
    with pytest.raises(ValueError, match="must be the same for all its rows"):
        model.fit(X, sequence_id=ids, sample_weight=np.arange(len(X)) + 1.0)


def test_a_column_of_categories_named_by_a_frame(rng):
    """Strings, a count and a measurement with missing cells, steps missing as a whole."""
    frame = pd.DataFrame(
        {
            "letter": np.where(np.arange(90) // 10 % 2, "a", "b").astype(object),
            "visits": rng.poisson(2 + 8 * (np.arange(90) // 10 % 2)).astype(float),
            "height": rng.normal(3.0 * (np.arange(90) // 10 % 2)),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.iloc[[4, 44, 89]] = None
    emission = {"categorical": "letter", "poisson": ["visits"], "gaussian": ["height"]}
    ids = np.arange(90) // 30
    fit = VBHMM(2, emission=emission, n_init=3, random_state=0).fit(frame, sequence_id=ids)
    assert fit.groups_ == {"categorical": ["letter"], "poisson": ["visits"], "gaussian": ["height"]}
    assert fit.categories_["letter"].tolist() == ["a", "b"]
    assert fit.feature_names_in_.tolist() == ["letter", "visits", "height"]
    completed = fit.impute(frame, sequence_id=ids)
    assert list(completed.columns) == list(frame.columns)
    assert not completed.isna().any().any()
    seen = frame.notna()
    assert completed[seen].equals(frame[seen])
    expected = np.where(np.arange(90) // 10 % 2, "a", "b")
    assert (completed["letter"] == expected).mean() > 0.95
    turns = np.argsort(np.arange(90) % 30, kind="stable")
    by_turns = fit.impute(frame.iloc[turns], sequence_id=ids[turns])
    assert by_turns.sort_index().equals(completed)
    listed = fit.impute([frame[ids == k] for k in range(3)])
    assert [len(part) for part in listed] == [30, 30, 30]
    assert pd.concat(listed)["height"].to_numpy() == approx(completed["height"].to_numpy())
    proba = fit.predict_proba(frame, sequence_id=ids)
    assert proba.sum(axis=1) == approx(1.0)
    assert fit.filter(frame, sequence_id=ids).sum(axis=1) == approx(1.0)
    assert fit.predict(frame, sequence_id=ids)[44] == fit.predict(frame, sequence_id=ids)[43]


@pytest.mark.parametrize("estimator", [VBHMM, VBMixture])
@pytest.mark.parametrize("emission", ["gaussian", "poisson", "exponential"])
def test_gaps_are_filled_at_the_point_found(emission, estimator, rng):
    """Neither by maximum likelihood nor at the mode does the prior move what the parameters say."""
    X = rng.poisson(4.0, size=(30, 1)) + 1.0
    X[::5] = np.nan
    name = "means" if emission == "gaussian" else "rates"
    for method in ("ml", "map"):
        held = Gaussian(mean_prior=[90.0]) if name == "means" else emission
        fit = estimator(1, emission=held, method=method).fit(X)
        expected = fit.parameters_[emission][name][0, 0]
        expected = 1 / expected if emission == "exponential" else expected
        assert fit.impute(X)[::5] == approx(expected)
        if method == "ml":
            assert expected == approx(np.nanmean(X))


def test_what_maximum_likelihood_has_never_seen_is_impossible():
    """EM lets probabilities fall towards 0 and never gets there: what is left of them is none."""
    cycle = [np.arange(n)[:, None] % 3 for n in (30, 20)]
    other_ways = [np.array([[0], [0], [1]]), np.array([[1], [2], [0]])]
    for seed in range(3):
        fit = VBHMM(3, emission="categorical", method="ml", n_init=3, random_state=seed).fit(cycle)
        assert fit.score_samples(other_ways).tolist() == [-np.inf, -np.inf]
        assert fit.score_samples(cycle) == approx(0.0, abs=1e-9)
        assert np.isin(fit.transmat_.round(9), [0.0, 1.0]).all()
        again = fit.set_params(warm_start=True).fit(other_ways)  # the fit itself still has a way to go there
        assert np.isfinite(again.score_samples(other_ways)).all()
    # a sequence that hardly counts is still possible
    letters = [np.array([[0], [1]] * 4), np.array([[0], [0]])]
    fit = VBHMM(2, emission="categorical", method="ml", n_init=5, random_state=0)
    assert np.isfinite(fit.fit(letters, sample_weight=[1e9, 1e-9]).score_samples(letters)).all()


def test_filled_whole_numbers_make_room_for_means(rng):
    """Columns of whole numbers become floats where a mean is none; those without a gap stay what they are."""
    cells = [None if k % 5 == 0 else int(k % 3) for k in range(30)]
    flags = [None if k % 7 == 0 else bool(k % 2) for k in range(30)]
    frame = pd.DataFrame(
        {
            "gaps": pd.array(cells, dtype="Int64"),
            "small": pd.array(cells, dtype="UInt8"),
            "whole": pd.array(range(30), dtype="Int64"),
            "flag": pd.array(flags, dtype="boolean"),
        }
    )
    emission = {"gaussian": ["gaps", "whole"], "poisson": ["small"], "categorical": ["flag"]}
    completed = VBHMM(1, emission=emission).fit(frame).impute(frame)
    assert completed.dtypes.astype(str).tolist() == ["Float64", "Float64", "Int64", "boolean"]
    assert completed["gaps"].iloc[0] % 1 > 0.01
    assert not completed.isna().any().any()
    marked = pd.DataFrame({"a": np.arange(30) % 4 - 1, "b": (np.arange(30) % 5 - 1.0).astype("float32")})
    filled = VBHMM(1, emission="gaussian", missing_values=-1).fit(marked).impute(marked)
    assert filled.dtypes.tolist() == [np.float64, np.float32]
    assert filled["a"].iloc[0] % 1 > 0.01
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"gaps": cells, "small": cells, "whole": list(range(30)), "flag": flags})
    other = VBHMM(1, emission=emission).fit(table).impute(table)
    assert other.dtypes == [polars.Float64, polars.Float64, polars.Int64, polars.Boolean]
    assert other["gaps"].to_list() == approx(completed["gaps"].tolist())


# Closed forms and other models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_one_state_is_a_mixture_of_one(missing, rng):
    sequences, _ = chains(rng, [20, 30], d=3)
    for sequence in sequences:
        sequence[rng.random(sequence.shape) < missing] = np.nan
    X, _ = as_rows(sequences)
    fit, mixture = VBHMM(random_state=0).fit(sequences), VBMixture(random_state=0).fit(X)
    assert fit.lower_bound_ == approx(mixture.lower_bound_, rel=1e-9)
    for name in ("means_", "covariances_", "degrees_of_freedom_", "covariance_prior_"):
        assert getattr(fit, name) == approx(getattr(mixture, name), rel=1e-5)
    assert fit.transmat_.tolist() == [[1.0]]


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_sequences_of_one_step_are_a_mixture(method, emission, rng):
    X = np.concatenate([rng.poisson(2, (40, 2)), rng.poisson(30, (30, 2))]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[3] = np.nan
    options = {"emission": emission, "method": method, "n_init": 4, "tol": 1e-9, "random_state": 0}
    fit = VBHMM(2, startprob_prior=1.5, **options).fit(list(X[:, None]))
    mixture = VBMixture(2, weight_concentration_prior=1.5, **options).fit(X)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    # transitions that are never made have a density of their own at the mode
    extra = fit._fitted_.model.prior.blocks[1].log_density(fit._fitted_.point[1]) if method == "map" else 0.0
    assert getattr(fit, objective) == approx(getattr(mixture, objective) + extra, rel=1e-8)
    order = np.argsort(fit.startprob_) if fit.startprob_[0] > fit.startprob_[1] else np.arange(2)
    theirs = np.argsort(mixture.weights_) if mixture.weights_[0] > mixture.weights_[1] else np.arange(2)
    assert fit.startprob_[order] == approx(mixture.weights_[theirs], rel=1e-4)
    assert fit.counts_[order] == approx(mixture.counts_[theirs], rel=1e-4)
    name = {"gaussian": "means", "poisson": "rates"}[emission]
    of_states, of_components = (each.parameters_[emission][name] for each in (fit, mixture))
    assert of_states[order] == approx(of_components[theirs], rel=1e-3)
    assert fit.n_samples_ == mixture.n_samples_ == np.isfinite(X).any(axis=1).sum()


def test_many_sequences_of_one_step_need_no_loop(rng):
    X = rng.integers(0, 2, (200_000, 1))
    began = time.process_time()
    one_start = {"n_init": 1, "init": "random", "random_state": 0}
    fit = VBHMM(2, tol=1e-2, **one_start, **CODES).fit(X, lengths=np.ones(len(X), dtype=int))
    assert fit.n_samples_ == len(X)
    assert len(fit.score_samples(X, sequence_id=np.arange(len(X)))) == len(X)
    assert time.process_time() - began < 10.0


def test_bound_and_states_of_hmmlearn(rng):
    """From the posterior of this fit, hmmlearn's E step is the same, and its bound of categories."""
    hmmlearn = pytest.importorskip("hmmlearn.vhmm")
    sequences = [rng.integers(0, 3, size=(n, 1)) for n in (40, 30)]
    X, ids = as_rows(sequences)
    fit = VBHMM(2, n_init=2, random_state=0, **CODES).fit(X, sequence_id=ids)
    other = hmmlearn.VariationalCategoricalHMM(2, n_iter=1, init_params="", tol=1e-12, implementation="scaling")
    other.n_features = 3
    concentration = fit._fitted_.posterior.blocks[2].concentration.reshape(2, 3)
    for name, prior, posterior in (
        ("startprob", fit.startprob_prior_, fit.startprob_concentration_),
        ("transmat", fit.transmat_prior_, fit.transmat_concentration_),
        ("emissionprob", np.ones((2, 3)), concentration),
    ):
        setattr(other, f"{name}_prior_", prior)
        setattr(other, f"{name}_posterior_", posterior)
    other.fit(X, lengths=[40, 30])
    assert other.monitor_.history[-1] == approx(fit.lower_bound_, abs=1e-5)


def test_answers_of_hmmlearn(rng):
    """At the published parameters: probabilities, states and paths of sequences."""
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    sequences, _ = chains(rng, [40, 30, 5], apart=2.0)
    X, _ = as_rows(sequences)
    lengths = [40, 30, 5]
    fit = VBHMM(3, n_init=2, random_state=0).fit(sequences)
    other = hmmlearn.GaussianHMM(3, covariance_type="full")
    other.n_features = 2
    other.startprob_, other.transmat_ = fit.startprob_, fit.transmat_
    other.means_, other.covars_ = fit.means_, fit.covariances_
    assert fit.score_samples(sequences).sum() == approx(other.score(X, lengths), rel=1e-9)
    assert fit.predict_proba(X, lengths=lengths) == approx(other.predict_proba(X, lengths), abs=1e-8)
    log_probability, states = other.decode(X, lengths)
    mine, found = fit.decode(X, lengths=lengths)
    assert np.array_equal(mine, states)
    assert found.sum() == approx(log_probability, rel=1e-9)


# Answers --------------------------------------------------------------------------------------------------------------


def test_states_are_found_and_drawn_sequences_fitted_again(rng):
    sequences, paths = chains(rng, [200, 150])
    fit = VBHMM(2, n_init=3, random_state=0).fit(sequences)
    found = np.concatenate(fit.predict(sequences))
    agree = (found == np.concatenate(paths)).mean()
    assert max(agree, 1 - agree) > 0.99
    assert np.diag(fit.transmat_) == approx(0.9, abs=0.05)
    X, states = fit.sample(3000, random_state=1)
    assert X.shape == (3000, 2)
    again = VBHMM(2, n_init=3, random_state=0).fit(X)
    order = np.argsort(again.means_[:, 0])[np.argsort(np.argsort(fit.means_[:, 0]))]
    assert again.means_[order] == approx(fit.means_, abs=0.4)
    assert again.transmat_[np.ix_(order, order)] == approx(fit.transmat_, abs=0.06)
    assert (order[states] == again.predict(X)).mean() > 0.98
    listed, of_states = fit.sample([5, 3], random_state=1)
    assert [each.shape for each in listed] == [(5, 2), (3, 2)]
    assert [len(each) for each in of_states] == [5, 3]


def test_probabilities_of_states_by_enumeration(rng):
    """Smoothed, filtered, best path, probability and forecast at the published parameters."""
    X = rng.integers(0, 2, (5, 1))
    X = np.where(np.arange(5)[:, None] == 2, np.nan, X)
    fit = VBHMM(2, n_init=2, random_state=0, **CODES).fit([rng.integers(0, 2, (30, 1)).astype(float), X])
    emission = fit.parameters_["categorical"]["probabilities"][:, 0]
    of_paths = {}
    for code in range(32):
        path = [code >> t & 1 for t in range(5)]
        p = fit.startprob_[path[0]] * np.prod([fit.transmat_[a, b] for a, b in pairwise(path)])
        of_paths[tuple(path)] = p * np.prod([emission[s, int(x)] for s, x in zip(path, X[:, 0]) if x == x])
    total = sum(of_paths.values())
    marginal = [[sum(p for s, p in of_paths.items() if s[t] == k) / total for k in (0, 1)] for t in range(5)]
    assert fit.predict_proba([X])[0] == approx(np.array(marginal))
    assert fit.score_samples([X]) == approx([np.log(total)])
    assert fit.score([X]) == approx(np.log(total) / 5)
    states, log_probability = fit.decode([X])
    assert of_paths[tuple(states[0])] == approx(max(of_paths.values()))
    assert log_probability == approx([np.log(max(of_paths.values()))])
    assert fit.filter([X])[0][-1] == approx(marginal[-1])
    forecast = fit.forecast([X], n_steps=3)
    ahead = np.array(marginal[-1])
    for step in range(3):
        ahead = ahead @ fit.transmat_
        assert forecast.state_probabilities[0, step] == approx(ahead)
        assert forecast.expected["x0"][0, step] == approx(ahead @ emission)


def test_forecasts_of_every_family(rng):
    n = 60
    frame = pd.DataFrame(
        {
            "m": rng.normal(size=n),
            "p": rng.poisson(3, n),
            "e": rng.exponential(2, n),
            "b": rng.integers(0, 2, n),
            "c1": rng.poisson(1, n) + 1,
            "c2": rng.poisson(4, n),
            "k": rng.choice(list("xyz"), n),
        }
    )
    emission = {
        "gaussian": "m",
        "poisson": "p",
        "exponential": "e",
        "bernoulli": "b",
        "multinomial": ["c1", "c2"],
        "categorical": "k",
    }
    fit = VBHMM(1, emission=emission, random_state=0).fit(frame)
    expected = fit.forecast(frame, n_steps=2).expected
    assert list(expected) == list(frame.columns)
    for name in ("m", "p", "e", "b"):
        assert expected[name].shape == (1, 2)
        assert expected[name][0] == approx(frame[name].mean(), rel=0.15, abs=0.1)
    assert expected["c1"][0, 0] + expected["c2"][0, 0] == approx(1.0)
    assert expected["k"].shape == (1, 2, 3)
    assert expected["k"].sum(axis=-1) == approx(1.0)


def predicted(ahead, rates, values):
    """P(a count of each step to come is at most a value), by states and rates of one draw."""
    return sum(ahead.state_probabilities[..., k] * stats.poisson.cdf(values, rate) for k, rate in enumerate(rates))


def test_intervals_of_forecasts_are_quantiles_of_what_is_predicted(rng):
    """At a point: by the definition of a quantile, of a mixture of states; whole numbers of counts."""
    frame = pd.DataFrame({"m": rng.normal(size=80), "p": rng.poisson(4, 80), "e": rng.exponential(2, 80), "k": "a"})
    frame.loc[:39, ["m", "p", "e"]] += 6
    frame.loc[::3, "k"] = "b"
    emission = {"gaussian": "m", "poisson": "p", "exponential": "e", "categorical": "k"}
    fit = VBHMM(2, emission=emission, method="ml", init="random", n_init=2, random_state=0).fit(frame)
    ahead = fit.forecast(frame, n_steps=3, level=0.8)
    parts = fit.parameters_
    means, variances = parts["gaussian"]["means"][:, 0], parts["gaussian"]["covariances"].reshape(2, -1)[:, 0]
    rates, of_times = parts["poisson"]["rates"][:, 0], parts["exponential"]["rates"][:, 0]
    states = ahead.state_probabilities
    assert [*ahead.lower] == [*ahead.upper] == [*ahead.variance] == ["m", "p", "e"]
    for ends, mass in ((ahead.lower, 0.1), (ahead.upper, 0.9)):
        assert (states * stats.norm.cdf(ends["m"][..., None], means, variances**0.5)).sum(axis=-1) == approx(
            mass, rel=1e-9
        )
        assert (states * stats.expon.cdf(ends["e"][..., None], scale=1 / of_times)).sum(axis=-1) == approx(
            mass, rel=1e-9
        )
        assert (ends["p"] == np.floor(ends["p"])).all()
        assert (predicted(ahead, rates, ends["p"]) >= mass).all()
        assert (predicted(ahead, rates, ends["p"] - 1) < mass).all()
    center = states @ means
    assert ahead.variance["m"] == approx(states @ (variances + means**2) - center**2)
    assert ahead.level == 0.8


def test_forecasts_average_over_draws_of_the_parameters(counted_chain):
    """Sums over draws written out; the interval is the same whatever is expected, and whoever else is asked about."""
    fit, X = counted_chain
    draws = fit.sample_posterior(X, 30, method="linear_response")
    ahead = fit.forecast(X, n_steps=2, level=0.9, draws=draws)
    each = [at_draw(fit, natural) for natural in draws.natural.T]
    of_draws = [(one.forecast(X, n_steps=2), one.parameters_["poisson"]["rates"][:, 0]) for one in each]
    assert ahead.state_probabilities == approx(np.mean([one.state_probabilities for one, _ in of_draws], axis=0))
    expected = np.array([one.expected["x0"] for one, _ in of_draws])
    within = np.array([one.variance["x0"] for one, _ in of_draws])
    assert ahead.expected["x0"] == approx(expected.mean(axis=0))
    assert ahead.variance["x0"] == approx(within.mean(axis=0) + expected.var(axis=0))
    for end, mass in ((ahead.lower["x0"], 0.05), (ahead.upper["x0"], 0.95)):
        assert (np.mean([predicted(*one, end) for one in of_draws], axis=0) >= mass).all()
        assert (np.mean([predicted(*one, end - 1) for one in of_draws], axis=0) < mass).all()
    plain = fit.forecast(X, n_steps=2)
    other = clone(fit).set_params(predictive="average", n_draws=20, n_init=1).fit(X)
    averaged = other.forecast([X[:9], X], n_steps=2)
    assert averaged.upper["x0"][1] == approx(other.forecast(X, n_steps=2).upper["x0"][0])
    states = np.mean(
        [one.forecast(X).state_probabilities for one in (at_draw(other, each) for each in drawn_from(other).T)], axis=0
    )
    assert other.forecast(X).state_probabilities == approx(states)
    assert plain.state_probabilities[0, 0] == approx(fit.filter(X)[-1] @ fit.transmat_)
    narrow = set_point(fit).forecast(X, n_steps=2)
    assert (plain.variance["x0"] > narrow.variance["x0"]).all()


def drawn_from(fit):
    """The draws from q(theta) that predictions average over."""
    return fit.fitted.draws(fit.n_draws, fit.fitted.rng_of_draws)


def set_point(fit):
    """The estimator at its published parameters, which it takes for known."""
    return at_draw(fit, fit.fitted.natural("mean"))


def test_forecasts_refuse_draws_of_another_model(counted_chain):
    fit, X = counted_chain
    other = VBHMM(3, emission="poisson", init="random", n_init=1, random_state=0).fit(X)
    for wrong in (3, other.sample_posterior(X, 5, method="vb")):
        with pytest.raises(
            ValueError, match="'draws' parameter of forecast must be what sample_posterior or bootstrap"
        ):
            fit.forecast(X, draws=wrong)
    for level in (0, 1.0, "x"):
        with pytest.raises(ValueError, match="'level' parameter of forecast"):
            fit.forecast(X, level=level)


@pytest.fixture(scope="module")
def counted_chain():
    """Few counts of two rates, fitted, so that parameters are uncertain."""
    rng = np.random.default_rng(5)
    X = rng.poisson(np.repeat([2.0, 9.0, 2.0], 8))[:, None]
    return VBHMM(2, emission="poisson", init="random", n_init=2, random_state=0).fit(X), X


def test_three_predictive_probabilities_are_in_their_order(rng):
    """ln of the point of VB is below ln of the average over q; error bars of averages hold."""
    sequences, _ = chains(rng, [30, 20], apart=1.0)
    new, _ = chains(rng, [10, 15, 5], apart=1.0)
    fit = VBHMM(2, n_init=3, random_state=0).fit(sequences)
    mean, errors = fit.score_samples(new, return_error=True)
    assert not errors.any()
    below = fit.set_params(predictive="vb").score_samples(new)
    average, errors = fit.set_params(predictive="average", n_draws=400).score_samples(new, return_error=True)
    assert (below < average - 3 * errors).all()
    assert (errors > 0).all()
    assert np.isfinite(mean).all()
    assert np.array_equal(fit.score_samples(new), average)  # the same draws
    few, wider = fit.set_params(n_draws=50).score_samples(new, return_error=True)
    assert (np.abs(few - average) < 5 * np.hypot(wider, errors)).all()


def test_predictive_probabilities_of_one_state_have_closed_forms(rng):
    """The point of VB, the posterior mean, and the Dirichlet-multinomial average, of symbols in one state."""
    X, new = rng.integers(0, 3, (20, 1)), rng.integers(0, 3, (6, 1))
    counts = 1 + np.bincount(X[:, 0], minlength=3)
    seen = np.bincount(new[:, 0], minlength=3)
    exact = gammaln(counts.sum()) - gammaln(counts.sum() + 6) + (gammaln(counts + seen) - gammaln(counts)).sum()
    fit = VBHMM(n_draws=2000, random_state=0, **CODES).fit(X)
    assert fit.score_samples([new]) == approx([seen @ np.log(counts / counts.sum())])
    at_point = seen @ (digamma(counts) - digamma(counts.sum()))
    assert fit.set_params(predictive="vb").score_samples([new]) == approx([at_point])
    found, error = fit.set_params(predictive="average").score_samples([new], return_error=True)
    assert found == approx([exact], abs=4 * error[0])
    assert error[0] < 0.05


def drawn_sequences(rng, family, d):
    """A few short sequences of a family, with or without missing cells."""
    draw = {
        "gaussian": lambda shape: rng.normal(size=shape) * 10 ** rng.uniform(-3, 3),
        "poisson": lambda shape: rng.poisson(3, shape).astype(float),
        "categorical": lambda shape: rng.integers(0, 3, shape).astype(float),
        "exponential": lambda shape: rng.exponential(size=shape),
        "bernoulli": lambda shape: rng.integers(0, 2, shape).astype(float),
    }[family]
    sequences = [draw((int(n), d)) for n in rng.integers(1, 12, size=rng.integers(1, 6))]
    gaps = rng.choice([0.0, 0.3])
    for sequence in sequences:
        sequence[rng.random(sequence.shape) < gaps] = np.nan
    sequences[0][0] = np.nan_to_num(sequences[0][0])
    return sequences


@pytest.mark.filterwarnings("ignore::UserWarning")  # of one row, of constant columns, of more states than steps
@pytest.mark.parametrize("family", ["gaussian", "poisson", "categorical", "exponential", "bernoulli"])
def test_random_fits_never_lose_and_always_answer(family, rng):
    """Every step's objective is no less than the last, and what is asked has finite answers that sum to one."""
    for _ in range(8):
        sequences = drawn_sequences(rng, family, int(rng.integers(1, 3)))
        fit = VBHMM(
            int(rng.integers(1, 5)),
            emission=family,
            covariance_type=str(rng.choice(["full", "diag", "tied", "spherical"])),
            transmat_mask=(None, "left-to-right", 1)[rng.integers(3)],
            transmat_prior=("unit", 1.0, 1e-3)[rng.integers(3)],
            startprob_prior=("unit", 1.0)[rng.integers(2)],
            sticky=float(rng.choice([0, 3])),
            method=str(rng.choice(["vb", "vb", "map", "ml"])),
            n_init=2,
            random_state=0,
        ).fit(sequences)
        objectives = fit.lower_bounds_
        assert np.isfinite(objectives).all()
        assert (np.diff(objectives) >= -1e-11 * np.maximum(1.0, np.abs(objectives[1:]))).all()
        assert np.isfinite(fit.score_samples(sequences)).all()
        for states in (*fit.predict_proba(sequences), *fit.filter(sequences)):
            assert states.sum(axis=1) == approx(1.0)
        assert not any(np.isnan(each).any() for each in fit.impute(sequences))
        assert fit.forecast(sequences, 2).state_probabilities.sum(axis=-1) == approx(1.0)


# Priors ---------------------------------------------------------------------------------------------------------------


def test_priors_of_the_chain(rng):
    (X,), _ = chains(rng, [50])
    fit = VBHMM(3, transmat_prior="unit", sticky=2.0, startprob_prior=[1, 2, 0], n_init=1, random_state=0).fit(X)
    assert fit.transmat_prior_ == approx(np.full((3, 3), 1 / 3) + 2 * np.eye(3))
    assert fit.startprob_prior_.tolist() == [1, 2, 0]
    assert fit.startprob_[2] == 0
    left = VBHMM(3, transmat_mask="left-to-right", transmat_prior="unit", n_init=1, random_state=0).fit(X)
    assert left.transmat_prior_.tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert left.startprob_.tolist() == [1, 0, 0]
    assert np.tril(left.transmat_, -1).sum() == 0
    assert left.n_free_parameters_ == 0 + 2 + 3 * 5
    assert (np.diff(left.predict(X)) >= 0).all()
    band = VBHMM(4, transmat_mask=1, n_init=1, random_state=0).fit(X)
    assert (band.transmat_[np.abs(np.subtract.outer(np.arange(4), np.arange(4))) > 1] == 0).all()
    mask = np.array([[1, 1], [1, 0]])
    masked = VBHMM(2, transmat_mask=mask, n_init=1, random_state=0).fit(X)
    assert masked.transmat_[1].tolist() == [1, 0]
    array = VBHMM(2, transmat_prior=[[1, 2], [3, 4]], n_init=1, random_state=0).fit(X)
    assert array.transmat_prior_.tolist() == [[1, 2], [3, 4]]
    assert array.transmat_concentration_.sum() == approx(10 + 49)


def test_left_to_right_starts_in_the_order_of_time(rng):
    """States that come one after the other, whatever their means: every start finds them."""
    means = np.array([4.0, -3.0, 8.0, 0.0, 6.0, -1.0, 3.0])
    sequences = [rng.normal(size=(70, 1)) * 0.5 + np.repeat(means, 10)[:, None] for _ in range(4)]
    fit = VBHMM(7, transmat_mask="left-to-right", n_init=5, random_state=0).fit(sequences)
    assert fit.restarts_.n_best >= 2
    assert fit.means_[:, 0] == approx(means, abs=0.5)
    assert all(np.mean(path == np.repeat(np.arange(7), 10)) > 0.95 for path in fit.predict(sequences))


def test_learned_priors_raise_the_bound(rng):
    sequences, _ = chains(rng, [60, 60])
    plain = VBHMM(3, n_init=3, random_state=0).fit(sequences)
    learned = VBHMM(3, n_init=3, learn_prior=True, random_state=0).fit(sequences)
    assert learned.lower_bound_ > plain.lower_bound_ + 0.1
    ratio = learned.transmat_prior_ / plain.transmat_prior_
    assert ratio == approx(ratio[0, 0])
    prior, counts = learned.transmat_prior_, learned.transmat_concentration_ - learned.transmat_prior_
    scores = [sum(map(dirichlet, counts, prior * factor)) for factor in (0.9, 1.0, 1.1)]
    assert scores[1] > max(scores[0], scores[2])  # no other strength makes these transitions more probable
    assert "optimized prior" in learned.log_evidence(sequences).note
    with pytest.raises(ValueError, match="needs method='vb'"):
        VBHMM(learn_prior=True, method="ml").fit(sequences)


def test_empty_and_duplicate_states(rng):
    """(abc)*: three states of many are used; two that emit alike but lead elsewhere are no duplicates."""
    abc = [np.array([list("abc" * 13)]).T for _ in range(3)]
    acb = [np.array([list("acb" * 13)]).T for _ in range(3)]
    fit = VBHMM(8, transmat_prior="unit", startprob_prior="unit", n_init=40, random_state=0).fit(abc + acb)
    assert fit.restarts_.n_best >= 3  # of starts that draw where states lead to
    states = fit.latent_states_["state"]
    assert len(states.in_use) == 6
    assert len(states.empty) == 2
    assert states.duplicates == ()
    assert np.sort(fit.transmat_[list(states.in_use)].max(axis=1)) == approx(np.ones(6), abs=0.05)
    known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
    alike = VBHMM(3, emission=known, init=np.tile([[0.5, 0.5, 0.0]], (39, 1))).fit(rng.normal(size=(39, 1)))
    assert (0, 1) in alike.latent_states_["state"].duplicates
    assert alike.latent_states_["state"].empty == (2,)


# Scores and searches --------------------------------------------------------------------------------------------------


def test_scores_of_the_evidence(rng):
    sequences, _ = chains(rng, [30, 25])
    X, ids = as_rows(sequences)
    known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
    fits = {k: VBHMM(k, emission=known, n_init=3, random_state=0).fit(sequences) for k in (1, 2)}
    assert fits[1].lower_bound_ == approx(fits[1].log_evidence(sequences, kind="importance").value, abs=0.1)
    fit = fits[2]
    assert fit.log_evidence().value == fit.lower_bound_
    by_rows = fit.log_evidence(X, sequence_id=ids, kind="bic").value
    assert fit.log_evidence(sequences[::-1], kind="bic").value == approx(by_rows, abs=1e-4)
    assert fit.bic(X, sequence_id=ids) == approx(-2 * by_rows, abs=1e-3)
    assert fit.aic(sequences) < fit.bic(sequences)
    ais = fit.log_evidence(sequences, kind="ais", n_chains=16, n_steps=64)
    assert ais.value > fit.lower_bound_ - 3 * ais.standard_error
    assert fit.log_evidence(sequences, kind="cheeseman_stutz").value <= fit.lower_bound_ + 0.01
    table = evidence_table(fit, sequences, ["lower_bound", "bic", "draper"])
    assert set(table) == {"lower_bound", "bic", "draper"}
    with pytest.raises(ValueError, match="belong to the data of its fit"):
        fit.log_evidence([X], kind="bic")  # the same rows as one sequence are other data
    with pytest.raises(ValueError, match="belong to the data of its fit"):
        fit.log_evidence([sequences[0][::-1], sequences[1]], kind="bic")
    assert fit.log_evidence(sequences, kind="collapsed").value >= fit.lower_bound_ - 1e-7
    assert abs(fit.log_evidence(sequences, kind="laplace", alias=True).value - ais.value) < 5.0


@pytest.mark.filterwarnings("ignore::skvbem.errors.EvidenceWarning")  # of a few short chains
def test_certificates_of_simulated_sequences(rng):
    fit = VBHMM(2, n_init=2, random_state=0, **CODES).fit([rng.integers(0, 3, (8, 1)) for _ in range(2)])
    found = certify_evidence(fit, [rng.integers(0, 3, (8, 1)) for _ in range(2)], n_chains=8, n_steps=64)
    assert found.lower.value <= found.upper.value + 3.0


def test_searches_over_lists_of_sequences(rng):
    sequences, _ = chains(rng, rng.integers(10, 30, size=9))
    search = GridSearchCV(VBHMM(n_init=2, random_state=0), {"n_components": [1, 2]}, cv=3).fit(sequences)
    assert search.best_params_ == {"n_components": 2}
    assert search.predict(sequences[:2])[0].shape == (len(sequences[0]),)
    options = {"rescoring": False, "random_state": 0}
    found = StructureSearchCV(VBHMM(n_init=2), {"n_components": [1, 2, 3]}, **options).fit(sequences)
    assert found.best_params_ == {"n_components": 2}
    assert found.best_estimator_.lower_bound_ == approx(found.best_score_)
    masks = StructureSearchCV(VBHMM(2, n_init=2), {"transmat_mask": [None, "left-to-right"]}, **options)
    assert masks.fit(sequences).best_params_ == {"transmat_mask": None}
    X, ids = as_rows(sequences)
    by_rows = StructureSearchCV(VBHMM(n_init=2), {"n_components": [1, 2, 3]}, **options)
    by_rows.fit(X, sequence_id=ids)
    assert by_rows.best_score_ == approx(found.best_score_, rel=1e-6)


def test_rows_under_routing_and_in_pipelines(rng):
    sequences, _ = chains(rng, [20] * 6)
    X, ids = as_rows(sequences)
    scaled = make_pipeline(StandardScaler(), VBHMM(2, n_init=2, random_state=0))
    scaled.fit(X, vbhmm__sequence_id=ids)
    assert scaled[-1].n_samples_ == 120
    with sklearn.config_context(enable_metadata_routing=True):
        model = VBHMM(2, n_init=2, random_state=0).set_fit_request(sequence_id=True).set_score_request(sequence_id=True)
        by_rows = cross_val_score(model, X, cv=GroupKFold(3), params={"sequence_id": ids, "groups": ids})
    folds = [(np.unique(ids[train]), np.unique(ids[test])) for train, test in GroupKFold(3).split(X, groups=ids)]
    by_lists = cross_val_score(VBHMM(2, n_init=2, random_state=0), sequences, cv=folds)
    assert by_rows == approx(by_lists, rel=1e-5)
    with pytest.raises(ValueError, match="Cross-validation splits the rows of X"):
        cross_val_score(VBHMM(2), X, cv=KFold(3), params={"lengths": [20] * 6}, error_score="raise")


# Batches and copies ---------------------------------------------------------------------------------------------------


def test_batches(rng):
    sequences, _ = chains(rng, [40, 60, 50], d=1)
    whole = VBHMM(1, emission=Gaussian(mean_prior=[0.0], mean_precision_prior=1.0, covariance_prior=[[1.0]]))
    batches = clone(whole)
    for sequence in sequences:
        batches.partial_fit([sequence])
    whole.fit(sequences)
    assert batches.means_ == approx(whole.means_, rel=1e-6)
    assert batches.covariances_ == approx(whole.covariances_, rel=1e-6)
    assert batches.n_samples_ == 150
    assert not hasattr(batches, "lower_bound_")
    two = VBHMM(2, n_init=3, random_state=0)
    two.partial_fit(sequences[:2]).partial_fit(sequences[2:])
    assert two.transmat_concentration_.sum() == approx(4 + 147)
    assert two.startprob_concentration_.sum() == approx(2 + 3)
    with pytest.raises(ValueError, match="updated by partial_fit"):
        two.log_evidence(sequences, kind="bic")
    assert not hasattr(VBHMM(method="ml"), "partial_fit")


def test_copies_answer_alike(rng):
    sequences, _ = chains(rng)
    fit = VBHMM(2, n_init=2, random_state=0).fit(sequences)
    copy = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(copy.score_samples(sequences), fit.score_samples(sequences))
    assert clone(fit).get_params().keys() == fit.get_params().keys()
    X, ids = as_rows(sequences)
    framed = VBHMM(2, n_init=2, random_state=0).set_output(transform="pandas").fit(X, sequence_id=ids)
    assert framed.transform(X, sequence_id=ids).columns.tolist() == ["vbhmm0", "vbhmm1"]
    with pytest.raises(ValueError, match="set_output lets 'transform' of VBHMM return one table"):
        framed.transform(sequences)


def test_starts_are_given_by_row(rng):
    sequences, paths = chains(rng, [30, 20])
    shares = [np.stack([1 - states, states], axis=1).astype(float) for states in paths]
    listed = VBHMM(2, init=shares).fit(sequences)
    X, ids = as_rows(sequences)
    turns = np.argsort(np.arange(len(X)) % 5, kind="stable")
    back = np.argsort(ids[turns], kind="stable")
    by_rows = VBHMM(2, init=np.concatenate(shares)[turns]).fit(X[turns], sequence_id=ids[turns])
    told = [X[turns][back][ids[turns][back] == k] for k in range(2)]
    of_told = [np.concatenate(shares)[turns][back][ids[turns][back] == k] for k in range(2)]
    same_fit(by_rows, VBHMM(2, init=of_told).fit(told))
    assert listed.predict(sequences)[0].tolist() == paths[0].tolist()
    weighted = VBHMM(2, init=shares).fit(sequences, sample_weight=[0, 1])
    same_fit(weighted, VBHMM(2, init=shares[1:]).fit(sequences[1:]))


# Intervals ------------------------------------------------------------------------------------------------------------


def test_intervals_of_the_chain_are_those_of_beta_distributions(rng):
    counts = [rng.poisson(4, size=(n, 1)) for n in (30, 20)]
    mask = [[1, 1, 0], [1, 1, 1], [0, 0, 1]]
    model = VBHMM(3, emission="poisson", transmat_mask=mask, n_init=2, random_state=0).fit(counts)
    found = model.credible_intervals(level=0.8, method="vb")
    assert set(found) == {"chain", "poisson"}
    for name, concentration in (
        ("startprob", model.startprob_concentration_),
        ("transmat", model.transmat_concentration_),
    ):
        rest = concentration.sum(axis=-1, keepdims=True) - concentration
        for end, share in zip(found["chain"][name], (0.1, 0.9)):
            expected = np.where(rest > 0, stats.beta.ppf(share, concentration, rest), 1.0)
            assert end == approx(np.where(concentration > 0, expected, 0.0), rel=1e-9)
    assert [end[2].tolist() for end in found["chain"]["transmat"]] == [[0, 0, 1], [0, 0, 1]]
    assert np.all(found["poisson"]["rates"][0] < model.parameters_["poisson"]["rates"])
    with pytest.raises(ValueError, match=r"'level' parameter of credible_intervals .* Got 1 instead"):
        model.credible_intervals(level=1)
    with pytest.raises(ValueError, match=r"fit by 'ml' is a point\. Take standard_errors\(X\)"):
        model.set_params(method="ml").fit(counts).credible_intervals()


# From where the last fit ended ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_warm_start_goes_on_where_the_last_fit_ended(method, rng):
    sequences = [rng.normal(size=(n, 2)) + 2.0 * (np.arange(n)[:, None] // 10 % 2) for n in (80, 60)]
    model = VBHMM(2, method=method, n_init=3, random_state=0, warm_start=True, max_iter=3, tol=1e-7, acceleration=False)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    reached = []
    for _ in range(5):
        reached.append(getattr(model.fit(sequences), objective))
        assert len(model.restarts_.bounds) == (3 if len(reached) == 1 else 1)  # the last solution is the only start
    # the same steps as those of one run, since one E step makes the start of each
    at_once = clone(model).set_params(max_iter=10_000, n_init=1).fit(sequences)
    assert (np.diff(reached) > -1e-9).all()
    again = clone(at_once).fit(sequences).fit(sequences)
    assert getattr(again, objective) == approx(getattr(at_once, objective), abs=1e-6)
    assert again.n_iter_ <= 4
    assert again.transmat_ == approx(at_once.transmat_, abs=1e-4)


def test_a_warm_start_is_the_e_step_of_the_last_fit(rng):
    """Of complete data, as what the objective is at the first step says."""
    codes = [rng.integers(0, 3, size=(n, 1)) for n in (60, 30, 1)]
    last = VBHMM(3, **CODES, n_init=2, random_state=0, warm_start=True, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        last.fit(codes)
    fitted = last._fitted_
    rows = read(last, codes)
    data = rows.compiled(fitted.model)
    natural = fitted.posterior.expected_natural()[:, None]
    expected = fitted.model.expect(natural, data).statistics[:, 0]
    assert fitted.start_of(rows, fitted.model, data) == approx(expected, abs=1e-9)


def test_a_warm_start_keeps_the_states_in_their_order(rng):
    first, _ = chains(rng)
    model = VBHMM(2, n_init=2, random_state=0, warm_start=True).fit(first)
    order = np.argsort(model.means_[:, 0])
    for seed, shape in enumerate(("diag", "tied", "full")):
        later, _ = chains(np.random.default_rng(seed))
        model.set_params(random_state=seed, covariance_type=shape).fit(later)
        assert np.argsort(model.means_[:, 0]).tolist() == order.tolist()
        assert model.lower_bound_ == approx(clone(model).fit(later).lower_bound_, abs=1e-3)


@pytest.mark.parametrize("change", [{"n_components": 3}, {"transmat_mask": "left-to-right"}, {"emission": "poisson"}])
def test_a_warm_start_from_another_chain_is_a_cold_one(change, rng):
    counts = [rng.poisson(4, size=(n, 1)) for n in (30, 20)]
    model = VBHMM(2, emission="gaussian", n_init=3, random_state=0, warm_start=True).fit(counts)
    model.set_params(**change).fit(counts)
    assert model.lower_bound_ == clone(model).fit(counts).lower_bound_
    assert len(model.restarts_.bounds) == 3
    with pytest.raises(ValueError, match="'warm_start' parameter of VBHMM must be"):
        VBHMM(warm_start="yes").fit(counts)


def test_a_warm_start_can_take_what_the_last_fit_ruled_out():
    """Two symbols that always alternated, so that no state ever stayed, now repeat."""
    seen, repeats = np.array([[0], [1]] * 10), np.array([[0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]]).T
    model = VBHMM(2, **CODES, method="ml", n_init=1, random_state=0, warm_start=True).fit([seen])
    always = np.array([1, 0, 0, 10, 9, 0, 10, 0, 0, 10.0])
    model._fitted_ = replace(model._fitted_, statistics=always)
    assert model.score_samples([seen, repeats]).tolist() == [0.0, -np.inf]
    assert np.isfinite(model.fit([seen, repeats]).log_likelihood_)
    assert model._run_.plan.starts[:6].min() > 0  # what is 0 stays so


def test_starts_survive_a_prior_that_empties_states():
    """Two cycles of three symbols, six states: twenty starts find them if some begin as points."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cycles = [np.array(list(word)) for word in ["abc"] * 4 + ["acb"] * 4]
        strings = [cycle[(rng.integers(3) + np.arange(rng.integers(10, 30))) % 3][:, None] for cycle in cycles]
        prior = {"startprob_prior": "unit", "transmat_prior": "unit", "emission": Categorical(1 / 3)}
        fit = VBHMM(10, n_init=20, init="k-means++", random_state=0, **prior).fit(strings)
        assert len(fit.latent_states_["state"].in_use) == 6
        assert fit.restarts_.n_best > 1
        assert VBHMM(10, random_state=0, **prior).fit(strings).lower_bound_ >= fit.lower_bound_ - 0.01


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_long_chain_takes_little_memory_beside_X(rng):
    X = rng.normal(size=(200_000, 2)) + 3 * (np.arange(200_000)[:, None] // 50 % 3)
    model = VBHMM(3, n_init=10, max_iter=4, random_state=0)
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning):
            model.fit(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6


def test_steps_of_a_chain_are_counted_by_max_memory(rng):
    X = rng.normal(size=(10_000, 2))
    with pytest.raises(TooLargeError, match=r"10,000 steps of 3 states would take at least 8e\+05 bytes"):
        VBHMM(3, max_memory=7e5).fit(X)
    with pytest.warns(ConvergenceWarning):
        VBHMM(3, n_init=1, max_iter=1, max_memory=9e5, random_state=0).fit(X)
