"""Emissions by name."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature

from skvbem.emissions.bernoulli import Bernoulli
from skvbem.emissions.categorical import Categorical
from skvbem.emissions.exponential import Exponential
from skvbem.emissions.factor.analyzer import FactorGaussian
from skvbem.emissions.gamma import Gamma
from skvbem.emissions.gaussian.specification import Gaussian
from skvbem.emissions.multinomial import Multinomial
from skvbem.emissions.negative_binomial import NegativeBinomial
from skvbem.emissions.ordinal import Ordinal
from skvbem.emissions.poisson import Poisson
from skvbem.emissions.regression import Regression
from skvbem.emissions.specification import EmissionSpecification
from skvbem.emissions.student_t import StudentT
from skvbem.emissions.von_mises import VonMises
from skvbem.emissions.zero_inflated import ZeroInflated

#: Specifications by the name of their family.
EMISSIONS: dict[str, type[EmissionSpecification]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "exponential": Exponential,
    "gamma": Gamma,
    "gaussian": Gaussian,
    "factor": FactorGaussian,
    "multinomial": Multinomial,
    "negative_binomial": NegativeBinomial,
    "ordinal": Ordinal,
    "poisson": Poisson,
    "regression": Regression,
    "student_t": StudentT,
    "zero_inflated": ZeroInflated,
    "von_mises": VonMises,
}
_LIBRARY = frozenset(EMISSIONS)
#: Families of columns of numbers, and of all others, where nothing is said.
FOR_NUMBERS, FOR_CATEGORIES = "gaussian", "categorical"


def register_emission(name: str, specification: type[EmissionSpecification]) -> type[EmissionSpecification]:
    """Make an emission known by a name, so that ``emission=name`` and mappings of names to columns find it.

    An object, ``emission=MyEmission()``, needs no name. A search tells its workers the names that are known where it
    runs; in any other process give an object, or register in a module that is imported there.

    Parameters
    ----------
    name : str
        Name of the family, an identifier such as "geometric".
    specification : subclass of EmissionSpecification
        A class whose parameters all have defaults.

    Returns
    -------
    specification : subclass of EmissionSpecification
        The same class.

    Raises
    ------
    TypeError
        If it is no such class, or abstract, or refuses cells without saying in `wanted` what they should be.
    ValueError
        If the name is none, or that of another emission.

    See Also
    --------
    EmissionSpecification : what such a class supplies.
    """
    if not (isinstance(specification, type) and issubclass(specification, EmissionSpecification)):
        raise TypeError(
            f"register_emission takes a class that derives from EmissionSpecification. Got {specification!r}."
        )
    _check_made_by_its_name(specification)
    if not (isinstance(name, str) and name.isidentifier() and "__" not in name) or name in ("auto", "remainder"):
        raise ValueError(
            "The name of an emission must be an identifier without two underscores in a row, other than 'auto' and "
            f"'remainder'. Got {name!r}."
        )
    if specification.impossible is not EmissionSpecification.impossible and not specification.wanted:
        raise TypeError(
            f"{specification.__name__} refuses cells by `impossible`, but has no words for what they should be. Say it "
            "in `wanted`, such as 'counts are whole numbers >= 0'."
        )
    if EMISSIONS.setdefault(name, specification) is not specification:
        raise ValueError(f"The name {name!r} belongs to {EMISSIONS[name].__name__}. Take another name.")
    return specification


def registered_emissions() -> dict[str, type[EmissionSpecification]]:
    """Emissions by name that are not the library's own, for other processes; see `know_emissions`."""
    return {name: each for name, each in EMISSIONS.items() if name not in _LIBRARY}


def know_emissions(emissions: Mapping[str, type[EmissionSpecification]]) -> None:
    """Make the emissions of another process known here, names that are known already left as they are."""
    for name, specification in emissions.items():
        EMISSIONS.setdefault(name, specification)


def _check_made_by_its_name(specification: type[EmissionSpecification]) -> None:
    """Refuse a class of which a name alone makes no object."""
    owner = specification.__name__
    lacking = sorted(specification.__abstractmethods__)
    if lacking:
        raise TypeError(f"register_emission takes a class that can be made. {owner} lacks {', '.join(lacking)}.")
    single = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    required = [
        parameter.name
        for parameter in signature(specification).parameters.values()
        if parameter.kind in single and parameter.default is Parameter.empty
    ]
    if required:
        raise TypeError(
            f"register_emission takes a class whose parameters all have defaults: the name stands for the defaults. "
            f"These parameters of {owner} have none: {', '.join(map(repr, required))}."
        )


def is_registered(specification: EmissionSpecification) -> bool:
    """True if the name of its family alone says all of an emission."""
    known = EMISSIONS.get(family_of(specification))
    return known is not None and repr(known()) == repr(specification)


def family_of(specification: EmissionSpecification) -> str:
    """The name under which the class of an emission is registered, or that of the class in lower case."""
    names = (name for name, known in EMISSIONS.items() if known is type(specification))
    return next(names, type(specification).__name__.lower())
