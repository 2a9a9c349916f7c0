"""Seeds, profiles of property tests, and the registries: a new family or form of q(theta) meets every law unasked."""

import zlib

import numpy as np
import pytest
from bridge import FORMS
from hypothesis import settings
from laws.models import MODELS

from skvbem.families import FAMILIES

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")


@pytest.fixture
def rng(request):
    """Random numbers of this test's own: the same in every run, whatever other tests there are."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


_BETTER_OPTIMA = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[_BETTER_OPTIMA] = []


@pytest.fixture
def better_optima(request):
    """Where to note an optimum that passes the one of a reference."""
    return request.config.stash[_BETTER_OPTIMA]


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[_BETTER_OPTIMA]:
        terminalreporter.section("optima better than the reference's")
        for line in config.stash[_BETTER_OPTIMA]:
            terminalreporter.line(line)


def pytest_generate_tests(metafunc):
    """`any_family` and `any_model` run over registries, `any_form` over the forms of q(theta)."""
    for argument, registry in (("any_family", FAMILIES), ("any_form", FORMS), ("any_model", MODELS.values())):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, registry, ids=str if argument == "any_model" else None)
