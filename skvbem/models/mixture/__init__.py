"""Mixtures of any emission."""
