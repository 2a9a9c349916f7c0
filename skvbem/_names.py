"""Names as error messages show them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable
from typing import Any

# How alike names are, by the share of letters in common, for one to be meant by the other.
_LIKENESS, _LIKENESS_OF_PARAMETERS = 0.62, 0.75
_NUMBER_OF_STATES = ("n_components", "latents", "n_factors")
# What other libraries call parameters, and what they may be here, the first that there is.
_CALLED_ELSEWHERE = {
    **dict.fromkeys(
        ("n_components", "n_clusters", "n_classes", "nclass", "n_states", "n_topics", "k", "K"), _NUMBER_OF_STATES
    ),
    **dict.fromkeys(("latent", "hidden", "latent_card"), ("latents",)),
    **dict.fromkeys(("nfactors", "factors"), ("n_factors",)),
    **dict.fromkeys(("dag", "graph", "edges", "ebunch", "network", "model"), ("structure",)),
    **dict.fromkeys(("nrep", "n_restarts", "n_starts", "starts"), ("n_init",)),
    **dict.fromkeys(("n_iter", "maxiter", "n_iterations"), ("max_iter",)),
    **dict.fromkeys(("seed", "rng"), ("random_state",)),
    **dict.fromkeys(("params", "init_params"), ("init",)),
    **dict.fromkeys(("algorithm", "estimator_type", "inference"), ("method",)),
    **dict.fromkeys(("ess", "iss", "alpha"), ("equivalent_sample_size", "prior")),
    **dict.fromkeys(("distribution", "family", "measurement"), ("emission",)),
}


def did_you_mean(name: Hashable, names: Iterable[Hashable], likeness: float = _LIKENESS) -> str:
    """A sentence (after a blank) that suggests the nearest of `names`; empty if none is near."""
    texts = {str(known)[:100].casefold(): known for known in names}
    near = difflib.get_close_matches(str(name)[:100].casefold(), texts, n=1, cutoff=likeness)
    return f" Did you mean {shown(texts[near[0]])}?" if near else ""


def parameter_meant(name: str, parameters: Iterable[str]) -> str:
    """A sentence (after a blank) that suggests the parameter called so elsewhere, or the nearest; empty without one."""
    known = list(parameters)
    meant = next((each for each in _CALLED_ELSEWHERE.get(name, ()) if each in known), None)
    return did_you_mean(name, known, _LIKENESS_OF_PARAMETERS) if meant is None else f" Did you mean {meant!r}?"


def shown(value) -> str:
    """The repr of a value, cut to fit a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_few(names: Iterable, at_most: int = 10, show: Callable[[Any], str] = shown) -> str:
    """The first names of many, separated by commas, and how many more there are.

    Examples
    --------
    >>> first_few(["a", "b", "c"], at_most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(map(show, names[:at_most])) + more
