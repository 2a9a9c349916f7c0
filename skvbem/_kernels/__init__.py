"""Compiled loops: typed arrays in, arrays and a log normalizer out. No validation, no defaults, no models."""
