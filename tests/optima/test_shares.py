"""Rows shared out at random: they add up to all rows, hang on values alone, and keep what is not shared out anew."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from optima.test_recombinations import NAMES, recombinations

from skvbem.data import mixed, row_hashes
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima import labels
from skvbem.optima.candidates import NEW_START
from skvbem.optima.labels import MixtureMethod, crossed, overlap, shared_among_some, shared_anew
from skvbem.optima.tuning import TUNING
from skvbem.vbem.posteriors import ML, VB

approx = pytest.approx
HASHES = mixed(np.arange(1, 41, dtype=np.uint64))
ROWS = SimpleNamespace(hashes=HASHES, weight=np.linspace(0.5, 3.0, 40))
ONE, OTHER = (np.random.default_rng(k).dirichlet(np.full(5, 0.3), 40).T * ROWS.weight for k in range(2))


def all_kinds(rows, one, other):
    rng = np.random.default_rng(3)
    return shared_anew(rows, 5, 4, rng), shared_among_some(rows, one, 4, rng), crossed(rows, one, other, 4, rng)


def test_every_row_is_shared_out_whole():
    for shared in all_kinds(ROWS, ONE, OTHER):
        assert shared.shape == (4, 5, 40)
        assert shared.min() >= 0
        assert shared.sum(axis=1) == approx(np.tile(ROWS.weight, (4, 1)))


def test_shares_are_the_same_for_any_order_of_rows():
    order = np.random.default_rng(0).permutation(40)
    turned = SimpleNamespace(hashes=HASHES[order], weight=ROWS.weight[order])
    for shared, again in zip(all_kinds(ROWS, ONE, OTHER), all_kinds(turned, ONE[:, order], OTHER[:, order])):
        assert again == approx(shared[..., order])


def test_rows_of_other_components_stay():
    for shared in shared_among_some(ROWS, ONE, 20, np.random.default_rng(0)):
        changed = np.abs(shared - ONE).max(axis=1) > 1e-12
        assert changed.sum() in (2, 3)
        assert shared[changed].sum(axis=0) == approx(ONE[changed].sum(axis=0))


def test_a_row_that_is_hardly_left_to_anyone_is_shared_out_whole():
    """What is left of a row after components 50 standard deviations away took their part may be subnormal."""
    one, other = ONE.copy(), OTHER.copy()
    one[:, 0], other[:, 0] = ROWS.weight[0] * np.eye(5)[0], 1e-310
    for child in crossed(ROWS, one, other, 40, np.random.default_rng(0)):
        assert child.min() >= 0
        assert child.sum(axis=0) == approx(ROWS.weight)


def test_what_one_fit_found_here_and_another_there_is_found_together():
    """Four groups of rows; each fit tells one half of them apart, and has an empty component."""
    group = np.repeat(np.arange(4), 10)
    weight = np.ones(40)
    left = np.stack([group == 0, group == 1, group > 1, group > 9]).astype(float)
    right = np.stack([group < 2, group == 2, group == 3, group > 9]).astype(float)
    children = crossed(SimpleNamespace(weight=weight, hashes=HASHES), left, right, 40, np.random.default_rng(0))
    all_four = {tuple((group == k).tolist()) for k in range(4)}
    assert any({tuple((part > 0.5).tolist()) for part in child} == all_four for child in children)


def test_overlap_is_the_mean_entropy_of_a_row():
    hard = (np.arange(5)[:, None] == np.arange(40) % 5) * ROWS.weight
    assert overlap(ROWS, hard) == approx(0.0, abs=1e-12)
    assert overlap(ROWS, np.full((5, 40), 0.2) * ROWS.weight) == approx(np.log(5))
    half = np.where(np.arange(40) < 20, hard, 0.2 * ROWS.weight)
    assert overlap(ROWS, half) == approx(np.log(5) * ROWS.weight[20:].sum() / ROWS.weight.sum())


@pytest.mark.parametrize("name", NAMES)
def test_statistics_of_expected_rows_are_sums_over_rows(name, rng):
    model, data, parts, natural = recombinations(name, rng)
    parts.statistics = model.expect(natural[:, None], data).statistics[:, 0]  # what the expected rows add up to
    shared = np.stack([parts.expected_rows, shared_anew(parts.rows, 4, 1, rng)[0]])
    statistics = parts.of_expected_rows(shared)
    assert statistics[model.first_emission_cell :, 0] == approx(parts.whole, rel=1e-8, abs=1e-8)
    counts = model.weights.counts(model.prior.split(statistics)[0])
    assert approx(shared.sum(axis=-1)) == counts.T
    assert (model.prior + statistics).is_valid.all()


def three_clumps(apart, rng):
    """A mixture of three, its data, and statistics of the true components."""
    values = np.concatenate([rng.normal(apart * k, 1.0, (40, 2)) for k in range(3)])
    emission = DenseGaussian.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(3)), emission.default_prior(3))
    data = model.compile(emission.prepare(values), row_hashes=partial(row_hashes, [values]))
    return model, data, model.statistics_of(np.repeat(np.eye(3), 40, axis=0), data)[:, None]


@pytest.mark.parametrize(("apart", "is_brief"), [(30.0, True), (30.0, False), (1.0, True)])
def test_components_apart_are_moved_little_in_a_brief_round(apart, is_brief, rng):
    model, data, statistics = three_clumps(apart, rng)
    method = MixtureMethod()
    ascent = method.ascent(model, data, VB, 1)
    ascent.advance(statistics, 20)
    kinds = method.moves(ascent, statistics, 0, is_brief, 0).kinds
    if apart > 10 and is_brief:
        assert set(kinds) <= {"split, join", "split, drop", "draw", "around a row"}
        assert len(kinds) <= 8
    else:
        assert "change, transfer" in kinds  # instead of new starts, of which there are some by maximum likelihood
        assert NEW_START in method.moves(method.ascent(model, data, ML, 1), statistics, 0, is_brief, 0).kinds


def test_where_a_step_over_many_columns_is_dear_divisions_alone_are_tried(rng, monkeypatch):
    model, data, statistics = three_clumps(30.0, rng)
    method = MixtureMethod()
    ascent = method.ascent(model, data, VB, 1)
    kinds = [set(method.moves(ascent, statistics, 0, is_brief, 0).kinds) for is_brief in (True, False)]
    assert all("draw" in each for each in kinds)
    assert method.n_steps_per_start(ascent) == TUNING.n_steps_per_start
    assert not method.is_wide(ascent)
    # six sums of two columns and their products
    monkeypatch.setattr(labels, "TUNING", replace(TUNING, many_products=120 * 7 - 1))
    brief, further = (method.moves(ascent, statistics, 0, is_brief, 0) for is_brief in (True, False))
    assert {*brief.kinds, *further.kinds} <= {"split, join", "split, drop", "divide anew"}
    assert brief.are_few
    assert brief.are_enough
    assert not further.are_few
    assert not further.are_enough
    assert method.n_steps_per_start(ascent) == TUNING.n_steps_where_dear
    assert method.is_wide(ascent)
    monkeypatch.setattr(labels, "TUNING", replace(TUNING, many_rows=119))
    assert method.n_steps_per_start(ascent) == TUNING.n_steps_where_dear
    assert not method.is_wide(ascent)


@pytest.mark.parametrize(("n_rows", "is_wide"), [(10, True), (11, False)])
def test_a_component_of_three_columns_has_eleven_sums_and_fewer_rows_are_wide(n_rows, is_wide, rng):
    values = rng.normal(size=(n_rows, 3))
    emission = DenseGaussian.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    data = model.compile(emission.prepare(values), row_hashes=partial(row_hashes, [values]))
    method = MixtureMethod()
    assert method.is_wide(method.ascent(model, data, VB, 1)) == is_wide


@pytest.mark.parametrize(("form", "n_rows", "is_moved"), [(ML, 14, False), (ML, 18, True), (VB, 14, True)])
def test_few_rows_of_many_columns_are_not_moved_by_maximum_likelihood(form, n_rows, is_moved, rng):
    """Better optima of them are nearer to spikes: 2.3 rows of a component for each column, or 3."""
    values = rng.normal(size=(n_rows, 3))
    emission = DenseGaussian.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    data = model.compile(emission.prepare(values), row_hashes=partial(row_hashes, [values]))
    statistics = model.statistics_of(np.eye(2)[np.arange(n_rows) % 2], data)[:, None]
    method = MixtureMethod()
    assert bool(method.moves(method.ascent(model, data, form, 1), statistics, 0, False, 0).kinds) == is_moved
