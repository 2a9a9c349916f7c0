"""Covariates and outcomes of classes in steps: the classes first, what goes with them afterwards."""
