"""The estimator of hidden Markov models."""
