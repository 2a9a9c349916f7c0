"""Odd arguments in the place of those that work, and what became of the call."""

import dis
import inspect
import linecache
import os
import re
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache
from io import StringIO
from numbers import Integral, Real

import numpy as np
import pandas as pd
import scipy.sparse
from arguments.calls import (
    CODES,
    KINDS,
    MIXED,
    MIXED_EDGES,
    NUMBERS,
    OF_METHODS,
    OF_ROWS,
    OPTIONS,
    SHORT,
    SKIPPED,
    SUBJECTS,
    USUAL,
    N,
    applies,
    fitted,
)

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture, VBNetwork

_RAISES = {dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]}
#: What a clear message has: what was wanted, or what to do.
_REMEDY = re.compile(
    r"\b(must|takes?|needs?|leave|contains|inconsistent|options|expect\w*|required?|give|got|pass|only|instead|choose|reshape|measure|declare|make|columns:|"
    r"supported|cannot|should|not fitted|at least|belongs?|iterate|name|whole numbers|is no[t]?|are no[t]?)\b|columns:",
    re.IGNORECASE,
)


class Whatever:
    """An object of no meaning."""

    def __repr__(self):
        return "<whatever>"


def _recursive():
    value = []
    value.append(value)
    return value


#: Values that are no rows, each made anew.
VALUES = {
    "object": Whatever,
    "class": lambda: dict,
    "function": lambda: len,
    "None": lambda: None,
    "True": lambda: True,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "half": lambda: 0.5,
    "two and a half": lambda: 2.5,
    "two, a float": lambda: 2.0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "minus inf": lambda: -float("inf"),
    "huge": lambda: 10**30,
    "huge float": lambda: 1e300,
    "2**63": lambda: 2**63,
    "minus huge": lambda: -(10**30),
    "complex": lambda: 1j,
    "numpy complex": lambda: np.complex128(1 + 1j),
    "date": lambda: np.datetime64("2020-01-01"),
    "span": lambda: np.timedelta64(3, "D"),
    "pandas NA": lambda: pd.NA,
    "text": lambda: "x",
    "empty text": lambda: "",
    "number as text": lambda: "2",
    "long text": lambda: "x" * 100_000,
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"x",
    "empty list": list,
    "list of one": lambda: [1],
    "list of a text": lambda: ["a"],
    "nested list": lambda: [[1], [2, 3]],
    "list of None": lambda: [None],
    "tuple": lambda: (1, 2),
    "recursive list": _recursive,
    "set": lambda: {1, 2},
    "dict": lambda: {"nobody": "means"},
    "empty dict": dict,
    "generator": lambda: (k for k in range(3)),
    "range": lambda: range(2),
    "0-d array": lambda: np.array(3),
    "0-d text": lambda: np.array("x"),
    "empty array": lambda: np.array([]),
    "array": lambda: np.arange(3.0),
    "array of one": lambda: np.array([2]),
    "3-d array": lambda: np.zeros((2, 2, 2)),
    "complex array": lambda: np.ones(3) * 1j,
    "array of objects": lambda: np.array([Whatever(), None, 1], dtype=object),
    "frame": lambda: pd.DataFrame({"q": [1, 2]}),
    "series of dates": lambda: pd.Series(pd.to_datetime(["2020-01-01"] * 3)),
    "sparse": lambda: scipy.sparse.eye(3).tocsr(),
    "memoryview": lambda: memoryview(b"abc"),
    "generator of random numbers": lambda: np.random.default_rng(0),
}


def _frame(rows):
    return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))


def _with_cell(rows, value):
    frame = _frame(rows).astype(object)
    frame.iat[0, 0] = value
    return frame if isinstance(rows, pd.DataFrame) else frame.to_numpy()


def _duplicated(rows):
    frame = pd.concat([_frame(rows)] * 2, axis=1)
    frame.columns = ["q"] * frame.shape[1]
    return frame


