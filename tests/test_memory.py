"""Memory that is used again: never while a view of it is left, and without new pages from block to block."""

import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from skvbem import VBMixture
from skvbem._memory import ReusedMemory


def place(array):
    return array.__array_interface__["data"][0]


def test_memory_is_that_of_an_array_without_views():
    memory = ReusedMemory()
    first = memory.empty(100, 200)
    first[:] = 1.0
    where, view = place(first), first[3:, 5]
    del first
    second = memory.empty(200, 100)
    assert place(second) != where
    second[:] = 2.0
    assert (view == 1.0).all()
    del view
    third = memory.empty(19_999)
    assert place(third) == where
    assert third.shape == (19_999,)
    assert third.flags.writeable


def test_pieces_of_memory_are_few_and_none_is_twice_what_is_asked():
    memory = ReusedMemory()
    arrays = [memory.empty(100_000 + k) for k in range(50)]
    del arrays
    assert sum(each.size for each in memory._free) <= 2**20
    assert memory.empty(30_000).base is not None
    del memory._free[:]
    large = memory.empty(10**6)
    where = place(large)
    del large
    assert place(memory.empty(10_000)) != where


def test_threads_never_have_the_same_memory():
    memory, wrong = ReusedMemory(), []

    def work(number):
        for _ in range(300):
            array = memory.empty(10_000)
            array[:] = number
            if (array != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_pickle_holds_none_of_it():
    memory = ReusedMemory()
    memory.empty(10**6)  # and given back at once
    assert len(memory._free) == 1
    assert len(pickle.dumps(memory)) < 200


@pytest.mark.parametrize("options", [{}, {"covariance_type": "tied"}], ids=str)
@pytest.mark.parametrize("d", [3, 44])
def test_results_have_the_bits_of_fresh_memory(options, d, rng, monkeypatch):
    X = rng.normal(size=(6000, d)) + 3 * rng.integers(0, 2, (6000, 1))
    X[rng.random(X.shape) < 0.01] = np.nan
    X[7] = np.nan
    reused = VBMixture(2, n_init=1, max_iter=6, tol=0, random_state=0, **options).set_params(init="k-means++")

    def answers():
        reused.fit(X)
        return reused.lower_bound_, reused.score_samples(X), reused.predict_proba(X)

    with pytest.warns(UserWarning, match="did not converge"):
        of_reused = answers()
    monkeypatch.setattr(ReusedMemory, "empty", lambda self, *shape: np.full(shape, np.nan))
    with pytest.warns(UserWarning, match="did not converge"):
        of_fresh = answers()
    for one, other in zip(of_reused, of_fresh):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sys.platform != "linux", reason="malloc is glibc's")
def test_a_pass_asks_for_no_new_pages_where_malloc_trims_early():
    code = """
        import resource
        import numpy as np
        from skvbem.emissions.gaussian.dense import DenseGaussian
        X = np.random.default_rng(0).normal(size=(60_000, 10))
        emission = DenseGaussian.for_data(X)
        table = emission.prepare(X)
        prior = emission.default_prior(5)
        step = emission.step(prior.expected_natural(), table)
        size, total = emission.block_rows(5), step.zeros()

        def faults_of_a_pass():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for at in range(0, len(X), size):
                block = table[at : at + size]
                step.add(block, step.log_likelihood(block), total)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        faults_of_a_pass()
        print(faults_of_a_pass())
    """
    env = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as on workers of dask
    ran = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env)
    assert int(ran.stdout) < 400, ran.stderr  # 10 000 where each block has memory of its own
