"""Rows that are drawn: in the container that fit saw, with its names and labels, and taken again by the same fit."""

from __future__ import annotations

import numpy as np
import pytest

from skvbem import (
    VBHMM,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
    load,
    save,
)

QUICK = {"random_state": 0, "n_init": 1, "max_iter": 30, "tol": 1.0}
RNG = np.random.default_rng(0)
NUMBERS = dict(zip("xyz", RNG.normal(size=(3, 40))))
MIXED = {"size": NUMBERS["x"], "color": RNG.choice(["red", "blue"], 40)}
LABELS = {"color": MIXED["color"], "grade": RNG.choice([1, 5], 40)}
CASES = {
    "mixture": (VBMixture(2, **QUICK), MIXED),
    "hmm": (VBHMM(2, **QUICK), MIXED),
    "network": (VBDiscreteDAG(latents=2, **QUICK), LABELS),
    "mixed network": (VBNetwork([("color", "size")], **QUICK), MIXED),
    "factors": (VBFactorAnalysis(1, **QUICK), NUMBERS),
    "system": (VBLinearDynamicalSystem(1, **QUICK), NUMBERS),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


def rows_of(drawn):
    return drawn[0] if isinstance(drawn, tuple) else drawn


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_drawn_in_the_frames_that_fit_saw(name, library, tmp_path):
    frames = pytest.importorskip(library)
    estimator, columns = CASES[name]
    frame = frames.DataFrame({key: values.tolist() for key, values in columns.items()})
    estimator.fit(frame)
    drawn = rows_of(estimator.sample(6, random_state=1))
    assert type(drawn) is type(frame)
    assert list(drawn.columns) == list(columns)
    for key, values in columns.items():
        if values.dtype.kind != "f":
            assert set(drawn[key]) <= set(values.tolist())
    assert np.isfinite(estimator.score_samples(drawn)).all()
    save(estimator, tmp_path / "fit.skvbem")
    again = rows_of(load(tmp_path / "fit.skvbem").sample(6, random_state=1))
    assert type(again) is type(frame)
    assert all((drawn[key].to_numpy() == again[key].to_numpy()).all() for key in columns)


@pytest.mark.parametrize("name", ["mixture", "hmm", "network", "factors", "system"])
def test_rows_are_drawn_as_arrays_where_fit_saw_one_and_are_the_same(name):
    pandas = pytest.importorskip("pandas")
    estimator, columns = CASES[name]
    frame = pandas.DataFrame(columns)
    drawn = rows_of(estimator.fit(frame.to_numpy()).sample(6, random_state=1))
    assert isinstance(drawn, np.ndarray)
    of_frame = rows_of(estimator.fit(frame).sample(6, random_state=1))
    assert drawn.tolist() == of_frame.to_numpy().tolist()


@pytest.mark.parametrize("name", ["hmm", "system"])
def test_sequences_are_drawn_as_a_list_of_frames(name):
    pandas = pytest.importorskip("pandas")
    estimator, columns = CASES[name]
    frame = pandas.DataFrame(columns)
    drawn, states = estimator.fit([frame[:15], frame[15:]]).sample([4, 2], random_state=1)
    assert [each.shape for each in drawn] == [(4, len(columns)), (2, len(columns))]
    assert [len(each) for each in states] == [4, 2]
    assert [each.columns.tolist() for each in drawn] == [list(columns)] * 2
    assert len(estimator.score_samples(drawn)) == 2
