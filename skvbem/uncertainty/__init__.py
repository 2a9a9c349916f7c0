"""Uncertainty of parameters: draws from the posterior, intervals, standard errors, the bootstrap."""
