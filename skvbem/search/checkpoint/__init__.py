"""Checkpoints: records of candidates, kept in a file that survives a crash."""
