"""Sampled evidences of mixtures whose components covariates drive: by quadrature, by long runs, by definition."""

import numpy as np
import pytest
from estimators.mixture.test_membership import CHEATING, classes, drawn, log_evidence, terms_of
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from skvbem.emissions import Softmax
from skvbem.evidence.evaluation import Stream
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_maximum import Design, contrasts
from skvbem.families.softmax_proposals import Students, proposals_of
from skvbem.families.softmax_regression import SoftmaxRegression
from skvbem.fitting.evaluation import evaluation_of

approx = pytest.approx
KINDS = ("auto", "importance", "importance_gibbs", "bridge", "annealed_bridge", "ais", "smc")
FAST = {"importance": {}, "bridge": {}, "ais": {"n_chains": 24, "n_steps": 64}}


def test_grades_have_the_evidence_of_a_long_run():
    """Importance sampling with classes summed out, t with 5 degrees of freedom, 300 000 draws: a literal program."""
    with_grades = classes(Softmax("GPA")).fit(CHEATING).log_evidence(CHEATING, kind="auto")
    assert abs(with_grades.value - -452.355) < 3 * np.hypot(with_grades.standard_error, 0.005)
    assert with_grades.standard_error < 0.06
    constant = CHEATING.assign(GPA=1.0)
    without = classes(Softmax("GPA")).fit(constant).log_evidence(constant, kind="auto")
    assert abs(without.value - -458.207) < 3 * np.hypot(without.standard_error, 0.015)


@pytest.mark.parametrize("kind", [*FAST, *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS if k not in FAST)])
def test_eight_rows_have_the_evidence_by_quadrature(kind):
    items = np.array([[int(c) for c in row] for row in ["0011", "0111", "1011", *["0000"] * 5]], dtype=float)
    X = np.column_stack([items, [-1.4, -0.6, 0.2, -1.4, -0.6, 0.2, 1, 1.8]])
    model = classes(Softmax([4], standardize=False)).fit(X)
    evidence = model.log_evidence(X, kind=kind, **FAST.get(kind, {}))
    assert abs(evidence.value - -19.975399) < 3 * evidence.standard_error
    assert evidence.standard_error < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "ais_prior", "ais_metropolis"])
def test_evidences_of_tiny_tables_are_as_uncertain_as_they_say(kind):
    """Over 20 tables of 3 to 7 rows, each by another seed."""
    z = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = drawn(rng, n=int(rng.integers(3, 8)))
        model = classes(Softmax([4], standardize=False)).fit(X)
        evidence = model.log_evidence(X, kind=kind)
        z.append((evidence.value - log_evidence(X[:, :4], X[:, 4])) / evidence.standard_error)
    assert np.abs(z).max() < 4.5
    assert np.sqrt(np.mean(np.square(z))) < 1.6


def test_known_labels_and_one_component_have_their_evidences():
    rng = np.random.default_rng(3)
    X = drawn(rng, n=6)
    one = classes(Softmax([4], standardize=False), n=1).fit(X)
    assert one.log_evidence(X, kind="bridge").value == approx(one.lower_bound_, abs=1e-6)
    labels = [0, 1, 0, 1, 1, 0]
    known = classes(Softmax([4], standardize=False)).fit(X, labels=labels)
    # components keep their names: labels of all rows are data, and the sum over classes has one term
    evidence = known.log_evidence(X, kind="importance", labels=labels)
    exact = logsumexp(terms_of(X[:, :4], X[:, 4])[1][int("".join(map(str, labels)), 2)])
    assert abs(evidence.value - exact) < 3 * evidence.standard_error + 1e-3


# The densities that coefficients are drawn from -----------------------------------------------------------------------


def members(rng, n_labels=3, n=40, n_members=3):
    """A prior of two regressors, and statistics of labels of so many members, (n_cells, n_members)."""
    u = np.column_stack([np.ones(n), rng.normal(size=n)])
    prior = SoftmaxRegression.from_precisions(n_labels, Design.of(u), [0.6, 1.0])
    labels = rng.integers(0, n_labels, size=(n_members, n))
    return prior, np.stack([np.append((np.eye(n_labels)[k].T @ u).ravel(), [0.0, 0.0]) for k in labels], axis=1)


def test_proposals_stand_about_modes_and_are_wider_than_gaussians_there(rng):
    prior, statistics = members(rng)
    proposals = (prior + statistics).proposals()
    h = contrasts(3)
    for k, coordinates in enumerate((prior + statistics).coordinates.T):

        def below(free, coordinates=coordinates):
            return -coordinates @ prior.natural(h @ free.reshape(2, 2))

        best = minimize(below, np.zeros(4), tol=1e-12)
        np.testing.assert_allclose(proposals.mean[k], best.x, atol=1e-3)
        scale = proposals.root[k] @ proposals.root[k].T / 1.15**2
        information = prior.information(h @ best.x.reshape(2, 2), coordinates)
        np.testing.assert_allclose(scale, np.linalg.inv(information), rtol=0.02)
    flat = prior.proposals()
    assert np.isinf(flat.degrees).all()
    np.testing.assert_allclose(flat.root[0] ** 2, np.diag([1 / 0.6, 1, 1 / 0.6, 1]))


