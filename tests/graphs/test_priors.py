import pickle
from collections import Counter
from math import log

import numpy as np
import pytest
from ids import named
from reference.structures import all_dags, bipartite_dags
from scipy.special import logsumexp

from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.spaces import BipartiteSpace, CardinalityGrid, DAGSpace, GridSpace, ListSpace, canonical
from skvbem.spaces.priors import ClassPrior, EdgePrior, FunctionPrior, UniformPrior, coerce_prior, n_edges

LATENTS = {"h0": 2, "h1": 2}
OBSERVED = ["y0", "y1", "y2"]
SPACE = BipartiteSpace(LATENTS, OBSERVED)


def labeled_prior(log_weight):
    """The prior of each class when labeled graphs are weighted: their weights summed."""
    weights = Counter()
    for dag in bipartite_dags(LATENTS, OBSERVED):
        weights[canonical({"structure": dag, "latents": LATENTS})] += np.exp(log_weight(dag))
    return np.array([weights[canonical(setting)] for setting in SPACE]) / sum(weights.values())


ALL = [
    UniformPrior(),
    UniformPrior(labeled=True),
    EdgePrior(0.2),
    EdgePrior(0.2, labeled=True),
    EdgePrior({("h0", "y0"): 0.9, ("h1", "y0"): 0.9}, default=0.3),
    ClassPrior(),
    ClassPrior(labeled=True),
    ClassPrior(by=lambda setting: len(setting["structure"].children("h0")) % 2),
    FunctionPrior(lambda setting: -0.5 * n_edges(setting)),
]


@pytest.mark.parametrize("prior", ALL, ids=named)
class TestEveryPrior:
    def test_it_is_normalized_and_aligned(self, prior):
        found = prior.log_prior(SPACE)
        assert found.shape == (len(SPACE),)
        assert abs(logsumexp(found)) < 1e-12
        weights = np.array([prior.log_weight(setting, SPACE) for setting in SPACE])
        np.testing.assert_allclose(weights - weights[0], found - found[0], atol=1e-12)

    def test_names_of_latents_do_not_matter(self, prior):
        for setting in SPACE:
            swapped = {**setting, "structure": setting["structure"].relabel({"h0": "h1", "h1": "h0"})}
            if not isinstance(prior, ClassPrior) or prior.by is n_edges:
                assert prior.log_weight(setting, SPACE) == pytest.approx(prior.log_weight(swapped, SPACE), abs=1e-12)


class TestValues:
    def test_uniform(self):
        np.testing.assert_allclose(UniformPrior().log_prior(SPACE), -log(36), rtol=1e-14)
        bg = BipartiteSpace(LATENTS, [*OBSERVED, "y3"])
        np.testing.assert_allclose(UniformPrior().log_prior(bg), -log(136), rtol=1e-14)
        sizes = np.array([bg.orbit_size(setting) for setting in bg])
        np.testing.assert_allclose(np.exp(UniformPrior(labeled=True).log_prior(bg)), sizes / 256, rtol=1e-12)
        np.testing.assert_allclose(
            np.exp(UniformPrior(labeled=True).log_prior(SPACE)), labeled_prior(lambda dag: 0.0), rtol=1e-12
        )

    def test_edges_come_independently(self):
        """With labeled graphs the prior is a product of Bernoulli variables, and nothing else."""
        p = 0.2

        def log_weight(dag):
            return len(dag.edges) * log(p) + (6 - len(dag.edges)) * log(1 - p)

        np.testing.assert_allclose(
            np.exp(EdgePrior(p, labeled=True).log_prior(SPACE)), labeled_prior(log_weight), rtol=1e-12
        )

    def test_edges_one_by_one(self):
        space = DAGSpace(["a", "b", "c"])
        given = {("a", "b"): 0.9, ("b", "c"): 0.0, ("c", "b"): 0.7}
        weights = []
        for setting in space:
            edges = set(setting["structure"].edges)
            pairs = [(a, b) for a in "abc" for b in "abc" if a != b]
            weights.append(np.prod([given.get(e, 0.4) if e in edges else 1 - given.get(e, 0.4) for e in pairs]))
        found = np.exp(EdgePrior(given, default=0.4).log_prior(space))
        np.testing.assert_allclose(found, np.array(weights) / sum(weights), rtol=1e-12)
        demanded = EdgePrior({("a", "b"): 1.0}).log_prior(space)
        there = np.array([("a", "b") in setting["structure"].edges for setting in space])
        assert np.all(np.isneginf(demanded) == ~there)
        np.testing.assert_allclose(demanded[there], -log(there.sum()), rtol=1e-12)

    def test_classes(self):
        sizes = Counter(map(n_edges, SPACE))
        found = np.exp(ClassPrior().log_prior(SPACE))
        np.testing.assert_allclose(found, [1 / len(sizes) / sizes[n_edges(s)] for s in SPACE], rtol=1e-12)
        labeled = np.exp(ClassPrior(labeled=True).log_prior(SPACE))
        shares = Counter()
        for setting, value in zip(SPACE, labeled):
            shares[n_edges(setting)] += value
        np.testing.assert_allclose(list(shares.values()), 1 / 7, rtol=1e-12)
        one_edge = [value for setting, value in zip(SPACE, labeled) if n_edges(setting) == 2]
        # Of 15 labeled graphs with two edges 12 stand for six classes in pairs, 3 for themselves.
        assert sorted(np.round(np.array(one_edge) * 7 * 15)) == [1] * 3 + [2] * 6

    def test_functions(self):
        space = CardinalityGrid({"h": range(1, 5)}, "[h][x|h]")
        prior = FunctionPrior(
            lambda setting: -np.inf if setting["latents"]["h"] == 1 else -setting["latents"]["h"] * log(2)
        )
        np.testing.assert_allclose(np.exp(prior.log_prior(space)), np.array([0, 4, 2, 1]) / 7, rtol=1e-12)

    def test_grids_and_products(self):
        grid = GridSpace({"n_components": [1, 2], "alpha": [0.5, 1.0]})
        np.testing.assert_allclose(UniformPrior().log_prior(grid), -log(4), rtol=1e-14)
        both = SPACE * {"alpha": [0.5, 1.0]}
        found = np.exp(EdgePrior(0.2).log_prior(both)).reshape(36, 2)
        np.testing.assert_allclose(found.sum(axis=1), np.exp(EdgePrior(0.2).log_prior(SPACE)), rtol=1e-12)

    def test_a_weight_needs_no_pass_through_the_space(self):
        space = DAGSpace(range(30), ["a", "b"])
        setting = next(iter(space))
        assert EdgePrior(0.2).log_weight(setting, space) == pytest.approx(n_edges(setting) * log(0.25))
        assert UniformPrior(labeled=True).log_weight(setting, space) in (0.0, log(2))


