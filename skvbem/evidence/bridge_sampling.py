"""Bridge sampling between draws by linear response and short Gibbs chains: evidence for the price of a few fits.

The proposal is a mixture of posteriors after completed counts, which are normal around those of each optimum that the
fit has met, with the covariance of linear response. No chain has a say in it, and Gibbs chains from the same optima are
what it is bridged with; see `skvbem.evidence.bridge`. How far the means of chains lie apart is a part of the standard
error: where hills are seldom left, or the proposal is thin where the posterior is not, it is large.

Where hidden variables turn, such as factors, the posterior lies on orbits of rotations. There proposal and chains are
of parameters up to turns, in all orders of components if these are few; see `skvbem.evidence.quotient`. Of so many rows
that the posterior is near normal the proposal is a t distribution of unconstrained coordinates, in all relabelings.
Where components overlap, it is wide in more directions than a mixture of narrow posteriors can fill. Chains begin there
at draws of the proposal, drawn again in proportion to their weights, as an optimum is left slowly.

What neither optima nor chains have met, nothing here tells of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import softmax

from skvbem.capabilities import Relabelings
from skvbem.errors import NoLinearResponseError
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.bridge import bridge
from skvbem.evidence.chains import batches, check_at_least, run_tasks
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.linear_response import LinearResponse, LinearResponses, responses_at_optima, split_by_weight
from skvbem.evidence.proposals import Proposal, affordable_components
from skvbem.evidence.psis import pareto_smoothed
from skvbem.evidence.quotient import QuotientProposal, UnconstrainedCoordinates, has_few_orders, is_near_normal
from skvbem.evidence.smc import systematic
from skvbem.evidence.starts import make_starts
from skvbem.evidence.tuning import TUNING

KIND = "bridge"
#: Options of four times the chains, eight times as long, for where errors are too large: chains may move slowly.
LONGER_CHAINS = {"n_draws": 1024, "n_components": 256, "n_chains": 64, "burn_in": 400, "n_kept": 16, "spacing": 16}
#: Options of the same for parameters up to turns, of which chains move fast.
LONGER_UP_TO_TURNS = {**LONGER_CHAINS, "burn_in": 100, "spacing": 4}
#: Options of the most draws and chains up to turns, of which other samplers know too little.
LONGEST_UP_TO_TURNS = {**LONGER_UP_TO_TURNS, "n_draws": 2048, "n_chains": 256}


def bridge_sampling(
    evaluation: Evaluation,
    *,
    n_draws: int = 512,
    n_components: int = 128,
    n_chains: int = 16,
    burn_in: int = 100,
    n_kept: int = 16,
    spacing: int = 2,
    n_fits: int = 8,
) -> Evidence:
    """Log evidence by bridge sampling between linear response and short Gibbs chains [MW96; GBJ18].

    Parameters
    ----------
    evaluation : Evaluation
    n_draws : int, default=512
        Of the proposal; four times as many of a factor analyzer, of which the proposal is up to rotations of factors.
    n_components : int, default=128
        Of the proposal; fewer where sums over relabelings would take too long, and one for each optimum of a posterior
        that is near normal.
    n_chains : int, default=16
        Gibbs chains, as many from each optimum as its share of the posterior says.
    burn_in : int, default=100
        Sweeps of a chain before the first that is kept; of one from a draw of a proposal that is near normal at most
        as many as it takes to forget that.
    n_kept, spacing : int, default=16, 2
        Points of each chain, and sweeps between two of these.
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit.

    Returns
    -------
    Evidence
        `details["draws_error"]` and `details["chains_error"]` are the two parts of the standard error, and
        `details["pareto_k"]` is the shape of the tail of the weights of draws; `details["r_hat"]` tells how far chains
        agree.

    Raises
    ------
    ValueError
        If rows have weights that are no whole numbers.
    """
    check_whole_weights(evaluation, KIND)
    check_at_least(
        KIND,
        n_draws=(n_draws, 2),
        n_components=(n_components, 1),
        n_chains=(n_chains, 2),
        burn_in=(burn_in, 0),
        n_kept=(n_kept, 1),
        spacing=(spacing, 1),
        n_fits=(n_fits, 1),
    )
    sweeps = (burn_in, *[spacing] * (n_kept - 1))
    responses = responses_or_none(evaluation, n_fits)
    if responses is not None and has_few_orders(evaluation):
        return _bridge_up_to_turns(evaluation, responses, n_draws, n_chains, sweeps)
    starts = make_starts(evaluation, (0.5, 0.0), n_fits)
    n_points = n_draws + n_chains * n_kept
    if responses is not None and starts.fractions.any() and is_near_normal(evaluation, responses):
        return _bridge_of_normal(evaluation, responses, n_draws, n_chains, sweeps)
    if responses is None or not starts.fractions.any():
        statistics = starts.statistics[:1]
    else:
        n_components = affordable_components(starts, n_components, n_points, TUNING.bridge_operations)
        rng = evaluation.generator(Stream.RESPONSE)
        statistics = mixed_statistics(responses, evaluation.model.prior, starts.statistics[-1], n_components, rng)
    proposal = Proposal.defended(evaluation, starts, statistics)
    numbers = n_points * (statistics.shape[1] + 2.0) + len(statistics) * min(n_points, TUNING.at_once)
    evaluation.check_memory(f"The score {KIND!r} with {n_points:,} draws", numbers, "fewer 'n_draws'")
    proposal, component = proposal.stratified(n_draws, evaluation.generator(Stream.PROPOSAL))
    at_fit = np.repeat(starts.statistics[:1].T, n_chains, axis=1)
    chains = posterior_chains(evaluation, at_fit if responses is None else beginnings(responses, n_chains), sweeps)
    if not proposal.has_sums and starts.relabelings is not None:
        chains = _relabeled(evaluation, starts.relabelings, chains)

    log_weights, of_chains = _weighed(
        evaluation,
        (lambda at: proposal.log_weights(proposal.draw(component[at], at.start)), n_draws),
        (lambda at: proposal.log_weights(chains[:, at]), chains.shape[1]),
    )
    return summary_of_bridge(evaluation, log_weights, _by_chain(of_chains, n_kept), proposal, responses, component)


def _bridge_up_to_turns(
    evaluation: Evaluation, responses: LinearResponses, n_draws: int, n_chains: int, sweeps: tuple[int, ...]
) -> Evidence:
    """The evidence by a bridge whose proposal is one of coordinates up to turns of hidden variables."""
    n_draws *= TUNING.draws_up_to_turns  # which are cheap
    _check_memory(evaluation, responses, n_draws + n_chains * len(sweeps))
    proposal = QuotientProposal.of(evaluation, responses, evaluation.capability("quotient"))
    chains = posterior_chains(evaluation, beginnings(responses, n_chains), sweeps)
    log_weights, of_chains = _weighed(
        evaluation,
        (proposal.log_weights_of_draws, n_draws),
        (partial(proposal.log_weights_of_posterior, chains), chains.shape[1]),
    )
    return summary_of_bridge(evaluation, log_weights, _by_chain(of_chains, len(sweeps)), proposal, responses)


def _bridge_of_normal(
    evaluation: Evaluation, responses: LinearResponses, n_draws: int, n_chains: int, sweeps: tuple[int, ...]
) -> Evidence:
    """The evidence by a bridge between a t distribution of unconstrained coordinates and chains from its draws."""
    _check_memory(evaluation, responses, n_draws + n_chains * len(sweeps))
    proposal = QuotientProposal.of(evaluation, responses, UnconstrainedCoordinates(evaluation))
    (log_weights,) = _weighed(evaluation, (proposal.log_weights_of_draws, n_draws))
    drawn = np.concatenate([proposal.draws(each) for each in _batches(n_draws)], axis=1)
    again = systematic(softmax(log_weights), evaluation.generator(Stream.CHOICE), n_chains)
    # each sweep leaves lambda of what a chain is off, in the direction where it moves least
    left = min(each.least_known for each in responses.responses)
    sweeps = (min(int(np.ceil(TUNING.forgotten / left)), sweeps[0]), *sweeps[1:])
    chains = posterior_chains(evaluation, beginnings(responses, n_chains), sweeps, drawn[:, again])
    (of_chains,) = _weighed(evaluation, (partial(proposal.log_weights_of_posterior, chains), chains.shape[1]))
    return summary_of_bridge(evaluation, log_weights, _by_chain(of_chains, len(sweeps)), proposal, responses)


def _check_memory(evaluation: Evaluation, responses: LinearResponses, n_points: int) -> None:
    numbers = n_points * (len(responses.responses[0].root) + 2.0)
    evaluation.check_memory(f"The score {KIND!r} with {n_points:,} draws", numbers, "fewer 'n_draws'")


def _weighed(evaluation: Evaluation, *works: tuple[Callable[[slice], np.ndarray], int]) -> list[np.ndarray]:
    """ln weights of so many points each, batch by batch, (n_points,)."""
    tasks = [(work, batch) for work, n in works for batch in _batches(n)]
    log_weights = run_tasks(lambda task: task[0](task[1]), tasks, n_threads=evaluation.n_jobs, required=len(tasks))
    return np.split(np.concatenate(log_weights), np.cumsum([n for _, n in works])[:-1])


def _batches(n: int) -> list[slice]:
    return [slice(at, min(at + TUNING.at_once, n)) for at in range(0, n, TUNING.at_once)]


def _by_chain(log_weights: np.ndarray, n_kept: int) -> np.ndarray:
    """Weights of the points of all chains, (n_kept * n_chains,), as (n_chains, n_kept)."""
    return log_weights.reshape(n_kept, -1).T


def mixed_statistics(
    responses: LinearResponses, prior, certain: np.ndarray, n_components: int, rng: np.random.Generator
) -> np.ndarray:
    """Statistics of complete data, normal around each optimum with the covariance of linear response.

    Parameters
    ----------
    responses : LinearResponses
    prior : ConjugateFamily
    certain : ndarray of shape (n_cells,)
        The part of statistics that nothing hidden has a say in.
    n_components : int
        As many from each optimum as its share says.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_components, n_cells)
        Wider than that, and so are posteriors after them: four fifths are kept of what is uncertain.
    """
    number = np.bincount(split_by_weight(responses.weights, n_components), minlength=len(responses.responses))
    return np.concatenate(
        [_around(response, prior, certain, n, rng) for response, n in zip(responses.responses, number) if n]
    )


def _around(response: LinearResponse, prior, certain: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    covariance = response.covariance_of_statistics
    scale = np.sqrt(np.diag(covariance).clip(0.0))
    moves = np.flatnonzero(scale > 0)
    values, axes = np.linalg.eigh(covariance[np.ix_(moves, moves)] / np.outer(scale[moves], scale[moves]))
    steps = np.zeros((len(scale), n))
    steps[moves] = scale[moves, None] * ((axes * np.sqrt(values.clip(0.0))) @ rng.normal(size=(len(moves), n)))
    centre = response.statistics[:, None]
    least = np.where(prior.signed, -np.inf, np.minimum(certain, response.statistics))[:, None]
    drawn = np.maximum(centre + TUNING.response_factor * steps, least)
    for _ in range(TUNING.times_drawn_back):
        kept = certain[:, None] + TUNING.kept * (drawn - certain[:, None])
        invalid = ~_are_densities(prior, kept)
        if not invalid.any():
            break
        drawn[:, invalid] = centre + TUNING.drawn_back * (drawn[:, invalid] - centre)
    else:  # the fit itself is no density, or the draw is no number
        kept[:, invalid] = certain[:, None]
    return kept.T


def _are_densities(prior, statistics: np.ndarray) -> np.ndarray:
    """True where the prior after statistics (n_cells, n) is a density whose hyperparameters they say, (n,)."""
    with np.errstate(all="ignore"):
        valid = np.asarray((prior + statistics).is_valid) & np.isfinite(prior.log_evidence(statistics))
    return valid & ~prior.leaves_hyperparameters(statistics)


def responses_or_none(evaluation: Evaluation, n_fits: int) -> LinearResponses | None:
    """Linear response at the optima met; None where the bound is at a maximum at none of them."""
    try:
        return responses_at_optima(evaluation, n_fits)
    except NoLinearResponseError:
        return None


def beginnings(responses: LinearResponses, n_chains: int) -> np.ndarray:
    """Statistics where chains begin, (n_cells, n_chains): of as many from each optimum as its share says."""
    which = split_by_weight(responses.weights, n_chains)
    return np.stack([responses.responses[k].statistics for k in which], axis=1)


def posterior_chains(
    evaluation: Evaluation, statistics: np.ndarray, sweeps: tuple[int, ...], log_points: np.ndarray | None = None
) -> np.ndarray:
    """Natural parameters of Gibbs chains after so many further sweeps each, (n_cells, n_kept * n_chains).

    Parameters
    ----------
    evaluation : Evaluation
    statistics : ndarray of shape (n_cells, n_chains)
        Of q(theta), from which each chain draws its first point.
    sweeps : tuple of int
    log_points : ndarray of shape (n_cells, n_chains), optional
        First points instead.
    """
    annealing, data, n_chains = evaluation.capability("annealing"), evaluation.data, statistics.shape[1]
    streams = evaluation.streams(n_chains, Stream.GIBBS)
    if log_points is None:
        log_points = evaluation.capability("points").draw_points(statistics, streams)

    def run(at: slice) -> np.ndarray:
        point, mine = np.ascontiguousarray(log_points[:, at]), np.ascontiguousarray(streams[:, at])
        workspace = annealing.workspace(data, point.shape[1])
        paths = annealing.paths(data, statistics[:, at])
        kept = []
        for n in sweeps:
            annealing.anneal(workspace, paths, np.ones(n + 1), mine, point)
            kept.append(point.copy())
        return np.stack(kept, axis=1)

    cut = batches(n_chains, annealing.lanes_at_once(data))
    chains = np.concatenate(run_tasks(run, cut, n_threads=evaluation.n_jobs), axis=2)
    return chains.reshape(len(chains), -1)


def _relabeled(evaluation: Evaluation, relabelings: Relabelings, log_points: np.ndarray) -> np.ndarray:
    """Points with labels drawn as weights are put right at an anchor: in proportion to `Relabelings.correction`."""
    rng, anchor = evaluation.generator(Stream.LABELS), evaluation.fit("vb").statistics
    return np.stack([relabelings.draw(anchor, point, rng) for point in log_points.T], axis=1)


def summary_of_bridge(
    evaluation: Evaluation,
    log_weights: np.ndarray,
    chain_log_weights: np.ndarray,
    proposal: Proposal | QuotientProposal,
    responses: LinearResponses | None,
    component: np.ndarray | None = None,
    kind: str = KIND,
    rough: float = TUNING.rough,
) -> Evidence:
    """The evidence of a bridge, in doubt from a rough error on; `component` as of `skvbem.evidence.bridge.bridge`."""
    estimate, shape = bridge(log_weights, chain_log_weights, component), pareto_smoothed(log_weights)[1]
    doubts = []
    if not estimate.standard_error <= rough:
        doubts.append(
            f"{kind}: the standard error of {estimate.standard_error:.2g} nats is rough, above {rough:g}. Take "
            "more 'n_chains' of more 'burn_in', and more 'n_draws', or 'auto'."
        )
    if shape > TUNING.bridge_shape:
        doubts.append(
            f"{kind}: the tail of the weights of draws has Pareto shape {shape:.2f}, above {TUNING.bridge_shape:g}. "
            "The standard error is not to be trusted. Take more 'n_components', or 'auto'."
        )
    if estimate.r_hat > TUNING.bridge_r_hat:
        doubts.append(
            f"{kind}: chains do not agree, with an R-hat of {estimate.r_hat:.2f}: they stay where they are, and "
            "there may be hills that none has met. Take more starts of the fit, or 'auto'."
        )
    if proposal.n_relabelings is None:
        doubts.append(
            f"{kind}: hidden nodes have too many relabelings to correct for. The value counts those that were met, one "
            "perhaps, and may be too low by up to ln of their number."
        )
    if evaluation.has_turns and isinstance(proposal, Proposal):
        doubts.append(
            f"{kind}: rotations of the factors are not integrated out, as components have too many orders, or the "
            "bound is at a maximum at no optimum. The value may be too low. Take 'linear_response', which ranks models."
        )
    n, n_optima = len(log_weights) + chain_log_weights.size, 0 if responses is None else len(responses.responses)
    return Evidence(
        estimate.value,
        kind,
        is_lower_bound=False,
        standard_error=estimate.standard_error,
        form="vb",
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "log_weights": log_weights,
            "chain_log_weights": chain_log_weights,
            "draws_error": estimate.draws_error,
            "chains_error": estimate.chains_error,
            "effective_sample_size": 1.0 / (estimate.standard_error**2 + 1.0 / n),
            "pareto_k": shape,
            "r_hat": estimate.r_hat,
            "n_components": proposal.n_parts,
            "n_optima": n_optima,
            "n_relabelings": proposal.n_relabelings,
        },
        doubts=tuple(doubts),
    )
