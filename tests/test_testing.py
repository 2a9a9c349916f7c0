"""The checks of `skvbem.testing` notice what is wrong: each toy below breaks one law, and is told which."""

from dataclasses import replace

import numpy as np
import pytest
from laws.geometric import Geometric, GeometricEmission
from laws.two_coins import CoinAscent, CoinCase, TwoCoins, capabilities_of

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture, VBNetwork
from skvbem.emissions import (
    COVARIANCE_TYPES,
    EMISSIONS,
    Bernoulli,
    Categorical,
    Exponential,
    FactorGaussian,
    Gaussian,
    Ordinal,
    Poisson,
    Regression,
    StudentT,
)
from skvbem.emissions.exponential import ExponentialEmission
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.factor.hidden import HiddenFactors
from skvbem.emissions.linear import LinearStep
from skvbem.emissions.poisson import PoissonEmission
from skvbem.estimators.mixture.kind import MixtureKind
from skvbem.evidence import Evidence, Score
from skvbem.families import Dirichlet, Gamma
from skvbem.models import MODELS, Expectation, RegisteredModel
from skvbem.reading.tables import read_table
from skvbem.testing import EXAMPLES, check_emission, check_family, check_kind, check_model, check_score
from skvbem.testing.laws import agree, hold

PRIOR = Gamma.from_parameters([[2.0]], [[0.5]])


def name_of(value):
    """Of a class or function, or the value itself."""
    return getattr(value, "__name__", str(value))


def events(rng):
    """Events, and an exposure of 3."""
    return [rng.poisson(9.0) + 1.0, 3.0]


def counts(rng, n=12):
    return rng.poisson([2.0, 5.0], size=(n, 2)).astype(float)


# Families -------------------------------------------------------------------------------------------------------------


class WrongKL(Gamma):
    """The arguments of the divergence exchanged."""

    def kl(self, other, expected_natural=None):
        return Gamma.kl(other, self)


class WrongIncrement(Gamma):
    """A without the part of the rates."""

    def log_normalizer_increment(self, statistics):
        return super().log_normalizer_increment(statistics) + 0.01 * statistics[-1]


class WrongGradient(Gamma):
    """Natural parameters at the mean, not their means."""

    def expected_natural(self):
        return self.natural(self.mean)


class WrongDraws(Gamma):
    """Twice too large."""

    def sample(self, rng):
        return 2 * super().sample(rng)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (WrongKL, "kl_is_the_mean_log_ratio_of_the_densities"),
        (WrongIncrement, "increment_is_a_difference_of_log_normalizers"),
        (WrongGradient, "expected_natural_is_the_gradient"),
        (WrongDraws, "draws_have_the_expected_natural_parameters"),
    ],
    ids=name_of,
)
def test_a_wrong_family_is_told_its_law(family, law):
    wrong = family(PRIOR.coordinates, *(getattr(PRIOR, name) for name in [*vars(PRIOR)][1:]))
    with pytest.raises(
        AssertionError, match=f"{family.__name__} breaks the law '{law}' of conjugate families: .*\n.*off"
    ):
        check_family(wrong, events, laws=[law])
    with pytest.raises(AssertionError, match="breaks the law"):
        check_family(wrong, events)
    assert check_family(PRIOR, events, laws=[law]).held == (law,)


@pytest.mark.parametrize("prior", [PRIOR, Dirichlet.from_rows([[1, 2, 0.5], [3, 1]])], ids=["gamma", "dirichlet"])
def test_families_need_a_prior_and_statistics(prior):
    n = len(prior.coordinates)
    report = check_family(prior, lambda rng: rng.uniform(1.0, 5.0, n))
    assert len(report.held) == 21
    assert not report.lacking
    with pytest.raises(TypeError, match="The 'statistics' parameter of check_family is missing"):
        check_family(prior)
    with pytest.raises(ValueError, match=r"There is no law 'kl' of conjugate families. The laws are expected_natural"):
        check_family(prior, lambda rng: np.ones(n), laws=["kl"])


# Emissions ------------------------------------------------------------------------------------------------------------


class WrongNormalizer(GeometricEmission):
    """A prediction that forgets the failures before."""

    def log_predictive(self, block, posterior):
        return super().log_predictive(block, posterior) + 0.1


