"""`VBMixture(membership=Softmax(...))`: published fits, evidences by enumeration, and what changes nothing."""

import warnings
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import betaln, gammaln, logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skvbem
from skvbem import VBMixture, blocks_of
from skvbem.datasets import load_cheating
from skvbem.emissions import Poisson, Softmax
from skvbem.families.softmax_maximum import Design
from skvbem.fitting.evaluation import read_again, run_of
from skvbem.fitting.fit import read
from skvbem.optima.recombinations import Recombinations
from skvbem.vbem.posteriors import VB

approx = pytest.approx
ITEMS = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
CHEATING = load_cheating(as_frame=True).data.dropna().astype(float)
CHEATING[ITEMS] -= 1


def classes(membership, n=2, **options):
    """A mixture of yes/no items."""
    options = {"random_state": 0, "n_init": 1, "tol": 1e-9} | options
    return VBMixture(n, emission="bernoulli", membership=membership, **options)


def drawn(rng, n=60, n_classes=2, covariates=1, kind="plain"):
    """Items of classes that covariates drive; columns are items, then covariates."""
    u = rng.normal(size=(n, covariates))
    u[:, 0] = {"constant": np.ones(n), "separated": 30.0 * np.sign(u[:, 0])}.get(kind, u[:, 0])
    if kind == "collinear":
        u = np.column_stack([u, 2.0 - 3.0 * u[:, 0]])
    odds = u @ rng.normal(size=(u.shape[1], n_classes))
    label = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
    return np.column_stack([rng.random((n, 4)) < rng.beta(0.5, 0.5, (n_classes, 4))[label], u]).astype(float)


def covariates_of(X):
    return list(range(4, X.shape[1]))


# Published answers ----------------------------------------------------------------------------------------------------


def test_grades_and_cheating_have_the_published_likelihood_and_the_bound_of_the_definition():
    model = classes(Softmax(["GPA"], standardize=False), method="ml").fit(CHEATING)
    slope = np.diff(model.parameters_["membership"]["coefficients"], axis=0)
    assert model.log_likelihood_ == approx(-429.638384, abs=1e-6)  # poLCA's manual
    assert abs(slope.item()) == approx(0.8425, abs=1e-4)
    raw = classes(Softmax(["GPA"], standardize=False, slope_prior=2.0, intercept_prior=2.0)).fit(CHEATING)
    assert raw.lower_bound_ == approx(-455.639872, abs=1e-5)
    slope = np.diff(raw.parameters_["membership"]["coefficients"], axis=0)
    assert abs(slope.item()) == approx(0.9234, abs=1e-4)
    scaled = classes(Softmax("GPA")).fit(CHEATING)
    assert scaled.lower_bound_ == approx(-455.876526, abs=1e-5)
    per_deviation = np.diff(scaled.parameters_["membership"]["coefficients"], axis=0) * CHEATING["GPA"].std(ddof=0)
    assert abs(per_deviation.item()) == approx(1.0795, abs=1e-3)
    constant = classes(Softmax("GPA")).fit(CHEATING.assign(GPA=1.0))
    assert constant.lower_bound_ == approx(-461.630917, abs=1e-5)


def test_noise_lowers_the_bound():
    noise = np.random.default_rng(1).normal(size=(315, 3))
    table = CHEATING.assign(**{f"noise{k}": noise[:, k] for k in range(3)})
    model = classes(Softmax(["GPA", "noise0", "noise1", "noise2"])).fit(table)
    assert model.lower_bound_ == approx(-459.440132, abs=1e-5)
    only = classes(Softmax(["noise0", "noise1", "noise2"])).fit(table.drop(columns="GPA"))
    assert only.lower_bound_ == approx(-466.316548, abs=1e-5)


