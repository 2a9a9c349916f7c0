"""Emissions as users hold them: what a column may hold, its prior, and what is said of it in refusals and displays."""