#: Changes of rows: name -> (function, whether the outcome can mean anything).
ROWS = {
    "complex": lambda x: np.asarray(_frame(x).iloc[:, -1:].to_numpy(), float).repeat(_frame(x).shape[1], 1) * 1j,
    "dates": lambda x: np.full(np.shape(x), np.datetime64("2020-01-01")),
    "spans": lambda x: np.full(np.shape(x), np.timedelta64(3, "D")),
    "infinite": lambda x: np.full(np.shape(x), np.inf),
    "1e308": lambda x: np.full(np.shape(x), 1e308),
    "no numbers": lambda x: np.full(np.shape(x), np.nan),
    "negative": lambda x: np.full(np.shape(x), -1.0),
    "words": lambda x: np.full(np.shape(x), "word"),
    "booleans": lambda x: np.ones(np.shape(x), dtype=bool),
    "objects": lambda x: np.full(np.shape(x), Whatever(), dtype=object),
    "records": lambda x: np.zeros(N, dtype=[("a", float), ("b", int)]),
    "a cell that is an array": lambda x: _with_cell(x, np.ones(2)),
    "a cell that is a list": lambda x: _with_cell(x, [1, 2]),
    "a cell that is huge": lambda x: _with_cell(x, 10**400),
    "a cell that is complex": lambda x: _with_cell(x, 1j),
    "a row less": lambda x: x[:-1] if not isinstance(x, pd.DataFrame) else x.iloc[:-1],
    "no rows": lambda x: x[:0] if not isinstance(x, pd.DataFrame) else x.iloc[:0],
    "a column more": lambda x: np.c_[np.asarray(x, dtype=object), np.ones(len(x))],
    "no columns": lambda x: np.empty((len(x), 0)),
    "three axes": lambda x: np.asarray(x, dtype=object)[None],
    "one number": lambda x: 3.0,
    "masked": lambda x: np.ma.masked_all(np.shape(x)),
    "sparse": lambda x: scipy.sparse.csr_matrix(np.ones((len(x), 3))),
    "names twice": _duplicated,
    "other names": lambda x: pd.DataFrame(np.asarray(x)).add_prefix("other "),
    "a dictionary": lambda x: {"a": [1, 2], "b": [3]},
    "a generator": lambda x: (row for row in np.asarray(x)),
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "a text": lambda x: "rows",
    "None": lambda x: None,
    "an object": lambda x: Whatever(),
    "turned": lambda x: np.asarray(x, dtype=object).T,
    "big endian halves": lambda x: np.ones(np.shape(x), dtype=">f2"),
    "bytes": lambda x: np.full(np.shape(x), b"ab"),
    "huge whole numbers": lambda x: np.full(np.shape(x), 2**63, dtype=np.uint64),
}


def _is_count(value):
    return isinstance(value, Integral) and _is_real(value) and value >= 1


def _is_real(value):
    return isinstance(value, Real) and not isinstance(value, (bool, np.timedelta64))


#: What a parameter takes: any other value has to be refused. Others take what gives a sane answer.
TAKES = {
    **dict.fromkeys(("n_draws", "n_chains", "n_boot", "max_sweeps", "max_states", "n_steps", "n_samples"), _is_count),
    **dict.fromkeys(
        ("as_frame", "return_cov", "return_error", "return_proba", "return_variance", "return_variances", "deep"),
        lambda value: isinstance(value, (bool, np.bool_)),
    ),
    "level": lambda value: _is_real(value) and 0 < value < 1,
    "time_budget": lambda value: value is None or (_is_real(value) and value >= 0),
    "n_jobs": lambda value: value is None or (_is_count(abs(value)) if isinstance(value, int) else False),
    "method": lambda value: False,
    "kind": lambda value: False,
    "path": lambda value: isinstance(value, (str, os.PathLike)),
    "sample_weight": lambda value: value is None or (_is_real(value) and 0 < value < np.inf),
    "lengths": lambda value: value is None,
    "random_state": lambda value: (
        value is None
        or isinstance(value, (np.random.RandomState, np.random.Generator))
        or (isinstance(value, Integral) and not isinstance(value, np.timedelta64) and value >= 0)
    ),
}
#: Changes of rows that mean nothing wherever they are taken; others may have a sane answer.
#: Changes of rows that mean something for one parameter.
MEANT = {"inputs": "no columns", "sample_weight": "one number"}
SENSELESS = {
    "complex", "dates", "spans", "infinite", "records", "a cell that is an array", "a cell that is a list",
    "a cell that is complex", "no rows", "no columns", "three axes", "one number", "sparse", "names twice",
    "a dictionary", "ragged", "a text", "an object",
}  # fmt: skip


