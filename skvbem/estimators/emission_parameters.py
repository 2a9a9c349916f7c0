"""Parameters of an estimator's emissions by their nested names, and where parameters are that an estimator has no more.

scikit-learn reaches into objects: ``emission__covariance_type``. Into a list of (name, emission, columns) it does not,
so that is done here, as ColumnTransformer does it: ``emission__visits`` is the emission named "visits", and
``emission__visits__shape_prior`` a parameter of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skvbem._arguments import is_option
from skvbem._names import did_you_mean
from skvbem.emissions import EMISSIONS, EmissionSpecification
from skvbem.reading.forms import is_list_of_emissions

_PREFIX = "emission__"


def nested_parameters(emission) -> dict[str, Any]:
    """The emissions of a list and their parameters, by the names under which `set_params` takes them."""
    nested: dict[str, Any] = {}
    for name, of_group, *_ in emission if is_list_of_emissions(emission) else ():
        nested[f"{_PREFIX}{name}"] = of_group
        if isinstance(of_group, EmissionSpecification):
            parameters = of_group.get_params()
            nested |= {f"{_PREFIX}{name}__{parameter}": value for parameter, value in parameters.items()}
    return nested


def set_nested(emission, params: Mapping[str, Any], owner: str):
    """An emission with some of its nested parameters set: a new list, or the same object.

    Raises
    ------
    ValueError
        If there is no such parameter.
    """
    if isinstance(emission, EmissionSpecification):
        return emission.set_params(**{name.removeprefix(_PREFIX): value for name, value in params.items()})
    if not is_list_of_emissions(emission):
        raise ValueError(
            f"Invalid parameter {next(iter(params))!r} for {owner}: emission={emission!r} has no parameters. "
            f"{_object_of(emission, 'emission=')}"
        )
    items = {name: (of_group, *columns) for name, of_group, *columns in emission}
    for whole in sorted(params, key=lambda each: each.count("__")):  # an emission before parameters of it
        name, _, parameter = whole.removeprefix(_PREFIX).partition("__")
        if name not in items:
            raise ValueError(
                f"Invalid parameter {whole!r} for {owner}: 'emission' has no group {name!r}."
                f"{did_you_mean(name, items)} Groups are {', '.join(map(repr, items))}."
            )
        of_group, *columns = items[name]
        if not parameter:
            items[name] = (params[whole], *columns)
        elif isinstance(of_group, EmissionSpecification):
            of_group.set_params(**{parameter: params[whole]})
        else:
            raise ValueError(
                f"Invalid parameter {whole!r} for {owner}: the emission {name!r} is {of_group!r} and has no "
                f"parameters. {_object_of(of_group)}"
            )
    return type(emission)((name, *items[name]) for name, *_ in emission)


def _object_of(family, parameter: str = "") -> str:
    """Advice on the object that replaces the name of a family, or another value without parameters."""
    if is_option(family, *EMISSIONS):
        return f"A name stands for its defaults; hold the object: {parameter}{EMISSIONS[family].__name__}()."
    return f"Hold an object, such as {parameter}Gaussian() of skvbem.emissions."


def refuse_lags(owner: str, emission) -> None:
    """Refuse earlier values as regressors where rows have no order."""
    given = [of_group for _, of_group, *_ in emission] if is_list_of_emissions(emission) else [emission]
    if any(getattr(each, "lags", 0) for each in given):
        raise ValueError(
            f"The 'emission' of {owner} explains columns by earlier values (lags), and its rows have no order. VBHMM "
            "has sequences; or give earlier values as columns of their own, as 'covariates'."
        )


def moved(owner: str, names: Iterable[str]) -> str:
    """A sentence on the emission that has the first of some names as its parameter; empty if none has."""
    for name in names:
        having = [each.__name__ for each in EMISSIONS.values() if name in each().get_params(deep=False)]
        if having:
            others = f" (or {', '.join(having[1:])})" if having[1:] else ""
            return (
                f"{name!r} is a parameter of the emission now: {owner}(emission={having[0]}({name}=...)){others}, of "
                f"skvbem.emissions; nested, it is 'emission__{name}'."
            )
    return ""
