"""Displays of a search: its candidates, their ranks, and the bounds of fits."""
