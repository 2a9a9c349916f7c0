"""Errors to plant can be planted, and the tests that they name are there."""

import json

import pytest
from planted.errors import PACKAGE, RECORD, ROOT, TESTS, Sources, all_errors

ERRORS = {error.name: error for error in all_errors()}
SOURCES = Sources(ROOT / PACKAGE)


def test_there_are_errors_to_plant():
    assert len(ERRORS) == len(all_errors()) > 100


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_can_be_planted(name):
    broken = SOURCES.broken_by(ERRORS[name])
    assert all(text != SOURCES.texts[path] for path, text in broken.items())


@pytest.mark.parametrize("name", ERRORS)
def test_no_text_hangs_on_where_modules_are(name):
    for right, wrong in ERRORS[name].changes:
        assert "import " not in right + wrong
        assert f"{PACKAGE}." not in right + wrong


def test_tests_that_are_asked_are_there():
    asked = {pattern: error.room for error in ERRORS.values() for pattern in error.patterns}
    assert {pattern: room for pattern, room in asked.items() if not any(TESTS.glob(pattern))} == {}


def test_the_record_is_of_errors_and_tests_that_are_there():
    record = json.loads(RECORD.read_text())
    assert set(record) <= set(ERRORS)
    assert [known["test"] for known in record.values() if not (ROOT / known["test"].partition("::")[0]).exists()] == []


@pytest.mark.parametrize(("right", "counts"), [("import", "in skvbem"), ("no such text stands here", "not at all")])
def test_a_text_that_does_not_stand_once_is_refused(right, counts):
    with pytest.raises(LookupError, match=counts):
        SOURCES.place(right)