def test_moves_are_ranked_without_a_maximum_of_coefficients(monkeypatch):
    X = drawn(np.random.default_rng(3), n=150, n_classes=3, covariates=2)
    model = classes(Softmax(covariates_of(X)), 3).fit(X)
    plan, fitted = run_of(model).plan, model.fitted
    ascent = plan.method.ascent(fitted.model, model._kind.compiled(model, fitted.model, read_again(model, X), 1), VB, 1)
    statistics = plan.run(fitted.model, ascent.data, VB).statistics
    natural = VB.of(ascent.model.prior, statistics[:, None])[0][:, 0]
    expected_rows = ascent.model.expected_rows(natural, ascent.data, ascent.rows)
    monkeypatch.setattr(Design, "maximum", None)
    around = Recombinations(ascent.model, ascent.rows, statistics, natural, expected_rows, seed=0)
    assert around.proposals(4)[1].shape == (len(statistics), 4)
    assert around.transferred(expected_rows).shape == expected_rows.shape


def test_likelihoods_of_separated_classes_do_not_fall():
    """Coefficients are in the thousands: neither a last step of theirs nor the least precision may lose."""
    X = drawn(np.random.default_rng([60, 6]), 60, 4, 3)
    model = classes(Softmax(covariates_of(X)), 4, method="ml", n_init=3, random_state=6, max_iter=300).fit(X)
    assert np.abs(model.parameters_["membership"]["coefficients"]).max() > 100


@pytest.mark.parametrize("method", ["vb", "ml"])
def test_runs_of_one_model_are_the_same_to_the_last_bit(method):
    X = drawn(np.random.default_rng(1), n=150, n_classes=3, covariates=2)
    model = classes(Softmax(covariates_of(X)), 3, tol=1e-4, method=method).fit(X)
    run, fitted = run_of(model), model.fitted
    data = model._kind.compiled(model, fitted.model, read_again(model, X), 1)
    fits = [run.plan.run(fitted.model, data, fitted.form) for _ in range(3)]
    assert [fit.objective for fit in fits[1:]] == [fits[0].objective] * 2
    np.testing.assert_array_equal(fits[1].statistics, fits[0].statistics)
    np.testing.assert_array_equal(fits[2].statistics, fits[0].statistics)


@pytest.mark.parametrize(
    ("covariates", "expected"),
    [
        (["GPA"], -456.091405),
        (["GPA", "noise0", "noise1", "noise2"], -460.070467),
        (["noise0", "noise1", "noise2"], -466.710731),
    ],
)
def test_slopes_with_hidden_precisions_have_the_bound_of_the_definition(covariates, expected):
    noise = np.random.default_rng(1).normal(size=(315, 3))
    table = CHEATING.assign(**{f"noise{k}": noise[:, k] for k in range(3)})[[*ITEMS, *covariates]]
    model = classes(Softmax(covariates, slope_prior="hierarchical")).fit(table)
    assert model.lower_bound_ == approx(expected, abs=1e-6)
    assert np.diff(model.lower_bounds_).min() > -1e-9
    by_likelihood = clone(model).set_params(method="ml").fit(table).odds_ratios(table)
    assert repr(by_likelihood) == repr(classes(Softmax(covariates), method="ml").fit(table).odds_ratios(table))


def test_contrasts_of_a_category_share_a_hidden_precision(rng):
    X, kind = drawn(rng, 60, 3), rng.choice(["a", "b", "c"], 60)
    X[kind == "b", 0] = 1.0
    table = pd.DataFrame(X, columns=[*"pqrs", "z"]).assign(kind=kind)
    model = classes(Softmax(["z", "kind"], slope_prior="hierarchical"), 3)
    turned = table.assign(kind=pd.Categorical(kind, ["c", "a", "b"]))
    assert model.fit(table).lower_bound_ == approx(clone(model).fit(turned).lower_bound_, abs=1e-6)
    one = classes(Softmax(["z", "kind"], slope_prior="hierarchical"), 1).fit(table)
    assert one.lower_bound_ == approx(classes(Softmax(["z", "kind"]), 1).fit(table).lower_bound_, abs=1e-9)


def test_draws_know_no_hidden_precisions():
    model = classes(Softmax("GPA", slope_prior="hierarchical")).fit(CHEATING)
    with pytest.raises(TypeError, match="Draws do not know the hidden precisions"):
        model.log_evidence(CHEATING, kind="ais")
    with pytest.raises(TypeError, match="Draws do not know the hidden precisions"):
        model.sample_posterior(CHEATING)


