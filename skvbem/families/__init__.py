"""Conjugate priors p(theta), which are also the posteriors q(theta)."""

from skvbem.families.dirichlet import Dirichlet

#: Every family of the library: the laws of conjugate families are tested on each.
FAMILIES = {"dirichlet": Dirichlet}

__all__ = ["FAMILIES", "Dirichlet"]
