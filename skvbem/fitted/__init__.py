"""What a fitted model answers: predictions, imputations, forecasts, samples, queries, tables of parameters."""
