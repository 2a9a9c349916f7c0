"""Networks from text in the Bayesian interchange format, read in one pass."""

from __future__ import annotations

import warnings

from skvbem.errors import DataWarning
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.bif.files import read_text
from skvbem.formats.bif.grammar import Declarations
from skvbem.formats.bif.tables import Tables


def read_bif(source, *, max_bytes: int = 2**24, max_nodes: int = 10_000, max_cells: int = 10_000_000) -> Network:
    """The network that a BIF file or text describes.

    Parameters
    ----------
    source : path, str, bytes or file object
        A str with a brace or a line break in it, of nothing but blanks, or of more than 4096 characters is the text
        itself, any other a path; bytes are the text. A file object may be open for text or for bytes. Bytes are UTF-8,
        with or without a byte order mark.
    max_bytes, max_nodes, max_cells : int
        Limits on the length of the text, the number of variables and the number of cells of all tables together.
        Reading takes up to about 100 bytes of memory for each byte of text, and time linear in their number.

    Returns
    -------
    network : Network
        The variables and their states in the order of the file.

    Raises
    ------
    ValueError
        If the text is no BIF; the message starts with line and column.
    StructureError
        A ValueError: if variables, states or arcs do not fit together or the arcs form a cycle.
    TooLargeError
        A ValueError: if a limit is passed.
    OSError
        If the path cannot be read.

    Warns
    -----
    DataWarning
        If rows of probabilities miss one by more than 1e-6, though by no more than their rounding explains.

    Notes
    -----
    Tables are read by the names of parents and states, in any order. They come as rows ``(parent states) numbers;``,
    maybe with a ``default`` row for parent states that are not listed. Or they come as one ``table``, in which the
    variable runs slowest and the last parent fastest. Commas between items may be missing, and names may be quoted.
    Comments are ``//`` to the end of the line and ``/* */``. Properties are skipped.

    Rows are divided by their sum, which may miss one by 1e-6 without a word. Beyond that the printed digits must
    explain it: it misses by less than half a unit of the last printed place for each number, and by no more than 0.01.
    Then there is a warning with the line, otherwise an error.
    """
    declared = Declarations(*read_text(source, max_bytes))
    declared.read(max_nodes)
    tables = Tables(declared)
    network = tables.network(max_cells)
    if tables.rounded:
        position, total = tables.rounded[0]
        warnings.warn(
            f"{declared.place(position)}: probabilities as printed sum to {total:.10g}, not to one. They were divided "
            f"by their sum, as in {len(tables.rounded)} rows in all.",
            DataWarning,
            stacklevel=2,
        )
    return network
