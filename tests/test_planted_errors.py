"""Errors that `planted_errors` plants can still be planted: what they replace stands once in the code."""

import planted_errors
import pytest

ERRORS = {
    error.name: error
    for held in vars(planted_errors).values()
    if isinstance(held, (list, tuple))
    for error in held
    if isinstance(error, planted_errors.Error)
}


def test_there_are_errors_to_plant():
    assert len(ERRORS) > 100


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_can_be_planted(name):
    for file, right, wrong in ERRORS[name].changes:
        assert (planted_errors.ROOT / file).read_text().count(right) == 1
        assert right != wrong
