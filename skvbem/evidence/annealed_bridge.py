r"""Bridge sampling between annealed chains of both directions: for posteriors that no proposal is like.

Chains from densities as wide as half of the counts of each optimum are annealed to the posterior, with weights w. Draws
of Gibbs chains are annealed back, and the weights of their paths are those of the same paths walked forward. Forward
paths from start m, and paths back to a start chosen by its share :math:`h_m` of all starts at the draw, have densities
whose ratio is

.. math:: \frac{1}{Z}\,\frac{w\,h_m(\theta)}{\pi_m}, \qquad
          h_m(\theta) = \frac{\pi_m q_m(\theta)}{\sum_k \pi_k \bar q_k(\theta)},

so that Z is the normalizer that bridges them [Crooks99; MW96 (4.1)]. Gibbs sweeps leave their densities in detailed
balance, which is all that the way back asks for. Mixtures of proposals are too rough where many parameters are
uncertain together, such as those of a class of a few rows, which no optimum shows; annealed chains are not.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from skvbem.evidence.ais import gibbs_chains
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.bridge_sampling import beginnings, posterior_chains, summary_of_bridge
from skvbem.evidence.chains import batches, check_at_least, nonlinear_schedule, run_tasks
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.linear_response import LinearResponses, responses_at_optima
from skvbem.evidence.proposals import Proposal
from skvbem.evidence.starts import make_starts
from skvbem.evidence.tuning import TUNING

KIND = "annealed_bridge"
#: Options of a run of four times the work.
LONGER_ANNEALED = {"n_draws": 128, "n_steps": 256, "n_chains": 64, "burn_in": 2000, "spacing": 200}


def has_annealed_bridge(evaluation: Evaluation) -> bool:
    """True if starts are summed over all relabelings, and chains neither turn nor change labels by other moves."""
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    annealing = evaluation.capabilities.annealing
    if relabelings is None or not np.isfinite(relabelings.cost) or annealing is None or evaluation.has_turns:
        return False
    return evaluation.is_exact and not annealing.plan.moves_labels


def annealed_bridge(
    evaluation: Evaluation,
    *,
    n_draws: int = 64,
    n_steps: int = 128,
    n_chains: int = 32,
    burn_in: int = 1000,
    n_kept: int = 4,
    spacing: int = 100,
    n_fits: int = 8,
) -> Evidence:
    """Log evidence by bridge sampling between annealed chains of both directions [Crooks99; MW96].

    Parameters
    ----------
    evaluation : Evaluation
    n_draws : int, default=64
        Chains from optima to the posterior.
    n_steps : int, default=128
        Inverse temperatures after 0, both ways.
    n_chains, burn_in, n_kept, spacing : int, default=32, 1000, 4, 100
        As of `bridge_sampling`; each point that is kept is annealed back.
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit.

    Returns
    -------
    Evidence
        With the details of `bridge_sampling`.

    Raises
    ------
    ValueError
        If rows have weights that are no whole numbers, if the bound is at a maximum at no optimum, or if starts cannot
        be summed over all relabelings, or rotations, of what is hidden.
    """
    check_whole_weights(evaluation, KIND)
    counts = {"n_draws": (n_draws, 2), "n_steps": (n_steps, 1), "n_chains": (n_chains, 2), "n_fits": (n_fits, 1)}
    check_at_least(KIND, **counts, burn_in=(burn_in, 0), n_kept=(n_kept, 1), spacing=(spacing, 1))
    if not has_annealed_bridge(evaluation):
        raise ValueError(
            f"The score {KIND!r} needs chains along one path for all relabelings of what is hidden, and there are too "
            "many, or rotations, or states that turn. Take 'bridge' or 'auto'."
        )
    responses = responses_at_optima(evaluation, n_fits)
    annealing, rng = evaluation.capability("annealing"), evaluation.generator(Stream.CHOICE)
    proposal, component = _wide(evaluation, responses).stratified(n_draws, rng)
    paths = annealing.paths(evaluation.data, proposal.statistics.T)
    forward = nonlinear_schedule(n_steps, annealing.plan.bend)
    back = np.concatenate([[1.0], forward[::-1]])  # the sweep that ends a path forward begins the way back
    sweeps = (burn_in, *[spacing] * (n_kept - 1))
    posterior = posterior_chains(evaluation, beginnings(responses, n_chains), sweeps)
    start, posterior, log_parts = _drawn_starts(proposal, posterior, rng)

    def annealed(which: np.ndarray, points: np.ndarray, schedule: np.ndarray, *key: int):
        streams = evaluation.streams(len(which), *key)

        def run(at: slice):
            mine = np.ascontiguousarray(streams[:, at])
            ends, log_ratios = gibbs_chains(evaluation, paths[which[at]], schedule, mine, points[:, at])
            return ends, log_ratios.sum(axis=0)

        cut = batches(len(which), annealing.lanes_at_once(evaluation.data))
        outcomes = run_tasks(run, cut, n_threads=evaluation.n_jobs, required=len(cut))
        return np.concatenate([ends for ends, _ in outcomes], axis=1), np.concatenate([work for _, work in outcomes])

    ends, work = annealed(component, proposal.draw(component), forward)
    log_weights = work + _log_parts(proposal, component, ends, _log_terms(proposal, ends))
    _, work = annealed(start, posterior, back, Stream.BACKWARDS)
    back_log_weights = (log_parts - work).reshape(n_kept, -1).T
    return summary_of_bridge(
        evaluation, log_weights, back_log_weights, proposal, responses, component, KIND, TUNING.rough_annealed
    )


def _wide(evaluation: Evaluation, responses: LinearResponses) -> Proposal:
    """Densities after half of the uncertain counts of each optimum, half of them in equal shares."""
    certain = make_starts(evaluation, (0.0,), 1).statistics[0]
    least = np.where(evaluation.model.prior.signed, -np.inf, 0.0)
    uncertain = [np.maximum(each.statistics - certain, least) for each in responses.responses]
    weights = 0.5 * responses.weights + 0.5 / len(responses.weights)
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    return Proposal(evaluation, relabelings, certain + TUNING.annealed_share * np.stack(uncertain), np.log(weights))


def _log_terms(proposal: Proposal, log_points: np.ndarray) -> np.ndarray:
    """ln of the densities of points under each start, the mean of its relabelings, times its share."""
    return proposal.log_parts[:, None] + proposal.log_mean_densities(log_points)


def _log_parts(proposal: Proposal, which: np.ndarray, log_points: np.ndarray, log_terms: np.ndarray) -> np.ndarray:
    """ln of h_m over pi_m, of the start m of each point."""
    return proposal.log_densities(log_points)[which, np.arange(len(which))] - logsumexp(log_terms, axis=0)


def _drawn_starts(proposal: Proposal, log_points: np.ndarray, rng: np.random.Generator):
    """The start that each point is annealed back to, drawn by its share, the points with labels drawn so, `_log_parts`.

    Whatever the labels are, terms are the same.
    """
    log_terms = _log_terms(proposal, log_points)
    start = np.argmax(log_terms + rng.gumbel(size=log_terms.shape), axis=0)
    relabelings = proposal.relabelings
    assert relabelings is not None
    drawn = [relabelings.draw(proposal.statistics[k], point, rng) for k, point in zip(start, log_points.T)]
    points = np.stack(drawn, axis=1)
    return start, points, _log_parts(proposal, start, points, log_terms)