class SeesMissing(GeometricEmission):
    """A missing cell counts as a success."""

    def features(self, block):
        found = super().features(block).copy()
        found[0] = 1.0
        return found


class WrongFilling(GeometricEmission):
    """What was observed is drawn over."""

    def impute(self, block, point, responsibilities):
        return super().impute(block, point, responsibilities) + 1.0


class WrongPoint(GeometricEmission):
    """Means are filled in at the mode, of which they are no linear function."""

    def predictive_point(self, posterior):
        return posterior.mode()


@pytest.mark.parametrize(
    ("emission", "law"),
    [
        (WrongNormalizer, "bound_of_one_component_is_the_product_of_predictions"),
        (WrongNormalizer, "predictions_sum_to_one"),
        (SeesMissing, "rows_without_cells_say_nothing"),
        (WrongFilling, "filled_rows_keep_what_was_observed"),
        (WrongPoint, "filled_cells_are_means_of_predictions"),
    ],
    ids=name_of,
)
def test_a_wrong_emission_is_told_its_law(emission, law, rng):
    cells = lambda row, column: range(2000)  # noqa: E731
    with pytest.raises(AssertionError, match=f"{emission.__name__} on rows .* breaks the law '{law}' of emissions"):
        check_emission(emission(2), counts(rng), cells=cells, laws=[law])
    for report in check_emission(GeometricEmission(2), counts(rng), cells=cells, laws=[law]):
        assert report.held == (law,) or report.lacking


class Strays(PoissonEmission):
    """Counts, a share of whose rows is of no component: of a flat distribution up to 40."""

    share, draws_all = 0.5, False

    def step(self, natural, table):
        return StraysStep(self, natural)

    def is_conjugate(self, table):
        return False


class StraysStep(LinearStep):
    """Rows that are kept have the statistics of counts."""

    def log_likelihood(self, block):
        kept = np.log1p(-self.emission.share) + super().log_likelihood(block)
        return np.logaddexp(np.log(self.emission.share / 40), kept)

    def kept(self, block):
        return np.exp(np.log1p(-self.emission.share) + super().log_likelihood(block) - self.log_likelihood(block))

    def add(self, block, responsibilities, total):
        super().add(block, responsibilities * self.kept(block), total)

    def of_rows(self, block):
        return super().of_rows(block) * self.kept(block)[..., None]

    def hidden_covariance(self, block, responsibilities):
        statistics, kept = super().of_rows(block), self.kept(block)
        return np.einsum("ik,ika,ikb->kab", responsibilities * kept * (1 - kept), statistics, statistics)

    def add_drawn(self, block, components, rng, total):
        of_lanes = components.reshape(-1, len(block))[..., None] == np.arange(self.n_components)
        drawn = rng.random((len(block), len(of_lanes))).T[..., None] < self.kept(block)
        super().add(block, of_lanes * (drawn | self.emission.draws_all), total)


STRAYED = np.arange(12.0)[:, None]
DRAWS = ("drawn_completions_have_the_expected_statistics", "what_is_hidden_varies_as_draws_do")


def strays(share, **attributes):
    return type("OfShare", (Strays,), {"share": share, **attributes}).for_data(STRAYED)


@pytest.mark.parametrize("share", [0.5, 1e-3])
def test_a_state_that_is_rare_in_draws_breaks_no_law(share):
    """Few draws have it, if any: these say nothing of how often it comes, or of what it adds to a covariance."""
    for seed in range(4):
        assert DRAWS[0] in check_emission(strays(share), STRAYED, laws=DRAWS, rng=seed)[0].held


def test_a_law_that_no_draw_can_tell_is_not_tried():
    held, lacking = (check_emission(strays(share), STRAYED, laws=DRAWS, rng=0)[0] for share in (0.5, 1e-6))
    assert (held.held, lacking.held) == (DRAWS, DRAWS[:1])
    assert "want of rows whose hidden state is uncertain" in lacking.lacking[DRAWS[1]]


@pytest.mark.parametrize("law", DRAWS)
def test_states_that_are_never_drawn_are_told_their_law(law):
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'"):
        check_emission(strays(0.5, draws_all=True), STRAYED, laws=[law])


