"""p(x, y | theta): latent structures, their E steps, and what can be asked of a row's hidden variables."""

from skvbem.models.network.ascent import DirichletAscent
from skvbem.models.network.model import DiscreteDAG

__all__ = ["DirichletAscent", "DiscreteDAG"]