def parameters_of(subject, name, function):
    """Names of what a method takes by name, with those that `**where` and `**options` stand for."""
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            if parameter.name == "where":
                names += [each for each in subject.located_by if each not in names]
            elif name == "log_evidence":
                names += ["verbose", "time_budget", "labels"]
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            names.append(parameter.name)
    return names


@cache
def calls():
    """Every (subject, method, parameter) that can be changed, in order."""
    return tuple(_calls())


def _calls():
    for of, subject in SUBJECTS.items():
        kind = type(fitted(of))
        for name in sorted(dir(kind)):
            static = inspect.getattr_static(kind, name)
            if (
                name.startswith("_")
                or name in SKIPPED
                or not applies(of, name)
                or name.endswith("_request")
                or isinstance(static, property)
            ):
                continue
            with suppress(AttributeError):
                function = getattr(fitted(of), name)
                if callable(function):
                    for parameter in parameters_of(subject, name, function):
                        yield of, name, parameter


def working(of, name):
    """A method and the arguments under which it works."""
    subject = SUBJECTS[of]
    estimator = fitted(of)
    if name in ("fit", "fit_predict", "fit_transform", "partial_fit", "set_params"):
        estimator = deepcopy(estimator)
    function = getattr(estimator, name)
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        key = parameter.name
        if key in subject.arguments and (parameter.default is parameter.empty or (key in OF_ROWS and key != "y")):
            arguments[key] = subject.arguments[key]
        elif key in SHORT and parameter.default is not parameter.empty:
            arguments[key] = SHORT[key]
        elif parameter.default is parameter.empty and key in USUAL:
            arguments[key] = USUAL[key]
        elif parameter.kind is parameter.VAR_KEYWORD and key == "where":
            arguments |= {each: subject.arguments[each] for each in subject.located_by if each in subject.arguments}
    if name == "log_evidence":
        arguments |= {each: subject.arguments[each] for each in subject.located_by if each in subject.arguments}
    return function, arguments | OF_METHODS.get((type(estimator).__name__, name), {})


