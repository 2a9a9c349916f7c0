r"""
Counts with too many zeros: an emission of your own that hides something in a row
=================================================================================

Someone counts the animals in traps every week. Some traps are shut, and hold none wherever they stand. A count is then
0 with probability :math:`\pi`, whatever its rate :math:`\lambda`,

.. math:: p(y \mid \pi, \lambda) = \pi\, [y = 0] + (1 - \pi)\, \lambda^y e^{-\lambda} / y!

A hidden variable says of each 0 whether its trap was shut; it comes on top of the component that the row is of. This
file is all that such an emission needs, and :ref:`hidden_in_a_row` says why each method is there. The E step sums the
hidden variable out. The trap of an observed 0 was shut with probability

.. math:: r = \frac{e^{\operatorname{E} \ln \pi}}
          {e^{\operatorname{E} \ln \pi} + e^{\operatorname{E} \ln (1 - \pi) - \operatorname{E} \lambda}}

and the logarithm of the denominator is what the cell adds to ln Z.
"""

# %%
# The model's side
# ----------------
# The log likelihood is linear in three features of a cell: whether it is 0, whether it is more, and the count. So
# `LinearEmission` has the E step, given what multiplies them. Statistics are not linear in the features alone, as they
# need r: the step of the emission knows it.
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skvbem.emissions import LinearEmission, NumericSpecification, weighted_means
from skvbem.emissions.base import as_matrix
from skvbem.emissions.linear import LinearStep
from skvbem.families import Dirichlet, Gamma, Product


@dataclass(frozen=True, eq=False)
class ZeroInflatedPoissonEmission(LinearEmission):
    """Zero-inflated counts, independent given the component; `unit`, (n_columns,), is the unit of each rate."""

    unit: np.ndarray

    @property
    def n_columns(self):
        return len(self.unit)

    @property
    def cells_per_component(self):  # of each column ln pi and ln(1 - pi), the log rate and the rate
        return 4 * self.n_columns

    def component_of_cell(self, n_components):  # the prior is a product: first all probabilities, then all rates
        return np.tile(np.repeat(np.arange(n_components), 2 * self.n_columns), 2)

    def default_prior(self, n_components, *, inflation=0.5, no_inflation=1.0, shape=1.0):
        pair = np.transpose([np.broadcast_to(each, self.n_columns) for each in (inflation, no_inflation)])
        shape = np.tile(np.broadcast_to(np.asarray(shape, dtype=float), self.n_columns), (n_components, 1))
        factors = Dirichlet.from_rows(list(pair) * n_components), Gamma.from_parameters(shape, shape)
        return Product(factors, (2 * self.n_columns * n_components,) * 2)

    def features(self, block):
        counts, observed = block.columns
        zero = (counts == 0) * observed
        return np.concatenate([zero, observed - zero, counts])

    def by_kind(self, natural):
        """ln pi, ln(1 - pi), log rates and minus the rates, (..., n_columns) each."""
        d = self.n_columns
        inflated, kept = natural[..., : 2 * d : 2], natural[..., 1 : 2 * d : 2]
        return inflated, kept, natural[..., 2 * d : 3 * d], natural[..., 3 * d :] * self.unit

    def fold(self, natural, complete):  # what multiplies the features
        inflated, kept, log_rate, minus_rate = self.by_kind(natural)
        return np.concatenate([np.logaddexp(inflated, kept + minus_rate), kept + minus_rate, log_rate], axis=-1)

    def unfold(self, sums, complete, inflated=0.0):
        """Statistics (..., cells_per_component) of sums of features, if so much of each 0 is inflated."""
        zeros, more, counts = np.split(sums, 3, axis=-1)
        inflated = inflated * zeros
        kept = more + zeros - inflated
        pairs = np.stack([inflated, kept], axis=-1).reshape(*sums.shape[:-1], -1)
        return np.concatenate([pairs, counts, kept * self.unit], axis=-1)

    def step(self, natural, table):
        return ZeroInflatedPoissonStep(self, natural)

    def is_conjugate(self, table):  # no closed form, even of rows whose component is known
        return False

    def log_base(self, values):  # what no parameter touches
        counts = np.nan_to_num(np.asarray(values, dtype=float), nan=0.0)
        return counts @ np.log(self.unit) - gammaln(counts + 1).sum(axis=1)

    def log_predictive(self, block, posterior):  # a zero, or a negative binomial
        counts, observed = (x[:, :, None] for x in block.columns)
        probabilities, rates = posterior.blocks
        inflation = probabilities.mean().reshape(-1, self.n_columns, 2)[..., 0].T[:, None]
        shape, rate = rates.shape.T[:, None], (rates.rate / self.unit).T[:, None]
        log_p = gammaln(shape + counts) - gammaln(shape) - gammaln(counts + 1)
        log_p = log_p - shape * np.log1p(1 / rate) - counts * np.log1p(rate)
        inflated = np.where(counts == 0, np.log(inflation), -np.inf)
        return (observed * np.logaddexp(inflated, np.log1p(-inflation) + log_p)).sum(axis=0)

    def inflation_and_rates(self, point):
        probabilities, rates = point
        return probabilities.reshape(-1, self.n_columns, 2)[..., 0], rates * self.unit

    def parameters(self, point):  # means, too, which hang on both: draws then have intervals of them
        inflation, rates = self.inflation_and_rates(point)
        means = (1 - inflation) * rates
        deviations = np.sqrt(means * (1 + inflation * rates))
        return {"inflation": inflation, "rates": rates, "means": means, "deviations": deviations}

    def quantiles(self, posterior, probability):  # those of means have no closed form
        pair = self.inflation_and_rates([factor.quantiles(probability) for factor in posterior.blocks])
        return dict(zip(("inflation", "rates"), pair))

    def sample(self, point, components, rng):
        inflation, rates = (each[components] for each in self.inflation_and_rates(point))
        return np.where(rng.random(inflation.shape) < inflation, 0.0, rng.poisson(rates))

    def impute(self, block, point, responsibilities):
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ self.parameters(point)["means"], values)

    def seeding_coordinates(self, block):  # rows as points that spread by about 1, for starts
        roots = 2 * (np.sqrt(np.asarray(block.values, dtype=float)) - np.sqrt(self.unit))
        return np.nan_to_num(roots, nan=0.0)


