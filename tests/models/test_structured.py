"""E steps in clusters against their definition: literal sweeps over completions of every row."""

from itertools import pairwise

import numpy as np
import pytest
from bridge import FastNetwork
from reference import clusters as literal
from reference import discrete_network as reference
from reference.random_networks import random_data, random_network, random_prior, random_tables

from skvbem.models.network.clusters import Partition
from skvbem.models.network.structured import StructuredProgram

approx = pytest.approx


def problems(rng, n, n_nodes=6, missing=(0.0, 0.25)):
    """Networks with two or more hidden nodes, gaps in their data, and clusters of hidden nodes drawn at random."""
    found = 0
    while found < n:
        network, columns = random_network(rng, n_nodes, n_hidden=int(rng.integers(2, 4)), max_parents=3)
        data = random_data(rng, network, columns, 7, missing_rate=rng.choice(missing), max_weight=3)
        fast = FastNetwork(network, random_prior(rng, network))
        hidden = [node for node in network.cards if node not in columns]
        label = {node: rng.integers(len(hidden)) for node in hidden}
        clusters = [tuple(n for n in hidden if label[n] == k) for k in set(label.values())]
        of_positions = tuple(tuple(fast.model.position[node] for node in cluster) for cluster in clusters)
        fast.model = fast.model.with_partition(Partition(of_positions))
        program = fast.program(data)
        if isinstance(program, StructuredProgram):
            found += 1
            yield fast, data, clusters, program


def literal_sweeps(network, log_tables, data, clusters, n_sweeps):
    """q of every row after sweeps from uniform clusters, and the free energy of all rows after each update."""
    q, trace = [], []
    for row, weight in data.rows():
        of_row = literal.uniform(network, literal.parts_of(network, row, clusters))
        energies = []
        for _ in range(n_sweeps):
            of_row, after = literal.sweep(network, log_tables, row, of_row)
            energies += after
        q.append(literal.latent(network, row, weight, of_row))
        trace.append((weight, energies or [literal.free_energy(network, log_tables, row, of_row)]))
    return q, trace


def test_sweeps_are_literal_ones(rng):
    for fast, data, clusters, program in problems(rng, 40):
        network, model = fast.network, fast.model
        log_tables = reference.each(np.log, random_tables(rng, network))
        natural = fast.lanes(log_tables, reference.each(np.log, random_tables(rng, network)))
        state = program.uniform(2)
        for n_sweeps in (1, 2, 3):
            counts, bound, state = program.swept(natural, state)
            exact = model.expect(natural, program.exact)
            q, trace = literal_sweeps(network, log_tables, data, clusters, n_sweeps)
            expected = fast.flat(reference.expected_counts(network, q))
            assert counts[:, 0] + exact.statistics[:, 0] == approx(expected, abs=1e-10)
            assert bound[0] + exact.log_normalizer[0] == approx(sum(w * e[-1] for w, e in trace), abs=1e-9)
            for _, energies in trace:
                assert all(b >= a - 1e-12 for a, b in pairwise(energies))
