"""Uncertainty of parameters: draws from the posterior, linear response, intervals, standard errors, the bootstrap."""
