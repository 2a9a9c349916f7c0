"""Displays of networks."""
