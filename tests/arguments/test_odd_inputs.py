"""Odd arguments, drawn at random for every public method, are refused by name, or answered as anything else is.

An error is clear if a statement of the library raised it, if it names the argument, and if it says what would be right.
"""

import pytest
from arguments import odd


def check_calls(numbers, seed):
    """Make calls with an odd argument; most of them are refused."""
    wrong, n_refused = [], 0
    for number in numbers:
        of, name, parameter, what, value, refuse = odd.drawn(number, seed)
        became = odd.outcome(of, name, parameter, what, value, refuse)
        n_refused += became == "refused"
        if became not in ("refused", "answers"):
            wrong.append(f"{number}: {of}.{name}({parameter}={what}): {became}")
    assert not wrong, "\n".join(wrong)
    assert n_refused > 0.6 * len(numbers)


def test_odd_arguments_are_refused_by_name_or_answered():
    check_calls(range(400), 0)


def check_parameters(numbers, seed):
    """Fit estimators of an odd parameter; errors come from statements of the library, and name the parameter."""
    wrong = []
    for number in numbers:
        of, parameter, what, estimator, X = odd.drawn_parameter(number, seed)
        try:
            estimator.fit(X)
        except Exception as error:
            if not odd.is_deliberate(error):
                wrong.append(f"{number}: {of}({parameter}={what}): {error!r:.120} at {odd.place(error)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_odd_parameters_are_refused_by_name_or_taken():
    check_parameters(range(60), 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_thousand_odd_parameters_are_refused_by_name_or_taken():
    check_parameters(range(1000), 1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_two_thousand_odd_arguments_are_refused_by_name_or_answered(part):
    check_calls(range(500 * part, 500 * (part + 1)), 1)


def test_errors_from_the_inside_are_noticed(monkeypatch):
    """What the test above counts as wrong: an error that no statement raised, one without the name, nonsense taken."""
    for function, what in (
        (lambda **_: int("x"), "from the inside"),
        (lambda **_: {}["x"], "raises KeyError"),
        (lambda **_: 1.0, "is taken"),
    ):
        monkeypatch.setattr(odd, "working", lambda of, name, function=function: (function, {}))
        assert odd.outcome("VBMixture", "bic", "n_draws", "half", 0.5, True).startswith(what)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skvbem.errors.PosteriorWarning")  # of chains that are short here
def test_calls_that_odd_arguments_are_put_in_work():
    for of, name in dict.fromkeys((of, name) for of, name, _ in odd.calls()):
        function, arguments = odd.working(of, name)
        function(**arguments)