class TestForms:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (None, UniformPrior()),
            ("uniform", UniformPrior()),
            ("labeled", UniformPrior(labeled=True)),
            ("n_edges", ClassPrior()),
            (0.25, EdgePrior(0.25)),
            ({("a", "b"): 0.1}, EdgePrior({("a", "b"): 0.1})),
            (n_edges, FunctionPrior(n_edges)),
            (EdgePrior(0.1), EdgePrior(0.1)),
        ],
    )
    def test_what_a_user_may_pass(self, given, expected):
        assert coerce_prior(given) == expected
        assert pickle.loads(pickle.dumps(expected)) == expected

    @pytest.mark.parametrize("given", ["flat", True, [0.5], 1j])
    def test_what_is_no_prior(self, given):
        with pytest.raises(TypeError, match="A prior over structures must be one of 'uniform', 'labeled', 'n_edges'"):
            coerce_prior(given)


class TestErrors:
    @pytest.mark.parametrize("value", [0, 1, -0.5, 1.5, np.nan, "0.5", True])
    def test_probabilities(self, value):
        with pytest.raises(ValueError, match=r"EdgePrior needs a probability between 0 and 1 for all edges. Got"):
            EdgePrior(value)

    def test_probabilities_of_edges(self):
        with pytest.raises(ValueError, match=r"probability from 0 to 1 for the edge a -> b. Got 2 instead"):
            EdgePrior({("a", "b"): 2})
        with pytest.raises(ValueError, match="maps edges"):
            EdgePrior({"ab": 0.5})
        with pytest.raises(ValueError, match=r"'y00', which is a node of no setting. Did you mean"):
            EdgePrior({("h0", "y00"): 0.5}).log_prior(SPACE)

    def test_a_prior_cannot_tell_exchangeable_latents_apart(self):
        with pytest.raises(ValueError, match="'h0' and 'h1' are exchangeable, their names arbitrary"):
            EdgePrior({("h0", "y0"): 0.9}).log_prior(SPACE)
        apart = BipartiteSpace({"h0": 2, "h1": 3}, OBSERVED)
        assert abs(logsumexp(EdgePrior({("h0", "y0"): 0.9}).log_prior(apart))) < 1e-12

    def test_nothing_left(self):
        with pytest.raises(ValueError, match=r"every setting of .* probability zero"):
            FunctionPrior(lambda setting: -np.inf).log_prior(SPACE)
        for value in (np.nan, np.inf):
            with pytest.raises(ValueError, match=r"must be finite or -inf. Got"):
                FunctionPrior(lambda setting, value=value: value).log_prior(SPACE)

    def test_settings_without_structure(self):
        for prior in (EdgePrior(0.2), ClassPrior()):
            with pytest.raises(ValueError, match="needs settings with a structure"):
                prior.log_prior(GridSpace({"n_components": [1, 2]}))


def test_a_list_of_structures_has_a_prior_too():
    space = ListSpace(all_dags(["a", "b"]))
    np.testing.assert_allclose(np.exp(EdgePrior(0.75).log_prior(space)), np.array([1, 3, 3]) / 7, rtol=1e-12)
    assert n_edges({"structure": DAG.from_string("[a][b|a]")}) == 1


def test_classes_of_a_large_space_are_refused_with_its_size():
    space = DAGSpace(range(12))
    setting = {"structure": DAG.from_edges([(0, 1)], range(12))}
    with pytest.raises(
        TooLargeError, match=r"ClassPrior counts .* up to 1,000,000 settings; DAGSpace has .* settings\. Take"
    ):
        ClassPrior().log_weight(setting, space)