# Evidence by enumeration ----------------------------------------------------------------------------------------------


def terms_of(items, z, variances=(np.pi**2 / 6, 1.0)):
    """Coefficients of one contrast on a grid, (n_points, 2), and ln of labels' and grid's joint masses with the items.

    The masses are (n_labelings, n_points), of two classes.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2) * np.sqrt(variances)
    log_mass = np.log(np.outer(mass, mass).ravel() / mass.sum() ** 2)
    odds = np.sqrt(2) * grid @ np.column_stack([np.ones(len(z)), z]).T
    logs = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)
    terms = []
    for labels in product(range(2), repeat=len(z)):
        at = np.array(labels)
        yes = np.array([items[at == k].sum(axis=0) for k in range(2)])
        n = np.array([[(at == k).sum()] for k in range(2)])
        of_items = betaln(1 + yes, 1 + n - yes).sum()
        terms.append(log_mass + logs[:, np.arange(len(z)), at].sum(axis=1) + of_items)
    return grid, np.stack(terms)


def log_evidence(items, z):
    """The sum over all classes of all rows, two classes, coefficients integrated by quadrature."""
    return logsumexp(terms_of(items, z)[1])


def test_eight_rows_have_the_evidence_and_the_bound_of_the_definition():
    items = np.array([[int(c) for c in row] for row in ["0011", "0111", "1011", *["0000"] * 5]], dtype=float)
    z = np.array([-1.4, -0.6, 0.2, -1.4, -0.6, 0.2, 1, 1.8])
    assert log_evidence(items, z) == approx(-19.975400, abs=5e-5)
    model = classes(Softmax([4], standardize=False), n_init=10).fit(np.column_stack([items, z]))
    assert model.lower_bound_ == approx(-21.437479, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_tiny_tables_are_below_evidences(seed):
    rng = np.random.default_rng(seed)
    X = drawn(rng, n=int(rng.integers(2, 8)))
    model = classes(Softmax([4], standardize=False)).fit(X)
    assert model.lower_bound_ <= log_evidence(X[:, :4], X[:, 4]) + 1e-9


@pytest.mark.slow
def test_bounds_of_100_tiny_models_are_below_evidences():
    """Two classes of up to eight rows, and three of up to four, whose four contrasts have a grid of their own."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(14)
    grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), axis=-1).reshape(-1, 2, 2)
    log_mass = np.log(mass / mass.sum())[np.indices([14] * 4)].sum(axis=0).ravel()
    h = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
    for seed in range(100):
        rng = np.random.default_rng([100, seed])
        n_classes = 3 if seed % 5 == 0 else 2
        X = drawn(rng, int(rng.integers(n_classes, 5 if n_classes == 3 else 9)), n_classes)
        bound = classes(Softmax([4], standardize=False), n_classes, n_init=2).fit(X).lower_bound_
        items, z = X[:, :4], X[:, 4]
        if n_classes == 2:
            evidence = log_evidence(items, z)
        else:
            logs = h @ (grid * np.sqrt([np.pi**2 / 6, 1.0])) @ np.stack([np.ones(len(z)), z])
            logs = logs - logsumexp(logs, axis=1, keepdims=True)
            terms = []
            for labels in product(range(3), repeat=len(z)):
                at = np.array(labels)
                yes = np.array([items[at == k].sum(axis=0) for k in range(3)])
                n = np.array([[(at == k).sum()] for k in range(3)])
                of_labels = logsumexp(log_mass + logs[:, at, np.arange(len(z))].sum(axis=1))
                terms.append(of_labels + betaln(1 + yes, 1 + n - yes).sum())
            evidence = logsumexp(terms)
        assert bound <= evidence + 1e-6, seed
        assert bound > evidence - 1.5 * len(X) - 2, seed


