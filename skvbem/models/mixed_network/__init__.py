"""Bayesian networks of categories, measurements and counts: tables at some nodes, emissions at others."""
