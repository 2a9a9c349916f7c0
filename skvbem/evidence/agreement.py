"""Runs of samplers of one evidence: whether they are to be trusted, agree, and what they amount to together.

A run is *flagged* if its diagnostics warn of it. Runs *agree* if their distance is within errors, and the error of the
distance is small enough to mean anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skvbem._numerics import log_sum_exp
from skvbem.evidence.base import Evidence
from skvbem.evidence.importance import are_nearly_equal
from skvbem.evidence.tuning import TUNING

# Bridges from the same optima, which miss the same hills.
_FROM_OPTIMA = {"bridge", "annealed_bridge"}
# A standard error below this is of rounding, nats.
_ROUNDING = 1e-8


def stated_error(evidence: Evidence) -> float:
    """The standard error, nats: 0 of what is exact, infinite where there is none."""
    error = 0.0 if evidence.standard_error is None else evidence.standard_error
    return np.inf if np.isnan(error) else error


def is_flagged(evidence: Evidence) -> bool:
    """True if diagnostics warn of a result with reason: the tail of weights that are nearly equal is none."""
    if not evidence.doubts or evidence.details.get("n_relabelings", 1) is None:
        return bool(evidence.doubts)
    return "pareto_k" not in evidence.details or not are_nearly_equal(evidence)


def is_heavy_tailed(evidence: Evidence) -> bool:
    """True if weights vary, and have a tail too heavy for a variance."""
    return evidence.details.get("pareto_k", -np.inf) > TUNING.heavy_shape and not are_nearly_equal(evidence)


def is_constant(evidence: Evidence) -> bool:
    """True if all weights are the evidence, up to rounding."""
    return stated_error(evidence) < _ROUNDING and not evidence.doubts


def is_above(one: Evidence, other: Evidence) -> bool:
    """True if one evidence is so far above another that errors do not explain it."""
    return one.value - other.value > TUNING.far * float(np.hypot(stated_error(one), stated_error(other)))


def agree(one: Evidence, other: Evidence, far: float = TUNING.far) -> bool:
    """True if two evidences are as near as their errors allow, and these errors are small enough to mean anything."""
    error = float(np.hypot(stated_error(one), stated_error(other)))
    return error < TUNING.vague and abs(one.value - other.value) <= far * error + _ROUNDING


def agree_unflagged(one: Evidence, other: Evidence, far: float = TUNING.far) -> bool:
    """True if two evidences agree, neither of them flagged."""
    return not is_flagged(one) and not is_flagged(other) and agree(one, other, far)


def may_confirm(one: Evidence, other: Evidence) -> bool:
    """True if an evidence is another run, and not a bridge from the same optima."""
    return one is not other and not {one.kind, other.kind} <= _FROM_OPTIMA


def pooled_runs(evidence: Sequence[Evidence]) -> Evidence:
    """Runs of importance sampling together, each as much as it has draws."""
    if len(evidence) == 1:
        return evidence[0]
    sizes = np.array([len(each.details["log_weights"]) for each in evidence], dtype=float)
    log_parts = np.array([each.value for each in evidence]) + np.log(sizes / sizes.sum())
    value = float(log_sum_exp(log_parts))
    error = float(np.linalg.norm(np.exp(log_parts - value) * [stated_error(each) for each in evidence]))
    log_weights = np.concatenate([each.details["log_weights"] for each in evidence])
    details: dict[str, Any] = {
        "log_weights": log_weights,
        "mean_log_weight": float(log_weights.mean()),
        "effective_sample_size": 1.0 / (error**2 + 1.0 / len(log_weights)),
        "pareto_k": max(each.details["pareto_k"] for each in evidence),
    }
    return replace(evidence[-1], value=value, standard_error=error, details=details)


def widened(evidence: Evidence, others: Sequence[Evidence]) -> Evidence:
    """An evidence whose error is so large that none of the others is further from it than errors may well be."""
    least = [((evidence.value - each.value) / TUNING.near) ** 2 - stated_error(each) ** 2 for each in others]
    return replace(evidence, standard_error=float(np.sqrt(max(stated_error(evidence) ** 2, *least, 0.0))))
