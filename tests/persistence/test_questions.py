"""Every question to every kind of fit is answered, or refused by a statement that says why."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from persistence.fits import SETTINGS, fitted
from persistence.questions import ask, long_questions

FEW = ("mean field", "mixture of frames, ml", "hmm of frames, vb")


def check(name):
    estimator, X, where = fitted(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for method, options in long_questions(estimator):
            ask(deepcopy(estimator), X, where, method, options)


@pytest.mark.parametrize("name", FEW)
def test_questions_are_answered_or_refused(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in FEW])
def test_all_questions_are_answered_or_refused(name):
    check(name)
