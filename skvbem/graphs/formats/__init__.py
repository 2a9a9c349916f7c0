"""File formats of networks."""

from skvbem.graphs.formats.bif import read_bif, write_bif
from skvbem.graphs.network import Network

__all__ = ["Network", "read_bif", "write_bif"]