class Unwilling(Geometric):
    """Its own data are impossible."""

    def impossible(self, values):
        return values > 3


class Careless(Geometric):
    """No cell is impossible."""

    def impossible(self, values):
        return np.zeros(values.shape, dtype=bool)


class FractionsToo(Geometric):
    """Negative cells alone are impossible."""

    def impossible(self, values):
        return values < 0


class Shifted(Poisson):
    """Its means are one too many."""

    def means(self, parameters):
        return super().means(parameters) + 1.0


class Rounded(Poisson):
    """It forgets that a count of zero may be."""

    def cumulative(self, values, means, deviations):
        return super().cumulative(values - 1, means, deviations)


def test_a_wrong_specification_is_told_its_law(rng):
    for wrong, words in ((Shifted, "The mean"), (Rounded, "The probability to be at most so much")):
        with pytest.raises(AssertionError, match=rf"law 'numbers_are_distributed_as_said' .*\n.*{words}"):
            check_emission(wrong(), counts(rng), laws=["numbers_are_distributed_as_said"])
    with pytest.raises(AssertionError, match=r"law 'specification_is_a_value' .*\n.* cells of the data are said"):
        check_emission(Unwilling(), counts(rng), laws=["specification_is_a_value"])
    with pytest.raises(AssertionError, match=r"law 'bad_cells_are_refused_in_its_words' .*\n.*A cell 0.5: nothing"):
        check_emission(Careless(), counts(rng), refused=0.5, laws=["bad_cells_are_refused_in_its_words"])
    with pytest.raises(AssertionError, match=r"A cell 0.5: nothing"):
        check_emission(FractionsToo(), counts(rng), refused=[-1.0, 0.5], laws=["bad_cells_are_refused_in_its_words"])


def test_an_emission_is_taken_by_its_name(rng):
    law = "bad_cells_are_refused_in_its_words"
    whole, _ = check_emission("poisson", counts(rng), refused=[-1.0, 0.5], laws=[law])
    assert whole.held == (law,)
    with pytest.raises(
        ValueError, match=r"There is no emission 'poison'\. Did you mean 'poisson'\? The emissions are "
    ):
        check_emission("poison", counts(rng))


def test_too_few_values_of_a_missing_cell_are_told(rng):
    law = "missing_cell_is_the_sum_over_its_values"
    with pytest.raises(AssertionError, match=r"of the first 5 values that `cells` gives \(at most 4000\)"):
        check_emission("poisson", counts(rng), cells=lambda row, column: range(5), laws=[law])


@pytest.mark.parametrize(
    "specification",
    [Exponential(), Gaussian("tied"), Gaussian("spherical"), FactorGaussian(1), Poisson()],
    ids=lambda each: type(each).__name__,
)
def test_numbers_of_our_families_are_distributed_as_they_say(specification, rng):
    report, *_ = check_emission(specification, counts(rng) + 1.0, laws=["numbers_are_distributed_as_said"], rng=rng)
    assert report.held == ("numbers_are_distributed_as_said",)
    assert specification.has_cumulative


class AlikeFactors(HiddenFactors):
    """Factors that no start tells apart: their loadings are 0, and stay so."""

    def start_natural(self, prior):
        return prior.expected_natural()


def test_hidden_variables_that_a_start_holds_in_a_tie_are_told(rng, monkeypatch):
    rows, law = rng.normal(size=(20, 1)) + 0.3 * rng.normal(size=(20, 4)), "fits_end_at_no_saddle"
    assert check_emission(FactorGaussian(1), rows, laws=[law])[0].held == (law,)
    monkeypatch.setattr(FactorAnalyzer, "hidden", property(AlikeFactors))
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*\n.* nats below another one that is near"):
        check_emission(FactorGaussian(1), rows, laws=[law])


@pytest.mark.parametrize(
    ("method", "law"),
    [("fold", "missing_cell_is_the_sum_over_its_values"), ("log_predictive", "predictions_sum_to_one")],
)
def test_positive_numbers_are_integrated_where_they_can_be(method, law, rng, monkeypatch):
    """The density of a waiting time goes on below 0, where the specification refuses cells."""
    values, right = rng.exponential([1.0, 300.0], size=(12, 2)), getattr(ExponentialEmission, method)
    asked = {"cells": lambda row, column: None, "laws": [law]}
    assert [report.held for report in check_emission(Exponential(), values, **asked)] == [(law,)] * 2
    monkeypatch.setattr(ExponentialEmission, method, lambda self, *args: right(self, *args) + 1e-3)
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*\nThe integral over column"):
        check_emission(Exponential(), values, **asked)


