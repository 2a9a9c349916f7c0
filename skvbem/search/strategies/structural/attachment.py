"""The start of a structural search over hidden nodes among columns: above groups of columns that hang together.

An empty graph says nothing of hidden nodes: the q(x) that a fit of it gives is noise in their states, to which all that
follows is tied. So the columns are searched first, without hidden nodes. What a hidden node leaves behind there are
columns that depend on each other one by one, a node with its parents or its children (Elidan et al. 2000). Each such
group is tried in the place of its edges: below a hidden node, by latent classes of the group alone, and the best ones
by a fit of all. Hidden nodes come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from skvbem._numerics import safe_log
from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.network.completed_rows import complete_rows
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.strategies.base import Problem
from skvbem.search.strategies.structural.fitter import Fitter, StructuralState
from skvbem.search.tuning import TUNING
from skvbem.spaces import DAGSpace
from skvbem.spaces.priors import EdgePrior, StructurePrior, UniformPrior
from skvbem.spaces.structures import StructureSpace
from skvbem.vbem.driver import run
from skvbem.vbem.posteriors import VB


def state_with_attached_latents(
    problem: Problem, climb: Callable[[Fitter, StructuralState], StructuralState | None]
) -> StructuralState | None:
    """A setting with its hidden nodes above groups of columns, and a q(x) for it; None where there is no way to it.

    Parameters
    ----------
    problem : Problem
    climb : callable of (Fitter, StructuralState)
        The state that the bounds of one q(x) lead to; None if not higher.
    """
    space = problem.space
    if not isinstance(space, StructureSpace) or not space.latents or not _has_free_columns(space):
        return None
    prior: StructurePrior = UniformPrior()  # others speak of settings of the whole space, of hidden nodes by name, say
    if isinstance(problem.prior, EdgePrior):
        if isinstance(problem.prior.probability, Mapping):  # groups do not heed what is known of single edges
            return None
        prior = problem.prior
    if problem.prior.labeled:
        return None
    columns = _over(space, {})
    fitter = Fitter(replace(problem, space=columns, prior=prior))
    here = fitter.fitted({**next(iter(columns)), "latents": {}})
    while not problem.is_over and (top := climb(fitter, here)) is not None:
        last, here = here, fitter.fitted(top.setting, top.scores.completed)
        if here.value < last.value + TUNING.one_nat:
            here = max(here, last, key=lambda state: state.value)
            break
    for latent, n_states in sorted(space.latents.items(), key=lambda item: -item[1]):
        groups = sorted(_groups(here, space, latent, n_states, problem.rng), key=lambda group: -group[0])
        if not groups or problem.is_over:
            return None
        fitter = Fitter(replace(problem, space=_over(space, {latent: n_states, **here.latents}), prior=prior))
        begun = [_attached(here, latent, *group[1:]) for group in groups[: TUNING.n_groups]]
        tops = [climb(fitter, state) or state for state in begun]
        here = max((fitter.fitted(top.setting, top.scores.completed) for top in tops), key=lambda state: state.value)
    setting = {"structure": here.dag, "latents": dict(space.latents)}
    is_possible = setting in space and problem.log_priors([setting])[0] > -np.inf
    return replace(here, setting=setting) if is_possible else None


def _has_free_columns(space: StructureSpace) -> bool:
    """True if columns may have edges between them, and need none."""
    rules = [space.rules.parents[node] for node in space.observed]
    return any(rule.possible - set(space.latents) for rule in rules) and not any(r.least or r.required for r in rules)


def _over(space: StructureSpace, latents: Mapping[Hashable, int]) -> DAGSpace:
    """The graphs over the columns of a space and some of its latents that obey its rules."""
    nodes = {*space.observed, *latents}
    allowed = {node: space.rules.parents[node] for node in nodes}
    forbidden = [
        (p, c)
        for c in space.rules.nodes
        if c in nodes
        for p in space.rules.nodes
        if p in nodes - {c} - allowed[c].possible
    ]
    most = max(rule.most for rule in allowed.values())
    return DAGSpace(space.observed, latents=dict(latents), forbidden=forbidden, max_parents=most)


def _groups(
    here: StructuralState, space: StructureSpace, latent: Hashable, n_states: int, rng: np.random.Generator
) -> Iterator[tuple[float, tuple, int, np.ndarray]]:
    """Groups that a hidden node may be above: what the bound gains, members, its states and their probabilities."""
    rules, seen = space.rules.parents, set()
    for node in space.observed:
        for others in (here.dag.parents(node), here.dag.children(node)):
            members = tuple(sorted({node, *others} - set(space.latents), key=space.observed.index))
            sizes = [here.scores.completed.cardinalities[member] for member in members]
            if members in seen or not 2 <= len(members) <= TUNING.max_group or np.prod(sizes) > TUNING.max_cells:
                continue
            seen.add(members)
            kept = {member: set(here.dag.parents(member)) - set(members) for member in members}
            if all(latent in rules[m].possible and len(kept[m]) < rules[m].most for m in members):
                value, share = _latent_classes(here.scores, latent, n_states, members, rng)
                inside = sum(here.scores.family(m, set(here.dag.parents(m)) & set(members)) for m in members)
                yield value - inside, members, n_states, share


def _latent_classes(
    scores: FamilyScores, latent: Hashable, n_states: int, members: tuple, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """The lower bound of latent classes of a group, and the probability of each, given the states of its members."""
    counts = scores.completed.counts(members)
    cells = np.flatnonzero(counts)
    codes = np.stack(np.unravel_index(cells, counts.shape), axis=1).astype(np.int32)
    rows = Rows(members, codes, counts.ravel()[cells])
    dag, cardinalities = DAG.naive_bayes(latent, members), {latent: n_states, **dict(zip(members, counts.shape))}
    prior = {node: scores.prior.family_prior(dag.family(node), cardinalities) for node in dag.nodes}
    model = DiscreteDAG(dag, cardinalities, prior)
    ascent = DirichletAscent(model, model.compile(rows, n_lanes=TUNING.n_group_starts), VB)
    points = np.stack([model.random_point(rng) for _ in range(TUNING.n_group_starts)], axis=1)
    ended = run(ascent, ascent.expect(safe_log(points)), tol=TUNING.group_tol, max_iter=TUNING.max_group_steps)
    completed_cells = complete_rows(model, ended.statistics[:, ended.best], rows)
    share = np.full((*counts.shape, n_states), 1.0 / n_states)
    joint = completed_cells.counts((*members, latent))
    np.divide(joint, counts[..., None], out=share, where=counts[..., None] > 0)
    return float(ended.objective[ended.best]), share


def _attached(
    here: StructuralState, latent: Hashable, members: tuple, n_states: int, share: np.ndarray
) -> StructuralState:
    """A state in which a hidden node is above a group, in the room of its edges."""
    edges = [(p, c) for p, c in here.dag.edges if not {p, c} <= set(members)] + [(latent, m) for m in members]
    latents = {latent: n_states, **here.latents}
    dag = DAG.from_edges(edges, [latent, *here.dag.nodes])
    completed = here.scores.completed.with_constant(latent)
    left = np.ones(share.shape[:-1])
    for state in range(1, n_states):
        fraction = np.clip(
            share[..., state] / np.maximum(left, TUNING.min_fraction), TUNING.min_fraction, 1.0 - TUNING.min_fraction
        )
        at = tuple(completed.codes[completed.place[member]].astype(np.intp) for member in members)
        completed = completed.split(latent, 0, fraction[at])
        left = left - share[..., state]
    scores = FamilyScores(completed.without_improbable(TUNING.improbable), here.scores.prior)
    return StructuralState({"structure": dag, "latents": latents}, dag, latents, scores, scores.bound(dag))
