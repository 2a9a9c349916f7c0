"""Races between starts, and moves that leave a local optimum."""

import numpy as np
import pytest

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.ascent import Ascent
from skvbem.datasets import load_coleman_panel
from skvbem.emissions import Gaussian
from skvbem.fitting.evaluation import evaluation_of
from skvbem.optima.candidates import NEW_START, Candidate, Proposals, begun
from skvbem.optima.labels import MixtureMethod
from skvbem.optima.plan import FitMethod, FitPlan
from skvbem.optima.search import Runs, Stage, searched
from skvbem.optima.tuning import EFFORTS
from skvbem.vbem.driver import Elimination, run
from skvbem.vbem.posteriors import ML, VB

approx = pytest.approx
LIMITS = {"tol": 1e-6, "max_iter": 500, "accelerate": False}
#: Velocities of 82 galaxies, km/s [Roeder 1990].
GALAXIES = """
    9172 9350 9483 9558 9775 10227 10406 16084 16170 18419 18552 18600 18927 19052 19070 19330 19343 19349 19440
    19473 19529 19541 19547 19663 19846 19856 19863 19914 19918 19973 19989 20166 20175 20179 20196 20215 20221
    20415 20629 20795 20821 20846 20875 20986 21137 21492 21701 21814 21921 21960 22185 22209 22242 22249 22314
    22374 22495 22746 22747 22888 22914 23206 23241 23263 23484 23538 23542 23666 23706 23711 24129 24285 24289
    24366 24717 24990 25633 26690 26995 32065 32789 34279
"""


class Hills(Ascent):
    """Steps that go half of the way to the nearest of some tops; the objective is how high its hill is there."""

    signed, magnitude, form = np.ones(1, dtype=bool), 1.0, ML  # asks no prior

    def __init__(self, *tops):
        self.tops, self.heights = np.array([top for top, _ in tops]), np.array([height for _, height in tops])
        self.n_steps = 0

    def advance(self, statistics, n_steps):
        trace = np.empty((n_steps, statistics.shape[1]))
        for step in range(n_steps):
            self.n_steps += statistics.shape[1]
            nearest = np.abs(statistics - self.tops[:, None]).argmin(axis=0)
            away = statistics[0] - self.tops[nearest]
            trace[step] = self.heights[nearest] - away**2
            statistics[0] -= away / 2
        return trace

    def failure(self):
        return FloatingPointError()


class Jumps(FitMethod):
    """Moves by a distance."""

    def __init__(self, *by, refuse=None):
        self.by, self.refuse = by, refuse

    def moves(self, ascent, statistics, seed, is_brief, n_failed):
        return Proposals([f"by {by}" for by in self.by], np.array([[statistics[0, 0] + by for by in self.by]]))

    def regular(self, ascent):
        return None if self.refuse is None else lambda statistics: ~(np.abs(statistics[0] - self.refuse) < 1)


def optima_of(method, hills, *starts):
    """Ends of starts, and the optima that they and moves lead to."""
    stage = Stage(hills, begun(np.array([starts])), Runs(method, LIMITS, (0,), None))
    optima = searched(stage, list(stage.starts))
    return stage.starts, optima


def test_a_start_is_stopped_where_the_best_is_out_of_its_reach():
    hills = Hills((0.0, 0.0), (100.0, 50.0))
    starts = np.array([[3.0, 99.0, 120.0]])
    elimination = Elimination(n_steps=5, reach=3.0)
    all_of_them, race = run(hills, starts, **LIMITS), run(hills, starts, elimination=elimination, **LIMITS)
    assert all_of_them.converged.all()
    assert race.converged.tolist() == [False, True, True]
    assert race.n_iter[0] < all_of_them.n_iter[0]
    assert race.objective[1:] == approx(50.0)


def test_what_does_not_count_stops_nobody():
    hills = Hills((0.0, 0.0), (100.0, 50.0))
    elimination = Elimination(n_steps=5, is_regular=lambda statistics: statistics[0] < 50)
    assert run(hills, np.array([[3.0, 99.0]]), elimination=elimination, **LIMITS).converged.all()