def odd(of, name, parameter, rng):
    """A name of an odd value, the value, and whether it must be refused."""
    subject = SUBJECTS[of]
    in_place_of = subject.arguments.get(parameter)
    if parameter == "sample_weight":
        in_place_of = np.ones(N)
    if parameter in OF_ROWS and rng.random() < 0.7:
        if in_place_of is None or not len(np.shape(in_place_of)):
            in_place_of = np.arange(N) % 2
        what = list(ROWS)[rng.integers(len(ROWS))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ROWS[what](in_place_of)
        is_meant = parameter == "y" or what == MEANT.get(parameter.removeprefix("output_"))
        return f"rows, {what}", value, what in SENSELESS and not is_meant
    what = list(VALUES)[rng.integers(len(VALUES))]
    value = VALUES[what]()
    takes = None if (name, parameter) == ("sample", "lengths") else TAKES.get(parameter)
    return what, value, takes is not None and not takes(value)


def is_sane(answer, depth=0):
    """True if no number in an answer is NaN, as far as one can look into it."""
    if depth > 4 or answer is None:
        return True
    if isinstance(answer, float):
        return answer == answer
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return not np.isnan(answer).any()
    if isinstance(answer, Mapping):
        return all(is_sane(each, depth + 1) for each in answer.values())
    if isinstance(answer, (list, tuple)):
        return all(is_sane(each, depth + 1) for each in answer)
    if is_dataclass(answer) and hasattr(answer, "__dict__"):
        return all(is_sane(getattr(answer, each.name, None), depth + 1) for each in fields(answer))
    return True


@cache
def usual_is_sane(of, name):
    """True if the answer of a call that works has no NaN."""
    function, arguments = working(of, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return is_sane(function(**arguments))


def is_deliberate(error):
    """True if an error was raised by a statement of the library or of scikit-learn, and came from no call of theirs."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file, code = trace.tb_frame.f_code.co_filename, trace.tb_frame.f_code.co_code
    return any(f"{os.sep}{each}{os.sep}" in file for each in ("skvbem", "sklearn")) and code[trace.tb_lasti] in _RAISES


def place(error):
    """Where an error was raised, for whoever mends it."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename
    return (
        f"{os.sep.join(file.split(os.sep)[-3:])}:{trace.tb_lineno} {linecache.getline(file, trace.tb_lineno).strip()}"
    )


def last_of_ours(error):
    trace, last = error.__traceback__, None
    while trace is not None:
        if f"{os.sep}skvbem{os.sep}" in trace.tb_frame.f_code.co_filename:
            last = trace
        trace = trace.tb_next
    file = last.tb_frame.f_code.co_filename if last else "?"
    return f"{os.sep.join(file.split(os.sep)[-2:])}:{last.tb_lineno if last else 0}"


#: Words that name what was given as well as the parameter does.
NAMES = {
    "X": "column|rows?|samples?|feature|sparse|data|array|table",
    "y": "labels?|target|column|samples|array",
    "weights": "component",
    "parameters": "parameter",
    "given": "rows?|column|array|data|X|nodes?",
    "inputs": "inputs?|column",
    "output_inputs": "inputs|column",
    "sequence_id": "sequence",
    "sample_weight": "weights?",
    "labels": "component",
    "kind": "score",
    "structure": "edge|nodes?|string",
    "latents": "latent",
    "text": "string",
    "n_samples": "rows",
    "n_steps": "steps",
    "lengths": "rows|steps",
    **dict.fromkeys(("node", "nodes", "one", "other", "mapping", "targets", "hidden"), "nodes?"),
    **dict.fromkeys(("graph", "edges", "matrix", "dag"), "edges?|nodes?|graph|networkx|labels"),
    **dict.fromkeys(("do", "evidence"), "nodes?|states?|column"),
}


def outcome(of, name, parameter, what, value, refuse):
    """What became of a call: "refused", "answers", or what is wrong."""
    function, arguments = working(of, name)
    began = time.process_time()
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = function(**{**arguments, parameter: value})
            repr(answer)
    except (ValueError, TypeError, AttributeError, OSError) as error:
        said = str(error)
        if not is_deliberate(error):
            return f"from the inside: {type(error).__name__}: {said:.150} [{place(error)}] [{last_of_ours(error)}]"
        if not re.search(rf"\b({parameter}|{NAMES.get(parameter, parameter)})", said, re.IGNORECASE):
            return f"does not name {parameter}: {type(error).__name__}: {said:.200} [{place(error):.80}]"
        if not _REMEDY.search(said):
            return f"says not what to do: {said:.200} [{place(error):.80}]"
        return "refused"
    except Exception as error:
        return f"raises {type(error).__name__}: {error} [{place(error)}] [{last_of_ours(error)}]"
    seconds = time.process_time() - began
    if refuse:
        return f"is taken: {answer!s:.60}".replace("\n", " ")
    if not is_sane(answer) and usual_is_sane(of, name):
        return "the answer is NaN"
    return "answers" if seconds < 5 else f"takes {seconds:.1f} s"


def drawn(number, seed=0):
    """A call with an odd argument, by its number."""
    rng = np.random.default_rng([seed, number])
    every = calls()
    of, name, parameter = every[rng.integers(len(every))]
    return of, name, parameter, *odd(of, name, parameter, rng)


def drawn_parameter(number, seed=0):
    """An estimator with an odd parameter: its name, the parameter, what it is, the estimator, and data to fit."""
    rng = np.random.default_rng([seed, number])
    estimators = {
        "VBMixture": (VBMixture(2, **OPTIONS), NUMBERS),
        "VBHMM": (VBHMM(2, **OPTIONS), NUMBERS),
        "VBDiscreteDAG": (VBDiscreteDAG("[h][a|h][b|h][c|h]", latents={"h": 2}, **OPTIONS), CODES),
        "VBFactorAnalysis": (VBFactorAnalysis(1, **OPTIONS), NUMBERS),
        "VBLinearDynamicalSystem": (VBLinearDynamicalSystem(1, **OPTIONS), NUMBERS),
        "VBNetwork": (VBNetwork(MIXED_EDGES, latents={"h": 2}, emission=KINDS, **OPTIONS), MIXED),
    }
    of = [*estimators][rng.integers(len(estimators))]
    estimator, X = estimators[of]
    parameters = {*estimator.get_params(deep=False)} - {"verbose", "n_jobs"}
    parameter = sorted(parameters)[rng.integers(len(parameters))]
    what = [*VALUES][rng.integers(len(VALUES))]
    return of, parameter, what, type(estimator)(**{**estimator.get_params(deep=False), parameter: VALUES[what]()}), X
