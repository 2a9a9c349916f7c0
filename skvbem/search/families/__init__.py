"""Scores that are sums over families of nodes: where they are that, how they are computed, and moves among graphs."""
