"""Hypothesis strategies for the networks, data and tables of `discrete_network`; they shrink to few nodes and rows."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference.discrete_network import MISSING, Data, Network, Problem, each
from reference.random_networks import leading_rows


@st.composite
def networks(draw, max_observed=3, max_hidden=2, max_card=3, max_parents=2):
    """Pairs (network, observed nodes): hidden nodes anywhere, some nodes alone, nodes of one state among them."""
    columns = tuple(f"y{i}" for i in range(draw(st.integers(1, max_observed))))
    hidden = [f"h{i}" for i in range(draw(st.integers(0, max_hidden)))]
    order = draw(st.permutations([*hidden, *columns]))
    parents = {}
    for i, node in enumerate(order):
        parents[node] = (
            tuple(draw(st.lists(st.sampled_from(order[:i]), unique=True, max_size=max_parents))) if i else ()
        )
    return Network({node: draw(st.integers(1, max_card)) for node in order}, parents), columns


def tables(network, values):
    """Tables with cells drawn from a strategy of floats."""
    return st.fixed_dictionaries(
        {node: arrays(float, network.shape(node), elements=values, fill=st.nothing()) for node in network.cards}
    )


def priors(network):
    """Dirichlet concentrations from 0.05 to 20."""
    return tables(network, st.floats(0.05, 20))


def counts(network):
    """Real-valued counts, zeros among them."""
    return tables(network, st.just(0.0) | st.floats(0.01, 50))


def probabilities(network):
    """Probability tables θ."""
    return tables(network, st.floats(0.01, 1)).map(lambda t: each(lambda p: p / p.sum(-1, keepdims=True), t))


@st.composite
def data_sets(draw, network, columns, max_rows=6, max_weight=3, max_completions=2**8, missing=True):
    """Data with missing cells and whole weights, zero among them; no more rows than ``max_completions`` allows."""
    extra = [MISSING] if missing else []
    states = st.tuples(*(st.sampled_from([*range(network.cards[column]), *extra]) for column in columns))
    rows = draw(st.lists(st.tuples(states, st.integers(0, max_weight)), min_size=1, max_size=max_rows))
    data = Data(columns, np.array([row for row, _ in rows]), np.array([weight for _, weight in rows]))
    return leading_rows(network, data, max_completions)


@st.composite
def problems(draw, max_completions=2**8, missing=True, **sizes):
    """A network, data and a prior."""
    network, columns = draw(networks(**sizes))
    data = draw(data_sets(network, columns, max_completions=max_completions, missing=missing))
    return Problem(network, data, draw(priors(network)))
