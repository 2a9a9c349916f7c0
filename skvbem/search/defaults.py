r"""Rules and priors that a search over directed networks takes where its user names none.

Nodes that hold numbers have no children with tables. Graphs where they have some are left out of the space: each would
be a fit that fails.

No prior of networks without hidden nodes is neutral. With a Dirichlet prior of known strength a table of about as many
rows as the data predicts rows that it sees once at no cost, while the empty graph has to learn, and pay for, every
margin: edges appear among independent columns of many states. And equally probable graphs hold an edge more probable
than not before any data. So a network that is searched for has a hidden equivalent sample size for each table, an edge
the odds :math:`1/(p + 1)` among p columns, and no table more cells than there are rows. The record is in
`tests/reproduction/default_prior`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, prod
from typing import Any

from skvbem._arguments import NUMBER
from skvbem.evidence import SCORES, EvidenceScorer
from skvbem.fitting.kind import find_kind
from skvbem.graphs.dag import DAG
from skvbem.search.execution.jobs import EvidenceJob, Job
from skvbem.search.execution.readings import Readings
from skvbem.spaces import DAGSpace, ProductSpace, Space, UnionSpace
from skvbem.spaces.priors import EdgePrior, StructurePrior, UniformPrior, coerce_prior
from skvbem.spaces.settings import resolve_latents

#: The name by which a user leaves a prior to the search.
AUTO = "auto"
# The Dirichlet prior of networks that are searched for, as estimators name it, and what of an estimator it is not for.
_TABLES = "bdla"
_NOT_FOR: Mapping[str, tuple] = {"method": ("vb",), "learn_prior": (False,), "ties": (None,)}


@dataclass(frozen=True)
class SparsePrior(EdgePrior):
    """Edges that come independently, in graphs none of whose tables has too many cells.

    Parameters
    ----------
    most_cells : float
        Cells of the largest table of a node with parents.
    cardinalities : mapping of node to int
        Numbers of states.
    """

    most_cells: float = inf
    cardinalities: Mapping = field(default_factory=dict, repr=False, hash=False)

    def _log_weight(self, setting, space):
        dag = DAG.coerce(setting["structure"])
        sizes = (prod(map(self.cardinalities.__getitem__, dag.family(node))) for node in dag.nodes if dag.parents(node))
        return -inf if any(size > self.most_cells for size in sizes) else super()._log_weight(setting, space)


def with_numbers_of_data(space: Space, job: Job) -> Space:
    """A space without the graphs that have no fit because of what its columns hold; others as they are.

    Parameters
    ----------
    space : Space
        A `DAGSpace` whose user has said which `numbers` it has stays as it is. So do spaces of other kinds, but for
        products and unions of such.
    job : Job
    """
    kind = find_kind(job.estimator)
    if not hasattr(kind, "graph") or hasattr(kind, "network") or not any(map(_is_open, _parts(space))):
        return space
    readings = job.readings or Readings.for_space(job.estimator, space, job.X, {"y": job.y, **job.fit_params})
    return space if readings.common is None else _with_numbers(space, readings.common)


def _parts(space: Space) -> Iterator[Space]:
    """The spaces that products and unions are made of."""
    for part in space.parts if isinstance(space, (ProductSpace, UnionSpace)) else ():
        yield from _parts(part)
    yield space


def _is_open(space: Space) -> bool:
    """True if the numbers of a space are left to the search."""
    return isinstance(space, DAGSpace) and space.numbers is None


def _with_numbers(space: Any, reading: Any) -> Any:
    """A space, and what it is made of, with the rules of a `MixedReading`."""
    if isinstance(space, (ProductSpace, UnionSpace)):
        return replace(space, parts=tuple(_with_numbers(part, reading) for part in space.parts))
    if not _is_open(space):
        return space
    numbers, barren, unexplained = (
        [node for node in space.nodes if node in among]
        for among in (reading.numbers, reading.without_children, reading.unexplained)
    )
    # Edges that each graph must have are left: errors of the fits name both nodes, and say why.
    with_children = {parent for parent, _ in space.required}
    leaves = (*space.leaves, *(node for node in barren if node not in with_children))
    kept = {*space.required, *((node, node) for node in numbers)}
    hidden = [name for name, states in space.latents.items() if states == NUMBER]
    impossible = (edge for edge in product((*numbers, *hidden), unexplained) if edge not in kept)
    return replace(space, numbers=numbers, leaves=leaves, forbidden=(*space.forbidden, *impossible))


def with_prior_of_tables(estimator: Any, space: Space, score: Callable) -> Any:
    """An estimator whose Dirichlet prior is left to the search, with the one that suits; others as they are."""
    params = estimator.get_params(deep=False)
    if params.get("prior") != AUTO or not hasattr(find_kind(estimator), "graph") or "prior" in space.parameters:
        return estimator
    is_suited = all(params.get(name, choices[0]) in choices for name, choices in _NOT_FOR.items())
    if not is_suited or space.parameters & {*_NOT_FOR, "equivalent_sample_size"}:
        return estimator
    if _graphs(space) is None or resolve_latents(params["latents"]) or not _is_evidence(score):
        return estimator
    return estimator.set_params(prior=_TABLES)


def with_priors_of_graphs(given: Any, job: Job, space: Space) -> tuple[StructurePrior, Job]:
    """The prior over structures that a search takes, and the job with the limit of tables that goes with it."""
    if not (isinstance(given, str) and given == AUTO):
        return coerce_prior(given), job
    graphs = _graphs(space)
    if graphs is None or not isinstance(job, EvidenceJob) or job.estimator.get_params().get("prior") != _TABLES:
        return UniformPrior(), job
    probability = 1.0 / (len(graphs.observed) + 2.0)
    reading = job.readings.common
    if reading is None or not hasattr(find_kind(job.estimator), "network"):
        return EdgePrior(probability), job
    sizes = dict(zip(reading.rows.names, reading.columns.n_categories_.tolist()))
    required = (prod(sizes[member] for member in (*rule.required, node)) for node, rule in graphs.rules.parents.items())
    most = max(reading.rows.total_weight, *required)
    return SparsePrior(probability=probability, most_cells=most, cardinalities=sizes), replace(job, most_cells=most)


def _graphs(space: Space) -> DAGSpace | None:
    """The graphs of a space of directed networks without hidden nodes, whatever settings it has beside."""
    parts = space.parts if isinstance(space, ProductSpace) else (space,)
    graphs = [part for part in parts if isinstance(part, DAGSpace) and not part.latents]
    return graphs[0] if len(graphs) == 1 and sum("latents" in part.parameters for part in parts) <= 1 else None


def _is_evidence(score: Callable) -> bool:
    return isinstance(score, EvidenceScorer) and not SCORES[score.kind].is_penalized_likelihood
