"""Scores that are sums over families of nodes: where they are, how they are computed, and climbs by their differences."""
