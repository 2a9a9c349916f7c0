"""Fits of candidates shared among threads and processes, with deadlines."""
