"""What a fit can be asked, and what is wrong with its answers."""

import numpy as np
from arguments.odd import is_deliberate
from persistence.fits import drawn

#: Asked of every fit.
USUAL = ("predict", "predict_proba", "score_samples", "transform", "decode", "impute")
#: What takes longer: one of them is asked of every fourth fit, in turn.
LONG = (
    ("filter", {}),
    ("forecast", {"n_steps": 2}),
    ("bic", {}),
    ("goodness_of_fit", {}),
    ("standard_errors", {}),
    ("summary", {"method": "vb"}),
    ("sample_posterior", {"n_draws": 3, "n_chains": 2, "max_sweeps": 4}),
    ("credible_intervals", {"method": "linear_response"}),
    ("bootstrap", {"n_draws": 1}),
    ("fit_indices", {}),
    ("log_evidence", {"kind": "importance"}),
    ("log_evidence", {"kind": "cheeseman_stutz"}),
    ("partial_fit", {}),
)


def long_questions(fit):
    """Those that a fit has a method for."""
    return [(name, options) for name, options in LONG if hasattr(fit, name)]


def ask(fit, X, where, name, options):
    """The answer to a long question; None where the library says why there is none."""
    n_steps = options.get("n_steps", 0)
    ahead = {f"future_{key}": values[:n_steps] for key, values in where.items() if n_steps and "inputs" in key}
    try:
        return getattr(fit, name)(X, **options, **where, **ahead)
    except (ValueError, TypeError) as error:
        if not is_deliberate(error):
            raise
        return None


def answers(fit, X, where, number=0):
    """What a fit says of rows: nothing is wrong if this returns, and all of it is as it should be."""
    if type(fit).__name__ == "Network":
        return [fit.tables[node] for node in fit.dag.nodes], fit.sample(5, random_state=0)
    said = {}
    for name in USUAL:
        if hasattr(fit, name) and getattr(fit, "latent_names_", True):
            said[name] = getattr(fit, name)(X, **where)
    if hasattr(fit, "sample"):
        said["sample"] = drawn(fit, X, where)
    if getattr(fit, "method", "") == "vb" and hasattr(fit, "log_evidence"):
        said["evidence"] = fit.log_evidence(X, kind="lower_bound", **where).value
    if "score_samples" in said and np.isnan(said["score_samples"]).any():
        raise ArithmeticError("scores that are no numbers")
    others = long_questions(fit)
    if others and number % 4 == 0:
        name, options = others[number // 4 % len(others)]
        said[name] = ask(fit, X, where, name, options)
    return said
