"""Pictures of linear dynamical systems."""
