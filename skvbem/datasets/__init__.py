"""Real data with published answers, and generators whose truth is known.

A ``load_...`` function reads a table that is part of the package; nothing is downloaded. Codes of categories are the
source's own (often 1 and 2, not 0 and 1), and a missing cell is NaN. A ``make_...`` function makes rows: from a network
with hidden variables, which it returns along with them, or with given moments. Where each table comes from, and under
which license, is said in its loader's docstring and in ``ATTRIBUTION.md`` beside the files.
"""

from skvbem.datasets._generated import make_bipartite, make_latent_class, make_rows_with_moments
from skvbem.datasets._tables import (
    load_ability_tests,
    load_alice,
    load_anes96,
    load_berkeley_admissions,
    load_car,
    load_carcinoma,
    load_cheating,
    load_co2,
    load_coleman_panel,
    load_earthquakes,
    load_faithful,
    load_fetal_lamb,
    load_gender_role,
    load_lizards,
    load_lsat6,
    load_nile,
    load_sachs,
    load_soybean_large,
    load_soybean_small,
    load_stouffer_toby,
    load_titanic,
    load_zoo,
)

__all__ = [
    # categories, no class known
    "load_coleman_panel",
    "load_carcinoma",
    "load_stouffer_toby",
    "load_cheating",
    "load_gender_role",
    "load_lsat6",
    "load_lizards",
    "load_berkeley_admissions",
    "load_titanic",
    # categories, a class given apart
    "load_soybean_small",
    "load_soybean_large",
    "load_zoo",
    "load_car",
    # ordered answers
    "load_anes96",
    # measurements
    "load_faithful",
    "load_ability_tests",
    # sequences
    "load_earthquakes",
    "load_fetal_lamb",
    "load_nile",
    "load_sachs",
    "load_co2",
    "load_alice",
    # generators
    "make_bipartite",
    "make_latent_class",
    "make_rows_with_moments",
]
