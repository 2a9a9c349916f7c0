"""Discrete Bayesian networks as files, in the formats of other programs.

Formats carry neither counts nor which variables are hidden. Time and memory of reading are linear in the length of a
file, nothing of which becomes code, an attribute or a path.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import NamedTuple

from skvbem._arguments import is_option, is_real
from skvbem._names import did_you_mean, shown
from skvbem.errors import DataWarning
from skvbem.fitted.bayesian_network import Network
from skvbem.formats import bif, dsl, net, xmlbif
from skvbem.formats.files import path_of, read_text, write_text
from skvbem.formats.tables import Declarations, Tables
from skvbem.formats.tokens import Text

__all__ = ["read_bif", "read_network", "write_bif", "write_network"]


class Format(NamedTuple):
    """A format of networks."""

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Text, int], Declarations]
    write: Callable[[Network], str]


FORMATS = {
    "bif": Format("BIF", (".bif",), bif.read, bif.write),
    "xmlbif": Format("XMLBIF", (".xml", ".xmlbif", ".bifxml"), xmlbif.read, xmlbif.write),
    "net": Format("NET", (".net",), net.read, net.write),
    "dsl": Format("DSL", (".dsl",), dsl.read, dsl.write),
}


def read_network(
    source,
    format: str | None = None,
    *,
    tolerance: float = 0.0,
    max_bytes: int = 2**24,
    max_nodes: int = 10_000,
    max_cells: int = 10_000_000,
) -> Network:
    """The network that a file or text of another program describes.

    Parameters
    ----------
    source : path, str, bytes or file object
        A str with a brace, a "<" or a line break in it, of nothing but blanks, or of more than 4096 characters is the
        text itself, any other a path; bytes are the text. A file object may be open for text or for bytes. Bytes are
        UTF-8, with or without a byte order mark, or compressed by gzip.
    format : {"bif", "xmlbif", "net", "dsl"}, default=None
        None takes the format from the end of the path, which ``.gz`` may follow. BIF is ``.bif``, of bnlearn, pgmpy and
        others. XMLBIF 0.3, of Weka, JavaBayes and pyAgrum, is ``.xml``, ``.xmlbif`` or ``.bifxml``. NET, of Hugin, is
        ``.net``; DSL, of older GeNIe, is ``.dsl``.
    tolerance : float, default=0
        By how much the probabilities of a row may miss one beyond their printed rounding, as those of a file with a
        mistyped digit do. Such rows are divided by their sum, with a warning.
    max_bytes, max_nodes, max_cells : int
        Limits on the length of the text, the number of variables and the number of cells of all tables together.
        Reading takes up to about 100 bytes of memory for each byte of text, and time linear in their number.

    Returns
    -------
    network : Network
        The variables and their states in the order of the file. States are str, unless `write_network` wrote that they
        are numbers, booleans or intervals.

    Raises
    ------
    ValueError
        If the text is not of the format, the message starts with line and column; or `tolerance` is not from 0 to 1; or
        `format` is none, or needed.
    StructureError
        A ValueError: if variables, states or arcs do not fit together, the arcs form a cycle, or a variable has no
        probabilities.
    TooLargeError
        A ValueError: if a limit is passed.
    OSError
        If the path cannot be read.

    Warns
    -----
    DataWarning
        If rows of probabilities miss one by more than 1e-6, though by no more than their rounding explains or
        `tolerance` allows.

    Notes
    -----
    Decisions, utilities, equations, noisy gates and classes of nodes are refused: a `Network` has nodes of chance with
    tables alone. Entities of XML are refused, and files that a text refers to are not read. Rows are divided by their
    sum as `read_bif` says, and rows of NaN alone are refused where there is no default. Numbers of NET files may be
    weights, such as ``(10 90)``: they are divided by their sum, with a warning.

    Examples
    --------
    >>> from skvbem import read_network, write_network
    >>> text = "net {} node rain { states = (no yes); } potential (rain) { data = (0.8 0.2); }"
    >>> network = read_network(text, "net")
    >>> network.tables["rain"]
    array([0.8, 0.2])
    >>> read_network(write_network(network, format="dsl"), "dsl") == network
    True
    """
    return _read(source, _format(source, format, "read_network"), tolerance, max_bytes, max_nodes, max_cells)


def read_bif(
    source,
    *,
    tolerance: float = 0.0,
    max_bytes: int = 2**24,
    max_nodes: int = 10_000,
    max_cells: int = 10_000_000,
) -> Network:
    """The network that a BIF file or text describes: `read_network` with the format "bif", whatever the path's end.

    Parameters
    ----------
    source : path, str, bytes or file object
        As `read_network` takes it.
    tolerance : float, default=0
        By how much the probabilities of a row may miss one beyond their printed rounding.
    max_bytes, max_nodes, max_cells : int
        Limits on the length of the text, the number of variables and the number of cells of all tables together.

    Returns
    -------
    network : Network
        The variables and their states in the order of the file.

    Raises
    ------
    ValueError
        If the text is no BIF, the message starts with line and column; or `tolerance` is not from 0 to 1.
    StructureError
        A ValueError: if variables, states or arcs do not fit together, the arcs form a cycle, or a variable has no
        probabilities.
    TooLargeError
        A ValueError: if a limit is passed.
    OSError
        If the path cannot be read.

    Warns
    -----
    DataWarning
        If rows of probabilities miss one by more than 1e-6, though by no more than their rounding explains or
        `tolerance` allows.

    Notes
    -----
    Tables are read by the names of parents and states, in any order. They come as rows ``(parent states) numbers;``,
    maybe with a ``default`` for parent states that are not listed, or whose row is of NaN alone (bnlearn writes it for
    parents that it has not seen). Or they come as one ``table``, in which the variable runs slowest and the last parent
    fastest. A ``default`` is one row, or a whole table in the same order. Commas between items may be missing, and
    names may be quoted. Comments are ``//`` to the end of the line and ``/* */``. Properties are skipped.

    Rows are divided by their sum, which may miss one by 1e-6 without a word. Beyond that the printed digits must
    explain it. Numbers may be rounded to equal decimal places or to equal significant digits; the sum then misses one
    by less than half a unit of the last place of each number. It may never miss by more than 0.01. Such rows bring a
    warning with the line, all others an error.
    """
    return _read(source, FORMATS["bif"], tolerance, max_bytes, max_nodes, max_cells)


def _read(source, format: Format, tolerance, max_bytes, max_nodes, max_cells) -> Network:
    if not (is_real(tolerance) and 0 <= tolerance < 1):
        raise ValueError(f"'tolerance' must be a number from 0 to 1, 1 excluded. Got {shown(tolerance)} instead.")
    text = read_text(source, max_bytes, format.title)
    tables = Tables(format.read(text, max_nodes), tolerance)
    network = tables.network(max_cells)
    if tables.rounded:
        position, total = tables.rounded[0]
        warnings.warn(
            f"{text.place(position)}: probabilities as printed sum to {total:.10g}, not to one. They were divided "
            f"by their sum, as in {len(tables.rounded)} rows in all.",
            DataWarning,
            stacklevel=3,
        )
    return network


def write_network(network: Network, path=None, format: str | None = None) -> str:
    """The network as text of another program, from which `read_network` makes an equal network.

    Parameters
    ----------
    network : Network
        Its nodes must be named by str that the format can write. XMLBIF takes all without control characters and blanks
        at the ends, BIF those without double quotes. NET and DSL take identifiers: letters, digits and "_", no digit
        first. The states of a node must be such str, or all int, all bool, or all finite float, or all pandas.Interval
        of numbers. NET takes texts without double quotes and backslashes as states, DSL words of letters, digits, "_".
    path : path, optional
        Where to write the text too, in UTF-8, compressed if it ends with ``.gz``. A file already there is replaced once
        the new one is complete.
    format : {"bif", "xmlbif", "net", "dsl"}, default=None
        None takes the format from the end of the path, as `read_network` does.

    Returns
    -------
    text : str

    Raises
    ------
    ValueError
        If a name or a state cannot be written; or `format` is none, or needed.
    OSError
        If the file cannot be written.
    """
    return _write(network, path, _format(path, format, "write_network"), "write_network")


def write_bif(network: Network, path=None) -> str:
    """The network as BIF text, from which `read_bif` makes an equal network.

    Parameters
    ----------
    network : Network
        Its nodes must be named by str without double quotes, line breaks, other control characters and lone surrogates,
        which BIF has no way to write. The states of a node must be such str, or all int, all bool, or all finite
        float, or all pandas.Interval of numbers; None is no state.
    path : path, optional
        Where to write the text too, in UTF-8, compressed if it ends with ``.gz``. A file already there is replaced once
        the new one is complete.

    Raises
    ------
    ValueError
        If a name or a state cannot be written.
    OSError
        If the file cannot be written.
    """
    return _write(network, path, FORMATS["bif"], "write_bif")


def _write(network: Network, path, format: Format, name: str) -> str:
    if not hasattr(network, "dag"):
        hint = " Its network is 'network_'." if hasattr(network, "network_") else ""
        raise TypeError(f"{name} takes a Network first. Got a {type(network).__name__} instead.{hint}")
    text = format.write(network)
    if path is not None:
        write_text(text, path)
    return text


def _format(source, format: str | None, name: str) -> Format:
    """The format of a name, or of a path."""
    if format is None:
        path = path_of(source)
        ends = {suffix: each for each in FORMATS.values() for suffix in each.suffixes}
        end = os.path.splitext((path or "").lower().removesuffix(".gz"))[1]
        if end not in ends:
            got = shown(path) if path else "no path"
            raise ValueError(
                f"{name} takes the format from the end of a path, {', '.join(ends)}. Got {got} instead: pass format=, "
                f"one of {', '.join(map(repr, FORMATS))}."
            )
        return ends[end]
    if not is_option(format, *FORMATS):
        hint = did_you_mean(format, FORMATS)
        raise ValueError(f"'format' must be one of {', '.join(map(repr, FORMATS))}. Got {shown(format)} instead.{hint}")
    return FORMATS[format]
