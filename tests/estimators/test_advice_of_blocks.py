"""Advice in messages about blocks of time series: followed, and it works."""

import numpy as np
import pytest

from skvbem import VBLinearDynamicalSystem
from skvbem.plotting import BlocksDisplay, ForecastDisplay
from skvbem.structural import Level, Season, Trend

OPTIONS = {"n_init": 1, "random_state": 0}
X = np.cumsum(np.random.default_rng(0).normal(size=(30, 1)), axis=0)
STEP = (np.arange(30) >= 15)[:, None].astype(float)


def refused(call, says, kind=ValueError):
    """A call is refused with these words."""
    with pytest.raises(kind) as error:
        call()
    assert says in str(error.value)


def test_known_matrices_need_no_blocks():
    matrices = [[1.0]], [[1.0]], [1.0]
    says = "whose variances are found by a fit. Leave 'blocks' out: the matrices say how states move."
    refused(lambda: VBLinearDynamicalSystem.from_parameters(*matrices, blocks=[Level()]), says)
    assert VBLinearDynamicalSystem.from_parameters(*matrices).transition_.shape == (1, 1)


def test_inputs_of_states_are_inputs_of_columns():
    model = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS)
    says = "Give them as 'output_inputs', summed over time where what they change stays."
    refused(lambda: model.fit(X, inputs=np.diff(STEP, axis=0, prepend=0.0)), says)
    assert model.fit(X, output_inputs=STEP).output_input_.shape == (1, 1)


def test_parameters_of_free_states_stay_as_they_are_or_go_without_blocks():
    model = VBLinearDynamicalSystem(2, blocks=[Level()], **OPTIONS)
    refused(lambda: model.fit(X), "does not go with 'blocks', which say what the states are. Leave it ")
    assert model.set_params(n_components=1).fit(X).n_components_ == 1
    refused(lambda: model.set_params(n_components=2).fit(X), ", or leave 'blocks' out.")
    assert model.set_params(blocks=None).fit(X).n_components_ == 2


def test_sampled_evidences_stand_in_for_laplace():
    model = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS).fit(X)
    says = "variances near 0 are at the end of their range. Take 'auto' or 'ais'."
    refused(lambda: model.log_evidence(X, kind="laplace"), says, TypeError)
    assert model.log_evidence(X, kind="auto").value > model.lower_bound_ - 1


@pytest.mark.parametrize("options", [{"blocks": [Level()]}, {"n_components": 1}])
def test_scores_of_counted_states_have_stand_ins(options):
    model = VBLinearDynamicalSystem(**options, **OPTIONS).fit(X)
    refused(lambda: model.log_evidence(X, kind="collapsed"), "Take 'auto', 'ais' or 'lower_bound'.", TypeError)
    assert model.log_evidence(X, kind="ais").value > model.log_evidence(X, kind="lower_bound").value - 1


def test_displays_of_blocks_need_blocks():
    free = VBLinearDynamicalSystem(1, **OPTIONS).fit(X)
    says = "are free. Fit with 'blocks', such as [Trend(), Season(12)] of skvbem.structural, or take ForecastDisplay."
    refused(lambda: BlocksDisplay.from_estimator(free, X), says, AttributeError)
    assert ForecastDisplay.from_estimator(free, X) is not None
    blocks = free.set_params(blocks=[Trend(), Season(12)], n_components=1).fit(X)
    assert BlocksDisplay.from_estimator(blocks, X) is not None
