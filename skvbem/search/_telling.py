"""What a search tells of its candidates: which failed, which are in doubt, which have looser bounds than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skvbem._compat import warn
from skvbem.errors import SearchWarning
from skvbem.search._results import describe
from skvbem.search.execution.jobs import Record

# Scores that do not lean on how q(x) is divided as much as bounds of a fit do.
_NEARLY_ALIKE = {"collapsed", "collapsed_ascent"}


def tell_of_failures(tried: Sequence[tuple[dict, Record]], error_score: float, owner: str) -> None:
    """Warn if candidates failed.

    Raises
    ------
    ValueError
        If all did.
    """
    failures = [(setting, record.failure) for setting, record in tried if record.failure]
    if len(failures) == len(tried):
        reasons = dict.fromkeys(failure for _, failure in failures)
        raise ValueError(f"All {len(tried)} candidates of {owner} failed, with these errors:\n" + "\n".join(reasons))
    if failures:
        warn(
            f"{len(failures)} of {len(tried)} candidates failed and have the score {error_score}. The first: "
            f"{describe(failures[0][0])}: {failures[0][1]} See cv_results_['failure'].",
            SearchWarning,
        )


def tell_of_doubts(table: Mapping, best: int) -> None:
    """Warn if scores doubt themselves, above all that of the best candidate."""
    doubted = np.flatnonzero(table["doubts"] != "")
    if len(doubted):
        one = best if table["doubts"][best] else int(doubted[0])
        which = "the best among them" if one == best else "not the best"
        warn(
            f"{len(doubted)} of {len(table['doubts'])} candidates, {which}, have scores that should not be "
            f"trusted. {describe(table['params'][one])}: {table['doubts'][one]} See cv_results_['doubts'].",
            SearchWarning,
        )


def tell_of_inference(inference: np.ndarray, scorers: Mapping) -> None:
    """Warn if bounds of some candidates are looser than those of others, for the family of their q(x)."""
    looser = np.flatnonzero(inference != "exact")
    kinds = {getattr(score, "kind", None) for score in scorers.values()}
    if 0 < len(looser) < len(inference) and not kinds <= _NEARLY_ALIKE:
        warn(
            f"{len(looser)} of {len(inference)} candidates have bounds by a q(x) in clusters, the others exact ones. "
            "The looser bounds make them look worse. Give all the same 'inference', or take scoring='collapsed', which "
            "closes most of the difference. See cv_results_['inference'].",
            SearchWarning,
        )
