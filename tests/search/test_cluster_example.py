"""The example that runs a search on clusters, of two processes each."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "search" / "search_on_a_cluster.py"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of packages that are not ours


def test_nothing_starts_on_import():
    assert callable(runpy.run_path(str(SCRIPT))["main"])


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_the_same_bits(backend, package, capsys):
    pytest.importorskip(package)
    runpy.run_path(str(SCRIPT))["main"](backend, n_samples=60)
    printed = capsys.readouterr().out
    assert f"{backend}, 2 workers: " in printed
    assert "same bits: True" in printed
