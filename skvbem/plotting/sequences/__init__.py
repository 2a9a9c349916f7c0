"""Displays of hidden Markov models."""
