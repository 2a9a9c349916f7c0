"""Which optimum: where fits start, moves between optima, numbers of components and factors."""