def test_an_objective_reached_before_stops_all():
    hills = Hills((0.0, 0.0))
    elimination = Elimination(n_steps=2, least=1e3)
    assert not run(hills, np.array([[30.0, 40.0]]), elimination=elimination, **LIMITS).converged.any()


def test_starts_on_the_path_of_another_end_where_it_does_and_take_no_steps():
    hills = Hills((0.0, 0.0), (100.0, 50.0), (200.0, 0.0))
    starts = np.array([[203.0, 3.0, 99.0, 3.0, 120.0, 99.0, 3.0]])  # the first is as high as the second, elsewhere
    result, n_steps = run(hills, starts, **LIMITS), hills.n_steps
    alone = [run(hills, starts[:, [lane]], **LIMITS) for lane in range(7)]
    for lane, each in enumerate(alone):
        assert result.statistics[0, lane] == each.statistics[0, 0]
        assert result.traces[lane] == each.traces[0]
        for name in ("objective", "n_iter", "converged", "to_come"):
            assert getattr(result, name)[lane] == getattr(each, name)[0]
    copies = sum(alone[lane].n_iter[0] - 2 for lane in (3, 5, 6))
    assert n_steps < sum(each.n_iter[0] for each in alone) - 0.9 * copies


def test_the_worse_half_of_starts_is_left_after_two_steps():
    hills = Hills((0.0, 0.0), (100.0, 50.0), (300.0, 99.0))
    starts = np.array([[3.0, 99.0, 103.0, 5.0, 301.0]])
    elimination = Elimination(n_steps=99, is_regular=lambda statistics: statistics[0] < 290, halves=True)
    result = run(hills, starts, elimination=elimination, **LIMITS)
    assert result.converged.tolist() == [True, True, True, False, False]
    assert result.n_iter[3:].tolist() == [2, 2]
    assert result.to_come[3:].tolist() == [0.0, 0.0]


def test_moves_lead_on_until_none_is_better():
    hills = Hills((0.0, 0.0), (10.0, 1.0), (20.0, 2.0), (30.0, 1.5))
    fit = Runs(Jumps(-9.0, 9.0), LIMITS, (0,), None).fit([hills], np.array([[1.0]]))
    assert fit.objective == approx(2.0)
    assert [move.kind for move in fit.moves] == ["by 9.0", "by 9.0"]
    assert fit.statistics == approx(20.0, abs=1e-3)
    assert fit.converged
    assert np.all(np.diff(fit.trace) >= 0)  # of the run that ended there alone
    assert fit.restart_objectives == approx(0.0, abs=0.1)


def test_what_does_not_count_is_refused_while_there_is_another():
    hills = Hills((0.0, 0.0), (10.0, 5.0))
    for starts in ([[1.0, 9.0]], [[1.0]]):
        method = Jumps(9.0, refuse=10.0)
        fit = Runs(method, LIMITS, (0,), None).fit([hills], np.array(starts))
        assert fit.objective == approx(0.0, abs=1e-6)
    alone = Runs(Jumps(refuse=10.0), LIMITS, (0,), None).fit([hills], np.array([[9.0]]))
    assert alone.objective == approx(5.0, abs=1e-6)


def test_a_run_that_is_stopped_moves_no_further():
    hills = Hills((0.0, 0.0), (10.0, 1.0))
    fit = Runs(Jumps(9.0), LIMITS, (0,), lambda *_: True).fit([hills], np.array([[1.0]]))
    assert fit.moves == ()
    assert hills.n_steps == 2


def test_candidates_that_met_one_optimum_are_one():
    hills = Hills((0.0, 0.0), (10.0, 1.0))
    runs = Runs(FitMethod(), LIMITS, (0,), None)
    ends, optima = runs.best([hills], np.array([[0.5, 9.5, 10.5, 1.0, 9.0]]))
    assert len(ends) == 5
    assert [round(each.objective) for each in optima] == [1, 0]


def test_a_start_that_cannot_reach_the_best_is_left_after_a_round():
    for starts in ([990.0, 400.0], [400.0, 990.0]):
        hills = Hills((0.0, 0.0), (1000.0, 50.0))
        ends, optima = optima_of(FitMethod(), hills, *starts)
        left = ends[starts.index(400.0)]
        assert not left.converged
        assert left.n_iter < 12
        assert [round(each.objective) for each in optima] == [50]