@pytest.mark.parametrize("slope_prior", [1.0, "hierarchical"])
def test_laplace_and_standard_errors_are_those_of_numeric_derivatives(slope_prior):
    items, z = CHEATING[ITEMS].to_numpy(), CHEATING["GPA"].to_numpy()
    z, variances = (z - z.mean()) / z.std(), np.array([np.pi**2 / 6, 1.0])

    def log_likelihood(x):
        odds, eta = x[:8].reshape(2, 4), np.sqrt(2) * (x[8] + x[9] * z)
        of_class = np.stack([-np.logaddexp(0, -eta), -np.logaddexp(0, eta)], axis=1)
        of_items = items @ -np.logaddexp(0, -odds).T + (1 - items) @ -np.logaddexp(0, odds).T
        return logsumexp(of_class + of_items, axis=1).sum()

    def log_joint(x):
        of_items = (-np.logaddexp(0, -x[:8]) - np.logaddexp(0, x[:8])).sum()
        normal = -0.5 * (x[8:] ** 2 / variances + np.log(2 * np.pi * variances))
        if slope_prior == "hierarchical":  # the precision of a slope, Gamma(1, 1), is integrated out
            normal[1] = gammaln(1.5) - 0.5 * np.log(2 * np.pi) - 1.5 * np.log1p(x[9] ** 2 / 2)
        return log_likelihood(x) + of_items + normal.sum()

    def curvature(f, x, h=1e-3):
        e = np.eye(10) * h
        return -np.array([[f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for a in e] for b in e]) / (
            4 * h * h
        )

    start = np.r_[np.full(4, -3.0), np.zeros(4), 1.2, 0.5]
    top = minimize(lambda x: -log_joint(x), start, tol=1e-9)
    laplace = -top.fun + 5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(curvature(log_joint, top.x))[1]
    fit = classes(Softmax("GPA", slope_prior=slope_prior)).fit(CHEATING)
    evidence = fit.log_evidence(CHEATING, kind="laplace")
    assert evidence.value == approx(laplace, abs=1e-3)
    top = minimize(lambda x: -log_likelihood(x), start, tol=1e-9)
    error = np.sqrt(np.linalg.inv(curvature(log_likelihood, top.x))[9, 9] / 2) / CHEATING["GPA"].std(ddof=0)
    ml = classes(Softmax("GPA"), method="ml").fit(CHEATING)
    np.testing.assert_allclose(ml.standard_errors(CHEATING).errors["membership"]["coefficients"], error, rtol=1e-3)


@pytest.mark.slow
def test_draws_have_the_moments_of_the_posterior_by_enumeration():
    X = drawn(np.random.default_rng(3), n=6)
    model = classes(Softmax([4], standardize=False)).fit(X)
    drawn_parameters = model.sample_posterior(X, n_draws=6000).parameters["membership"]
    slope, intercept = drawn_parameters["coefficients"][:, :, 0], drawn_parameters["intercepts"]
    contrasts = np.stack([intercept[:, 0] - intercept[:, 1], slope[:, 0] - slope[:, 1]], axis=1) / np.sqrt(2)
    grid, terms = terms_of(X[:, :4], X[:, 4])
    posterior = np.exp(logsumexp(terms, axis=0) - logsumexp(terms))
    for one, other in ((0, 0), (0, 1), (1, 1)):  # the same whatever the classes are called
        values = contrasts[:, one] * contrasts[:, other]
        error = values.std() / np.sqrt(2000)
        assert values.mean() == approx(posterior @ (grid[:, one] * grid[:, other]), abs=3 * error)


