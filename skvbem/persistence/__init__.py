"""Fits in files that hold data alone: arrays and JSON in a zip archive, nothing that is ever run."""

from skvbem.persistence.files import load, save

__all__ = ["load", "save"]
