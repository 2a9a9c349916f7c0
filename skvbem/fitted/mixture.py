"""A mixture as fitted: what every question after `fit` is put to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import logsumexp, softmax

from skvbem._lazy import cached_property
from skvbem._numerics import drawn_codes
from skvbem.emissions.independent import Independent
from skvbem.emissions.softmax import SoftmaxMembership, membership_of
from skvbem.errors import warn_of_impossible
from skvbem.fitted.base import Intervals, Parameters
from skvbem.fitted.fills import filled_together
from skvbem.fitted.labels import FittedEmissions
from skvbem.fitted.memberships import Membership
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.under_fit import Cells, UnderFit
from skvbem.models.mixture.model import Mixture
from skvbem.reading.rows import TableReading

# Draws of the parameters behind the rows of one sample.
_MAX_DRAWS_OF_PARAMETERS = 1000


@dataclass(frozen=True, eq=False)
class FittedMixture(FittedEmissions):
    """A mixture as fitted: its columns, its prior, and the statistics of the data."""

    label: ClassVar[str] = "component"

    @cached_property
    def weights(self) -> np.ndarray:
        """E[pi] (VB) or pi of the point found, (n_components,); proportions of the data where covariates say them."""
        if self.model.weights.by_row:
            return self.counts / self.counts.sum()
        if self.form.density:
            return self.model.weights.mean(self.posterior.blocks[0])
        return self.named_parameters(self.point)["mixture"]["weights"]

    @property
    def driven(self) -> tuple:
        """The component, if covariates drive it."""
        return (self.label,) if self.model.weights.by_row else ()

    def membership(self, node: Any) -> Membership:
        """The regression of the component on covariates."""
        k, emission = membership_of(self.emission), cast(Independent, self.emission)
        assert k is not None
        return Membership.of_block(
            self.model.prior,
            1 + k,
            node=node,
            part=cast(SoftmaxMembership, emission.parts[k]),
            group=self.groups.groups[k],
            point=self.point[1][k],
            counts=self.counts,
            covariates=itemgetter(k),
        )

    def named_parameters(self, point: tuple) -> Parameters:
        """The weights at a point, and what is observed in each component, by name."""
        if self.model.weights.by_row:
            return super().named_parameters(point)
        (weights,) = self._of_labels((point[0][:, None],))["mixture"]["weights"]
        return {"mixture": {"weights": weights}} | super().named_parameters(point)

    def _of_labels(self, points: tuple) -> Parameters:
        if self.model.weights.by_row:
            return {}
        natural = self.model.prior.blocks[0].natural(points[0])
        return {"mixture": {"weights": np.exp(self.model.weights.log_weights(natural)).T}}

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """Weights and expected rows of the components, then a table per group of columns."""
        values, unknown = np.stack([self.weights, self.counts]), np.full(len(self.counts), np.nan)
        of_weights = (unknown, unknown)
        if intervals is not None and "mixture" in intervals:
            of_weights = intervals["mixture"]["weights"]
        ends = np.stack([of_weights[0], unknown]), np.stack([of_weights[1], unknown])
        rows = ["weight"] if self.given is not None else ["weight", "rows"]
        n = len(rows)
        weights = ParameterTable(
            "components", rows, self._numbers, values[:n], (ends[0][:n], ends[1][:n]), (), self._states
        )
        return [weights, *super().report(intervals)]

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta), by group and name."""
        if self.model.weights.by_row:
            return super().quantiles(probability)
        weights = self.model.weights.quantiles(self.posterior.blocks[0], probability)
        return {"mixture": {"weights": weights}} | super().quantiles(probability)

    def hyperparameters(self) -> dict[str, Any]:
        """Attributes of the prior as resolved and, of a density, of the posterior, as scikit-learn names them."""
        if self.model.weights.by_row:
            return super().hyperparameters()
        attributes: dict[str, Any] = {"weight_concentration_prior_": self.model.weights.given}
        if self.form.density:
            attributes["weight_concentration_"] = self.model.weights.concentrations(self.posterior.blocks[0])
        return attributes | super().hyperparameters()

    @staticmethod
    def drawn_at(
        model: Mixture, point: tuple, n: int, rng: np.random.Generator, given: Any = None
    ) -> tuple[Any, np.ndarray]:
        """Rows drawn at a point, as the emission makes them, and their components."""
        if model.weights.by_row:
            components = drawn_codes(_probabilities(model.emission, point[1], given), rng)
            return model.emission.sample_given(given, None, point[1], components, rng), components
        natural = model.prior.blocks[0].natural(point[0])
        weights = np.exp(model.weights.log_weights(natural[:, None])[:, 0])
        components = rng.choice(len(weights), size=n, p=weights / weights.sum())
        return model.emission.sample_given(given, None, point[1], components, rng), components

    def sample(self, n: int, rng: np.random.Generator, given: list[np.ndarray] | None = None) -> tuple[Any, np.ndarray]:
        """Rows drawn from the predictive distribution, and their components.

        Parameters are drawn for each row, for more rows than `_MAX_DRAWS_OF_PARAMETERS` for so many parts of them.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        given : list of ndarray, optional
            Values of each group of n rows, whose covariates the new ones have.
        """

        def given_of(rows: Any) -> Any:
            return None if given is None else self.groups.as_emission_takes([of_group[rows] for of_group in given])

        if not self.form.density:
            return self.drawn_at(self.model, self.point, n, rng, given_of(slice(None)))
        sizes = np.bincount(np.arange(n) % _MAX_DRAWS_OF_PARAMETERS)
        parts = np.split(np.arange(n), np.cumsum(sizes)[:-1])
        drawn = [
            self.drawn_at(self.model, self.posterior.sample(rng), len(part), rng, given_of(part)) for part in parts
        ]
        order = rng.permutation(n) if given is None else np.arange(n)
        rows = [self.groups.as_list(of_part) for of_part, _ in drawn]
        values = [np.concatenate(of_group)[order] for of_group in zip(*rows)]
        components = np.concatenate([of_part for _, of_part in drawn])[order]
        return self.groups.as_emission_takes(values), components

    def log_joint(self, values: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """ln of E[pi_k] p(row | k, data), or of both at the point, for blocks of rows: (n_rows, n_components), nats."""
        if not self.form.density:
            yield from self._log_joint_at(self.model.prior.natural(self.point), values)
            return
        log_weights = self.model.weights.log_predictive(self.posterior.blocks[0])
        for rows, block in self._blocks(self.emission.prepare(self.groups.as_emission_takes(values))):
            yield rows, self.emission.log_predictive(block, self.posterior.blocks[1]) + log_weights

    def _log_joint_at(self, natural: np.ndarray, values: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """Log joint probabilities at natural parameters (n_cells,), which need not be normalized."""
        table = self.emission.prepare(self.groups.as_emission_takes(values))
        of_weights, of_emission = self.model.prior.split(natural)
        step, log_weights = self.emission.step(of_emission, table), self.model.weights.log_weights(of_weights[:, None])
        for rows, block in self._blocks(table):
            yield rows, step.log_likelihood(block) + log_weights[:, 0]

    def _blocks(self, table) -> Iterator[tuple[slice, Any]]:
        size = self.emission.block_rows(self.model.n_components)
        for at in range(0, len(table), size):
            rows = slice(at, min(at + size, len(table)))
            yield rows, table[rows]

    def log_predictive(self, values: list[np.ndarray]) -> np.ndarray:
        """Log predictive density of rows, nats, (n_rows,)."""
        log_densities = np.empty(len(values[0]))
        for rows, log_joint in self.log_joint(values):
            log_densities[rows] = logsumexp(log_joint, axis=1)
        return log_densities

    def under_fit(self, reading: TableReading, **limits: Any) -> UnderFit:
        """Likelihoods and cells of rows in memory under the mixture, for fit indices."""
        ((values, weight),) = reading.blocks
        n, k = len(values[0]), self.model.n_components
        scores, posterior = np.empty(n), np.empty((n, k))
        for rows, log_joint in self._log_joint_at(self.model.prior.natural(self.point), values):
            scores[rows] = logsumexp(log_joint, axis=1)
            ((_, posterior[rows]),) = self._normalized([(rows, log_joint)])
        names, codes, tables, are_all = self.finite_columns(values)
        cells = None
        if names and not self.model.weights.by_row:
            weights = self.named_parameters(self.point)["mixture"]["weights"]
            sizes = [table.shape[1] for table in tables]
            cells = Cells(
                np.stack(codes, axis=1), sizes, names, lambda i, j: (tables[i].T * weights) @ tables[j], are_all
            )
        posteriors = {"component": posterior} if k > 1 else {}
        return UnderFit(scores, weight, float(n if weight is None else weight.sum()), posteriors, weight, cells)

    def weights_of_rows(self, values: list[np.ndarray]) -> np.ndarray:
        """Probabilities of the components of rows before these are seen, (n_rows, n_components)."""
        if self.model.weights.by_row:
            return _probabilities(self.emission, self.point[1], self.groups.as_emission_takes(values))
        return np.broadcast_to(self.weights, (len(values[0]), self.model.n_components))

    def e_step(self, values: list[np.ndarray]) -> Iterator[np.ndarray]:
        """q(x) of blocks of rows, (n_rows, n_components): where a fit to these rows goes on from this one."""
        for _, responsibilities in self._normalized(self._log_joint_at(self.natural_of_q, values)):
            yield responsibilities

    def responsibilities_by_block(self, values: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """p(component | row) of blocks of rows, (n_rows, n_components); the weights if no component can make a row."""
        impossible: list[int] = []
        yield from self._normalized(self.log_joint(values), impossible)
        warn_of_impossible(impossible, len(values[0]), "the weights of components")

    def _normalized(
        self, log_joints: Iterable[tuple[slice, np.ndarray]], impossible: list[int] | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Shares of components; positions of rows that none can make are added to `impossible`."""
        for rows, log_joint in log_joints:
            none = np.flatnonzero(~np.isfinite(log_joint.max(axis=1)))
            if len(none):
                log_joint[none] = np.log(np.maximum(self.weights, 1e-300))
                if impossible is not None:
                    impossible += (rows.start + none).tolist()
            yield rows, softmax(log_joint, axis=1)

    def responsibilities(self, values: list[np.ndarray]) -> np.ndarray:
        """p(component | row) of all rows, (n_rows, n_components); see `responsibilities_by_block`."""
        responsibilities = np.empty((len(values[0]), self.model.n_components))
        for rows, of_block in self.responsibilities_by_block(values):
            responsibilities[rows] = of_block
        return responsibilities

    def imputed_rows(
        self, values: list[np.ndarray], fill: str, rng: np.random.Generator | None = None
    ) -> list[np.ndarray]:
        """Rows of each group with missing cells filled, in one of the ways of `FILLS`."""
        if fill == "draw":
            return self._drawn_rows(values, rng or np.random.default_rng())
        imputed = self._imputed_by(values, self.responsibilities(values))
        categories = [k for k, each in enumerate(values) if each.dtype.kind != "f"]
        if not categories:
            return imputed
        one_of = np.eye(self.model.n_components)

        def completed(which: np.ndarray, filled: list[np.ndarray]) -> list[np.ndarray]:
            """Some rows with their categories filled, numbers as they were."""
            return [filled[k] if k in categories else each[which] for k, each in enumerate(values)]

        def best(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            here = [each[which] for each in values]
            log_of = [
                self.log_predictive(completed(which, self._imputed_by(here, np.tile(one, (len(which), 1)))))
                for one in one_of
            ]
            return np.argmax(log_of, axis=0), np.max(log_of, axis=0)

        which, components = filled_together(
            fill,
            np.sum([(values[k] < 0).sum(axis=1) for k in categories], axis=0),
            lambda which: self.log_predictive([each[which] for each in values]),
            lambda which: self.log_predictive(completed(which, [each[which] for each in imputed])),
            best,
        )
        if components is not None:
            together = completed(which, self._imputed_by([each[which] for each in values], one_of[components]))
            for of_group, here in zip(imputed, self._imputed_by(together, self.responsibilities(together))):
                of_group[which] = here
        return imputed

    def _drawn_rows(self, values: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
        """Rows of each group with missing cells drawn: parameters first, the same for all rows, then components."""
        point, impossible = self.drawn_point(rng), list[int]()
        components = np.empty(len(values[0]), dtype=np.intp)
        responsibilities = self._normalized(self._log_joint_at(self.model.prior.natural(point), values), impossible)
        for rows, of_block in responsibilities:
            components[rows] = drawn_codes(of_block, rng)
        warn_of_impossible(impossible, len(components), "the weights of components")
        return self.drawn_cells(values, point[-1], components, rng)

    def _imputed_by(self, values: list[np.ndarray], responsibilities: np.ndarray) -> list[np.ndarray]:
        """Rows of each group with missing cells filled under given shares of the components."""
        table = self.emission.prepare(self.groups.as_emission_takes(values))
        return self.imputed(table[0 : len(table)], responsibilities)

    def components(self, values: list[np.ndarray]) -> np.ndarray:
        """The most probable component of each row, (n_rows,)."""
        components = np.empty(len(values[0]), dtype=np.intp)
        for rows, of_block in self.responsibilities_by_block(values):
            components[rows] = of_block.argmax(axis=1)
        return components


def _probabilities(emission: Any, point: tuple, given: Sequence) -> np.ndarray:
    """Probabilities of the components of rows whose covariates are given, (n_rows, n_components)."""
    k = membership_of(emission)
    assert k is not None
    membership = emission.parts[k]
    return membership.probabilities(membership.prepare(given[k]), point[k])
