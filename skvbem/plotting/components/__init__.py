"""Displays of the components of mixtures and of the classes of networks."""