# Optima that chains start from ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_no_optimum_is_kept_twice(seed):
    """Races leave many a start on its way to an optimum; what is kept of them is where that ends."""
    X = load_coleman_panel(as_frame=True).data
    edges = [("member", "A"), ("member", "C"), ("attitude", "B"), ("attitude", "D"), ("member", "attitude")]
    model = VBDiscreteDAG(edges, latents={"member": 2, "attitude": 2}, random_state=seed).fit(X)
    optima = evaluation_of(model, X).ended_optima()
    ascent = model._run_.plan.method.ascent(model._fitted_.model, evaluation_of(model, X).data, VB, 1)
    ends = run(ascent, optima, tol=1e-8, max_iter=5000).objective
    assert np.all(np.diff(ends) < -0.01)
    assert ends[0] == approx(model.lower_bound_, abs=1e-3)


class OnHills(Jumps):
    """Moves on hills that are there before a fit is."""

    def __init__(self, hills):
        super().__init__()
        self.hills = hills

    def ascent(self, model, data, form, n_threads):
        return self.hills


@pytest.mark.parametrize("explore", [True, False])
def test_chains_start_from_optima_with_a_part_of_the_posterior_run_to_their_ends(explore):
    hills = Hills((0.0, 0.0), (10.0, 1.0), (20.0, -10.0), (30.0, -12.0), (40.0, 0.9999))
    starts = np.array([[0.5, 9.5, 10.5, 19.5, 29.5, 41.0]])
    plan = FitPlan(OnHills(hills), (0,), starts, LIMITS, explore=explore)
    fit = plan.run(None, None, VB)
    assert plan.run_optima(None, None, fit)[0] == approx([10.0, 0.0, 20.0], abs=1e-4)
    assert fit.optima[0, 0] == approx(10.0, abs=1e-3)
    assert fit.restart_objectives == approx([0.0, 1.0, 1.0, -10.0, -12.0, 0.9999], abs=0.1)


def test_only_chains_have_optima_run_to_their_ends():
    hills = Hills((0.0, 0.0), (10.0, 1.0))
    plan = FitPlan(OnHills(hills), (0,), np.array([[0.5, 9.5]]), LIMITS, explore=True)
    fit = plan.run(None, None, VB)
    n_steps = hills.n_steps
    plan.run_optima(None, None, fit)
    assert hills.n_steps > n_steps


def test_the_best_is_run_to_its_end_whatever_the_others_have_left():
    hills = Hills((0.0, 1.0), (10.0, 0.5))
    best = Candidate(np.array([0.9]), 0, objective=0.19, to_come=0.8, n_iter=10)
    other = Candidate(np.array([10.9]), 1, objective=-0.31, to_come=0.8, n_iter=LIMITS["max_iter"] - 3)
    first, *_ = Runs(Jumps(), LIMITS, (0,), None).finished(hills, [best, other])
    assert first.objective == approx(1.0, abs=1e-5)
    assert first.converged


# How long is searched -------------------------------------------------------------------------------------------------

#: Distances to a lower hill at 50 for seven of eight proposals of a round: few come back to the best.
AWAY = (60.0,) * 7


class Counted(Jumps):
    """Moves by a distance that keep how often, and of which optima, they were asked."""

    def __init__(self, *by, kind=None):
        super().__init__(*by)
        self.kind, self.asked = kind, []

    def moves(self, ascent, statistics, seed, is_brief, n_failed):
        self.asked.append((statistics[0].round().tolist(), is_brief))
        proposals = super().moves(ascent, statistics, seed, is_brief, n_failed)
        return proposals._replace(kinds=[self.kind or kind for kind in proposals.kinds])


def asked_of(method, hills, *starts):
    optima_of(method, hills, *starts)
    return method.asked


@pytest.mark.parametrize(
    ("starts", "n_rounds"),
    [([1.0], 3), ([1.0, 0.5], 2), ([1.0, 0.5, 0.2], 1), ([1.0] * 8, 1), ([1.0] * 2 + [48.0] * 18, 4)],
)
def test_the_fewer_starts_met_the_best_the_longer_it_is_searched(starts, n_rounds):
    asked = asked_of(Counted(2.0, *AWAY), Hills((0.0, 0.0), (50.0, -1.0)), *starts)
    assert len(asked) == n_rounds
    assert [is_brief for _, is_brief in asked] == [True] + [False] * (n_rounds - 1)


