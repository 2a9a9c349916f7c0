"""Every message that advises code: a test copies and follows it, or it stands in a list with the reason why not."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import skvbem
from skvbem.evidence.registry import SCORES
from skvbem.search.strategies import STRATEGIES
from skvbem.uncertainty.bootstrap import bootstrap

_VERBS = "Use|Take|Pass|Give|Set|Call|Choose|Declare|Fit|Name|Add|Raise|Lower|Leave|Say|Search|Make|Let|Ask|Write"
_ADVICE = re.compile(
    rf"(?:^|[.:;,] |\bor |\bso )(?:{_VERBS}|{_VERBS.lower()})\b.*?(?:\w=[\w'(\[{{]|'[a-z_]\w*'|\w\([\w\[]*)"
)

#: Advice to change a number alone, which needs no code: that the parameter exists is tested of all.
_NUMBER = re.compile(r"(?:[Rr]aise|more|larger|smaller|fewer) '(\w+)'")

#: Parts of messages whose advice no test copies, and the reason.
NOT_COPIED = {
    "rotations of the factors are not integrated out": "mixtures of analyzers of many orders take minutes",
    "set a column of the node": "two words name a parameter and edges; there is no line to copy",
    "Take assignment='proportional'": "classes that no table of modal assignments tells apart are not made at will",
    "it takes seconds, whatever the number of rows is": "drawn by fits of seconds",
    "as a state can follow one column": "a degenerate likelihood, whose floor a short fit does not meet",
    "This search completes rows by the exact q(x) of ": "another sentence refuses this first",
    " must have the categories of column ": "the parameter is followed by other messages",
    "no two samplers that do not doubt themselves agree": "no small data on which samplers disagree",
    "The standard error is not to be trusted. Take more 'n_components'": "no small data with such a tail of a bridge",
    "there may be hills that none has met": "no small data with such chains",
    "gives a lower bound of it. Take the score 'lower_bound'": "another sentence refuses q(x) in clusters first",
    "most probable cell by cell cannot occur together": "as of rows, which is copied",
    "take no parameters. Leave 'tables' out": "no public method hands tables to such an estimator",
    "which a structural search goes through, take": "drawn by searches of gigabytes",
    "have no known number of free parameters": "the advice depends on what was searched",
    "give it to {} in the": "the parameter is followed by other messages",
    "errors='coerce'": "copied by the tests of reading",
    " of X holds {}; {}, or give the column to ": "the parameter is followed by other messages",
    "make numbers of it, as by astype(float)": "a column of numbers is a category only where its type says so",
    "Exact draws take longer than a second": "depends on the speed of the machine's sweeps",
}


def _words(node):
    """The constant parts of a text, a gap between them; None for what is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return None


def _texts(path):
    tree = ast.parse(path.read_text("utf-8"))
    nodes = list(ast.walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(each) for node in nodes if isinstance(node, ast.JoinedStr) for each in node.values}
    texts = (_words(node) for node in nodes if id(node) not in docs | parts)
    return [text for text in texts if text and "\n" not in text]


@cache
def _advising():
    paths = sorted(Path(skvbem.__file__).parent.rglob("*.py"))
    return [text for path in paths for text in _texts(path) if " " in text and _ADVICE.search(text)]


def _copied():
    """Parts of messages that tests of advice name."""
    paths = Path(__file__).parent.glob("test_advice*.py")
    of_tests = (path for path in paths if path.name != Path(__file__).name)
    return {text for path in of_tests for text in _texts(path) if len(text) >= 10 and re.search("[ =]", text)}


def _parameters():
    """Names of the parameters of public classes, functions, methods and scores."""
    public = [getattr(skvbem, name) for name in skvbem.__all__]
    callables = [score.compute for score in SCORES.values()] + [bootstrap, *STRATEGIES.values()]
    for each in public:
        callables += [each, *(getattr(each, name) for name in dir(each) if name[0] != "_")] if callable(each) else []
    return {name for each in callables if inspect.isroutine(each) or inspect.isclass(each) for name in _names(each)}


def _names(called):
    try:
        return list(inspect.signature(called).parameters)
    except (TypeError, ValueError):
        return []


def test_numbers_to_change_are_parameters():
    named = [(name, text) for text in _advising() for name in _NUMBER.findall(text)]
    assert len(named) > 15
    known = _parameters()
    assert not [(name, text) for name, text in named if name not in known]


def test_advice_is_copied_or_listed():
    parts = _copied()
    left = [text for text in _advising() if not any(part in text for part in parts)]
    left = [text for text in left if _ADVICE.search(_NUMBER.sub("", text))]
    unlisted = [text for text in left if not any(part in text for part in NOT_COPIED)]
    assert not unlisted, "\n".join(unlisted)
    for part in NOT_COPIED:
        assert any(part in text for text in left), f"no longer there, or copied by now: {part}"
