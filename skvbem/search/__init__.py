"""Searches over structures, numbers of states or any other parameters, with a posterior over what was found."""

from skvbem.search.structure_search_cv import StructureSearchCV

__all__ = ["StructureSearchCV"]