class Brief(Jumps):
    """Promising moves alone where a round is brief, and then all; kept are the numbers of rounds that failed."""

    def __init__(self, promising, others, are_enough=False):
        super().__init__()
        self.each, self.are_enough, self.asked = (others, promising), are_enough, []

    def moves(self, ascent, statistics, seed, is_brief, n_failed):
        self.asked.append((is_brief, n_failed))
        self.by = self.each[is_brief]
        proposals = super().moves(ascent, statistics, seed, is_brief, n_failed)
        return proposals._replace(are_few=is_brief, are_enough=is_brief and self.are_enough)


def test_the_most_promising_moves_come_first_and_all_where_they_fail():
    """A brief round finds the hill at 20, the next one nothing: what it left out is tried then, for the first time."""
    hills = Hills((0.0, 0.0), (20.0, 1.0), (50.0, -1.0))
    method = Brief((19.0,), AWAY)
    assert optima_of(method, hills, 1.0)[1][0].statistics[0] == pytest.approx(20.0, abs=0.5)
    assert method.asked[:5] == [(True, 0), (True, 0), (False, 0), (False, 1), (False, 2)]
    method = Brief((19.0,), AWAY, are_enough=True)
    optima_of(method, hills, 1.0)
    assert method.asked == [(True, 0), (True, 0)]
    method = Brief((1.0, 1.0), AWAY)  # all came back
    optima_of(method, Hills((0.0, 0.0), (50.0, -1.0)), 1.0)
    assert method.asked == [(True, 0)]


def test_new_starts_that_meet_the_best_end_the_search_and_moves_do_not():
    hills = Hills((0.0, 0.0), (50.0, -1.0))
    starts, moves = Counted(2.0, *AWAY, kind=NEW_START), Counted(2.0, *AWAY)
    assert len(asked_of(starts, hills, 1.0)) < len(asked_of(moves, hills, 1.0))


@pytest.mark.parametrize(("by", "n_rounds"), [((2.0,), 1), ((2.0, 60.0), 1), ((2.0, 60.0, 60.0, 60.0), 2)])
def test_the_more_moves_come_back_to_the_best_the_sooner_the_search_ends(by, n_rounds):
    """A search ends where the shares of moves that come back sum to a half, or patience ends before."""
    assert len(asked_of(Counted(*by), Hills((0.0, 0.0), (50.0, -1.0)), 1.0)) == n_rounds


def test_it_is_searched_longer_where_no_move_comes_back():
    hills = Hills((0.0, 0.0), (50.0, -1.0))
    assert [len(asked_of(Counted(*by), hills, 1.0)) for by in ((2.0, *AWAY), AWAY)] == [3, 5]


def test_moves_that_came_back_before_a_better_optimum_count_no_more():
    """Proposals come back to 0, then one finds the better hill; around it there are as many rounds as without them."""

    class Late(Counted):
        def moves(self, ascent, statistics, seed, is_brief, n_failed):
            self.by = (2.0, 60.0, 60.0) if len(self.asked) == 0 else (9.0, 60.0, 60.0)
            return super().moves(ascent, statistics, seed, is_brief, n_failed)

    asked = asked_of(Late(), Hills((0.0, 0.0), (10.0, 1.0), (50.0, -1.0)), 1.0)
    assert [optima[0] for optima, _ in asked] == [0.0, 0.0, 10.0, 10.0]


def test_a_better_optimum_is_searched_around_as_long_as_the_first():
    method = Counted(9.0, *AWAY)
    asked = asked_of(method, Hills((0.0, 0.0), (10.0, 1.0), (50.0, -1.0)), *[1.0] * 5)
    assert asked[0] == ([0.0], True)
    assert len(asked) >= 4
    assert all(10.0 in optima and not is_brief for optima, is_brief in asked[3:])


