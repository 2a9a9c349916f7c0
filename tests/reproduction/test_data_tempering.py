"""What holds of the sampler that no fit has a say in, in the record of a run, and a few tiny models of it again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import data_tempering
from reproduction.pages import check_page

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "scores.rst"
LINES = data_tempering.record()
# Standard errors that means and spreads of a record may be off.
_REACH = 3.0


def test_models_are_recorded_once():
    names = [line["model"] for line in LINES]
    assert len(set(names)) == len(names)
    for kind in data_tempering.KINDS:
        assert sum(name in {f"{kind} {number}" for number in range(data_tempering.N_TINY)} for name in names) == 200
    assert {problem.name for problem in data_tempering.real_problems()} <= set(names)


@pytest.mark.parametrize("kind", data_tempering.KINDS)
def test_mean_weights_are_the_sums(kind):
    """Unbiased for the evidence itself, not for its logarithm."""
    off, _ = data_tempering.tiny_models(LINES, kind)
    weights = np.exp(off)
    assert abs(weights.mean() - 1) < _REACH * weights.std() / np.sqrt(len(weights))


@pytest.mark.parametrize("kind", data_tempering.KINDS)
def test_populations_are_as_uncertain_as_they_say(kind):
    """Stated errors are rather too large: offspring vary less than independent ones."""
    _, z = data_tempering.tiny_models(LINES, kind)
    error = z.std() / np.sqrt(2 * len(z))
    assert 0.85 - _REACH * error < z.std() < 1.15
    assert np.mean(np.abs(z) <= 2) >= 0.93


def test_spread_of_all_tiny_models():
    z = np.concatenate([data_tempering.tiny_models(LINES, kind)[1] for kind in data_tempering.KINDS])
    assert 0.85 <= z.std() <= 1.15
    assert 0.93 <= np.mean(np.abs(z) <= 2) <= 0.97


def test_long_populations_agree_with_long_importance_sampling():
    _, z = data_tempering.tables(LINES)
    assert len(z) >= 20
    assert np.mean(np.abs(z) <= 2) >= 0.9
    assert np.abs(z).max() < _REACH
    assert abs(z.mean()) < _REACH / np.sqrt(len(z))


@pytest.mark.parametrize("kind", data_tempering.KINDS)
@pytest.mark.parametrize("number", [0, 3])
def test_a_tiny_model_again(kind, number):
    """But for rounding, by which a particle may be chosen in place of another."""
    (before,) = (line for line in LINES if line["model"] == f"{kind} {number}")
    again = data_tempering.run_of(data_tempering.tiny_problem(kind, number), data_tempering.ONE_POPULATION)
    assert again["exact"] == pytest.approx(before["exact"], abs=1e-9)
    assert again["value"] == pytest.approx(before["value"], abs=2 * before["error"])
    assert again["error"] == pytest.approx(before["error"], rel=0.3)
    assert abs(again["value"] - again["exact"]) < 4 * again["error"]


def test_the_page_shows_the_record():
    check_page(PAGE, data_tempering.table(LINES))
