"""Structural VBEM: a climb along bounds of rows completed once, so that few structures are fitted."""