# What users hold, of every registered emission.
HELD = {
    **{name: make() for name, make in EMISSIONS.items() if name not in {"gaussian", "factor", "regression"}},
    **{covariance_type: Gaussian(covariance_type) for covariance_type in COVARIANCE_TYPES},
    "one factor": FactorGaussian(1),
    "tied factors": FactorGaussian(2, tied=True, noise="spherical"),
    "regression": Regression([]),
    "covariate": Regression([2]),
}


def rows_for(specification, rng):
    if isinstance(specification, Bernoulli | Categorical | Ordinal):
        return rng.integers(2, size=(12, 3))
    return counts(rng) + 1.0 if specification.wanted else rng.normal(size=(12, 3))


@pytest.mark.parametrize("name", HELD)
def test_every_emission_that_users_hold_keeps_all_laws(name, rng):
    """Also those that hide something in whole rows, whose bound is below the evidence."""
    specification = HELD[name]
    refused = -1.0 if specification.wanted else None
    whole, gaps = check_emission(specification, rows_for(specification, rng), refused=refused)
    lacking = {
        "at_a_point_the_log_likelihood_is_the_definition",
        "missing_cell_is_the_sum_over_its_values",
        "predictions_sum_to_one",
        "filled_cells_are_means_of_predictions",
        "filled_rows_keep_what_was_observed",
    }
    lacking |= set() if specification.wanted else {"bad_cells_are_refused_in_its_words"}
    of_bound = "bound_of_one_component_is_the_product_of_predictions"
    assert set(whole.lacking) - lacking == (
        {of_bound} if isinstance(specification, FactorGaussian | Ordinal | StudentT) else set()
    )
    assert set(gaps.lacking) - lacking <= {of_bound}


def test_emissions_need_rows(rng):
    whole, _ = check_emission("poisson", counts(rng), laws=["at_a_point_the_log_likelihood_is_the_definition"])
    assert "want of 'log_density' (the density by definition" in repr(whole)
    with pytest.raises(TypeError, match="The 'values' parameter of check_emission is missing"):
        check_emission(Poisson())


# Models ---------------------------------------------------------------------------------------------------------------


class ForgottenWeight(TwoCoins):
    """ln Z of rows counted once each."""

    def expect(self, natural, data, n_threads=1):
        right = super().expect(natural, data)
        return Expectation(right.statistics, super().expect(natural, replace_weight(data)).log_normalizer)


def replace_weight(data):
    return replace(data, weight=np.ones(len(data)))


class WrongStatistics(TwoCoins):
    """Heads counted for tails."""

    def expect(self, natural, data, n_threads=1):
        right = super().expect(natural, data)
        return Expectation(right.statistics[[0, 1, 3, 2, 4, 5]], right.log_normalizer)


class TooHigh(TwoCoins):
    """A constant too much for each row."""

    def expect(self, natural, data, n_threads=1):
        right = super().expect(natural, data)
        return Expectation(right.statistics, right.log_normalizer + 2.0 * data.total_weight)


class NamesMatter(TwoCoins):
    """A prior under which coins are not alike."""

    def __init__(self, concentration=1.0):
        self.prior = Dirichlet.from_rows([[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]])


class WrongCase(CoinCase):
    """The case of another class of models."""

    name = "wrong coins"

    def __init__(self, kind):
        self.kind = kind

    def tiny(self, rng, k):
        return replace(super().tiny(rng, k), model=self.kind())

    def dozens(self, rng, k, form="vb"):
        return replace(super().dozens(rng, k), model=self.kind())


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ForgottenWeight, "weights_are_repeats_in_any_order"),
        (ForgottenWeight, "weight_zero_is_absence"),
        (WrongStatistics, "expected_statistics_are_derivatives_of_the_log_normalizer"),
        (WrongStatistics, "objective_never_falls"),
        (TooHigh, "bound_is_below_the_evidence"),
        (NamesMatter, "relabeling_changes_nothing_but_the_order"),
    ],
    ids=name_of,
)
def test_a_wrong_model_is_told_its_law(kind, law, monkeypatch):
    monkeypatch.setitem(MODELS, "two coins", RegisteredModel(TwoCoins, capabilities_of))
    with pytest.raises(AssertionError, match=f"wrong coins breaks the law '{law}' of models: "):
        check_model(WrongCase(kind), laws=[law])
    assert check_model(CoinCase(), laws=[law]).held == (law,)


