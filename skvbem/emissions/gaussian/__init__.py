"""Gaussian measurements: a precision matrix for each component or for all, or a variance for each column."""
