"""What holds of the best known optima and of default fits, in the records of runs, and a part of those runs again."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction import optima, optima_starts, real_tables
from reproduction.optima_problems import COVARIANCES, PROBLEMS, Problem, rows_of
from reproduction.pages import check_page

approx = pytest.approx
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
BEST, SOLUTIONS = optima.read(optima.BEST), optima.read(optima.SOLUTIONS)
KNOWN = [problem for problem in PROBLEMS.values() if "objective" in BEST.get(problem.name, {})]
#: One problem of each group, whose fit takes milliseconds.
AGAIN = [
    "mixture, iris, full, 3, vb",
    "mixture, iris, full, 3, ml",
    "mixture, crabs, tied, 4, vb",
    "mixture, iris, diag, 3, ml",
    "mixture, faithful, spherical, 5, vb",
    "mixture, earthquakes, poisson, 3, vb",
    "mixture, eight rows, full, 2, vb",
    "chain, earthquakes, poisson, 3, vb",
    "classes, carcinoma, categorical, 3, vb",
    "coleman linked, coleman_panel, categorical, 2, vb",
]


def problem_of(name):
    problem = PROBLEMS[name]
    return problem if problem.is_here else pytest.skip("third-party data are not part of the source distribution")


def check_solution(problem):
    """The solution leads to the objective that the record has, or to a better one."""
    parts = optima.decoded(problem, SOLUTIONS[problem.name]["parts"])
    model = optima_starts.fit_from(problem, parts, tol=1e-8)
    assert problem.is_proper(model)
    assert problem.objective(model) >= BEST[problem.name]["objective"] - 1e-3


@pytest.mark.parametrize("name", AGAIN)
def test_a_best_known_is_reached_again(name):
    check_solution(problem_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [problem.name for problem in KNOWN if BEST[problem.name]["reached_again"]])
def test_every_best_known_is_reached_again(name):
    check_solution(problem_of(name))


# --- the problems -----------------------------------------------------------------------------------------------------


def test_there_are_enough_problems_of_all_kinds():
    groups = {problem.group for problem in PROBLEMS.values()}
    assert len(PROBLEMS) >= 150
    assert {"Gaussian full", "Gaussian tied", "Gaussian diag", "Gaussian spherical"} < groups
    assert {"latent classes", "networks of two latents", "chains"} < groups
    assert {problem.method for problem in PROBLEMS.values()} == {"vb", "ml"}
    assert {problem.n_components for problem in PROBLEMS.values()} >= {2, 3, 4, 5, 6, 8, 10}


def test_half_of_them_are_held():
    held = sum(problem.half == "held" for problem in PROBLEMS.values())
    assert 0.4 < held / len(PROBLEMS) < 0.6


@pytest.mark.parametrize(
    ("width", "smallest", "is_proper"), [(1e-3, 10.0, True), (0.9e-6, 10.0, False), (1e-3, 1.9, False)]
)
def test_a_spike_is_seen(width, smallest, is_proper):
    """A component without width in one direction, and one of fewer rows than columns."""
    problem = PROBLEMS["mixture, faithful, full, 2, ml"]
    root = np.linalg.cholesky(np.cov(rows_of("faithful").X, rowvar=False, bias=True))
    covariances = np.stack([root @ root.T, root @ np.diag([width, 1.0]) @ root.T])
    model = SimpleNamespace(covariances_=covariances, counts_=np.array([smallest, 272 - smallest]))
    assert problem.is_proper(model) == is_proper


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_the_least_variance_is_that_of_the_definition(kind, rng):
    problem = Problem("mixture", "iris", kind, 3, "ml")
    X = rows_of("iris").X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = problem.fit(n_init=1, max_iter=5, random_state=0)
    covariances = np.asarray(model.covariances_)
    if kind == "diag":
        expected = min((covariance / X.var(axis=0)).min() for covariance in covariances)
    elif kind == "spherical":
        expected = covariances.min() / X.var(axis=0).max()
    else:
        moments = np.cov(X, rowvar=False, bias=True)
        axes = rng.normal(size=(200_000, 4))
        of_table = np.einsum("ni,ij,nj->n", axes, moments, axes)
        ratios = [
            np.einsum("ni,ij,nj->n", axes, covariance, axes) / of_table for covariance in covariances.reshape(-1, 4, 4)
        ]
        expected = approx(np.min(ratios), rel=0.1)
    assert problem._least_variance(model, X) == expected


# --- starts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGAIN)
def test_starts_and_moves_are_responsibilities(name, rng):
    problem = problem_of(name)
    parts = optima.decoded(problem, SOLUTIONS[name]["parts"])
    made = [optima_starts.random_parts(problem, rng), optima_starts.clustered_parts(problem, rng)]
    made += [optima_starts.moved(problem, parts, rng) for _ in range(20)]
    for each in made:
        assert [part.shape for part in each] == [part.shape for part in parts]
        assert all(optima_starts.normalized(part).sum(axis=1) == approx(1.0) for part in each)
        assert all(part.min() > -1e-12 for part in each)


@pytest.mark.parametrize("name", AGAIN)
def test_a_solution_grows_and_shrinks(name, rng):
    problem = problem_of(name)
    parts = optima.decoded(problem, SOLUTIONS[name]["parts"])
    assert all(part.shape[1] == problem.n_components + 1 for part in optima_starts.split_parts(problem, parts, rng))
    assert all(part.shape[1] == problem.n_components - 1 for part in optima_starts.joined_parts(problem, parts, rng))


def test_responsibilities_survive_being_written():
    problem = PROBLEMS["mixture, iris, full, 3, vb"]
    parts = [np.random.default_rng(0).dirichlet(np.ones(3), size=150)]
    (back,) = optima.decoded(problem, optima.encoded(parts))
    assert back == approx(parts[0], abs=0.01)


# --- the record of the best known -------------------------------------------------------------------------------------


def test_the_record_only_rises(tmp_path):
    problem = problem_of("mixture, iris, full, 3, vb")
    best = optima.Best(tmp_path / "best.jsonl", tmp_path / "solutions.jsonl")
    poor = optima_starts.fit_from(problem, [optima_starts.indicators(np.arange(150) % 3, 3)], max_iter=2)
    good = optima_starts.fit_from(problem, optima.decoded(problem, SOLUTIONS[problem.name]["parts"]))
    assert best.offer(problem, good, "one")
    assert not best.offer(problem, poor, "another")
    assert not best.offer(problem, good, "another")
    best.save()
    other = optima.Best(tmp_path / "best.jsonl", tmp_path / "solutions.jsonl")
    other.records[problem.name] = {"name": problem.name, "half": problem.half, "objective": -1e9}
    other.save()
    again = optima.Best(tmp_path / "best.jsonl", tmp_path / "solutions.jsonl")
    assert again.value(problem.name) == approx(BEST[problem.name]["objective"], abs=1e-3)
    assert again.records[problem.name]["found_by"] == "one"


def test_the_record_is_complete():
    for problem in PROBLEMS.values():
        record = BEST[problem.name]
        assert record["half"] == problem.half
        assert np.isfinite(record["objective"])
        assert problem.name in SOLUTIONS
        if problem.is_here:
            assert record["n_starts"] >= 100


def test_nearly_all_solutions_lead_where_they_should():
    assert np.mean([BEST[problem.name]["reached_again"] for problem in KNOWN]) > 0.95


def test_more_components_are_never_less_likely():
    for problem in KNOWN:
        fewer = Problem(problem.model, problem.table, problem.kind, problem.n_components - 1, "ml").name
        if problem.method == "ml" and fewer in BEST:
            assert BEST[problem.name]["objective"] >= BEST[fewer]["objective"] - 1e-6


def test_one_component_more_costs_no_more_than_an_empty_one():
    """Of weights with a uniform prior, ln K / (K + n) nats."""
    n_compared = 0
    for problem in KNOWN:
        k, is_uniform = problem.n_components - 1, problem.kind in (*COVARIANCES, "poisson", "categorical", "bernoulli")
        fewer = Problem(problem.model, problem.table, problem.kind, k, "vb").name
        if problem.method == "vb" and problem.model in ("mixture", "classes") and is_uniform and fewer in BEST:
            price = np.log(k / (k + len(problem.rows.X)))
            assert BEST[problem.name]["objective"] >= BEST[fewer]["objective"] + price - 1e-3, problem.name
            n_compared += 1
    assert n_compared > 30


@pytest.mark.parametrize(("n_components", "log_likelihood"), [(2, -220.0580), (3, -203.1792)])
def test_galaxies_have_the_likelihood_that_is_known(n_components, log_likelihood):
    """In thousands of km/s."""
    problem = problem_of(f"mixture, galaxies, full, {n_components}, ml")
    units = 82 * np.log(real_tables.raw("galaxies").std() / 1000)
    assert BEST[problem.name]["objective"] - units == approx(log_likelihood, abs=1e-4)


def test_eight_rows_have_the_bound_that_is_known():
    assert BEST["mixture, eight rows, full, 2, vb"]["objective"] == approx(-38.40504, abs=1e-5)


def test_iris_has_three_components_in_use():
    (part,) = optima.decoded(PROBLEMS[AGAIN[0]], SOLUTIONS[AGAIN[0]]["parts"])
    assert (part.sum(axis=0) > 10).all()


# --- what default fits reach ------------------------------------------------------------------------------------------


def test_shortfalls_of_spikes_have_no_end():
    problem = PROBLEMS["mixture, iris, full, 3, vb"]
    best = {problem.name: {"objective": -10.0}}
    fits = {problem.name: {"objectives": [-10.5, -9.0, -5.0], "proper": [True, True, False], "seconds": [1, 1, 1]}}
    assert optima.shortfalls(fits, best, [problem]).tolist() == [[0.5, 0.0, np.inf]]
    assert optima.summary(fits, best)[-1][1:] == ("1", "33.3 %", "66.7 %", "inf", "0.5", "1", "3.0")


def test_the_page_shows_the_record():
    check_page(PAGE, [[f"{len(PROBLEMS)} problems"]])
    for fits in optima.read_fits().values():
        check_page(PAGE, optima.page_rows(fits, BEST))
