"""Laws for what extends the library: each check holds an object to the theory, and says which law it breaks."""

from skvbem.testing.families import FamilyExample, check_family
from skvbem.testing.laws import Report

__all__ = ["FamilyExample", "Report", "check_family"]
