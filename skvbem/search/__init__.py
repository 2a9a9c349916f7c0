"""Searches over structures, numbers of states or any other parameters, with a posterior over the models tried."""

from skvbem.search.structure_search_cv import StructureSearchCV

__all__ = ["StructureSearchCV"]
