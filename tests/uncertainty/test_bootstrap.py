"""Bootstrap: data made anew as defined, fitted as `fit` does, whatever the order of rows and the number of jobs."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, blocks_of
from skvbem.data import resampled
from skvbem.emissions import Gaussian
from skvbem.estimators import BootstrapDraws
from skvbem.fitting.evaluation import evaluation_of
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.uncertainty.bootstrap import Replication, bootstrap_draws, starts_of

approx = pytest.approx


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    group = rng.random(150) < 0.4
    X = (rng.random((150, 4)) < np.where(group, 0.85, 0.2)[:, None]).astype(object)
    X[::6, 2] = None
    return X


@pytest.fixture(scope="module")
def classes(answers):
    return VBDiscreteDAG(latents=2, method="ml", n_init=4, tol=1e-8, random_state=0).fit(answers)


def numbers(draws):
    return np.concatenate([each.ravel() for of in draws.parameters.values() for each in of.values()])


# Rows drawn with replacement ------------------------------------------------------------------------------------------


def test_as_many_units_are_drawn_as_there_are():
    hashes, weight = np.array([5, 9, 5, 7], dtype=np.uint64), np.array([2.0, 1.0, 3.0, 4.0])
    drawn = np.zeros(3)
    for seed in range(2000):
        positions, times = resampled(hashes, weight, np.random.default_rng(seed))
        assert times.sum() == 10
        assert set(positions) <= {0, 1, 3}  # equal units are one
        np.add.at(drawn, np.searchsorted([0, 1, 3], positions), times)
    # of Multinomial(10; .5, .1, .4), a standard error of 0.035 at most
    assert drawn / 2000 == approx([5, 1, 4], abs=0.15)


def test_weights_are_units_and_their_order_is_none():
    rng = np.random.default_rng(1)
    hashes, weight = rng.integers(0, 2**63, 30).astype(np.uint64), rng.integers(1, 4, 30).astype(float)
    repeated, order = np.repeat(hashes, weight.astype(int)), rng.permutation(30)
    cases = [(hashes, weight), (hashes[order], weight[order]), (repeated, None)]
    made = [resampled(*case, np.random.default_rng(2)) for case in cases]
    found = [(case[0][positions].tolist(), times.tolist()) for case, (positions, times) in zip(cases, made)]
    assert found[0] == found[1] == found[2]


def test_fractions_stay_with_their_rows():
    rng = np.random.default_rng(1)
    hashes, weight = rng.integers(0, 2**63, 30).astype(np.uint64), rng.uniform(0.1, 2.0, 30)
    positions, drawn = resampled(hashes, weight, np.random.default_rng(2))
    times = drawn / weight[positions]
    assert times == approx(np.round(times))
    assert times.sum() == approx(30)
    order = rng.permutation(30)
    again, _ = resampled(hashes[order], weight[order], np.random.default_rng(2))
    assert order[again].tolist() == positions.tolist()


def test_sequences_are_drawn_whole():
    X = np.arange(24.0)[:, None]
    model = VBHMM(1, emission=Gaussian("diag"), n_init=1, random_state=0).fit(X, lengths=[4, 6, 3, 11])
    reading = read(model, X, lengths=[4, 6, 3, 11])
    firsts, lengths = [0, 4, 10, 13], [4, 6, 3, 11]
    for seed in range(20):
        drawn = reading.resampled(np.random.default_rng(seed))
        assert drawn.weight.sum() == 4
        for rows in np.split(drawn.values[0][:, 0], np.cumsum(drawn.lengths)[:-1]):
            which = firsts.index(int(rows[0]))
            assert rows.tolist() == np.arange(firsts[which], firsts[which] + lengths[which]).tolist()


# Fits to them ---------------------------------------------------------------------------------------------------------


def test_a_draw_is_the_fit_to_its_data(answers, classes):
    draws = classes.bootstrap(answers, 3)
    reading = read(classes, answers, columns=classes.fitted.columns)
    start = {node: np.clip(table.values, 0.02, None) for node, table in classes.tables_.items()}
    start = {node: table / table.sum(axis=-1, keepdims=True) for node, table in start.items()}
    for k in range(3):
        again = reading.resampled(np.random.default_rng([0, 2**35, k])).rows
        X = np.where(again.codes < 0, None, (again.codes == 1).astype(object))
        fit = VBDiscreteDAG(latents=2, method="ml", init=start, tol=1e-10).fit(X, sample_weight=again.weight)
        for node, of_draws in draws.parameters["tables"].items():
            assert of_draws[k] == approx(fit.tables_[node].values, abs=2e-3)


@pytest.mark.parametrize("kind", ["nonparametric", "parametric"])
def test_shares_vary_as_a_multinomial_does(kind):
    X, p = [["a"]] * 10 + [["b"]] * 30, np.array([0.25, 0.75])
    draws = VBDiscreteDAG([], method="ml", random_state=0).fit(X).bootstrap(X, 1000, kind=kind)
    # standard errors of a mean and of a standard deviation
    assert draws.parameters["tables"]["x0"].mean(axis=0) == approx(p, abs=4 * np.sqrt(0.1875 / 40 / 1000))
    assert draws.errors["tables"]["x0"] == approx(np.sqrt(p * (1 - p) / 40), rel=4 / np.sqrt(2000))


@pytest.mark.parametrize("kind", ["nonparametric", "parametric"])
def test_errors_are_about_those_of_the_observed_information(answers, classes, kind):
    draws, found = classes.bootstrap(answers, 150, kind=kind), classes.standard_errors(answers)
    ratio = np.concatenate([draws.errors["tables"][node].ravel() / each.ravel()
                            for node, each in found.errors["tables"].items()])  # fmt: skip
    assert 0.8 < np.median(ratio) < 1.35
    low, high = draws.intervals(0.9)["tables"]["h0"]
    assert (low < classes.tables_["h0"].values).all()
    assert (high > classes.tables_["h0"].values).all()


def test_missing_cells_stay_where_they_are(answers, classes):
    reading = read(classes, answers, columns=classes.fitted.columns).in_order().one_by_one()
    seen = []

    def compiled(model, reading, n_starts):
        seen.append(reading.rows.codes.copy())
        return kind_of(classes).compiled(classes, model, reading, n_starts)

    plan = replace(classes._run_.plan, starts=starts_of(classes.fitted), explore=False)
    replication = Replication(classes.fitted, reading, plan, compiled, kind_of(classes).drawn_like)
    for seed in ((1,), (2,)):
        replication.estimate(seed)
    one, other = seen
    assert ((one < 0) == (reading.rows.codes < 0)).all()
    assert (one != other).any()


def test_a_probability_of_zero_may_be_left():
    """EM never leaves 0: fits begin where there is none."""
    rng = np.random.default_rng(2)
    group = rng.random(60) < 0.5
    X = (rng.random((60, 4)) < np.where(group, 0.97, 0.1)[:, None]).astype(int)
    model = VBDiscreteDAG(latents=2, method="ml", n_init=4, random_state=0).fit(X)
    zeros = {node: table.values < 1e-6 for node, table in model.tables_.items()}
    assert any(of_node.any() for of_node in zeros.values())
    tables = model.bootstrap(X, 60).parameters["tables"]
    assert any((tables[node][:, at] > 0.005).any() for node, at in zeros.items() if at.any())


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_every_form_and_model_is_replicated(method):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(5.0, 1.0, size=(30, 2))])
    X[3, 1] = np.nan
    fits = [
        (VBMixture(2, method=method, n_init=2, random_state=0), {}),
        (VBHMM(2, method=method, n_init=2, random_state=0), {"lengths": [10] * 7}),
    ]
    for estimator, where in fits:
        estimator.fit(X, **where)
        for kind in ("nonparametric", "parametric"):
            draws = estimator.bootstrap(X, 20, kind=kind, **where)
            assert isinstance(draws, BootstrapDraws)
            assert draws.converged.all()
            means = draws.parameters["gaussian"]["means"]
            assert means.mean(axis=0) == approx(estimator.means_, abs=0.4)  # labels are alike
            assert 0.05 < draws.errors["gaussian"]["means"].max() < 0.6
    assert estimator.summary(draws=draws).method == "parametric_bootstrap"
    assert draws.ask(lambda drawn: drawn.score(X, lengths=[10] * 7)).shape == (20,)


class Swapping(Replication):
    """A replication whose every other fit has its components the other way round."""

    def estimate(self, seed):
        one = self.fitted.model.prior.natural(self.fitted.point)
        two = self.fitted.model.prior.natural(tuple(_swapped(block) for block in self.fitted.point))
        return (one, two)[seed[-1] % 2], True, False


def _swapped(block):
    return block[::-1] if isinstance(block, np.ndarray) else type(block)(block.mean[::-1], block.precision[::-1])


def test_labels_are_those_of_the_fit():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(40, 1)), rng.normal(4.0, 1.0, size=(30, 1))])
    model = VBMixture(2, n_init=2, random_state=0).fit(X)
    swapping = Swapping(model.fitted, read(model, X), model._run_.plan, partial(kind_of(model).compiled, model), None)
    draws = bootstrap_draws(swapping, evaluation_of(model, X), (0,), 6, None)
    for name, value in (("means", model.means_), ("covariances", model.covariances_)):
        assert draws.parameters["gaussian"][name] == approx(np.tile(value, (6, *[1] * value.ndim)))


# Whatever the order and the jobs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nonparametric", "parametric"])
def test_rows_in_another_order_and_jobs_make_no_difference(answers, classes, kind):
    draws = classes.bootstrap(answers, 9, kind=kind)
    shuffled = answers[np.random.default_rng(0).permutation(len(answers))]
    assert np.array_equal(numbers(classes.bootstrap(shuffled, 9, kind=kind)), numbers(draws))
    with parallel_config(backend="threading"):
        assert np.array_equal(numbers(classes.bootstrap(answers, 9, kind=kind, n_jobs=2)), numbers(draws))
    assert np.array_equal(classes.bootstrap(answers, 5, kind=kind).natural, draws.natural[:, :5])
    assert not np.array_equal(numbers(classes.bootstrap(answers, 9, kind=kind, random_state=1)), numbers(draws))


def test_other_processes_make_the_same_draws(answers, classes):
    reading = read(classes, answers, columns=classes.fitted.columns)
    plan = replace(classes._run_.plan, starts=starts_of(classes.fitted), explore=False)
    here = Replication(classes.fitted, reading, plan, partial(kind_of(classes).compiled, classes), None)
    there = pickle.loads(pickle.dumps(here))
    assert np.array_equal(here.estimate((4,))[0], there.estimate((4,))[0])


def test_weights_are_repeated_rows():
    X, weight = np.array([[0, 1], [1, 1], [1, 0], [0, 0]]), np.array([7, 3, 9, 4])
    model = VBDiscreteDAG([("x0", "x1")], random_state=0)
    many = np.repeat(X, weight, axis=0)
    for kind in ("nonparametric", "parametric"):
        by_weight = model.fit(X, sample_weight=weight).bootstrap(X, 5, kind=kind, sample_weight=weight)
        assert numbers(model.fit(many).bootstrap(many, 5, kind=kind)) == approx(numbers(by_weight))


# What is refused, and doubted -----------------------------------------------------------------------------------------


def test_what_is_refused(answers, classes):
    with pytest.raises(ValueError, match="'kind' parameter of bootstrap must be 'nonparametric' or 'parametric'"):
        classes.bootstrap(answers, kind="jackknife")
    with pytest.raises(ValueError, match="'n_draws' parameter of bootstrap must be an int >= 1"):
        classes.bootstrap(answers, 0)
    with pytest.raises(ValueError, match="is other data"):
        classes.bootstrap(answers[:50])
    X = np.random.default_rng(0).normal(size=(40, 1))
    one = VBHMM(1, n_init=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="draws whole sequences, or rows, again, and there is one only"):
        one.bootstrap(X)
    halves = np.full(40, 0.5)
    half = VBMixture(1, random_state=0).fit(X, sample_weight=halves)
    assert len(half.bootstrap(X, 3, sample_weight=halves)) == 3
    with pytest.raises(ValueError, match="needs whole-number sample weights"):
        half.bootstrap(X, 3, kind="parametric", sample_weight=halves)
    blocks = blocks_of([X[:20], X[20:]])
    with pytest.raises(ValueError, match="which must be in memory; X comes in blocks"):
        VBMixture(1, emission=Gaussian("diag"), init="random", random_state=0).fit(blocks).bootstrap(blocks)


@pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning")
def test_spikes_and_fits_that_did_not_converge_are_doubts():
    X = np.array([[0.0], [0.1], [0.3], [5.0], [6.0], [7.0], [5.5], [0.2]])
    draws = VBMixture(2, method="ml", n_init=2, random_state=0).fit(X).bootstrap(X, 40)
    assert draws.has_spikes.any()
    assert any("ended with a component without width" in doubt for doubt in draws.doubts)
    stopped = replace(draws, converged=np.zeros(40, dtype=bool))
    assert "40 of 40 fits of the bootstrap did not converge" in stopped.doubts[0]
    assert repr(draws) == "BootstrapDraws(40 fits, nonparametric)"
