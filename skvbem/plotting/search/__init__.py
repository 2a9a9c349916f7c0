"""Displays of what a search found."""
