"""Standard errors against closed forms, and against Hessians of likelihoods that are written out here."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax
from scipy.stats import norm, poisson

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, blocks_of
from skvbem.emissions import Gaussian
from skvbem.errors import TooLargeError
from skvbem.estimators import StandardErrors
from skvbem.fitting.evaluation import at_draw

pd = pytest.importorskip("pandas")
approx = pytest.approx
pytestmark = pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning")
SHARP = {"tol": 1e-10, "n_init": 4, "random_state": 0}


def hessian(function, at, width=1e-3):
    """Second derivatives by central differences of fourth order, along coordinates and their sums."""

    def second(direction):
        f = [function(at + times * width * direction) for times in (-2, -1, 0, 1, 2)]
        return (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * width**2)

    units = np.eye(len(at))
    diagonal = [second(each) for each in units]
    return np.array(
        [
            [
                diagonal[i] if i == j else 0.5 * (second(units[i] + units[j]) - diagonal[i] - diagonal[j])
                for j in range(len(at))
            ]
            for i in range(len(at))
        ]
    )


def expected_errors(objective, parameters, at):
    """Standard errors of functions of coordinates, from the Hessian of an objective there."""
    covariance = np.linalg.inv(-hessian(objective, at))
    width = 1e-5
    by = np.array([(parameters(at + d) - parameters(at - d)) / (2 * width) for d in width * np.eye(len(at))])
    return np.sqrt(np.einsum("ip,ij,jp->p", by, covariance, by))


def logit(p):
    return np.log(p) - np.log1p(-p)


# Where nothing is hidden ----------------------------------------------------------------------------------------------


def test_shares_of_a_table():
    X = [["a"]] * 5 + [["b"]] * 15 + [["c"]] * 30
    found = VBDiscreteDAG([], method="ml").fit(X).standard_errors(X)
    p = np.array([0.1, 0.3, 0.6])
    assert found.errors["tables"]["x0"] == approx(np.sqrt(p * (1 - p) / 50))
    assert found.doubts == ()


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_measurements_of_one_component(kind):
    X = np.random.default_rng(0).normal([1.0, -2.0], [2.0, 0.3], size=(80, 2))
    X[:, 1] += 0.2 * X[:, 0]
    found = VBMixture(1, covariance_type=kind, method="ml").fit(X).standard_errors(X).errors["gaussian"]
    s, n = np.cov(X.T, bias=True), len(X)
    variances = np.diag(s)
    if kind in ("full", "tied"):
        expected = np.sqrt((s**2 + np.outer(variances, variances)) / n)
        assert found["covariances"].reshape(2, 2) == approx(expected)
    elif kind == "diag":
        assert found["covariances"][0] == approx(variances * np.sqrt(2 / n))
    else:
        variances = np.full(2, variances.mean())
        assert found["covariances"] == approx(variances[:1] * np.sqrt(2 / (2 * n)))
    assert found["means"][0] == approx(np.sqrt(variances / n))


def test_other_families_of_one_component():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"visits": rng.poisson(3.0, 50), "wait": rng.exponential(2.0, 50), "yes": rng.random(50) < 0.3}
    )
    frame["yes"] = frame["yes"].astype(int)
    emission = {"poisson": ["visits"], "exponential": ["wait"], "bernoulli": ["yes"]}
    found = VBMixture(1, emission=emission, method="ml").fit(frame).standard_errors(frame).errors
    visits, wait, yes = (frame[name].mean() for name in frame)
    assert found["poisson"]["rates"].item() == approx(np.sqrt(visits / 50))
    assert found["exponential"]["rates"].item() == approx(1 / wait / np.sqrt(50))
    assert found["bernoulli"]["probabilities"].item() == approx(np.sqrt(yes * (1 - yes) / 50))


def test_weights_are_repeated_rows():
    X, weight = np.array([[0, 1], [1, 1], [1, 0], [0, 0]]), np.array([7, 3, 9, 4])
    model = VBDiscreteDAG([("x0", "x1")], method="ml").fit(X, sample_weight=weight)
    many = np.repeat(X, weight, axis=0)
    again = VBDiscreteDAG([("x0", "x1")], method="ml").fit(many).standard_errors(many)
    found = model.standard_errors(X, sample_weight=weight)
    for node, errors in found.errors["tables"].items():
        assert errors == approx(again.errors["tables"][node])
    with pytest.raises(ValueError, match="is other data"):
        model.standard_errors(X)


# Where something is hidden, against Hessians --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers():
    """Two classes on three items with a gap; log likelihood and tables by coordinates."""
    rng = np.random.default_rng(3)
    group = rng.random(300) < 0.4
    X = (rng.random((300, 3)) < np.where(group, 0.85, 0.2)[:, None]).astype(float)
    X[::7, 1] = np.nan

    def log_likelihood(at):
        yes = expit(at[1:].reshape(2, 3))
        logs = np.where(X[:, None] == 1, np.log(yes), np.log1p(-yes))
        logs = np.where(np.isnan(X)[:, None], 0.0, logs).sum(axis=2)
        return logsumexp(logs + np.log([expit(-at[0]), expit(at[0])]), axis=1).sum()

    def coordinates(model):
        return np.array([logit(model.tables_["h0"].values[1]), *np.ravel([
            logit(model.tables_[f"x{j}"].values[:, 1]) for j in range(3)], order="F")])  # fmt: skip

    return X, log_likelihood, coordinates


@pytest.mark.parametrize(
    ("method", "basis", "share"), [("ml", "natural", 0.0), ("map", "natural", 1.5), ("map", "probability", 0.5)]
)
def test_a_latent_class_model(answers, method, basis, share):
    X, log_likelihood, coordinates = answers
    model = VBDiscreteDAG(latents=2, prior=1.5, method=method, map_basis=basis, **SHARP).fit(X)
    at = coordinates(model)

    def objective(at):  # a Dirichlet prior of 1.5, 0.5 less where the density is of probabilities
        return log_likelihood(at) + share * (np.log(expit(at)).sum() + np.log(expit(-at)).sum())

    expected = expected_errors(objective, expit, at)
    found = model.standard_errors(X).errors["tables"]
    assert found["h0"] == approx(np.repeat(expected[0], 2), rel=1e-5)
    for j in range(3):
        assert found[f"x{j}"][:, 1] == approx(expected[1:].reshape(2, 3)[:, j], rel=1e-5)


def test_a_mixture_of_measurements_with_a_gap():
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(0, 1, 70), rng.normal(3, 0.7, 50)])[:, None]
    model = VBMixture(2, method="ml", **SHARP).fit(X)

    def log_likelihood(at):
        means, deviations = at[1:3], np.exp(at[3:])
        logs = norm.logpdf(X, means, deviations) + np.log([expit(-at[0]), expit(at[0])])
        return logsumexp(logs, axis=1).sum()

    at = np.concatenate([[logit(model.weights_[1])], model.means_[:, 0], 0.5 * np.log(model.covariances_[:, 0, 0])])
    expected = expected_errors(log_likelihood, lambda at: np.r_[expit(at[0]), at[1:3], np.exp(2 * at[3:])], at)
    found = model.standard_errors(X).errors
    assert found["mixture"]["weights"] == approx(np.repeat(expected[0], 2), rel=1e-5)
    assert found["gaussian"]["means"][:, 0] == approx(expected[1:3], rel=1e-5)
    assert found["gaussian"]["covariances"][:, 0, 0] == approx(expected[3:], rel=1e-5)


def test_a_chain_of_counts():
    rng = np.random.default_rng(5)
    lengths, X = [40] * 6, []
    for n in lengths:
        state = rng.integers(2)
        for _ in range(n):
            X.append(rng.poisson([2.0, 7.0][state]))
            state = state if rng.random() < 0.85 else 1 - state
    X = np.array(X)[:, None]
    model = VBHMM(2, emission="poisson", method="ml", **SHARP).fit(X, lengths=lengths)

    def parameters(at):
        return np.r_[expit(at[0]), expit(at[1]), expit(at[2]), np.exp(at[3:])]

    def log_likelihood(at):
        first, leave, arrive, *rates = parameters(at)
        log_pairs, total = np.log([[1 - leave, leave], [1 - arrive, arrive]]), 0.0
        for rows in np.split(poisson.logpmf(X, rates), np.cumsum(lengths)[:-1]):
            alpha = np.log([1 - first, first]) + rows[0]
            for row in rows[1:]:
                alpha = logsumexp(alpha[:, None] + log_pairs, axis=0) + row
            total += logsumexp(alpha)
        return total

    p = np.array([model.startprob_[1], model.transmat_[0, 1], model.transmat_[1, 1]])
    at = np.concatenate([logit(p), np.log(model.parameters_["poisson"]["rates"][:, 0])])
    expected = expected_errors(log_likelihood, parameters, at)
    found = model.standard_errors(X, lengths=lengths).errors
    assert found["chain"]["startprob"] == approx(np.repeat(expected[0], 2), rel=1e-5)
    assert found["chain"]["transmat"][:, 1] == approx(expected[1:3], rel=1e-5)
    assert found["poisson"]["rates"][:, 0] == approx(expected[3:], rel=1e-5)


def test_hidden_hyperparameters_are_integrated_out():
    """Of MAP, the Hessian of the log posterior whose prior has them integrated out."""
    X = np.random.default_rng(6).normal(size=(40, 1)) * 2 + 1
    model = VBMixture(1, method="map", tol=1e-12).fit(X)
    fitted = model.fitted
    prior = fitted.model.prior
    free = prior.to_unconstrained(fitted.point)

    def log_posterior(free):
        point = prior.from_unconstrained(free)
        at = at_draw(model, prior.natural(point))
        return at.score_samples(X).sum() + float(prior.log_density_as_prior(point))

    def parameters(free):
        mean, precision = prior.from_unconstrained(free)[1]
        of = fitted.emission.parameters(type(fitted.point[1])(mean, precision))
        return np.array([of["means"].item(), of["covariances"].item()])

    assert fitted.model.prior.hyperprior is not None
    found = model.standard_errors(X).errors["gaussian"]
    expected = expected_errors(log_posterior, parameters, free)
    assert [found["means"].item(), found["covariances"].item()] == approx(expected, rel=1e-5)


def test_rows_in_blocks_are_refused():
    X = np.random.default_rng(7).normal(size=(90, 2))
    blocks = blocks_of([X[:50], X[50:]])
    model = VBMixture(1, emission=Gaussian("diag"), method="ml", init="random").fit(blocks)
    with pytest.raises(ValueError, match="rows, which must be in memory; X comes in blocks"):
        model.standard_errors(blocks)


# Where there are none -------------------------------------------------------------------------------------------------


def test_a_probability_of_zero_has_none_and_the_others_are_given_it():
    X = pd.DataFrame({"x": ["a"] * 10 + ["b"] * 30})
    found = VBDiscreteDAG([], categories=[["a", "b", "c"]], method="ml").fit(X).standard_errors(X)
    errors, error = found.errors["tables"]["x"], np.sqrt(0.25 * 0.75 / 40)
    assert errors[:2] == approx([error, error])
    assert np.isnan(errors[2])
    assert "1 parameters stand at the edge" in found.doubts[0]
    low, high = found.intervals()["tables"]["x"]
    assert np.isnan([low[2], high[2]]).all()
    assert not np.isnan([low[:2], high[:2]]).any()


def test_both_ends_of_a_certain_answer_have_none():
    X = pd.DataFrame({"x": ["a"] * 10, "y": ["u", "v"] * 5})
    model = VBDiscreteDAG([("x", "y")], categories=[["a", "b"], ["u", "v"]], method="ml").fit(X)
    errors = model.standard_errors(X).errors["tables"]
    assert np.isnan(errors["x"]).all()
    assert np.isnan(errors["y"][1]).all()  # of rows that never occur
    assert errors["y"][0] == approx(np.sqrt(0.25 / 10))


def test_a_hidden_zero_has_none(answers):
    """EM comes to a probability of 0 as near as floats allow, and others are those given it."""
    X, *_ = answers
    X = X[~np.isnan(X).any(axis=1)].astype(int)
    X = np.vstack([X, [[1, 1, 1]] * 60])
    start = {"x0": [[0.5, 0.5], [1e-9, 1 - 1e-9]]}
    model = VBDiscreteDAG(latents=2, method="ml", init=start, tol=1e-10).fit(X)
    found = model.standard_errors(X)
    assert np.isnan(found.errors["tables"]["x0"][1]).all() == bool(model.counts_["x0"].values[1].min() < 0.01)
    assert np.isfinite(found.errors["tables"]["h0"]).all()


def test_a_rate_of_zero_has_none():
    X = np.array([[0, 3], [0, 5], [0, 4]])
    found = VBMixture(1, emission="poisson", method="ml").fit(X).standard_errors(X)
    rates = found.errors["poisson"]["rates"][0]
    assert np.isnan(rates[0])
    assert rates[1] == approx(np.sqrt(4 / 3))


def test_what_the_data_do_not_identify_has_none(answers):
    X, *_ = answers
    X, start = X[:, [0, 2]], [[0.7, 0.3], [0.3, 0.7]]
    model = VBDiscreteDAG(latents=2, method="ml", init={"x0": start, "x1": start}, tol=1e-12).fit(X)
    found = model.standard_errors(X)
    assert all(np.isnan(errors).all() for errors in found.errors["tables"].values())
    assert "In 2 directions the data say nothing" in found.doubts[0]
    assert repr(found) == "StandardErrors(10 parameters, 10 without a standard error)"


def test_spikes_are_refused_and_said_in_reports():
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0], [7.0]])
    model = VBMixture(2, method="ml", init=np.eye(2)[[0, 0, 0, 1, 1, 1]]).fit(X)
    with pytest.raises(ValueError, match=r"no standard errors: some component of this fit has no width"):
        model.standard_errors(X)
    report = model.summary(X)
    assert report.method == "none"
    assert any("no width in some direction, or no more rows" in doubt for doubt in report.doubts)


def test_what_is_refused(answers):
    X, *_ = answers
    with pytest.raises(ValueError, match="Take credible_intervals"):
        VBDiscreteDAG(latents=2, n_init=1).fit(X).standard_errors(X)
    point = VBDiscreteDAG(latents=2, method="ml", n_init=1, random_state=0).fit(X)
    with pytest.raises(TooLargeError, match="'max_states' allows 1"):
        point.standard_errors(X, max_states=1)
    with pytest.raises(ValueError, match="is other data"):
        point.summary(X[:50])
    with pytest.raises(ValueError, match="needs a posterior"):
        point.credible_intervals(X=X)


# Intervals ------------------------------------------------------------------------------------------------------------


def test_intervals_are_of_means_logits_and_logarithms():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"size": rng.normal(size=60), "visits": rng.poisson(0.2, 60), "yes": (rng.random(60) < 0.05) + 0}
    )
    emission = {"gaussian": ["size"], "poisson": ["visits"], "bernoulli": ["yes"]}
    found = VBMixture(1, emission=emission, method="ml").fit(frame).standard_errors(frame)
    assert isinstance(found, StandardErrors)
    intervals, z = found.intervals(0.9), norm.ppf(0.95)
    estimate, error = (each["gaussian"]["means"].item() for each in (found.parameters, found.errors))
    assert np.ravel(intervals["gaussian"]["means"]) == approx([estimate - z * error, estimate + z * error])
    estimate, error = (each["poisson"]["rates"].item() for each in (found.parameters, found.errors))
    reach = z * error / estimate
    assert np.ravel(intervals["poisson"]["rates"]) == approx([estimate * np.exp(-reach), estimate * np.exp(reach)])
    estimate, error = (each["bernoulli"]["probabilities"].item() for each in (found.parameters, found.errors))
    reach = z * error / (estimate * (1 - estimate))
    ends = expit(logit(estimate) + np.array([-reach, reach]))
    assert np.ravel(intervals["bernoulli"]["probabilities"]) == approx(ends)


def test_intervals_of_shares_stay_shares(answers):
    X, *_ = answers
    model = VBDiscreteDAG(latents=3, method="ml", **SHARP).fit(X[:, [0, 1, 2]][:40])
    for low, high in model.standard_errors(X[:40]).intervals(0.999)["tables"].values():
        there = ~np.isnan(low)
        assert (low[there] >= 0).all()
        assert (high[there] <= 1).all()
        assert (low[there] <= high[there]).all()


def test_reports_of_points_have_them(answers):
    X, *_ = answers
    model = VBDiscreteDAG(latents=2, method="ml", **SHARP).fit(X)
    found, report = model.standard_errors(X), model.summary(X)
    assert report.method == "observed_information"
    assert report.tables[0].intervals[0].ravel() == approx(found.intervals()["tables"]["h0"][0])
    assert model.summary(draws=found).method == "observed_information"
    assert softmax(np.log(report.tables[0].values)).sum() == approx(1.0)
