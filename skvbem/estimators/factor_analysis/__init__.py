"""The estimator of factor analysis."""