def test_optima_below_the_best_take_part_in_moves():
    asked = asked_of(Counted(2.0), Hills((0.0, 0.0), (20.0, 1.0), (50.0, -9.0)), 0.5, 19.5)
    assert asked[0][0] == [20.0, 0.0]


def n_rounds(effort, *starts):
    """Rounds of moves after starts, none of which finds anything better."""
    asked = []

    class Asked(Jumps):
        def moves(self, ascent, statistics, seed, is_brief, n_failed):
            asked.append(is_brief)
            return super().moves(ascent, statistics, seed, is_brief, n_failed)

    runs = Runs(Asked(1.0, *AWAY), LIMITS, (0,), None, EFFORTS[effort])
    stage = Stage(Hills((0.0, 0.0), (50.0, -1.0)), begun(np.array([starts])), runs)
    searched(stage, list(stage.starts))
    return len(asked)


def test_efforts_are_rounds_of_moves():
    """The more starts agree, the fewer rounds "auto" makes; "fast" makes none, "thorough" three times the most."""
    assert [n_rounds("fast", *starts) for starts in ((1.0,), (1.0, 2.0, 3.0))] == [0, 0]
    assert [n_rounds("auto", *starts) for starts in ((1.0,), (1.0, 2.0), (1.0, 2.0, 3.0))] == [3, 2, 1]
    assert [n_rounds("thorough", *starts) for starts in ((1.0,), (1.0, 2.0, 3.0))] == [12, 12]


@pytest.mark.parametrize(
    ("options", "n_starts", "moves"),
    [
        ({"n_init": 1}, 1, False),
        ({"n_init": 1, "search_effort": "thorough"}, 1, True),
        ({"search_effort": "fast"}, 3, False),
        ({"search_effort": "fast", "n_init": 2}, 2, False),
        ({"search_effort": "fast", "init": "k-means++", "n_init": 4}, 4, False),
        ({"n_init": 2}, 2, True),
    ],
)
def test_what_is_set_is_what_is_done(options, n_starts, moves, monkeypatch):
    asked = []

    def counted(self, *given):
        asked.append(given)
        return FitMethod.moves(self, *given)

    monkeypatch.setattr(MixtureMethod, "moves", counted)
    X = np.random.default_rng(0).normal(size=(40, 2))
    fit = VBMixture(2, random_state=0, **options).fit(X)
    assert len(fit.restarts_.bounds) == n_starts
    assert bool(asked) == moves


@pytest.mark.parametrize("estimator", [VBHMM(2), VBDiscreteDAG(latents=2), VBNetwork(latents=2)])
def test_every_search_is_fast_where_that_is_asked(estimator):
    X = np.random.default_rng(0).integers(3, size=(30, 2)).astype(str)
    fit = estimator.set_params(search_effort="fast", random_state=0).fit(X)
    assert len(fit.restarts_.bounds) == 3
    with pytest.raises(ValueError, match="search_effort"):
        estimator.set_params(search_effort="slow").fit(X)


def test_moves_cost_no_more_than_so_many_steps_for_each_start():
    hills = Hills(*((10.0 * k, float(k)) for k in range(400)))
    _, optima = optima_of(Jumps(9.0), hills, 1.0)
    assert 5 < optima[0].objective < 100
    assert hills.n_steps < 550


class Few(list):
    """Rows of which there are ten times as many."""

    total_weight = 100.0


def test_what_is_nearly_the_best_on_a_sample_may_be_the_best_of_all():
    """100 nats of ten times as many rows are 1 000; the second and third survive, the fourth is far behind."""
    sample = Hills((0.0, 9.0), (10.0, 8.0), (20.0, 7.0), (30.0, -2000.0))
    sample.data, sample.is_sample = Few(range(10)), True
    hills = Hills((0.0, 0.0), (10.0, 1.0), (20.0, 2.0), (30.0, 3.0))
    starts = np.array([[0.5, 9.5, 19.5, 29.5]])
    ends, optima = Runs(FitMethod(), LIMITS, (0,), None).best([sample, hills], starts)
    assert ends == []
    assert [round(each.objective) for each in optima] == [2, 1, 0]


