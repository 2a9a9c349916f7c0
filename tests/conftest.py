"""Seeds, profiles of property tests, and the registries: a new family or form of q(theta) meets every law unasked."""

import os
import sys
import zlib
from functools import partial

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


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Figures of examples and odd calls are closed after each test: matplotlib warns of more than twenty."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Up to four processes share the whole suite, file by file, if pytest-xdist is there; ``-n 0`` forbids it.

    Files and folders that are named are run in this process: few tests do not repay the start of others.
    """
    whole = config.args_source is config.ArgsSource.TESTPATHS
    if whole and not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", 0) is None:
        config.option.numprocesses, config.option.dist = "auto", "loadfile"
        config.option.maxprocesses = config.option.maxprocesses or 4
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the processes have every core already


def pytest_collection_modifyitems(items):
    """Slow tests may take hours; all others have the limit of pyproject.toml."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(0))


_BETTER_OPTIMUM = "better optimum"


@pytest.fixture
def better_optima(record_property):
    """A function that notes an optimum that passes the one of a reference; reports carry it between processes."""
    return partial(record_property, _BETTER_OPTIMUM)


def pytest_terminal_summary(terminalreporter):
    lines = [
        line
        for report in terminalreporter.getreports("passed")
        for name, line in report.user_properties
        if name == _BETTER_OPTIMUM
    ]
    if lines:
        terminalreporter.section("optima better than the reference's")
        for line in lines:
            terminalreporter.line(line)


def pytest_generate_tests(metafunc):
    """`any_family` and `any_model` run over registries, `any_form` over the forms of q(theta)."""
    for argument, registry in (("any_family", FAMILIES), ("any_form", FORMS), ("any_model", MODELS.values())):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, registry, ids=str if argument == "any_model" else None)