# Steps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "collinear", "separated", "constant"])
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_no_step_lowers_the_objective(kind, method):
    if method == "ml" and kind == "collinear":
        pytest.skip("refused: see below")
    rng = np.random.default_rng([len(kind), len(method)])
    for n_classes in (2, 4):
        X = drawn(rng, 25, n_classes, covariates=int(rng.integers(1, 4)), kind=kind)
        X[:, :4][rng.random((25, 4)) < 0.2] = np.nan
        weight = rng.choice([0.5, 1.0, 3.0], 25)
        model = classes(Softmax(covariates_of(X)), n_classes, method=method, n_init=1, max_iter=50, tol=1e-7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of points at the edge of their space
            path = model.fit(X, sample_weight=weight).lower_bounds_
        assert np.diff(path).min(initial=0.0) > -1e-7


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_no_step_lowers_the_objective_of_300_tables(part):
    """Rows, weights, gaps, 2 to 5 classes, 1 to 6 covariates: collinear, constant, or so that classes are separated."""
    kinds, methods = ("plain", "collinear", "separated", "constant"), ("vb", "vb", "map", "ml")
    for number in range(50 * part, 50 * part + 50):
        rng = np.random.default_rng([7, number])
        kind, method = kinds[rng.integers(4)], methods[rng.integers(4)]
        kind = "plain" if (kind, method) == ("collinear", "ml") else kind
        n, n_classes = int(rng.integers(4, 80)), int(rng.integers(2, 6))
        X = drawn(rng, n, n_classes, covariates=int(rng.integers(1, 6 if kind == "collinear" else 7)), kind=kind)
        if method == "ml" and np.linalg.matrix_rank(np.column_stack([np.ones(n), X[:, 5:]])) < X.shape[1] - 4:
            method = "vb"  # as many covariates as rows
        X[:, :4][rng.random((n, 4)) < rng.choice([0.0, 0.3])] = np.nan
        weight = rng.choice([0.25, 1.0, 2.0, 7.0], n) if rng.random() < 0.5 else None
        model = classes(Softmax(covariates_of(X)), n_classes, method=method, max_iter=60, tol=1e-7, random_state=number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = model.fit(X, sample_weight=weight).lower_bounds_
        assert np.diff(path).min(initial=0.0) > -1e-7, number


def test_collinear_covariates_are_refused_by_maximum_likelihood(rng):
    X = drawn(rng, 25, covariates=2, kind="collinear")
    model = classes(Softmax([4, 5, 6]), method="ml")
    with pytest.raises(ValueError, match="the covariate 'x6' follows from those before it"):
        model.fit(X)
    assert np.isfinite(model.set_params(membership=Softmax([4, 5])).fit(X[:, :6]).log_likelihood_)
    assert np.isfinite(classes(Softmax([4, 5, 6]), method="vb").fit(X).lower_bound_)
    constant = np.column_stack([X[:, :5], np.full(25, 3.0)])
    with pytest.raises(ValueError, match="the covariate 'x5' follows from those before it"):
        classes(Softmax([4, 5], standardize=False), method="ml").fit(constant)
    summary = str(classes(Softmax([4, 5, 6])).fit(X).summary(X, method="vb"))
    assert "weight_concentration_prior" not in summary


# What changes nothing -------------------------------------------------------------------------------------------------


def test_units_and_order_of_covariates_and_of_rows_change_nothing(rng):
    X = drawn(rng, 40, covariates=3)
    model = classes(Softmax([4, 5, 6]), n_init=3, tol=1e-11).fit(X)
    other = X[rng.permutation(40)][:, [0, 1, 2, 3, 6, 4, 5]]
    other[:, 4:] = 100.0 - 7.0 * other[:, 4:]
    turned = classes(Softmax([6, 4, 5]), n_init=3, tol=1e-11).fit(other)
    assert turned.lower_bound_ == approx(model.lower_bound_, abs=1e-9)


def test_categories_are_contrasts_of_which_no_level_is_a_reference(rng):
    X, kind = drawn(rng, 60, 3), rng.choice(["a", "b", "c"], 60)
    X[kind == "b", 0] = 1.0
    table = pd.DataFrame(X, columns=[*"pqrs", "z"]).assign(kind=kind)
    model = classes(Softmax(["z", "kind"], standardize=False), 3, n_init=5).fit(table)
    h = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])  # Helmert
    one, other = h[np.searchsorted(["a", "b", "c"], kind)].T
    twin = classes(Softmax(["z", "one", "other"], standardize=False), 3, n_init=5)
    twin.fit(table.drop(columns="kind").assign(one=one, other=other))
    assert model.lower_bound_ == approx(twin.lower_bound_, abs=1e-8)
    ours, slopes = (each.parameters_["membership"]["coefficients"] for each in (model, twin))
    expected = np.hstack([slopes[:, :1], slopes[:, 1:] @ h.T])
    np.testing.assert_allclose(ours[ours[:, 0].argsort()], expected[expected[:, 0].argsort()], atol=1e-4)
    standardized = classes(Softmax(["z", "kind"]), 3, tol=1e-11).fit(table)
    turned = classes(Softmax(["kind", "z"]), 3, tol=1e-11)
    turned.fit(table.assign(kind=pd.Categorical(kind, ["c", "a", "b"])))
    assert turned.lower_bound_ == approx(standardized.lower_bound_, abs=1e-9)
    codes = table.assign(kind=np.searchsorted(["a", "b", "c"], kind))
    declared = classes(Softmax(["z", "kind"]), 3, categories={"kind": [0, 1, 2]}).fit(codes)
    assert declared.lower_bound_ == approx(standardized.lower_bound_, abs=1e-8)
    assert "log odds of kind=b" in str(standardized.summary(table, method="vb"))


