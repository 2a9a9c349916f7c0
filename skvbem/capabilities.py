r"""Capabilities: what scores of the evidence may ask of a model beyond its prior and its E step.

A model owes its prior and its E step; see `skvbem.models.base`. Whatever else a score needs is a capability, one idea
each, declared here, on a floor below both models and scores, since scores do not know models. The room of a model has a
`capabilities.py` that composes `Capabilities` over the model, None where it has none; a score names those it needs
(`skvbem.evidence.base.Score`), and a model that lacks one gets an error that says so.

Natural parameters are those of a point, :math:`\phi(\theta)` (of tables :math:`\ln\theta`), or expected ones. Arrays
of several have them last, (n_cells, n_lanes). Streams are (4, n_lanes) words of uint64, moved on in place, so that a
run may be cut into pieces, and what a lane draws depends on its own stream alone. `data` are what the model compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from skvbem.families import Dirichlet
from skvbem.families.base import ConjugateFamily
from skvbem.families.integrated_evidence import IntegratedEvidence

# ----------------------------------------------------------------------------------------------------- parameters


class Batched(Protocol):
    """Draws and chains that are made side by side."""

    def lanes_at_once(self, data: Any) -> int:
        """Number of lanes that are best run together, 1 or more."""
        ...


class Points(Batched, Protocol):
    r"""Draws of parameters, and their likelihoods with the hidden variables summed out.

    :math:`\theta \sim p(\theta \mid \mathrm{prior} + N)` and :math:`\ln p(y \mid \theta) = \ln Z_x(\phi(\theta))`
    [Beal (2.54)].

    Law: the mean of :math:`p(y \mid \theta)` over draws from the prior is the evidence by enumeration.
    """

    def certain_statistics(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that no hidden variable has a say in, (n_cells,)."""
        ...

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Natural parameters of points, (n_cells, n_lanes), each drawn from the prior after the statistics of its lane.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells, n_lanes)
            Zeros for draws from the prior itself.
        streams : ndarray of uint64, shape (4, n_lanes), C-contiguous
            As `Evaluation.streams` has them. They go on: those given are changed.
        """
        ...

    def log_likelihoods(self, data: Any, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, (n_lanes,), exact."""
        ...


# --------------------------------------------------------------------------------------------------------- chains


@dataclass(frozen=True, eq=False)
class Path:
    r"""Densities from q(theta) q(x) at t = 0 to the posterior at t = 1, all of the model's family; a path per chain.

    Given theta, x has natural parameters (1 - t) `natural` + t phi(theta); given x, theta has the prior after
    (1 - t) `statistics` + t counts. With x summed out and Z_t its normalizer,

    .. math:: \ln f_t(\theta) = \ln Z_t(\theta) + t\,[\mathrm{slope} - \mathrm{statistics} \cdot \phi(\theta)]
              + \ln q(\theta) - \ln Z_0.

    Parameters
    ----------
    statistics, natural : ndarray of shape (n_cells, n_chains)
        q(theta) is the prior after these statistics; natural parameters of q(x).
    slope : ndarray of shape (n_chains,)
        ln Z_0 + ln p(theta) - ln q(theta) + statistics . phi(theta), which is the same for every theta.
    """

    statistics: np.ndarray
    natural: np.ndarray
    slope: np.ndarray

    def __getitem__(self, chains) -> Path:
        """The paths of some chains, by slice or by index."""
        statistics, natural = (np.ascontiguousarray(x[:, chains]) for x in (self.statistics, self.natural))
        return Path(statistics, natural, self.slope[chains])

    def slope_at(self, log_point: np.ndarray) -> np.ndarray:
        """The factor of t at natural parameters (n_cells, n_chains), nats, (n_chains,)."""
        return self.slope - (self.statistics * log_point).sum(axis=0)


class AnnealingPlan(NamedTuple):
    """The default plan of annealed chains of a model.

    Parameters
    ----------
    fractions : tuple of float, default=(0.5, 0.0)
        Of the uncertain expected counts of a VB fit, how much the densities keep that chains start from.
    bend : float, default=-1.5
        Of the schedule of inverse temperatures; see `skvbem.evidence.chains.nonlinear_schedule`.
    n_steps : int, default=128
        Inverse temperatures after 0.
    moves_labels : bool, default=False
        Whether chains change labels by moves of their own while densities still differ by them, so that each meets
        all relabelings by the end.
    """

    fractions: tuple[float, ...] = (0.5, 0.0)
    bend: float = -1.5
    n_steps: int = 128
    moves_labels: bool = False


