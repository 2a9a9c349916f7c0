"""Emissions that are not the library's own: what is said where their parts do not belong together."""

from __future__ import annotations

from skvbem.emissions.base import Emission
from skvbem.emissions.linear import LinearEmission


def from_outside(emission: Emission) -> list[Emission]:
    """The emissions of groups of columns whose classes are not the library's own."""
    parts = getattr(emission, "parts", (emission,))
    return [part for part in parts if type(part).__module__.partition(".")[0] != "skvbem"]


def likely_defect(emission: Emission) -> str | None:
    """Where the defect is if the objective of a fit falls or is not a number; None if it is the library's.

    A test holds the library's own emissions to these laws, so that one from outside is the first suspect.
    """
    others = from_outside(emission)
    if not others:
        return None
    names = " or ".join(dict.fromkeys(type(part).__name__ for part in others))
    methods = " or ".join(
        dict.fromkeys(
            "`features`, `fold` and `unfold`" if isinstance(each, LinearEmission) else "`step`" for each in others
        )
    )
    return (
        f"The defect is most likely in the emission {names}, which is not the library's own: {methods} must belong "
        "together and to `default_prior`. skvbem.testing.check_emission finds the law that is broken."
    )