def test_wrong_chains_and_wrong_sums_are_told_their_law(monkeypatch):
    def wrong(model):
        right = capabilities_of(model)
        return replace(
            right,
            enumeration=lambda data, max_terms: (right.enumeration(data, max_terms)[0] + 0.01, 1),
            entropy=lambda natural, data: 1.1 * right.entropy(natural, data),
        )

    monkeypatch.setitem(MODELS, "two coins", RegisteredModel(TwoCoins, wrong))
    for law in ("enumeration_is_the_definition", "entropy_is_the_log_normalizer_less_expected_terms"):
        with pytest.raises(AssertionError, match=f"two coins breaks the law '{law}' of models: "):
            check_model(CoinCase(), laws=[law])


def test_a_model_that_lacks_a_capability_is_told_what_was_not_tried(monkeypatch):
    monkeypatch.setitem(
        MODELS, "two coins", RegisteredModel(TwoCoins, lambda model: replace(capabilities_of(model), annealing=None))
    )
    laws = ["bound_is_below_the_evidence", "chains_do_not_depend_on_others"]
    report = check_model(CoinCase(), laws=laws)
    assert report.held == ("bound_is_below_the_evidence",)
    assert report.lacking == {"chains_do_not_depend_on_others": "want of 'annealing' (TwoCoins has no such capability)"}
    assert "Not tried: chains_do_not_depend_on_others, for want of 'annealing'" in repr(report)


def test_a_model_that_is_not_registered_is_told_so():
    with pytest.raises(TypeError, match="TwoCoins is not registered as a model"):
        check_model(CoinCase())


