"""A model of somebody else's: each row tosses one of two coins; in one file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from skvbem.capabilities import Capabilities
from skvbem.families import Dirichlet
from skvbem.models import Expectation, LatentModel
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.labels.model import EmissionAscent
from skvbem.models.labels.relabelings import LabelRelabelings
from skvbem.models.relabelings import StateRelabelings
from skvbem.testing import ModelCase, ModelInstance, Relabeling


@dataclass(frozen=True, eq=False)
class Tosses:
    """Heads and tails of each row, (n_rows, 2), and weights."""

    counts: np.ndarray
    weight: np.ndarray

    def __len__(self):
        return len(self.weight)

    @property
    def total_weight(self):
        return float(self.weight.sum())

    @property
    def has_whole_weights(self):
        return bool(np.all(self.weight == np.floor(self.weight)))

    @property
    def one_by_one(self):
        rows = np.repeat(np.arange(len(self)), self.weight.astype(int))
        return Tosses(self.counts[rows], np.ones(len(rows)))

    def for_draws(self, emission):
        """Rows that count once."""
        return self.one_by_one

    @property
    def parts(self):
        return (self,)


class TwoCoins(LatentModel):
    """p(row) = sum over coins k of w_k p_k^heads (1 - p_k)^tails; cells are w, and heads and tails of each coin."""

    n_components, labels = 2, "coins"

    def __init__(self, concentration=1.0):
        self.prior = Dirichlet.from_rows([[concentration] * 2] * 3)

    def compile(self, tosses, weight=None):
        """Rows of tosses: 1 is heads, 0 tails, -1 not seen."""
        counts = np.stack([(tosses == 1).sum(axis=1), (tosses == 0).sum(axis=1)], axis=1).astype(float)
        return Tosses(counts, np.ones(len(tosses)) if weight is None else np.asarray(weight, dtype=float))

    def log_joint(self, natural, data):
        """ln p(row, coin), (2, n_rows, n_lanes)."""
        return np.stack([natural[k] + data.counts @ natural[2 + 2 * k : 4 + 2 * k] for k in (0, 1)])

    def statistics(self, shares, data):
        """Of weighted shares of the coins, (2, n_rows, n_lanes)."""
        return np.concatenate([shares.sum(axis=1), *(data.counts.T @ of_coin for of_coin in shares)])

    def expect(self, natural, data, n_threads=1):
        joint = self.log_joint(natural, data)
        log_z = logsumexp(joint, axis=0)
        statistics = self.statistics(np.exp(joint - log_z) * data.weight[:, None], data)
        return Expectation(statistics, data.weight @ log_z)

    def magnitude(self, data):
        return data.total_weight + float(data.weight @ data.counts.sum(axis=1))

    def statistics_of(self, responsibilities, data):
        rows = responsibilities if isinstance(responsibilities, np.ndarray) else np.concatenate([*responsibilities])
        return self.statistics((rows * data.weight[:, None]).T[..., None], data)[:, 0]


def completed(model, natural, data, rng):
    """Coins drawn, each chain by its own stream."""
    joint = model.log_joint(natural, data)
    log_z = logsumexp(joint, axis=0)
    first = rng.random(log_z.shape) < np.exp(joint[0] - log_z)
    return log_z.sum(axis=0), model.statistics(np.stack([first, ~first]).astype(float), data)


def entropy(model, natural, data):
    """H(q), nats: of each row's coin."""
    joint = model.log_joint(natural[:, None], data)
    log_q = joint - logsumexp(joint, axis=0)
    return -float(data.weight @ (np.exp(log_q) * log_q).sum(axis=0)[:, 0])


def enumeration(model, data, max_terms):
    """The sum over the coins of all rows."""
    rows = data.one_by_one
    terms = []
    for coins in product((0, 1), repeat=len(rows)):
        of_rows = np.eye(2)[list(coins)].reshape(-1, 2).T[..., None]
        terms.append(model.prior.log_evidence(model.statistics(of_rows, rows)[:, 0]))
    return float(logsumexp(terms)), len(terms)


def capabilities_of(model):
    """No information, dimension or marginals."""
    gibbs = GibbsSampler(
        model, lambda natural, data: model.expect(natural, data).log_normalizer, partial(completed, model)
    )
    return Capabilities(
        points=gibbs,
        annealing=gibbs,
        metropolis=gibbs,
        relabelings=LabelRelabelings(model, lambda model, limit: StateRelabelings(np.array([[0, 2, 3], [1, 4, 5]]))),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(entropy, model),
        enumeration=partial(enumeration, model),
    )


class CoinAscent(EmissionAscent):
    """Full steps, as of every model whose rows have one label."""

    label = "coin"


@dataclass(frozen=True, eq=False)
class CoinInstance(ModelInstance):
    """Rows of tosses."""

    tosses: np.ndarray
    model: TwoCoins = field(default_factory=TwoCoins)

    ascent, hidden = CoinAscent, ("coin",)

    @property
    def unit_sizes(self):
        return np.ones(len(self.tosses), dtype=int)

    def compile(self, units=None, weight=None):
        return self.model.compile(self.tosses if units is None else self.tosses[np.asarray(units)], weight)

    def log_evidence(self, units=None):
        """Toss after toss, the product of predictions, for all coins of the rows."""
        rows = self.tosses if units is None else self.tosses[np.asarray(units)]
        prior, terms = self.model.prior.concentration, []
        for coins in product((0, 1), repeat=len(rows)):
            a, log_p = prior.reshape(3, 2).copy(), 0.0
            for coin, row in zip(coins, rows):
                for table, outcome in [(0, coin), *((1 + coin, 1 - toss) for toss in row if toss >= 0)]:
                    log_p += np.log(a[table, outcome] / a[table].sum())
                    a[table, outcome] += 1
            terms.append(log_p)
        return float(logsumexp(terms))

    def relabeling(self, rng):
        cells = np.array([1, 0, 4, 5, 2, 3])
        return Relabeling(lambda x: x[cells], lambda x: x[cells], np.array([1, 0]))

    def row_posteriors(self, natural, data):
        joint = self.model.log_joint(natural[:, None], data)[..., 0]
        return np.exp(joint - logsumexp(joint, axis=0)).T

    def filled(self, rng):
        def having(toss):
            tosses = self.tosses.copy()
            tosses[0, 0] = toss
            return replace(self, tosses=tosses)

        return having(-1), [having(0), having(1)]


class CoinCase(ModelCase):
    """Six rows, or forty, of three tosses."""

    name = "two coins"
    lacks: ClassVar = {"map_probability": "a coin may have too little data for its prior"}

    def tiny(self, rng, k):
        return CoinInstance(rng.integers(-1, 2, (6, 3)), TwoCoins(rng.uniform(0.5, 2.0)))

    def dozens(self, rng, k, form="vb"):
        return CoinInstance(rng.integers(-1, 2, (40, 3)), TwoCoins(rng.uniform(0.5, 2.0)))