# %%
# The step: what is hidden at some parameters
# -------------------------------------------
# An emission that hides nothing needs none of these methods. They return expected statistics of all rows and of each
# row, the covariance that the hidden variables add, and statistics with hidden variables drawn.
class ZeroInflatedPoissonStep(LinearStep):
    """The emission at natural parameters, (n_cells,) or (n_cells, n_lanes) for restarts side by side."""

    def __init__(self, emission, natural):
        n_components = emission.n_components(len(natural))
        self.order = np.argsort(emission.component_of_cell(n_components), kind="stable")  # component by component
        super().__init__(emission, natural[self.order])
        inflated, kept, _, minus_rate = emission.by_kind(self.natural)
        self.inflated = np.exp(inflated - np.logaddexp(inflated, kept + minus_rate))  # r

    def statistics(self, total):  # in the order of the prior's cells
        return super().statistics(total)[np.argsort(self.order)]

    def add(self, block, responsibilities, total):
        sums = (as_matrix(responsibilities) @ block.features.T).reshape(*total.shape[:2], -1)
        total += self.emission.unfold(sums, block.complete, self.inflated)

    def of_rows(self, block):
        features = np.repeat(block.features.T[:, None], self.n_components, axis=1)
        return self.emission.unfold(features, block.complete, self.inflated[0])

    def hidden_covariance(self, block, responsibilities):
        d, r = self.emission.n_columns, self.inflated[0]
        zeros, j = responsibilities.T @ block.features[:d].T, np.arange(d)
        moved = np.zeros((d, 4 * d))  # what a 0 adds to the statistics if it is inflated, less what it adds if not
        moved[j, 2 * j], moved[j, 2 * j + 1], moved[j, 3 * d + j] = 1.0, -1.0, -self.emission.unit
        return np.einsum("kj,ja,jb->kab", zeros * r * (1 - r), moved, moved)

    def add_drawn(self, block, components, rng, total):
        components, features = components.reshape(-1, len(block)), block.features.T
        drawn = rng.random((len(block), self.emission.n_columns, len(components)))
        for lane, labels in enumerate(components):
            inflated = drawn[..., lane] < self.inflated[lane, labels]
            np.add.at(total[lane], labels, self.emission.unfold(features, block.complete, inflated))


