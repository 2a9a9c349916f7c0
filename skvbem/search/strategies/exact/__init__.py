"""The best graph over complete data, found by dynamic programming over sets of nodes."""
