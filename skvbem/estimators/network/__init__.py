"""The estimator of discrete Bayesian networks."""