def test_proposals_reach_modes_of_separated_labels_and_rare_ones(rng):
    u = np.column_stack([np.ones(60), 30.0 * np.sign(rng.normal(size=60))])
    for labels in ((u[:, 1] > 0).astype(int), np.zeros(60, dtype=int)):
        t = contrasts(2).T @ (np.eye(2)[labels].T @ u)
        proposals = proposals_of(u, np.ones((1, 60)), t.reshape(1, 2), np.array([[0.01, 0.01]]))
        prior = SoftmaxRegression.from_precisions(2, Design.of(u), [0.01, 0.01])
        mode = prior + np.append((np.eye(2)[labels].T @ u).ravel(), [0.0, 0.0])
        lost = [mode.coordinates @ prior.natural(w) for w in (mode.mode(), contrasts(2) @ proposals.mean)]
        assert 0 <= lost[0] - lost[1] < 2e-3


def test_densities_are_those_of_scipy_and_draws_have_them(rng):
    root = np.tril(rng.normal(size=(2, 3, 3))) + 2 * np.eye(3)
    both = Students(rng.normal(size=(2, 3)), root, np.array([8.0, np.inf]))
    points = rng.normal(size=(5, 3))
    t = multivariate_t(both.mean[0], root[0] @ root[0].T, df=8)
    gaussian = multivariate_normal(both.mean[1], root[1] @ root[1].T)
    wanted = np.column_stack([t.logpdf(points), gaussian.logpdf(points)])
    np.testing.assert_allclose(both.log_density(points[:, None]), wanted, rtol=1e-12)
    np.testing.assert_allclose(both.log_density(points[:2]), [wanted[0, 0], wanted[1, 1]], rtol=1e-12)
    many = both[np.repeat([0, 1], 20_000)]
    free = many.sample(ParallelGenerator(rng.integers(0, 2**64, size=(4, 40_000), dtype=np.uint64)))
    lengths = (np.linalg.solve(many.root, (free - many.mean)[:, :, None])[:, :, 0] ** 2).sum(axis=1)
    for at, mean in ((slice(20_000), 3 * 8 / 6), (slice(20_000, None), 3.0)):
        assert lengths[at].mean() == approx(mean, rel=0.04)
    one = Students(np.zeros((1, 1)), np.array([[[0.7]]]), np.array([8.0]))
    assert quad(lambda x: np.exp(one.log_density(np.array([[x]]))[0]), -60, 60)[0] == approx(1.0, abs=1e-6)


def test_a_correction_makes_densities_of_what_statistics_tell(rng):
    """Over the prior's density they are those of the proposals, whatever evidences statistics have."""
    prior, statistics = members(rng)
    natural = prior.natural_of_contrasts(rng.normal(size=(7, 4)) / 2)
    log_ratio = (
        statistics.T @ natural - prior.log_evidence(statistics)[:, None] + prior.log_correction(statistics)(natural)
    )
    free = prior.contrasts_of_natural(natural)
    wanted = [
        [
            multivariate_t(p.mean[0], p.root[0] @ p.root[0].T, df=8).logpdf(x)
            - multivariate_normal(np.zeros(4), np.diag([1 / 0.6, 1, 1 / 0.6, 1])).logpdf(x)
            for x in free
        ]
        for p in ((prior + each[:, None]).proposals() for each in statistics.T)
    ]
    np.testing.assert_allclose(log_ratio, wanted, rtol=1e-8)
    np.testing.assert_allclose(natural, prior.natural(prior.from_unconstrained(free.T)), atol=1e-10)


def test_corrections_for_relabelings_average_to_one_and_labels_are_drawn_by_them(rng):
    X = drawn(rng, n=30, n_classes=3)
    model = classes(Softmax([4]), n=3).fit(X)
    evaluation = evaluation_of(model, X)
    relabelings = evaluation.capability("relabelings").relabelings(())
    statistics, points = evaluation.fit("vb").statistics, evaluation.capability("points")
    drawn_points = points.draw_points(
        0.2 * np.repeat(statistics[:, None], 4, axis=1), evaluation.streams(4, Stream.CHOICE)
    )
    h = np.stack([relabelings.correction(statistics, drawn_points[cells]) for cells in relabelings.cells])
    np.testing.assert_allclose(np.exp(h).mean(axis=0), 1.0, rtol=1e-9)
    sums = relabelings.log_sums(statistics[None], drawn_points)
    np.testing.assert_allclose(
        sums, relabelings.log_sums(statistics[None], drawn_points[relabelings.cells[3]]), rtol=1e-9
    )
    shares = np.exp(h[:, 0]) / np.exp(h[:, 0]).sum()
    which = [
        int(np.argmax([np.array_equal(point, drawn_points[cells, 0]) for cells in relabelings.cells]))
        for point in (relabelings.draw(statistics, drawn_points[:, 0], rng) for _ in range(100))
    ]
    assert np.abs(np.bincount(which, minlength=6) / 100 - shares).max() < 0.2


def test_one_step_of_a_path_has_the_weights_of_importance_sampling(rng):
    X = drawn(rng, n=30, n_classes=3)
    evaluation = evaluation_of(classes(Softmax([4]), n=3).fit(X), X)
    points, annealing, prior = (
        *(evaluation.capability(name) for name in ("points", "annealing")),
        evaluation.model.prior,
    )
    statistics, streams = np.outer(evaluation.fit("vb").statistics, [0.0, 0.5, 1.0]), evaluation.streams(3)
    at = points.draw_points(statistics, streams)
    log_q = np.diag(statistics.T @ at - prior.log_evidence(statistics)[:, None] + prior.log_correction(statistics)(at))
    workspace, paths = annealing.workspace(evaluation.data, 3), annealing.paths(evaluation.data, statistics)[[0, 1, 2]]
    wanted = points.log_likelihoods(evaluation.data, at) - log_q
    in_one_step, _ = annealing.anneal(workspace, paths, np.array([0.0, 1.0]), streams, at)
    np.testing.assert_allclose(in_one_step[0], wanted, rtol=1e-9)