# %%
# The user's side
# ---------------
class ZeroInflatedPoisson(NumericSpecification):
    """Counts, some of whose zeros are there whatever the rate."""

    wanted, holds_counts = "counts are whole numbers >= 0", True
    largest, if_larger = 1e9, "of counts above 1e+09 the likelihood keeps too few digits. Count in larger units"

    def __init__(self, inflation_prior=0.5, no_inflation_prior=1.0, shape_prior=1.0):
        self.inflation_prior = inflation_prior
        self.no_inflation_prior = no_inflation_prior
        self.shape_prior = shape_prior

    def impossible(self, values):
        return (values < 0) | (values != np.floor(values))

    def for_data(self, values, weight=None):
        mean = weighted_means(values, weight)
        return ZeroInflatedPoissonEmission(np.where(mean > 0, mean, 1.0))

    def prior_options(self, emission, names):
        return {name: self.positive(f"{name}_prior", names) for name in ("inflation", "no_inflation", "shape")}

    def means(self, parameters):
        return parameters["means"]

    def deviations(self, parameters):
        return parameters["deviations"]


# %%
# Does it keep the laws?
# ----------------------
# `check_emission` tries every law of emissions, also those of hidden variables. Drawn statistics have the mean and the
# covariance that the step says. The most likely point of many drawn rows is the one that drew them.
from skvbem.testing import check_emission

rng = np.random.default_rng(0)
rows = np.where(rng.random((12, 2)) < 0.4, 0, rng.poisson([1.0, 2.0], size=(12, 2)))


def log_density(row, parameters, k):
    """The definition, of observed cells."""
    seen = ~np.isnan(row)
    y, p, rate = row[seen], parameters["inflation"][k][seen], parameters["rates"][k][seen]
    return np.log(p * (y == 0) + (1 - p) * np.exp(y * np.log(rate) - rate - gammaln(y + 1))).sum()


for report in check_emission(
    ZeroInflatedPoisson(), rows, log_density=log_density, cells=lambda row, column: range(300), refused=[-1.0, 0.5]
):
    print(len(report.held), "laws hold; for want of something:", sorted(report.lacking))

# %%
# Fits, forecasts and evidences
# -----------------------------
# Nothing else in the library has to know of it.
from skvbem import VBHMM, VBMixture

kind = rng.integers(2, size=80)
counts = np.where(rng.random((80, 2)) < 0.3, 0, rng.poisson(np.array([[2.0, 9.0], [7.0, 1.0]])[kind]))
mixture = VBMixture(2, emission=ZeroInflatedPoisson(), random_state=0).fit(counts)
for name, numbers in mixture.parameters_["zeroinflatedpoisson"].items():
    print(name, numbers.round(2).tolist())
for score in ("lower_bound", "cheeseman_stutz", "laplace", "smc", "auto"):
    print(f"{score:>16}", mixture.log_evidence(counts, kind=score, random_state=0))

weeks = np.where(rng.random((80, 1)) < 0.3, 0, rng.poisson(np.repeat([2.0, 12.0], 20)[np.arange(80) % 40])[:, None])
chain = VBHMM(2, emission=ZeroInflatedPoisson(), random_state=0).fit(weeks)
print("expected next week:", chain.forecast(weeks, 1).expected["x0"].round(1).tolist())