def test_other_errors_say_where_they_arose(monkeypatch):
    monkeypatch.setitem(MODELS, "two coins", RegisteredModel(TwoCoins, capabilities_of))
    monkeypatch.setattr(CoinAscent, "advance", lambda self, statistics, n_steps: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        check_model(CoinCase(), laws=["fixed_point_stays_fixed"])
    assert "Raised while two coins was held to the law 'fixed_point_stays_fixed' of models" in raised.value.__notes__[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_keep_the_laws(name):
    """They are patterns for cases of one's own; what they leave out are sizes of instances."""
    quick = ["bound_is_below_the_evidence", "objective_never_falls", "weights_are_repeats_in_any_order"]
    assert check_model(EXAMPLES[name], laws=quick).held == tuple(quick)


# Scores ---------------------------------------------------------------------------------------------------------------


def bound(evaluation, above, kind="odd", **fields):
    """The lower bound, and something that it is not."""
    value = evaluation.fit("vb").objective + above
    return Evidence(value, kind, is_lower_bound=True, n_samples=evaluation.n_samples, **fields)


def too_high(evaluation):
    return bound(evaluation, 50.0)


def misnamed(evaluation):
    return bound(evaluation, 0.0, kind="even")


def of_the_order(evaluation):
    statistics = evaluation.fit("vb").statistics
    return bound(evaluation, -float(np.arange(len(statistics)) @ statistics))


def changes_the_fit(evaluation):
    evaluation.fit("vb").statistics[0] += 1.0
    return bound(evaluation, 0.0)


def too_sure(evaluation):
    return bound(evaluation, -5.0 + 0.001 * evaluation.generator(1).random(), standard_error=0.001)


def without_a_seed(evaluation):
    return bound(evaluation, 0.0, standard_error=0.5)


@pytest.mark.parametrize(
    ("compute", "random", "law"),
    [
        (too_high, False, "bound_is_not_above_the_evidence"),
        (misnamed, False, "value_has_its_name_and_size"),
        (too_high, True, "value_has_its_name_and_size"),
        (of_the_order, False, "names_of_hidden_states_change_nothing"),
        (changes_the_fit, False, "fit_at_hand_stays_as_it_is"),
        (too_sure, True, "sampled_evidence_is_right"),
        (without_a_seed, True, "seed_decides_the_value"),
    ],
    ids=name_of,
)
def test_a_wrong_score_is_told_its_law(compute, random, law):
    score = Score("odd", compute, random=random)
    with pytest.raises(AssertionError, match=f"'odd' on mixture breaks the law '{law}' of scores: "):
        check_score(score, EXAMPLES["mixture"], laws=[law])


# Kinds of estimators --------------------------------------------------------------------------------------------------


TABLE = np.random.default_rng(0).normal(size=(14, 2))
STEPS = [TABLE[:6], TABLE[6:]]
LETTERS = [["ab"[int(cell > 0)] for cell in row] for row in TABLE.tolist()]


class ReadsItself(VBMixture):
    """Predictions that pass the reading of the kind by."""

    def predict_proba(self, X):
        return self.fitted.responsibilities(self.fitted.groups.values(read_table(X, "ReadsItself")))


class LeavesOut(VBMixture):
    """A fit to fewer rows than the kind reads."""

    def fit(self, X, y=None):
        return super().fit(X[1:])


class KeepingKind(MixtureKind):
    """A kind that remembers the last model."""

    def model(self, estimator, reading):
        self.last = super().model(estimator, reading)
        return self.last


class Keeps(VBMixture):
    """An estimator of it."""

    _kind = KeepingKind()


@pytest.mark.parametrize(
    ("estimator", "law"),
    [
        (ReadsItself(2), "predictions_are_of_the_rows_that_the_kind_reads"),
        (LeavesOut(2), "a_reading_stands_for_its_data"),
        (Keeps(2), "kinds_hold_nothing"),
    ],
    ids=["reads itself", "leaves out", "keeps"],
)
def test_a_wrong_kind_is_told_its_law(estimator, law):
    with pytest.raises(AssertionError, match=f"{type(estimator).__name__} breaks the law '{law}' of kinds: "):
        check_kind(estimator, TABLE)


@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (VBMixture(2), TABLE),
        (VBMixture(2, method="ml"), TABLE),
        (VBFactorAnalysis(1), TABLE),
        (VBHMM(2), STEPS),
        (VBLinearDynamicalSystem(1), STEPS),
        (VBDiscreteDAG(latents=2), LETTERS),
        (VBNetwork(latents=2), TABLE),
    ],
    ids=["mixture", "mixture ml", "factors", "hmm", "system", "network", "mixed network"],
)
def test_kinds_of_the_library_keep_the_laws(estimator, X):
    assert len(check_kind(estimator, X).held) == 3


# Laws themselves ------------------------------------------------------------------------------------------------------


def test_numbers_agree_as_they_should():
    agree("x", [1.0, np.inf], [1.0 + 1e-7, np.inf])
    agree("x", [np.nan], [np.nan], nan_ok=True)
    agree("x", np.zeros(3), 0.0, abs=0.0)
    for found, wanted, options in (
        ([1.0, 2.0], [1.0, 2.1], {}),
        ([np.nan], [1.0], {}),
        ([np.nan], [np.nan], {}),
        ([np.inf], [1.0], {}),
        ([1.0], [np.inf], {}),
        ([-np.inf], [np.inf], {}),
        ([1.0 + 1e-9], [1.0], {"abs": 1e-12}),
        ([1.0 + 1e-9], [1.0], {"rel": 1e-10}),
        ([1.0, 1.0], [1.0], {}),
    ):
        with pytest.raises(AssertionError, match=r"^x: "):
            agree("x", found, wanted, **options)
    with pytest.raises(
        AssertionError, match=r"x: 2 at \(1,\), where 2.1 was expected; off by 0.1, allowed are 2.1e-06"
    ):
        agree("x", [1.0, 2.0], [1.0, 2.1])


def test_a_report_says_what_was_held():
    def law(case):
        """It holds."""

    report = hold("it", "things", {"law": law, "other": law}, None, lambda law: law(1), lambda law: "")
    assert repr(report) == "it keeps 2 laws: law, other."