def test_categories_of_covariates_are_asked_and_drawn_as_they_are_given(tmp_path, rng):
    table = CHEATING.assign(term=pd.Categorical(rng.choice(["fall", "spring"], 315)))
    model = classes(Softmax(["GPA", "term"])).fit(table)
    assert model.categories_["term"].tolist() == ["fall", "spring"]
    assert model.sample(given=table)[0]["term"].tolist() == table["term"].tolist()
    skvbem.save(model, tmp_path / "model.skvbem")
    loaded = skvbem.load(tmp_path / "model.skvbem")
    np.testing.assert_allclose(loaded.predict_proba(table), model.predict_proba(table), atol=1e-9)
    with pytest.raises(ValueError, match="Column 'term' of X contains 'summer'"):
        model.predict(table.assign(term="summer"))
    with pytest.raises(ValueError, match="has no 'term', a covariate of the component"):
        model.predict(table.assign(term=None))


def test_weights_are_repeats(rng):
    X, weight = drawn(rng, 40), rng.integers(1, 4, 40)
    weighted = classes(Softmax([4])).fit(X, sample_weight=weight)
    repeated = classes(Softmax([4])).fit(np.repeat(X, weight, axis=0))
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-8)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("ends", [[15], [1, 59]])
def test_blocks_are_rows_however_they_are_divided(rng, ends):
    X, weight = drawn(rng, 60, covariates=2), rng.choice([0.5, 1.0, 2.0], 60)
    table = pd.DataFrame(X.round(1), columns=[*"pqrs", "u", "v"]).assign(kind=rng.choice(["a", "b"], 60))
    model = classes(Softmax(["u", "v", "kind"]), tol=1e-4)
    whole = clone(model).fit(table, sample_weight=weight)
    ends = [0, *ends, 60]
    blocks = blocks_of([table[a:b] for a, b in pairwise(ends)])
    model.fit(blocks, sample_weight=blocks_of([weight[a:b] for a, b in pairwise(ends)]))
    assert model.lower_bound_ == approx(whole.lower_bound_, abs=1e-9)
    np.testing.assert_allclose(model.predict_proba(table), whole.predict_proba(table), atol=1e-7)
    evidence = model.log_evidence(blocks, kind="lower_bound", sample_weight=weight)
    assert evidence.value == approx(whole.lower_bound_, abs=1e-7)


def test_batches_of_rows_whose_classes_are_certain_are_rows(tmp_path, rng):
    u = rng.normal(size=(60, 2)).round(1)
    kind = (u @ [[2.0, -2.0, 0.0], [0.0, 1.0, -1.0]] + rng.gumbel(size=(60, 3))).argmax(axis=1)
    X = np.column_stack([rng.poisson(np.array([1.0, 3e3, 1e6])[kind]), u])
    options = {"emission": Poisson(shape_prior=1.0, rate_prior=1.0), "random_state": 0, "tol": 1e-10}
    whole = VBMixture(3, membership=Softmax([1, 2], standardize=False), **options).fit(X)
    model, bounds = clone(whole), []
    for batch in np.split(X, [30, 45]):
        bounds.append(model.partial_fit(batch).batch_lower_bound_)
    assert sum(bounds) == approx(whole.lower_bound_, abs=1e-6)
    skvbem.save(model, tmp_path / "model.skvbem")
    for each in (model, skvbem.load(tmp_path / "model.skvbem")):
        ours, theirs = (np.sort(of.parameters_["membership"]["coefficients"], axis=0) for of in (each, whole))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_one_class_needs_no_covariate():
    X = CHEATING[ITEMS]
    one = classes(Softmax("GPA"), 1).fit(CHEATING)
    assert one.lower_bound_ == approx(VBMixture(1, emission="bernoulli").fit(X).lower_bound_, abs=1e-9)
    assert (one.predict_proba(CHEATING) == 1).all()


