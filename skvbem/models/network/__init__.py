"""Discrete Bayesian networks with hidden nodes."""