class Divides(Jumps):
    """Moves by a distance, on later stages alone; places that round to one number are alike."""

    def moves(self, ascent, statistics, seed, is_brief, n_failed):
        return Proposals([], np.empty((1, 0)))

    def divisions(self, ascent, statistics, seed, gained):
        return Proposals([f"by {by}" for by in self.by], np.array([[statistics[0] + by for by in self.by]]))

    def are_alike(self, ascent, one, other):
        return round(one[0], -1) == round(other[0], -1)


def grown_up(method, sample, hills, *starts):
    """The optima of all data that starts on a sample lead to."""
    sample.data, sample.is_sample = Few(range(10)), True
    return Runs(method, LIMITS, (0,), None).best([sample, hills], np.array([starts]))[1]


def test_survivors_of_a_sample_are_divided_on_all_rows_while_that_gains():
    hills = Hills((0.0, 0.0), (10.0, 3.0), (20.0, 5.0), (30.0, -1.0))
    best = grown_up(Divides(9.0), Hills((0.0, 9.0)), hills, 0.5)[0]
    assert best.statistics == approx([20.0], abs=1e-3)
    assert [move.kind for move in best.moves] == ["by 9.0", "by 9.0"]


def test_copies_of_an_optimum_leave_room_for_other_survivors():
    """Three of four starts on a sample are alike; all but one of them stay behind."""
    sample = Hills((-0.5, 9.0), (0.0, 8.0), (0.5, 7.0), (20.0, 6.0))
    optima = grown_up(Divides(), sample, Hills((0.0, 0.0), (20.0, 1.0)), -0.5, 0.0, 0.5, 20.0)
    assert [round(each.objective) for each in optima] == [1, 0]


# The problems that showed what starts miss ----------------------------------------------------------------------------


def test_one_row_of_its_own_is_found():
    """Eight rows, two components: twenty starts of each kind alone end at -39.20569."""
    X = [(-1.489, -1.811), (-0.906, -1.27), (-2.573, 0.467), (-3.322, -3.277)]
    X += [(3.076, 2.226), (1.791, 2.239), (2.724, 1.614), (1.402, 0.987)]
    prior = {"mean_prior": [0.0, 0.0], "mean_precision_prior": 0.5, "degrees_of_freedom_prior": 4.0}
    emission = Gaussian(covariance_prior=np.eye(2), **prior)
    for seed in range(5):
        fit = VBMixture(2, emission=emission, random_state=seed).fit(X)
        assert fit.lower_bound_ == approx(-38.40504, abs=1e-4)
        plain = VBMixture(2, emission=emission, init="k-means++", n_init=20, random_state=seed).fit(X)
        assert plain.lower_bound_ == approx(-39.20569, abs=1e-4)


@pytest.mark.parametrize(("n_components", "log_likelihood"), [(2, -220.058), (3, -203.179)])
def test_galaxies_by_maximum_likelihood(n_components, log_likelihood):
    """In thousands of km/s; ten starts of either kind miss the first."""
    X = np.array(GALAXIES.split(), dtype=float)[:, None] / 1000
    for seed in range(3):
        fit = VBMixture(n_components, method="ml", random_state=seed).fit(X)
        assert fit.log_likelihood_ == approx(log_likelihood, abs=1e-3)


def test_three_components_of_iris_are_in_use():
    from sklearn.datasets import load_iris

    X = load_iris().data
    known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
    two = VBMixture(3, emission=known, init="k-means++", random_state=0).fit(X)
    for seed in range(3):
        three = VBMixture(3, emission=known, random_state=seed).fit(X)
        assert len(three.latent_states_["component"].in_use) == 3
        assert three.lower_bound_ > two.lower_bound_ + 0.5
        assert len(VBMixture(3, random_state=seed).fit(X).latent_states_["component"].in_use) == 3


@pytest.mark.parametrize("seed", range(3))
def test_long_crossed_components_are_found(seed):
    """No start around rows of iris leads to these four components; rows shared out at random do."""
    from sklearn.datasets import load_iris

    emission = Gaussian(mean_precision_prior=1.0, covariance_prior=None, degrees_of_freedom_prior=4.0)
    fit = VBMixture(4, emission=emission, random_state=seed).fit(load_iris().data)
    assert fit.restarts_.bounds.max() < fit.lower_bound_ - 0.5
    assert fit.restarts_.moves