def test_known_labels_are_kept():
    labels = np.where(np.arange(315) < 40, np.arange(315) % 2, -1)
    model = classes(Softmax("GPA")).fit(CHEATING, labels=labels)
    assert model.lower_bound_ < classes(Softmax("GPA")).fit(CHEATING).lower_bound_


@pytest.mark.parametrize("method", ["ml", "vb"])
def test_a_bootstrap_fits_the_rows_that_it_drew(rng, method):
    X = drawn(rng, 80)
    model = classes(Softmax([4], standardize=False), method=method, tol=1e-10, random_state=0).fit(X)
    draws = model.bootstrap(X, n_draws=2).parameters["membership"]["coefficients"]
    reading = read(model, X, columns=model.fitted.columns)
    for k in range(2):
        again = reading.resampled(np.random.default_rng([0, 2**35, k]))
        rows, weight = np.column_stack(again.values).astype(float), again.unit_weight
        fit = classes(Softmax([4], standardize=False), method=method, tol=1e-10, init=model.predict_proba(rows))
        fit.fit(rows, sample_weight=weight)
        np.testing.assert_allclose(draws[k], fit.parameters_["membership"]["coefficients"], atol=1e-3)


def test_numbers_of_components_are_searched():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(90, 2))
    kind = (u @ [[2.0, -2.0, 0.0], [0.0, 1.0, -1.0]] + rng.gumbel(size=(90, 3))).argmax(axis=1)
    X = np.column_stack([rng.normal(np.array([[0, 0], [6, 0], [0, 6]])[kind]), u])
    options = {"membership": Softmax([2, 3]), "random_state": 0, "n_init": 2, "tol": 1e-6}
    three = VBMixture(3, **options | {"init": "hierarchical", "n_init": 1}).fit(X)
    model = VBMixture("auto", **options).fit(X)
    assert model.n_components_ == 3
    assert model.lower_bound_ == approx(three.lower_bound_, abs=1e-4)


# The estimator --------------------------------------------------------------------------------------------------------


def test_covariates_say_the_class_where_items_are_missing():
    model = classes(Softmax("GPA")).fit(CHEATING)
    unknown = CHEATING.iloc[[0, -1]].assign(**dict.fromkeys(ITEMS, np.nan), GPA=[1.0, 5.0])
    low, high = model.predict_proba(unknown)
    cheats = int(model.parameters_["bernoulli"]["probabilities"][:, 3].argmax())
    odds = np.diff(model.parameters_["membership"]["coefficients"][[1 - cheats, cheats]], axis=0).item()
    assert odds < 0
    assert 0.3 > low[cheats] > high[cheats] + 0.1


def test_predictions_are_means_over_the_posterior_of_the_coefficients(rng):
    X = drawn(rng, 12)
    model = classes(Softmax([4], standardize=False)).fit(X)
    posterior, z = model._fitted_.posterior.blocks[1].blocks[1], np.array([-2.0, 0.0, 3.0])
    root = np.linalg.cholesky(posterior.covariance)
    drawn_contrasts = (posterior.mean[0] - posterior.mean[1]) + np.sqrt(2) * rng.normal(size=(200_000, 2)) @ root.T
    expected = 1 / (1 + np.exp(-drawn_contrasts @ np.stack([np.ones(3), z])))
    rows = np.column_stack([np.full((3, 4), np.nan), z])
    np.testing.assert_allclose(model.predict_proba(rows)[:, 0], expected.mean(axis=0), atol=0.004)


