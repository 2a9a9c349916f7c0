"""What a search has found so far, kept in a file that survives a crash."""
