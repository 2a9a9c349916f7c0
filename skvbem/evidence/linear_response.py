r"""Linear response: covariances of parameters that know of the hidden variables what q(theta) forgets [GBJ18].

Were the prior's natural parameters a little larger by t, the density times :math:`e^{t \cdot \phi(\theta)}`, the
expectations of :math:`\phi` under the exact posterior would move by their covariance times t. Those of VB move, too:
with V the covariance of :math:`\phi` under q(theta), and H the derivatives of expected statistics by expected natural
parameters, which is the covariance of the statistics of complete data under q(x),

.. math:: \frac{d\langle\phi\rangle}{dt} = V\Bigl(1 + H \frac{d\langle\phi\rangle}{dt}\Bigr), \qquad
          \Sigma = \frac{d\langle\phi\rangle}{dt} = (V^{-1} - H)^{-1}.

:math:`\Sigma` is the estimate of the covariance. Hidden hyperparameters are hidden variables, and a part of H. With
:math:`V = R R^\top` it is :math:`R\,(1 - R^\top H R)^{-1} R^\top`, which needs no inverse of V, and is positive where
the bound is at a maximum. Another function g of the parameters has

.. math::

    \mathrm{Cov}(g) = \mathrm{Cov}_q(g) + \mathrm{Cov}_q(g, \phi)\,V^{-1}(\Sigma - V)V^{-1}\,\mathrm{Cov}_q(\phi, g):

the part of g that is linear in :math:`\phi` gets the covariance of linear response, the rest stays as under q. So are
draws made: those from q(theta), in coordinates without constraints, are widened along what is linear in :math:`\phi`.

**Turns.** Where rows hide numbers, such as factors, these may be turned, and no likelihood tells. Along a turn the
bound hardly falls, and a line is no circle: draws as wide as :math:`\Sigma` says would leave it, with loadings far too
large. So directions of turns (`LatentModel.rotation_tangents`) stay as wide as under q(theta). What no turn changes has
the covariance of linear response all the same.

**Heavy tails.** A component with hardly a row may have a density without second moments in sight, such as that of the
concentration of angles, which falls as its square and ends in the millions. Its covariance is of draws that never
occur. Such natural parameters stay as under q(theta), too: those whose variance is a hundred times that of draws.

**Several optima.** The other optima that the fit has met are other parts of the posterior, such as one in which all
components have rows, beside the best, in which one is empty. Each has a linear response of its own. How much each
counts follows from it, too. Were the posterior normal around an optimum, the evidence there would be

.. math:: F + \tfrac12 \ln\lvert(1 - R^\top H R)^{-1}\rvert,

as the bound F forgets there just what q(theta) q(x) forgets. The less sure labels are, the more that is; so bounds
alone count optima with empty components for too much.

V and H are derivatives, of log normalizers twice, and found as such, by differences: of expected natural parameters by
the coordinates of q(theta), and of the E step by natural parameters. So they are there for every family and every
model, weights and missing cells as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp, softmax

from skvbem._lazy import cached_property
from skvbem.errors import NoLinearResponseError
from skvbem.evidence.base import Evidence
from skvbem.evidence.chains import check_at_least
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.tuning import TUNING
from skvbem.vbem.posteriors import VB


@dataclass(frozen=True, eq=False)
class LinearResponse:
    """Covariances of natural parameters by linear response, and draws that have them.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
        Expected, of complete data.
    posterior : ConjugateFamily
        q(theta).
    hidden : ndarray of shape (n_cells, n_cells)
        H, the covariance of the statistics of all that is hidden under q(x).
    root : ndarray of shape (n_cells, n)
        R, of the covariance R R' of natural parameters under q(theta).
    inflation : ndarray of shape (n, n)
        (1 - R'HR)^(-1), and 1 along turns.
    log_turn : float
        ln of the share of q(theta) that a turn by a radian in every plane has at its mean, nats.
    """

    statistics: np.ndarray
    posterior: Any
    hidden: np.ndarray
    root: np.ndarray
    inflation: np.ndarray
    log_turn: float

    @classmethod
    def of(cls, model: Any, data: Any, statistics: np.ndarray) -> LinearResponse:
        """Linear response of a VB fit.

        Parameters
        ----------
        model : LatentModel
        data : object
        statistics : ndarray of shape (n_cells,)
            Expected, of the fit.

        Raises
        ------
        NoLinearResponseError
            If the bound is at no maximum there: then VB does not answer a change of the prior by a small one.
        """
        posterior = model.prior + statistics
        spread = _spread(posterior)
        of_natural = covariance_of_natural(posterior, spread)
        spread = np.where(np.diagonal(of_natural) < (TUNING.heavy_tail * spread) ** 2, spread, 0.0)
        moves = np.flatnonzero(spread > 0)
        root = np.zeros((len(spread), 0))
        if len(moves):
            scale = spread[moves]
            covariance = of_natural[np.ix_(moves, moves)] / np.outer(scale, scale)
            values, axes = np.linalg.eigh(covariance)
            kept = values > 1e-11 * values[-1]  # the rest is rounding
            root = np.zeros((len(spread), np.count_nonzero(kept)))
            root[moves] = scale[:, None] * axes[:, kept] * np.sqrt(values[kept])
        natural = posterior.expected_natural()
        hidden = covariance_of_hidden(model, data, natural, spread)
        turns, lengths = _orthonormal(root, model.rotation_tangents(natural))
        log_turn = float(np.log(lengths).sum() - len(lengths) / 2 * np.log(2 * np.pi))
        rest = np.eye(root.shape[1]) - turns @ turns.T
        left = rest - rest @ (root.T @ hidden @ root) @ rest + turns @ turns.T
        try:
            factor = cholesky(left, lower=True)
        except np.linalg.LinAlgError:
            raise NoLinearResponseError(
                "Linear response needs a fit at a maximum of the lower bound, and this one is at a saddle, or has "
                "not converged: a small change of the prior would move it far. Fit with a smaller 'tol' or more "
                "starts, or take method='draws'."
            ) from None
        inverse = solve_triangular(factor, np.eye(len(left)), lower=True)
        return cls(statistics, posterior, hidden, root, inverse.T @ inverse, log_turn)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Sigma, the covariance of natural parameters by linear response, (n_cells, n_cells); V along turns."""
        return self.root @ self.inflation @ self.root.T

    @cached_property
    def covariance_of_statistics(self) -> np.ndarray:
        r"""The covariance of the statistics of complete data by linear response, (n_cells, n_cells).

        A posterior is a mixture of :math:`p(\theta \mid \text{prior} + u)` over statistics u of complete data. With
        covariance C of u, and slopes V of means of natural parameters by u, the mixture has the covariance
        :math:`V + V C V = \Sigma`, and so :math:`C = H + H \Sigma H`.
        """
        return self.hidden + self.hidden @ self.covariance @ self.hidden

    @property
    def least_known(self) -> float:
        """Share of what complete rows say that is left where rows say least, 1 - lambda; along no turn."""
        return float(1.0 / np.linalg.eigvalsh(self.inflation)[-1])

    @property
    def above_the_bound(self) -> float:
        """Nats by which the evidence around the optimum is above the bound, were the posterior normal there."""
        return 0.5 * float(np.linalg.slogdet(self.inflation)[1])

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Natural parameters of draws whose covariances are those of linear response, (n_cells, n_draws).

        Raises
        ------
        NoLinearResponseError
            If most draws hold probabilities below all floats.
        """
        n_all = max(n_draws, TUNING.response_draws, TUNING.draws_per_direction * self.root.shape[1])
        points, natural = _draws_from(self.posterior, n_all, rng)
        moves = self.root.any(axis=1)
        with np.errstate(invalid="ignore"):
            free = self.posterior.to_unconstrained(points)
        sound = np.isfinite(free).all(axis=0) & np.isfinite(natural[moves]).all(axis=0)
        if 2 * np.count_nonzero(sound) < n_all:
            raise NoLinearResponseError(
                "Linear response needs probabilities within the range of floats, and most draws of this posterior hold "
                "smaller ones: a prior weight is near 0. Take method='draws', or a prior weight of 0.01 or more."
            )
        if not sound.all():  # another draw takes the place of one with such a probability
            others = np.resize(np.flatnonzero(sound), n_all)
            free, natural = free[:, others], natural[:, others]
        about_mean = natural[moves] - self.posterior.expected_natural()[moves, None]
        scale = np.sqrt((self.root[moves] ** 2).sum(axis=1))
        # in units of R: of mean 0 and covariance 1
        axes, lengths = np.linalg.qr(self.root[moves] / scale[:, None])
        unit = solve_triangular(lengths, axes.T @ (about_mean / scale[:, None]))
        slopes = np.linalg.solve(unit @ unit.T, unit @ (free - free.mean(axis=1, keepdims=True)).T)
        values, axes = np.linalg.eigh(self.inflation)
        wider = (axes * (np.sqrt(values) - 1)) @ axes.T
        free = free + slopes.T @ (wider @ unit)
        return self.posterior.natural(self.posterior.from_unconstrained(free[:, :n_draws]))


@dataclass(frozen=True, eq=False)
class LinearResponses:
    """Linear response around different optima of the bound, each with its share of the posterior.

    Parameters
    ----------
    responses : tuple of LinearResponse
    log_evidences : ndarray of shape (n_responses,)
        ln of the evidence around each, were the posterior normal there, nats.
    """

    responses: tuple[LinearResponse, ...]
    log_evidences: np.ndarray

    @classmethod
    def of(
        cls, model: Any, data: Any, optima: np.ndarray, bounds: np.ndarray, *, needs_first: bool = True
    ) -> LinearResponses:
        """Linear response of a VB fit and of other optima that it met; saddles among those are passed over.

        Parameters
        ----------
        model : LatentModel
        data : object
        optima : ndarray of shape (n_cells, n_optima)
            Expected statistics, the fit first.
        bounds : ndarray of shape (n_optima,)
            Nats.
        needs_first : bool, default=True
            Whether the fit may be no saddle.

        Raises
        ------
        NoLinearResponseError
            If the bound is at no maximum at the fit, where that is needed, or at none of the optima.
        """
        responses: list[LinearResponse] = []
        evidences: list[float] = []
        for number, (statistics, bound) in enumerate(zip(optima.T, bounds)):
            try:
                responses.append(LinearResponse.of(model, data, statistics.copy()))
            except NoLinearResponseError:
                if not responses and (needs_first or number == len(bounds) - 1):
                    raise
                continue
            evidences.append(bound + responses[-1].above_the_bound)
        return cls(tuple(responses), np.array(evidences))

    @property
    def weights(self) -> np.ndarray:
        """The share of the posterior that is around each, (n_responses,), of 1."""
        return softmax(self.log_evidences)

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Natural parameters of draws, (n_cells, n_draws), as many from each response as its share says, in any order.

        Labels are those of each optimum.
        """
        if len(self.responses) == 1:
            return self.responses[0].draws(n_draws, rng)
        number = np.bincount(split_by_weight(self.weights, n_draws), minlength=len(self.responses))
        drawn = [each.draws(n, rng) for each, n in zip(self.responses, number) if n]
        return rng.permutation(np.concatenate(drawn, axis=1), axis=1)


def linear_response(evaluation: Evaluation, *, n_fits: int = 8) -> Evidence:
    r"""The evidence were the posterior normal around each optimum, summed over the optima that the fit met [GBJ18].

    .. math::

        \ln \sum_m \exp\Bigl(F_m + \tfrac12 \ln\frac{\lvert\Sigma_m\rvert}{\lvert V_m\rvert} + a_m\Bigr)

    with :math:`\Sigma` the covariance of natural parameters by linear response, V that under q(theta), and a the nats
    by which all relabelings are more than one. A score to rank models by: nothing tells how far it is off.

    Parameters
    ----------
    evaluation : Evaluation
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit that are summed.

    Returns
    -------
    Evidence
        Without a standard error. `details["log_evidences"]` has the terms of the sum.
    """
    kind = "linear_response"
    check_at_least(kind, n_fits=(n_fits, 1))
    try:
        log_evidences = responses_at_optima(evaluation, n_fits).log_evidences
        doubts: tuple[str, ...] = ()
    except NoLinearResponseError:
        log_evidences = np.array([evaluation.fit("vb").objective])
        doubts = (f"{kind}: the bound is at no maximum here, and is the value as it is. Take more starts.",)
    return Evidence(
        float(logsumexp(log_evidences)),
        kind,
        is_lower_bound=False,
        form="vb",
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={"log_evidences": log_evidences},
        doubts=doubts,
    )


def responses_at_optima(evaluation: Evaluation, n_fits: int = 8) -> LinearResponses:
    """Linear response around the optima that a fit met, all relabelings of each in its share.

    Optima whose bounds are far below the best are left out.

    Raises
    ------
    NoLinearResponseError
        If the bound is at a maximum at none of them.
    """
    if n_fits not in evaluation.responses:
        evaluation.responses[n_fits] = _responses(evaluation, n_fits)
    return evaluation.responses[n_fits]


def _responses(evaluation: Evaluation, n_fits: int) -> LinearResponses:
    model, data = evaluation.model, evaluation.few_rows
    optima = evaluation.ended_optima()[:, :n_fits]
    bounds = bounds_of(model, data, optima)
    near = bounds > bounds.max() - TUNING.far_optimum
    responses = LinearResponses.of(model, data, optima[:, near], bounds[near], needs_first=False)
    quotient = evaluation.capabilities.quotient
    if quotient is not None:
        rng = evaluation.generator(Stream.TURNS)
        turns = [quotient.log_turns(each.posterior.expected_natural(), rng) for each in responses.responses]
        gains = [turn + each.log_turn + quotient.log_n_orders for turn, each in zip(turns, responses.responses)]
        return replace(responses, log_evidences=responses.log_evidences + gains)
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    if relabelings is None:
        return responses
    gains = [
        relabelings.correction(each.statistics, each.posterior.expected_natural()[:, None])[0]
        for each in responses.responses
    ]
    return replace(responses, log_evidences=responses.log_evidences + gains)


def bounds_of(model: Any, data: Any, optima: np.ndarray) -> np.ndarray:
    """The lower bound at each optimum, (n_optima,), nats.

    Parameters
    ----------
    model : LatentModel
    data : object
    optima : ndarray of shape (n_cells, n_optima)
        Expected statistics of fits by VB.
    """
    natural, penalty = VB.of(model.prior, optima)
    bounds = model.expect(natural, data).log_normalizer + penalty
    return bounds + model.prior.log_normalizer_of_hyperparameters(natural)


def split_by_weight(weights: np.ndarray, n: int) -> np.ndarray:
    """The optimum that each of n chains, or draws, belongs to, (n,): as many as its share, rounded."""
    return np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n * weights.sum(), side="right")


