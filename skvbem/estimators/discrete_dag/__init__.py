"""Discrete networks: tables of categories, and roots that covariates drive."""
