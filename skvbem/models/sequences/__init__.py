"""Sequences of rows, cut into segments that fit the cache."""