def test_rows_are_drawn_by_their_covariates():
    model = classes(Softmax("GPA")).fit(CHEATING)
    many = pd.concat([CHEATING] * 20)
    X, component = model.sample(given=many)
    assert X["GPA"].tolist() == many["GPA"].tolist()
    low = many["GPA"].to_numpy() == 1
    expected = model.predict_proba(many.assign(**dict.fromkeys(ITEMS, np.nan)))
    for at in (low, ~low):
        assert (component[at] == 1).mean() == approx(expected[at, 1].mean(), abs=0.03)


def test_a_saved_fit_answers_as_before(tmp_path):
    model = classes(Softmax("GPA")).fit(CHEATING)
    path = tmp_path / "model.skvbem"
    skvbem.save(model, path)
    loaded = skvbem.load(path)
    np.testing.assert_allclose(loaded.predict_proba(CHEATING), model.predict_proba(CHEATING), atol=1e-6)
    assert loaded.log_evidence(CHEATING, kind="lower_bound").value == approx(model.lower_bound_, abs=1e-8)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_parameters_of_a_saved_fit_hang_on_no_earlier_maximum(method, tmp_path, rng):
    X = drawn(rng, 60, covariates=2)
    X[:, 4:] *= 50.0
    model = classes(Softmax([4, 5]), 3, method=method, n_init=2, tol=1e-5).fit(X)
    skvbem.save(model, tmp_path / "model.skvbem")
    loaded = skvbem.load(tmp_path / "model.skvbem").parameters_["membership"]["coefficients"]
    np.testing.assert_array_equal(loaded, model.parameters_["membership"]["coefficients"])


def test_it_is_cloned_and_searched():
    model = classes(Softmax("GPA"), n_init=1, tol=1e-4)
    assert clone(model).membership.covariates == "GPA"
    search = GridSearchCV(model, {"membership__slope_prior": [0.1, 1.0]}, cv=2).fit(CHEATING)
    assert search.best_params_["membership__slope_prior"] in (0.1, 1.0)


def test_other_columns_keep_their_emissions(rng):
    table = pd.DataFrame(
        {"age": rng.normal(50, 10, 90), "height": rng.normal(size=90), "sex": rng.choice(["f", "m"], 90)}
    )
    named = VBMixture(2, membership=Softmax("age"), emission={"gaussian": "height", "remainder": "auto"}, n_init=1)
    guessed = VBMixture(2, membership=Softmax("age"), n_init=1)
    bounds = {each.set_params(random_state=0).fit(table).lower_bound_ for each in (named, guessed)}
    assert max(bounds) == approx(min(bounds), abs=1e-8)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "table", "error"),
    [
        ({"membership": "GPA"}, CHEATING, "must be None or a Softmax"),
        ({"membership": Softmax([])}, CHEATING, "names no column"),
        ({"membership": Softmax(["GPA", "GPA"])}, CHEATING, "names a column twice"),
        ({"membership": Softmax("gpa")}, CHEATING, "GPA"),
        ({"membership": Softmax(["GPA", *ITEMS])}, CHEATING, "none is left"),
        ({"weight_concentration_prior": 2.0}, CHEATING, "takes the place of weights"),
        ({"weight_concentration_prior_type": "dirichlet_process"}, CHEATING, "takes the place of weights"),
        ({"membership": Softmax("GPA", slope_prior=-1.0)}, CHEATING, "slope_prior"),
        ({}, CHEATING.assign(GPA=CHEATING["GPA"].where(CHEATING.index != 7)), "has no 'GPA', a covariate"),
    ],
)
def test_it_is_refused_by_name(options, table, error):
    with pytest.raises((ValueError, TypeError), match=error):
        VBMixture(**({"n_components": 2, "emission": "bernoulli", "membership": Softmax("GPA")} | options)).fit(table)


def test_new_rows_need_their_covariates_too():
    model = classes(Softmax("GPA")).fit(CHEATING)
    with pytest.raises(ValueError, match="has no 'GPA', a covariate of the component"):
        model.predict(CHEATING.assign(GPA=np.nan))
