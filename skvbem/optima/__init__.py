"""The search for optima: starts of fits, moves between optima, numbers of components and factors."""
