"""p(x, y | theta): latent structures, their E steps, and what can be asked of a row's hidden variables."""

from skvbem.models.discrete_dag import DirichletAscent, DiscreteDAG

__all__ = ["DirichletAscent", "DiscreteDAG"]
