"""X as estimators read it: the only room that sees X."""