def _orthonormal(root: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions (n_cells, n_directions) of natural parameters in units of R, orthonormal, and their lengths.

    The product of the lengths is the volume that the directions span.
    """
    scale = np.sqrt((root**2).sum(axis=1))
    moves = scale > 0
    if not directions.shape[1]:
        return np.zeros((root.shape[1], 0)), np.zeros(0)
    units = np.linalg.lstsq(root[moves] / scale[moves, None], directions[moves] / scale[moves, None], rcond=None)[0]
    axes, lengths = np.linalg.qr(units)
    return axes, np.abs(np.diagonal(lengths))


def covariance_of_natural(posterior: Any, spread: np.ndarray) -> np.ndarray:
    """The covariance of natural parameters under a density, (n_cells, n_cells).

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
        Expected, of complete data.
    posterior : ConjugateFamily
        A single one, not a batch.
    spread : ndarray of shape (n_cells,)
        Standard deviations of the natural parameters, about; 0 of those that never vary.
    """

    def expected(moved: np.ndarray) -> np.ndarray:
        return (posterior + moved).expected_natural()

    width = np.divide(TUNING.response_width, spread, out=np.zeros(len(spread)), where=spread > 0)
    return _derivatives(expected, np.zeros(len(spread)), width)


def covariance_of_hidden(model: Any, data: Any, natural: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """H, the covariance of the statistics of all that is hidden, hidden hyperparameters among it, (n_cells, n_cells).

    Parameters
    ----------
    model : LatentModel
    data : object
    natural : ndarray of shape (n_cells,)
        Expected natural parameters.
    spread : ndarray of shape (n_cells,)
        By how much they vary under q(theta); 0 where nothing is asked.
    """

    def expected(moved: np.ndarray) -> np.ndarray:
        return model.expect(moved, data).statistics + model.prior.hyperparameters(moved)

    return _derivatives(expected, natural, TUNING.response_width * np.minimum(spread, 1.0))


def _derivatives(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Symmetric derivatives of a gradient by central differences of fourth order; 0 where a width is 0."""
    derivatives = np.zeros((len(at), len(at)))
    moved = np.flatnonzero(width > 0)
    for first in range(0, len(moved), TUNING.lanes):
        cells = moved[first : first + TUNING.lanes]
        lanes = np.arange(len(cells))
        values = []
        for times in (-2, -1, 1, 2):
            points = np.repeat(at[:, None], len(cells), axis=1)
            points[cells, lanes] += times * width[cells]
            values.append(function(np.ascontiguousarray(points)))
        a, b, c, d = values
        derivatives[:, cells] = (8 * (c - b) - (d - a)) / (12 * width[cells])
    still = width == 0
    derivatives[still] = 0.0
    return 0.5 * (derivatives + derivatives.T)


def _spread(posterior: Any) -> np.ndarray:
    """Standard deviations of natural parameters under a density, about; 0 of those that never vary."""
    _, natural = _draws_from(posterior, TUNING.pilot_draws, np.random.default_rng(0))
    varies = np.isfinite(natural).all(axis=1)
    spread = np.zeros(len(natural))
    spread[varies] = natural[varies].std(axis=1)
    return np.where(spread > 1e-14 * np.abs(np.where(varies, natural[:, 0], 0.0)), spread, 0.0)


def _draws_from(posterior: Any, n_draws: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Draws of a density as a batch of points, and their natural parameters (n_cells, n_draws)."""
    points = posterior.draws(n_draws, rng)
    return points, posterior.natural(points)
