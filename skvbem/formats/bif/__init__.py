"""Discrete Bayesian networks as files: reading and writing the Bayesian interchange format (BIF).

A BIF file declares variables with their states, then a table p(node | parents) for each. It is read in one pass by a
hand-written tokenizer: nothing in a file becomes code, an attribute or a path, time is linear in its length, and sizes
are checked before memory is taken. The format carries neither counts nor which variables are hidden.

States are words in BIF. Those of a variable that are numbers or booleans in Python are told by a property that other
programs skip, ``property skvbem_states int;`` (or float, or bool), so that what is read equals what was written.
"""

from skvbem.formats.bif.reading import read_bif
from skvbem.formats.bif.writing import write_bif

__all__ = ["read_bif", "write_bif"]
