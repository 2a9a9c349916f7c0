"""The estimator of mixtures."""