@pytest.mark.parametrize("seed", range(2))
def test_a_component_more_is_no_worse_than_an_empty_one(seed):
    """The bound of K components is not below that of the K - 1 found, with a component without rows added."""
    from sklearn.datasets import load_wine

    X = load_wine().data[:, :5]
    emission = Gaussian("spherical", mean_precision_prior=1.0, covariance_prior=None, degrees_of_freedom_prior=5.0)
    fewer = VBMixture(2, emission=emission, random_state=seed).fit(X)
    for k in range(3, 6):
        more = VBMixture(k, emission=emission, random_state=seed).fit(X)
        known = np.column_stack([fewer.predict_proba(X), np.zeros(len(X))])
        with_empty = VBMixture(k, emission=emission, init=known, random_state=seed).fit(X)
        assert more.lower_bound_ >= with_empty.lower_bound_ - 0.01
        fewer = more


@pytest.mark.parametrize("seed", range(2))
def test_more_components_are_no_less_likely(seed):
    X = np.array(GALAXIES.split(), dtype=float)[:, None] / 1000
    likelihoods = [VBMixture(k, method="ml", random_state=seed).fit(X).log_likelihood_ for k in range(1, 6)]
    assert np.all(np.diff(likelihoods) > 0)


def test_rows_that_a_component_would_not_let_go_are_transferred():
    """A component of five rows of thirteen columns fits these far better than any other: no step of VBEM moves them."""
    from sklearn.datasets import load_wine

    X = load_wine().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    emission = Gaussian(mean_precision_prior=1.0, covariance_prior=None, degrees_of_freedom_prior=13.0)
    fit = VBMixture(4, emission=emission, random_state=0).fit(X)
    assert {"transfer", "change, transfer"} & {move.kind for move in fit.restarts_.moves}


def test_of_many_rows_starts_see_few(rng):
    means = 6 * rng.normal(size=(5, 3))
    X = means[rng.integers(5, size=20_000)] + rng.normal(size=(20_000, 3))
    fit = VBMixture(5, random_state=0).fit(X)
    plain = VBMixture(5, init="k-means++", random_state=0).fit(X)
    assert fit.lower_bound_ >= plain.lower_bound_ - 1e-3
    assert fit.restarts_.kinds == ("k-means++", "random") * 5
    assert np.isnan(fit.restarts_.bounds).sum() >= 7


def test_repeats_are_fitted_step_by_step_as_weights(rng):
    """Starts of repeated rows race on the distinct ones; what they reach there is not raced again on all."""
    rows, weights = rng.normal(size=(15, 3)), rng.integers(1, 5, 15)
    learned = Gaussian(covariance_prior="hierarchical", mean_precision_prior="hierarchical")
    model = VBMixture(2, emission=learned, n_init=4, random_state=0)
    weighted = model.fit(rows, sample_weight=weights).lower_bounds_
    repeated = model.fit(np.repeat(rows, weights, axis=0)).lower_bounds_
    assert repeated == pytest.approx(weighted, rel=1e-11)


def test_what_no_row_of_a_sample_has_is_possible_on_all_rows_by_maximum_likelihood():
    rng = np.random.default_rng(100)
    n, k = 20000, int(rng.integers(3, 6))
    label, uniform, rates = rng.integers(0, k, n), rng.random((n, 8)), rng.beta(0.1, 0.6, (k, 8))
    items, noise, centers = uniform < rates[label], rng.normal(size=(n, 2)), 2 * rng.normal(size=(k, 2))
    X = np.column_stack([items, noise + centers[label]]).astype(float)
    emission = {"bernoulli": list(range(8)), "gaussian": [8, 9]}
    model = VBMixture(k, emission=emission, random_state=0, n_init=3, method="ml").fit(X)
    logs = -0.5 * ((X[:, None, 8:] - centers) ** 2).sum(axis=2) - np.log(2 * np.pi * k)
    for j in range(8):
        logs += np.log(np.where(items[:, j, None], rates[:, j], 1 - rates[:, j]))
    assert model.log_likelihood_ > np.logaddexp.reduce(logs, axis=1).sum()
