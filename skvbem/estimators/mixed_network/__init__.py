"""Networks of categories, measurements and counts."""
