r"""Importance sampling of the parameters, with the hidden variables summed out [Beal chapter 4; Neal 2001].

The evidence is the mean weight of draws from a mixture of posteriors p(theta) after statistics N_m; see
`skvbem.evidence.proposals`. N_m are fractions of the expected counts of the VB fit, which makes q(theta) wider (q
itself has weights of unbounded variance, the prior bounded ones), or counts completed at Gibbs draws of the hidden
variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from skvbem._progress import is_over
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import Stratum, check_at_least, run_tasks, summary
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.proposals import Proposal, affordable_components, log_parts_of
from skvbem.evidence.psis import error_factor, pareto_smoothed
from skvbem.evidence.starts import Starts, make_starts
from skvbem.evidence.tuning import TUNING


def _remedy(evaluation: Evaluation) -> str:
    """Advice for draws that are worth few: annealed chains where they exist, and take the weights of the rows."""
    if evaluation.has_turns:  # of which chains see one
        return "more draws"
    anneals = evaluation.capabilities.annealing is not None and evaluation.data.has_whole_weights
    return "more draws, or 'ais'" if anneals else "more draws"


def importance(
    evaluation: Evaluation,
    *,
    n_draws: int = 4096,
    fractions: Sequence[float] = (1.0, 0.5, 0.25, 0.0),
    n_fits: int = 8,
) -> Evidence:
    """Log evidence by importance sampling from q(theta) of the VB fit and wider versions of it.

    Parameters
    ----------
    evaluation : Evaluation
        Weights of rows need not be whole numbers.
    n_draws : int, default=4096
    fractions : sequence of float, default=(1.0, 0.5, 0.25, 0.0)
        Parts of the proposal, of equal weight: of the uncertain expected counts of VB fits, how much q(theta) keeps; 0
        is the prior, which bounds the weights.
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit that are in the proposal.

    Returns
    -------
    Evidence
        `details["pareto_k"]` is the shape of the tail of the weights; see `skvbem.evidence.psis`.
    """
    kind = "importance"
    check_at_least(kind, n_draws=(n_draws, 2), n_fits=(n_fits, 1))
    starts = make_starts(evaluation, fractions, n_fits)
    proposal = Proposal(evaluation, starts.relabelings, starts.statistics, log_parts_of(starts))
    return _importance(evaluation, kind, proposal, n_draws)


def importance_gibbs(
    evaluation: Evaluation,
    *,
    n_draws: int = 4096,
    n_completions: int = 256,
    n_fits: int = 8,
) -> Evidence:
    """Log evidence by importance sampling from a mixture of p(theta | x, y) at Gibbs draws of the hidden variables.

    Gibbs chains start from q(theta) and from the prior in equal numbers. Where they have found the modes and little
    hangs on the hidden variables of single rows, weights are nearly equal. Completions keep four fifths of their
    uncertain counts.

    Parameters
    ----------
    evaluation : Evaluation
    n_draws : int, default=4096
    n_completions : int, default=256
        Components; fewer where sums over relabelings would take too long.
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit that Gibbs chains start from.

    Returns
    -------
    Evidence

    Raises
    ------
    ValueError
        If rows have weights that are no whole numbers.
    """
    kind = "importance_gibbs"
    check_whole_weights(evaluation, kind)
    check_at_least(kind, n_draws=(n_draws, 2), n_completions=(n_completions, 1), n_fits=(n_fits, 1))
    starts = make_starts(evaluation, (0.5, 0.0), n_fits)
    n_completions = affordable_components(starts, n_completions, n_draws)
    completed = gibbs_statistics(evaluation, starts, n_completions)
    certain = starts.statistics[-1]  # from the prior
    completed = certain + TUNING.kept * (completed - certain)
    proposal = Proposal.defended(evaluation, starts, completed)
    return _importance(evaluation, kind, proposal, n_draws)


def gibbs_statistics(evaluation: Evaluation, starts: Starts, n_completions: int) -> np.ndarray:
    """Statistics of complete data at Gibbs draws of the hidden variables, (n_completions, n_cells).

    Parameters
    ----------
    evaluation : Evaluation
    starts : Starts
        Where the chains start, in turn.
    n_completions : int
    """
    annealing, data = evaluation.capability("annealing"), evaluation.data
    n_chains = min(TUNING.chains, n_completions)
    which = (np.arange(n_chains) * len(starts)) // n_chains
    streams = evaluation.streams(n_chains, Stream.GIBBS)
    log_points = evaluation.capability("points").draw_points(starts.statistics_of(which), streams)
    workspace, paths = annealing.workspace(data, n_chains), annealing.paths(data, starts.statistics[which].T)
    n_between = TUNING.sweeps_between
    n_burnt, n_kept = -(-TUNING.burn_in // n_between), -(-n_completions // n_chains)
    kept: list[np.ndarray] = []
    for k in range(n_burnt + n_kept):
        counts = annealing.anneal(workspace, paths, np.ones(n_between + 1), streams, log_points)[1].T
        over = is_over()
        if k >= n_burnt or over:  # what chains have reached by then is all there is
            kept.append(counts)
        if over:
            break
    return np.concatenate(kept)[:n_completions]


def _importance(evaluation, kind, proposal, n_draws) -> Evidence:
    statistics = proposal.statistics
    at_once = 4.0 * min(n_draws, TUNING.at_once) * evaluation.n_jobs * (statistics.shape[1] + len(statistics))
    of_all = 8.0 * n_draws + statistics.size
    evaluation.check_memory(f"The score {kind!r} with {n_draws:,} draws", of_all + at_once, "fewer 'n_draws'")
    proposal, component = proposal.stratified(n_draws, evaluation.generator(Stream.PROPOSAL))

    def batch(at):
        return proposal.log_weights(proposal.draw(component[at : at + TUNING.at_once], at))

    outcomes = run_tasks(
        batch,
        range(0, n_draws, TUNING.at_once),
        n_threads=evaluation.n_jobs,
    )
    log_weights = np.concatenate(outcomes)
    smoothed, shape = pareto_smoothed(log_weights)
    limit = min(1.0 - 1.0 / np.log10(max(len(log_weights), 11)), 0.7)
    doubts = []
    if shape > limit:
        doubts.append(
            f"{kind}: the tail of the weights has Pareto shape {shape:.2f}, above {limit:.2f}. The value and its "
            f"standard error are not to be trusted. Take {_remedy(evaluation)}."
        )
    trace = np.vstack([np.zeros(len(log_weights)), log_weights])
    evidence = summary(
        evaluation,
        kind,
        [Stratum(None, np.array([0.0, 1.0]), trace, log_weights)],
        component=component if len(log_weights) == n_draws else None,
        form="vb",
        doubts=doubts,
        remedy=_remedy(evaluation),
        pareto_k=shape,
        smoothed_value=float(logsumexp(smoothed) - np.log(len(smoothed))),
        n_components=proposal.n_parts,
        n_relabelings=proposal.n_relabelings,
    )
    if are_nearly_equal(evidence) or evidence.standard_error is None:
        return evidence
    return replace(evidence, standard_error=evidence.standard_error * error_factor(shape, len(log_weights)))


def are_nearly_equal(evidence: Evidence) -> bool:
    """True if weights are worth most of their number: whatever the shape of their tail, there is little in it."""
    return evidence.details["effective_sample_size"] >= TUNING.effective_share * len(evidence.details["log_weights"])
