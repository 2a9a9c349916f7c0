"""Structures as values: directed acyclic graphs, their symmetries and file formats. No probability model lives here."""