class Annealing(Batched, Protocol):
    r"""Gibbs chains along `Path`: x drawn given theta, theta drawn given x [BG §4.2; Neal 2001].

    Law: the mean of the product of ratios :math:`f_{t'} / f_t` along a chain is the evidence by enumeration.
    """

    @property
    def plan(self) -> AnnealingPlan:
        """The default plan of these chains."""
        ...

    def paths(self, data: Any, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        ...

    def workspace(self, data: Any, n_lanes: int) -> Any:
        """Memory for chains, to be handed to `anneal` and `log_normalizers` again and again."""
        ...

    def anneal(
        self, workspace: Any, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own, from `log_point` at the first inverse temperature, moved in place.

        Parameters
        ----------
        workspace : object
        path : Path
        temperatures : ndarray of shape (n_steps + 1,)
            Inverse temperatures in the order visited; equal ones are sweeps at one density.
        streams : ndarray of uint64, shape (4, n_chains)
        log_point : ndarray of shape (n_cells, n_chains)
            Natural parameters of a point for each chain.

        Returns
        -------
        log_ratios : ndarray of shape (n_steps, n_chains)
            ln of the ratio of densities at each step, nats.
        statistics : ndarray of shape (n_cells, n_chains)
            Statistics of complete data with the last hidden variables drawn.
        """
        ...

    def log_normalizers(
        self, workspace: Any, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        ...

    def sample_latent(self, natural: np.ndarray, data: Any, streams: np.ndarray) -> np.ndarray:
        """Statistics of complete data with hidden variables drawn from q(x) at natural parameters, of their shape."""
        ...


class ClusterAnnealing(Batched, Protocol):
    r"""Gibbs chains over parameters and hidden variables, whose q(x) is a product over clusters.

    They walk along :math:`f_t(\theta, x) = [q(\theta) q(x)]^{1-t} [p(\theta) p(x, y \mid \theta)]^t` and never sum
    beyond a cluster. Law: the mean of the product of ratios along a chain is the evidence by enumeration.
    """

    def path(self, data: Any, statistics: np.ndarray) -> Any:
        """The densities from q(theta) = prior + statistics (n_cells,), and from the q(x) that sweeps end in there."""
        ...

    def run(self, path: Any, temperatures: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Chains from draws of q(theta) q(x), one for each stream.

        Parameters
        ----------
        path : object
            Of `path`.
        temperatures : ndarray of shape (n_steps + 1,)
            Inverse temperatures from 0 to 1.
        streams : ndarray of uint64, shape (4, n_chains)

        Returns
        -------
        log_points : ndarray of shape (n_cells, n_chains)
            Natural parameters where chains are weighed last.
        log_ratios : ndarray of shape (n_steps, n_chains)
            ln of the ratio of densities at each step, nats.
        """
        ...


class Batches(Protocol):
    """Data that grow: units (rows, or time steps of sequences) that a sampler adds one after another.

    A unit that counts w times is w units. Given parameters, what is added depends on what was there before at most.

    Law: the batch of all units has the log likelihoods of the data, and that of none what `known` statistics give.
    """

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """All units in an order drawn at random, (n_units,)."""
        ...

    def batch(self, data: Any, order: np.ndarray, n_units: int) -> Any:
        """The first of so many units in an order, compiled as the data are."""
        ...

    def known(self, data: Any) -> np.ndarray:
        """Statistics of complete data that belong to no unit, (n_cells,): every batch has them."""
        ...


class Metropolis(Batched, Protocol):
    r"""Metropolis-Hastings chains along :math:`p(\theta)\,p(y \mid \theta)^t` [BG §4.2].

    Law: at t = 1 they leave the posterior as it is; their means are those of the Gibbs chains.
    """

    def workspace(self, data: Any, n_lanes: int) -> Any:
        """Memory for chains, to be handed to `metropolis` again and again."""
        ...

    def metropolis(
        self,
        workspace: Any,
        temperatures: np.ndarray,
        strengths: np.ndarray,
        streams: np.ndarray,
        log_point: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Chains, whose points and log likelihoods are moved in place.

        Parameters
        ----------
        workspace : object
        temperatures : ndarray of shape (n_steps + 1,)
        strengths : ndarray of shape (n_steps,)
            How near to where they are parameters are proposed, >= 1.
        streams : ndarray of uint64, shape (4, n_chains)
        log_point : ndarray of shape (n_cells, n_chains)
        log_likelihood : ndarray of shape (n_chains,)

        Returns
        -------
        log_ratios : ndarray of shape (n_steps, n_chains)
        accepted : ndarray of bool, shape (n_steps, n_chains)
        """
        ...


# ---------------------------------------------------------------------------------------------------- relabelings


class Relabelings(ABC):
    """All relabelings of hidden variables and states that leave graph, prior and data as they are.

    Parameters
    ----------
    n : int
        How many there are, the identity included.
    cost : float
        Operations of a sum over all of them, for one vector of statistics and one point; inf where there is none.
    """

    n: int
    cost: float

    @abstractmethod
    def log_sums(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the sum over relabelings g of exp(statistics . g ln theta), for all statistics and points.

        Parameters
        ----------
        statistics : ndarray of shape (n_statistics, n_cells)
        log_points : ndarray of shape (n_cells, n_points)

        Returns
        -------
        ndarray of shape (n_statistics, n_points)
        """

    @abstractmethod
    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """g ln theta for a g drawn in proportion to exp(statistics . g ln theta), (n_cells,)."""

    @abstractmethod
    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        r"""g ln theta of each point, for the g whose labels are nearest to an anchor's, of the shape of the points.

        The one with the largest :math:`N \cdot g\ln\theta`, N the expected statistics of an anchor. Where these are
        expected under q(x), that is the g with the smallest :math:`\mathrm{KL}(q(x) \,\|\, p(x \mid y, g\theta))`,
        since no relabeling changes :math:`p(y \mid \theta)` [Stephens00].

        Parameters
        ----------
        statistics : ndarray of shape (n_cells,)
        log_points : ndarray of shape (n_cells, n_points)
        """

    def correction(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        r"""ln h, where h(theta) >= 0 averages to one over the relabelings of every theta and is large near an anchor.

        What has weights w that are right for all relabelings together has weights w h that are right for them too, and
        steady where only the labels of the anchor are visited: :math:`h(\theta) = n\,r(\theta) / \sum_g r(g\theta)`
        with :math:`r = e^{N \cdot \ln\theta}`.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells,)
            N, of the anchor.
        log_points : ndarray of shape (n_cells, n_points)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        if self.n == 1:
            return np.zeros(log_points.shape[1])
        return np.log(self.n) + statistics @ log_points - self.log_sums(statistics[None], log_points)[0]


class Relabelable(Protocol):
    r"""The relabelings g that a model, its prior and its data do not tell apart: :math:`p(g\theta, y) = p(\theta, y)`.

    Law: likelihood and prior density of a point are those of the point relabeled.

    `hidden` are the names of the variables never observed.
    """

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """All of them; None where there are more than `limit` and no sum over all of them is known."""
        ...

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """ln of their number."""
        ...

    def listed_relabelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """Each as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        ...


# ---------------------------------------------------------------------------------------------------------- turns


class QuotientCoordinates(Protocol):
    """Coordinates over all of space of parameters up to turns, one point for all those that turns lead to."""

    def coordinates(self, natural: np.ndarray) -> np.ndarray:
        """Coordinates (n_coordinates, n) of points, by their natural parameters (n_cells, n)."""
        ...

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of a point for each of the coordinates (n_coordinates, n)."""
        ...

    def log_prior(self, coordinates: np.ndarray, rng: np.random.Generator, *, posterior: bool) -> np.ndarray:
        """ln of the prior density of coordinates, turns and hidden hyperparameters integrated out, nats, (n,).

        The integral over turns may be a mean over draws of them, unbiased; with `posterior` as it would have been drawn
        along with draws of the posterior: ratios of the two are those of densities [ADH10].
        """
        ...

    def log_volume(self, coordinates: np.ndarray) -> np.ndarray:
        """ln of the volume of all that turns lead to, over that of coordinates, nats, (n,).

        A density of coordinates over it is the same in any coordinates.
        """
        ...


class Quotient(Protocol):
    r"""Parameters up to turns: continuous changes, such as rotations of factors, that no likelihood tells apart.

    Law: the integral of :math:`p(y \mid \theta)` times the prior over coordinates is the evidence.
    """

    @property
    def log_n_orders(self) -> float:
        """ln of the number of relabelings of labels, which are no turns."""
        ...

    def orders(self) -> np.ndarray:
        """The cell that takes each cell's place in each of these relabelings, (n_orders, n_cells)."""
        ...

    @property
    def has_turns(self) -> bool:
        """True if there are others than changes of order and sign."""
        ...

    def coordinates_at(self, natural: np.ndarray) -> QuotientCoordinates:
        """Coordinates that are smooth about natural parameters (n_cells,)."""
        ...

    def log_turns(self, natural: np.ndarray, rng: np.random.Generator) -> float:
        """ln of the integral of the prior over all turns, as a share of its value at natural parameters, nats."""
        ...


# ------------------------------------------------------------------------------------------------------ marginals


@dataclass(frozen=True, eq=False)
class RowMarginals:
    """The probability that each distinct row of data is in each table cell, and in each table row.

    Targets are all table cells, then all table rows.

    Parameters
    ----------
    starts : ndarray of shape (n_targets + 1,)
        Where the entries of each target begin.
    context, probability : ndarray of shape (n_entries,)
        A distinct row that may be in the target, and the probability that it is; ascending in each target.
    weight : ndarray of shape (n_contexts,)
        How many rows of data each distinct row stands for. They are independent.
    known : ndarray of shape (n_targets,)
        Counts in which nothing is hidden.
    """

    starts: np.ndarray
    context: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class CountBlock:
    """The part of a prior whose statistics are counts of independent rows.

    Parameters
    ----------
    cells : ndarray of int
        Its cells among all statistics, in order.
    prior : Dirichlet
    """

    cells: np.ndarray
    prior: Dirichlet


class Marginals(Protocol):
    r"""Counts as sums of independent indicators :math:`N_c = \sum_i w_i\,1(\text{row } i \text{ is in cell } c)`.

    What collapsed bounds take: under q(x) the distribution of each count is a convolution.

    Law: weights times probabilities plus what is known are the expected statistics of the E step.
    """

    def count_block(self) -> CountBlock:
        """The part of the prior that this is so for."""
        ...

    def row_marginals(self, natural: np.ndarray, data: Any) -> RowMarginals:
        """Probabilities of its cells for each distinct row, under q(x) at natural parameters (n_cells,)."""
        ...


# ------------------------------------------------------------------------------------------- single questions


class CompleteEvidence(Protocol):
    r"""The evidence of complete data, :math:`\ln p(x, y)` as a function of their statistics [CH (8)].

    What bounds take that complete the data. It is `log_evidence` of the prior, where no hyperparameter is hidden; else
    these are integrated out, as by `skvbem.families.integrated_evidence.IntegratedEvidence`, which states an error.

    Law: where nothing is hidden, the evidence by definition.
    """

    def __call__(self, statistics: np.ndarray) -> np.ndarray:
        """The log evidence, nats, of data with statistics (n_cells, ...), of the shape of the trailing axes."""
        ...


class LatentEntropy(Protocol):
    r"""The entropy of the hidden variables, :math:`H(q) = \ln Z_x - \langle\ln p(x, y \mid \phi)\rangle_q` [CH (13)].

    That of states is not negative. Hidden variables that are real numbers have a density, whose entropy depends on
    their unit and may have any sign. Rows of which nothing is observed are summed out, and have no part in it.

    Law: the sum over the states of each row, written out.
    """

    def __call__(self, natural: np.ndarray, data: Any) -> float:
        """H(q), nats, of q(x) at natural parameters (n_cells,)."""
        ...


@dataclass(frozen=True, eq=False)
class ScoreCovariance:
    """Covariance of some of the scores of complete data, and no covariance with any others.

    Parameters
    ----------
    free : ndarray of int, shape (d,)
        The unconstrained coordinates by which these scores are derivatives.
    covariance : ndarray of shape (d, d)
        Summed over rows of data.
    """

    free: np.ndarray
    covariance: np.ndarray


class Information(Protocol):
    r"""What is lost of the information because variables are hidden, :math:`\sum_i \mathrm{Cov}(s_i \mid y_i)`.

    The information of the data is that of complete data less this [Louis 1982], s the derivatives of
    :math:`\ln p(x, y \mid \theta)` by unconstrained coordinates.

    Law: the Hessian of the log likelihood, by finite differences.
    """

    def __call__(self, point: Any, data: Any, *, joint: bool = True, max_states: int = 4096) -> list[ScoreCovariance]:
        """The covariance of complete-data scores at a point, summed over rows of data.

        Parameters
        ----------
        point : point of the prior
        data : object
        joint : bool, default=True
            Whether with covariances between blocks of parameters (tables, or components); else a block for each.
        max_states : int, default=4096
            Most joint states of what is hidden in one row, where `joint` sums over them; TooLargeError beyond.

        Returns
        -------
        list of ScoreCovariance
            Blocks. Coordinates in no block have no part in what is hidden.
        """
        ...


class Enumeration(Protocol):
    r"""The evidence as a sum over all completions, :math:`p(y) = \sum_x p(x, y)` [CH (6)].

    Law: where nothing is hidden, the lower bound.
    """

    def __call__(self, data: Any, max_terms: int) -> tuple[float, int]:
        """The log evidence, nats, and the number of terms; TooLargeError beyond `max_terms`."""
        ...


class Identifiability(Protocol):
    """The generic rank of the map from parameters to the distribution of what is observed [Geiger et al. 1996].

    Law: the rank of the Jacobian by finite differences, at a point drawn at random.
    """

    def __call__(self, hidden: Sequence, data: Any) -> int:
        """The dimension; ValueError where it is not known. `hidden` are the names of variables never observed."""
        ...


#: Capabilities that take the evidence of complete rows in closed form, which there is given hyperparameters alone.
OF_KNOWN_HYPERPARAMETERS = ("marginals", "enumeration")


@dataclass(frozen=True, eq=False)
class Capabilities:
    """The abilities of one model beyond its prior and its E step, for scores; None for those that it lacks.

    Parameters
    ----------
    points : Points or None
        Draws of parameters, and their likelihoods.
    annealing : Annealing or None
        Gibbs chains, and draws of hidden variables.
    cluster_annealing : ClusterAnnealing or None
        Gibbs chains where q(x) is a product over clusters of hidden variables.
    batches : Batches or None
        Data that grow unit by unit.
    metropolis : Metropolis or None
        Metropolis chains.
    relabelings : Relabelable or None
        Relabelings of hidden variables and states.
    quotient : Quotient or None
        Parameters up to turns of hidden variables, where there are any.
    marginals : Marginals or None
        Counts as sums over independent rows. Without it collapsed bounds draw all statistics.
    complete_evidence : CompleteEvidence or None
        The evidence of complete data.
    entropy : LatentEntropy or None
        The entropy of q(x).
    information : Information or None
        Covariances of complete-data scores, for Laplace's approximation.
    enumeration : Enumeration or None
        The exact evidence of tiny data.
    dimension : Identifiability or None
        The identifiable dimension.
    """

    points: Points | None = None
    annealing: Annealing | None = None
    cluster_annealing: ClusterAnnealing | None = None
    batches: Batches | None = None
    metropolis: Metropolis | None = None
    relabelings: Relabelable | None = None
    quotient: Quotient | None = None
    marginals: Marginals | None = None
    complete_evidence: CompleteEvidence | None = None
    entropy: LatentEntropy | None = None
    information: Information | None = None
    enumeration: Enumeration | None = None
    dimension: Identifiability | None = None

    def with_hidden_hyperparameters(self, prior: ConjugateFamily) -> Capabilities:
        """The capabilities under a prior: where it has hidden ones, complete rows have no evidence in closed form."""
        if prior.hyperprior is None:
            return self
        return replace(self, **dict.fromkeys(OF_KNOWN_HYPERPARAMETERS), complete_evidence=IntegratedEvidence(prior))
