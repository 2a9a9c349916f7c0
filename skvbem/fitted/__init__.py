"""Answers of fitted models: predictions, imputations, forecasts, samples, queries, tables of parameters."""
