"""Names of parametrized tests."""

import re


def named(value):
    """Its text without addresses: the same in every process, as sharing the tests among processes asks."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", str(value))
