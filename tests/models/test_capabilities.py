"""What registered models owe and can do: the page of `skvbem.models.base` and the registry, model by model."""

import inspect
import pickle
from dataclasses import fields

import numpy as np
import pytest

from skvbem import capabilities as page
from skvbem.capabilities import Capabilities
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.families import Gamma, Regression
from skvbem.graphs.dag import DAG
from skvbem.models import MODELS, DiscreteDAG, LatentModel, RegisteredModel, capabilities_of
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.models.structural.design import Design
from skvbem.models.structural.model import StructuralModel
from skvbem.structural import Level

#: The capabilities that each model lacks.
LACKS = {
    "network": {"cluster_annealing", "quotient"},
    "mixed_network": {"marginals", "cluster_annealing", "quotient"},
    "mixture": {"cluster_annealing", "quotient"},
    "hmm": {"marginals", "cluster_annealing", "quotient"},
    "linear_dynamical_system": {
        "marginals",
        "cluster_annealing",
        "quotient",
        "enumeration",
    },
}
LACKS["structural"] = LACKS["linear_dynamical_system"] | {"information"}
PROTOCOLS = {
    "points": page.Points,
    "annealing": page.Annealing,
    "cluster_annealing": page.ClusterAnnealing,
    "batches": page.Batches,
    "metropolis": page.Metropolis,
    "relabelings": page.Relabelable,
    "quotient": page.Quotient,
    "marginals": page.Marginals,
    "complete_evidence": page.CompleteEvidence,
    "entropy": page.LatentEntropy,
    "information": page.Information,
    "enumeration": page.Enumeration,
    "dimension": page.Identifiability,
}


def small(name):
    """A small model of each kind."""
    emission = CategoricalEmission((2, 2))
    if name == "network":
        dag = DAG.naive_bayes("c", ["y0", "y1"])
        return DiscreteDAG(dag, dict.fromkeys(dag.nodes, 2), {v: np.ones([2] * len(dag.family(v))) for v in dag.nodes})
    if name == "mixed_network":
        dag, root = DAG.naive_bayes("c", ["y"]), {"c": np.ones(2)}
        return MixedNetwork(dag, {"c": 2}, root, {"y": emission}, {"y": emission.default_prior(2)})
    if name == "mixture":
        return Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    if name == "linear_dynamical_system":
        return LinearDynamicalSystem.from_precisions([1.0], [1.0], shape=[1.0], rate=[1.0])
    if name == "structural":
        of_one = np.zeros(1, dtype=int)
        prior = Regression.from_parameters([[0.0]], [[[1.0]]], [1.0], [1.0], of_one, of_one)
        noise, design = Gamma.from_parameters([[1.0]], [[1.0]]), Design.of([Level()], np.ones(1))
        return StructuralModel(prior, noise, design, np.zeros(1), np.ones(1))
    return HMM(emission, Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2))), emission.default_prior(2))


def methods_of(protocol):
    """Methods that a protocol declares, those of its bases among them."""
    return {
        name: method
        for kind in protocol.__mro__
        if getattr(kind, "_is_protocol", False)
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_"))
    }


def test_each_field_has_a_protocol_and_the_page_says_its_law():
    assert [*PROTOCOLS] == [field.name for field in fields(Capabilities)]
    for protocol in PROTOCOLS.values():
        assert "Law:" in protocol.__doc__
        assert 1 <= len(methods_of(protocol)) <= 6


@pytest.mark.parametrize("name", MODELS)
def test_the_capabilities_of_each_registered_model(name):
    model = small(name)
    assert isinstance(model, MODELS[name].model)
    found = capabilities_of(model)
    assert {field.name for field in fields(found) if getattr(found, field.name) is None} == LACKS[name]


@pytest.mark.parametrize("name", MODELS)
def test_capabilities_take_the_arguments_that_the_page_names(name):
    found = capabilities_of(small(name))
    for field, protocol in PROTOCOLS.items():
        capability = getattr(found, field)
        if capability is None:
            continue
        for method, declared in methods_of(protocol).items():
            own = capability if method == "__call__" else getattr(capability, method)
            taken = [*inspect.signature(own).parameters]
            wanted = [*inspect.signature(declared).parameters][1:]
            assert taken == wanted, (field, method)


@pytest.mark.parametrize("name", MODELS)
def test_capabilities_can_be_sent_to_another_process(name):
    model = small(name)
    again = pickle.loads(pickle.dumps(capabilities_of(model)))
    hidden = {"network": ["c"], "mixed_network": ["c"], "mixture": ["component"]}.get(name, ["state"])
    n = 1 if name == "structural" else 2  # data tell blocks apart
    assert again.relabelings.relabelings(hidden).n == capabilities_of(model).relabelings.relabelings(hidden).n == n


@pytest.mark.parametrize("name", MODELS)
def test_a_model_owes_what_the_base_says(name, rng):
    model = small(name)
    assert isinstance(model, LatentModel)
    statistics = rng.random(model.n_cells)
    later = model.updated(statistics)
    assert type(later) is type(model)
    assert later.prior.expected_natural() == pytest.approx((model.prior + statistics).expected_natural())
    assert model.prior.expected_natural() != pytest.approx(later.prior.expected_natural())
    assert model.with_prior(later.prior).prior is later.prior
    assert model.n_cells == len(model.prior.coordinates)


def test_a_model_that_is_not_registered_is_named():
    class Toy(LatentModel):
        def compile(self): ...
        def expect(self, natural, data, n_threads=1): ...
        def magnitude(self, data): ...

    with pytest.raises(TypeError, match=r"Toy is not registered as a model. Registered are network, mixture, hmm"):
        capabilities_of(Toy())


def test_a_model_from_outside_is_registered_by_one_line(monkeypatch):
    class Toy(LatentModel):
        def compile(self): ...
        def expect(self, natural, data, n_threads=1): ...
        def magnitude(self, data): ...

    monkeypatch.setitem(MODELS, "toy", RegisteredModel(Toy, lambda model: Capabilities()))
    assert capabilities_of(Toy()).annealing is None


def test_what_a_model_owes_cannot_be_left_out():
    class Half(LatentModel):
        def compile(self): ...

    with pytest.raises(TypeError, match=r"abstract methods '?expect'?, '?magnitude'?"):
        Half()
