"""What columns hold where nobody says it: whole numbers that look unlike measurements, and names that tell rows apart.

Nothing is taken for anything else here: columns are what their data types make them, and a warning says what to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skvbem._arguments import is_option, is_real
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS, family_of, is_registered
from skvbem.errors import DataWarning, warn
from skvbem.reading.tables import blocks_of_rows, is_fraction, kind_of, listed, named_columns, show

# Values of whole numbers that look like categories at most, and rows for each; values of counts, and rows.
_MAX_CATEGORIES, _ROWS_PER_CATEGORY = 10, 10
_MAX_COUNTS, _ROWS_PER_COUNT, _MIN_ROWS = 30, 3, 20
# Least values of counts, and how rare the largest of those is that could be categories as well.
_MIN_COUNTS, _RARE = 5, 0.05
# Between which variances of counts lie, as multiples of their means.
_DISPERSION = 0.5, 10.0
# The same of counts with a long tail, their values at most, and rows for each. Among columns of whole numbers of 40
# public tables two more of counts are found, and one of times.
_LARGEST_DISPERSION, _MAX_SPREAD_COUNTS, _ROWS_PER_SPREAD_COUNT = 100.0, 100, 2
# Deviations from which on a variance is no more that of Poisson counts (`tests/reproduction/named_families.py`).
_SPREAD = 4.0
#: Levels that no column has more of which tell rows apart.
MIN_LEVELS = 20
# The share of rows with a level of their own from which on levels tell rows apart.
_SHARE_OF_ROWS = 0.5
# Columns in a mapping that a message writes out.
_MAX_COLUMNS = 40
_COUNTS, _SPREAD_COUNTS, _ZEROS = "poisson", "negative_binomial", "zero_inflated"
# Texts that usually mark missing cells, in any case of letters; words among them are none beside words of their kind.
_MARKS = frozenset(
    {
        "",
        "?",
        ".",
        "..",
        "-",
        "--",
        "na",
        "n/a",
        "#n/a",
        "<na>",
        "nan",
        "-nan",
        "nat",
        "null",
        "#null!",
        "(null)",
        "\\n",
    }
    | {"none", "missing"}
)
_WORDS = frozenset({"na", "none", "missing"})
# A number of nines is a mark where all other values are at most this share of it; in measurements, where it lies off
# their range by more than its width, and more than once.
_SHARE_OF_NINES = 1 / 3
_NINES = tuple(float("9" * k) for k in range(2, 7))
#: Codes of missing cells among measurements.
MARKS_OF_NUMBERS = np.array([-9.0, *(-nines for nines in _NINES), *_NINES])
_CODES = frozenset(MARKS_OF_NUMBERS.tolist())


def marks_among(levels: Sequence) -> list:
    """Levels of a column of categories, in increasing order, that usually mark missing cells.

    '-' is none beside '+', a character is none among the letters of a text, and a word is none beside words that are
    written alike, such as 'None' beside 'Attached' or 'NA' beside 'EU'. A code such as '-999' is one beside words.
    """
    if not _are_texts(levels):
        return _nines_among(levels)
    codes = [level for level in levels if _number(level) in _CODES]
    are_words = not any(_number(level) is not None for level in levels if level not in codes)
    marks = [level for level in levels if level.strip().lower() in _MARKS or (level in codes and are_words)]
    others = [level for level in levels if level not in marks]
    is_text = sum(len(level) == 1 for level in others) >= MIN_LEVELS
    if not marks or not others or "+" in others or is_text:
        return []
    return [mark for mark in marks if mark.strip().lower() not in _WORDS or not all(map(_as(mark), others))]


def _number(text: str) -> float | None:
    """The number that a text is, if it is one."""
    try:
        return float(text)
    except ValueError:
        return None


def _as(word: str) -> Callable[[str], bool]:
    """The test whether another word is written as this one: in capitals and as long, or with a capital."""
    if word.isupper():
        return lambda other: other.isalpha() and other.isupper() and len(other) == len(word)
    return lambda other: len(other) > 2 and other[0].isupper() == word[0].isupper() and other[1:].islower()


def _nines_among(levels: Sequence) -> list:
    """The code 99, 999, ... that is the highest of whole numbers, and far from the others."""
    if len(levels) < 3 or not all(map(is_real, levels[:: len(levels) - 1])) or levels[-1] not in _NINES:
        return []
    nearest = next((level for level in levels[-2::-1] if level < levels[-1] - 2), None)  # 97, 98: other refusals
    is_far = nearest is not None and levels[0] >= 0 and nearest <= _SHARE_OF_NINES * levels[-1]
    return [levels[-1]] if is_far else []


def _are_texts(levels: Sequence) -> bool:
    """Whether there are levels, and texts: those of a column are of one sort."""
    return len(levels) > 0 and isinstance(levels[0], str)


def number_as_text(levels: Sequence) -> str | None:
    """A level of a column whose levels, but for marks of missing cells, are measurements written as text."""
    if not _are_texts(levels):
        return None
    texts = [level for level in levels if level.strip().lower() not in _MARKS]
    numbers = [number for number in map(_number, texts) if number is not None]
    if len(numbers) < len(texts):
        return None
    is_measured = len(texts) > MIN_LEVELS or sum(not number.is_integer() for number in numbers) > 1
    return texts[0] if texts and is_measured else None


def marks_in_measurements(cells: np.ndarray) -> list[int]:
    """Codes of missing cells in a column of measurements, (n_rows,).

    A code is there twice or more, and off the range of the others by more than its width, or the only number below 0.
    """
    codes = MARKS_OF_NUMBERS[np.isin(MARKS_OF_NUMBERS, (np.nanmin(cells), np.nanmax(cells)))]
    others = cells[~np.isin(cells, codes) & ~np.isnan(cells)]
    if not len(others):
        return []
    low, high = others.min(), others.max()
    return [
        int(code)
        for code in codes
        if np.count_nonzero(cells == code) > 1
        and high > low
        and (max(low - code, code - high) > high - low or code < 0 <= low)
    ]


def doubts_about(levels: list) -> Iterator[tuple[str, object]]:
    """What about these undeclared levels, in increasing order, may not be meant; with the level in question."""
    if len(levels) == 1:
        yield "constant", levels[0]
    if levels and kind_of(levels[0]) == "number":
        fraction = next((v for v in levels if is_fraction(v)), None)
        if fraction is not None:
            yield "fraction", fraction
        elif levels[0] < 0 and sum(v >= 0 for v in levels) > 1:
            yield "negative", levels[0]
    marks = marks_among(levels)
    if marks:
        yield ("empty", "") if marks == [""] else ("mark", marks)
    text = number_as_text(levels)
    if text is not None:
        yield "text", text


_DOUBTS = {  # for one column, for several
    "constant": ("holds only one category, {}.", "hold only one category each, such as {}."),
    "fraction": (
        "holds the fraction {0}, taken as a category. If it is a measurement, {1}.",
        "hold fractions such as {0}, taken as categories. If they are measurements, {1}.",
    ),
    "negative": (
        "holds the negative value {0}, taken as a category. If it marks missing cells, pass missing_values={0}.",
        "hold negative values such as {0}, taken as categories. If they mark missing cells, pass missing_values={0}.",
    ),
    "mark": (
        "holds {2}, taken as a category. If it marks missing cells, pass missing_values={0}.",
        "hold {2}, taken as categories. If they mark missing cells, pass missing_values={0}.",
    ),
    "text": (
        "holds numbers as text, such as {0}, each taken as a category. If they are measurements, make numbers of them, "
        "as by pandas.to_numeric(X[{3}], errors='coerce').",
        "hold numbers as text, such as {0}, each taken as a category. If they are measurements, make numbers of them, "
        "as by pandas.to_numeric(X[{3}], errors='coerce').",
    ),
    "order": (
        "holds answers in words, whose data type says no order. They are taken in this one: categories={{{3}: {0}}}. "
        "Give the right one, the lowest first, in the same way or by an ordered data type.",
        "hold answers in words, whose data type says no order. They are taken as in categories={{{3}: {0}}}. Give the "
        "right order, the lowest first, in the same way for each column or by ordered data types.",
    ),
    "empty": (
        "holds the empty string, taken as a category. If it marks missing cells, pass missing_values={}.",
        "hold the empty string, taken as a category. If it marks missing cells, pass missing_values={}.",
    ),
}


def doubt_in_words(doubt: str, values: dict[str, Any], if_measured: str) -> str:
    """The warning of one kind of doubt, with the value in question of each column, or the marks."""
    one, several = _DOUBTS[doubt]
    name, value = next(iter(values.items()))
    marks = ""
    if doubt == "mark":  # of all columns, to be copied
        every = list(dict.fromkeys(mark for of_column in values.values() for mark in of_column))
        value, marks = every[0] if len(every) == 1 else every, listed(map(show, every))
    shown = repr(value) if doubt in ("mark", "order") else show(value)
    text = (one if len(values) == 1 else several).format(shown, if_measured, marks, show(name))
    return f"{named_columns(list(values))} of X {text}"


def warn_of_numbers(
    names: Sequence[str],
    groups: Mapping[str, tuple[Sequence[int], np.ndarray]],
    by_name: bool,
    parameter: str,
    named: Sequence[tuple[str, Any, Sequence[int]]],
) -> None:
    """Warn of numbers that nobody said to be measurements, and that look like categories or counts.

    Parameters
    ----------
    names : sequence of str
        Of the columns of X.
    groups : mapping of str to (columns, values)
        Positions and values of the columns that each family was given.
    by_name : bool
        Whether the columns of X have names of their own.
    parameter : str
        By which families were guessed, and of which estimator: "emission='auto' of VBMixture".
    named : sequence of (name, specification, columns)
        Groups of the columns whose families were not guessed, by positions.
    """
    columns, values = groups.get(FOR_NUMBERS, ((), np.empty((0, 0))))
    looks = {at: _looks_like(cells) for at, cells in zip(columns, values.T)}
    words_of = {
        FOR_CATEGORIES: "few whole numbers, as categories are",
        _COUNTS: "whole numbers, as counts are",
        _SPREAD_COUNTS: "whole numbers, as counts are that spread more than Poisson counts",
        _ZEROS: "whole numbers, as counts are with more zeros than Poisson counts",
    }
    doubtful = {family: [at for at in columns if looks[at] == family] for family in words_of}
    if not any(doubtful.values()):
        return
    what = []
    for family, words in words_of.items():
        if of_family := [names[at] for at in doubtful[family]]:
            what.append(f"{named_columns(of_family)} of X hold{'s' * (len(of_family) == 1)} {words}.")
    families: dict[str, list] = {
        FOR_CATEGORIES: sorted([*groups.get(FOR_CATEGORIES, ((), None))[0], *doubtful[FOR_CATEGORIES]]),
        **{family: doubtful[family] for family in (_COUNTS, _SPREAD_COUNTS, _ZEROS)},
        FOR_NUMBERS: [at for at in columns if looks[at] is None],
    }
    unlike = []  # a name of a family does not say these
    for name, specification, at in named:
        family = family_of(specification)
        if is_registered(specification):
            families[family] = sorted([*families.get(family, ()), *at])
        elif at:
            unlike.append((name, repr(specification), at))
    said = _as_parameter({family: at for family, at in families.items() if at}, unlike, names, by_name)
    warn(
        f"{' '.join(what)} {parameter} takes numbers for measurements, {FOR_NUMBERS!r}. Say what they "
        f"are, as by emission={said}; columns under {FOR_NUMBERS!r} there are measurements, without this warning.",
        DataWarning,
    )


def warn_of_names_of_rows(names: Sequence[str], codes: np.ndarray, n_categories: np.ndarray, categories) -> None:
    """Warn of columns of categories that tell rows apart, unless their levels are declared.

    Parameters
    ----------
    names : sequence of str
    codes : ndarray of int, shape (n_rows, n_columns)
        -1 where a cell is missing.
    n_categories : ndarray of int, shape (n_columns,)
    categories : "auto", mapping or sequence
        Levels that users declare.
    """
    declared = {} if is_option(categories, "auto") else categories
    if not isinstance(declared, Mapping):
        return
    doubtful = []
    for j in np.flatnonzero(n_categories > MIN_LEVELS).tolist():
        seen = codes[:, j][codes[:, j] >= 0]
        n_levels = int(np.count_nonzero(np.bincount(seen)))
        is_declared = names[j] in declared
        if n_levels > max(MIN_LEVELS, _SHARE_OF_ROWS * len(seen)) and not is_declared:
            doubtful.append((names[j], n_levels, len(seen)))
    if not doubtful:
        return
    _, n_levels, n_rows = doubtful[0]
    several = len(doubtful) > 1
    warn(
        f"{named_columns([name for name, *_ in doubtful])} of X {'have' if several else 'has'} {n_levels} distinct "
        f"values in {n_rows} rows{' (the first)' * several}, each taken as a category with parameters of its own. If "
        "they are names or numbers of rows, leave them out, as by X.drop(columns=[...]); else group them into fewer.",
        DataWarning,
    )


def _looks_like(cells: np.ndarray) -> str | None:
    """The family that numbers look to be of, but are not taken for; None of measurements."""
    seen = cells[~np.isnan(cells)]
    n = len(seen)
    if n < _MIN_ROWS or not np.array_equal(np.trunc(seen), seen):
        return None
    levels, repeats = np.unique(seen, return_counts=True)
    k, low, high, mean = len(levels), levels[0], levels[-1], float(seen.mean())
    if k < 2:
        return None
    dispersion, is_skewed = float(seen.var()) / mean if mean > 0 else np.nan, 0 <= low <= 1 and mean < high / 2
    is_poissonlike = is_skewed and _DISPERSION[0] <= dispersion <= _DISPERSION[1]
    if k <= _MAX_CATEGORIES and k * _ROWS_PER_CATEGORY <= n:
        are_counts = is_poissonlike and low == 0 and k >= _MIN_COUNTS and repeats[-1] < _RARE * n
        return family_of_counts(seen) if are_counts else FOR_CATEGORIES
    are_counts = is_poissonlike and _MIN_COUNTS <= k <= _MAX_COUNTS and k * _ROWS_PER_COUNT <= n
    has_long_tail = is_skewed and low == 0 and 1 <= dispersion <= _LARGEST_DISPERSION and k > _MAX_CATEGORIES
    has_long_tail &= k <= _MAX_SPREAD_COUNTS and k * _ROWS_PER_SPREAD_COUNT <= n
    return family_of_counts(seen) if are_counts or has_long_tail else None


def family_of_counts(counts: np.ndarray) -> str:
    """The family of counts (n_rows,) that one component would need: Poisson, or one that spreads, or has more zeros.

    By the variance, which of Poisson counts is their mean. If those above 0 have the variance of truncated Poisson
    counts, zeros are why it is larger.
    """
    n, mean = len(counts), float(counts.mean())
    if (counts.var() / mean - 1) * np.sqrt(n / 2) <= _SPREAD:
        return _COUNTS
    positive = counts[counts > 0]
    at_least_one = float(positive.mean())
    rate = at_least_one
    for _ in range(100):  # of mean rate / (1 - e^-rate)
        rate = at_least_one * -np.expm1(-rate)
    variance = at_least_one * (1 + rate - at_least_one)
    if rate > 0.01 and (positive.var() / variance - 1) * np.sqrt(len(positive) / 2) <= _SPREAD:
        return _ZEROS
    return _SPREAD_COUNTS


def _as_parameter(
    families: Mapping[str, list[int]],
    groups: Sequence[tuple[str, str, Sequence[int]]],
    names: Sequence[str],
    by_name: bool,
) -> str:
    """The `emission` parameter of families and their columns, as users write it: a list if there are other groups."""
    if len(families) == 1 and not groups:
        return repr(next(iter(families)))

    def shown(columns: Sequence[int]) -> str:
        return f"[{listed((repr(names[at]) if by_name else str(at) for at in columns), _MAX_COLUMNS)}]"

    if not groups:
        return "{" + ", ".join(f"{family!r}: {shown(columns)}" for family, columns in families.items()) + "}"
    entries, known = [*groups], {name for name, *_ in groups}
    for family, columns in families.items():
        entries.append((f"{family}_columns" if family in known else family, repr(family), columns))
    return "[" + ", ".join(f"({name!r}, {emission}, {shown(columns)})" for name, emission, columns in entries) + "]"


def are_whole(cells: np.ndarray) -> bool:
    """True if no number has a fraction; the first rows that have one decide."""
    blocks = (cells[rows] for rows in blocks_of_rows(len(cells)))
    return all(((block == np.trunc(block)) | np.isnan(block)).all() for block in blocks)
