"""Known numbers about discrete networks: small problems, what is true of them, and how each number was come by.

Tests hold the fast code and the slow definitions against the same numbers. Logarithms are natural.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from reference.discrete_network import Data, Network, bdeu_prior, uniform_prior

# --- networks and data ------------------------------------------------------------------------------------------------


def latent_class(n_classes, cards):
    """A hidden root ``c`` with children y0, y1, ... of the given cardinalities: naive Bayes, LC(n_classes)."""
    columns = [f"y{i}" for i in range(len(cards))]
    return Network({"c": n_classes, **dict(zip(columns, cards))}, {"c": (), **dict.fromkeys(columns, ("c",))})


def bipartite(parents_of_observed, cards):
    """Hidden binary roots s1, s2 and observed y0, y1, ...; parents are strings: "", "1", "2" or "12"."""
    columns = [f"y{i}" for i in range(len(cards))]
    parents = {y: tuple(f"s{i}" for i in digits) for y, digits in zip(columns, parents_of_observed)}
    return Network({"s1": 2, "s2": 2, **dict(zip(columns, cards))}, {"s1": (), "s2": (), **parents})


def cells(counts):
    """Data from the number of rows of each kind, written like {"01": 3}; the columns are y0, y1, ..."""
    rows = np.array([[int(digit) for digit in kind] for kind in counts])
    return Data(tuple(f"y{i}" for i in range(rows.shape[1])), rows, np.array(list(counts.values())))


SIX_ROWS = cells({"00": 2, "01": 1, "11": 2, "10": 1})
TWENTY_ROWS = cells({"000": 6, "111": 6, "001": 2, "110": 2, "010": 1, "101": 1, "100": 1, "011": 1})
FORTY_ROWS = cells({"00": 14, "01": 4, "10": 3, "11": 19})
FOUR_ROWS = cells({"0": 1, "1": 1, "2": 2})
FIVE_ROWS = Data(("y0", "y1", "y2"), np.array([[0, 0, 0], [0, 1, 1], [1, 2, 1], [1, 1, 0], [0, 0, 0]]))


# --- exact evidence ---------------------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    name: str
    network: Network
    data: Data
    prior: dict
    value: Fraction
    source: str

    @property
    def log_value(self):
        """ln p(y)."""
        return math.log(self.value.numerator) - math.log(self.value.denominator)


def _evidence(name, network, data, value, concentration=1, source="sum over all completions, in exact fractions"):
    return Evidence(name, network, data, uniform_prior(network, concentration), Fraction(value), source)


_CLOSED_FORM = "product of Dirichlet-multinomials: nothing is hidden, or what is hidden has no say"

EVIDENCES = (
    _evidence("six rows, LC(1)", latent_class(1, (2, 2)), SIX_ROWS, "1/19600", source=_CLOSED_FORM),
    _evidence("six rows, LC(2)", latent_class(2, (2, 2)), SIX_ROWS, "213271/2667168000"),
    _evidence("six rows, LC(3)", latent_class(3, (2, 2)), SIX_ROWS, "3264263/32006016000"),
    _evidence("six rows, LC(2), concentration 1/2", latent_class(2, (2, 2)), SIX_ROWS, "2617/67108864", 0.5),
    _evidence(
        "twenty rows, LC(1)", latent_class(1, (2, 2, 2)), TWENTY_ROWS, "1/58405471942174733376", source=_CLOSED_FORM
    ),
    _evidence(
        "twenty rows, LC(2)",
        latent_class(2, (2, 2, 2)),
        TWENTY_ROWS,
        "1076555690108442415406891/3417512058868309701596824202110955520000000",
    ),
    _evidence(
        "forty rows, LC(1)", latent_class(1, (2, 2)), FORTY_ROWS, "1/16911701068986174101040000", source=_CLOSED_FORM
    ),
    _evidence(
        "forty rows, LC(2)",
        latent_class(2, (2, 2)),
        FORTY_ROWS,
        "8661460742616317939558286379973/499097254499434661678481627009402917405220698112000000",
    ),
    _evidence("one feature, LC(2)", latent_class(2, (3,)), FOUR_ROWS, "1/135"),
    _evidence("two latents, one shared", bipartite(("1", "12", "2"), (2, 3, 2)), FIVE_ROWS, "3276331/2645395200000"),
    _evidence("two latents, all shared", bipartite(("12", "12", "12"), (2, 3, 2)), FIVE_ROWS, "14807/9185400000"),
    _evidence("two latents, no arcs", bipartite(("", "", ""), (2, 3, 2)), FIVE_ROWS, "1/2268000", source=_CLOSED_FORM),
)


class CompleteScores(NamedTuple):
    """Scores of a network without hidden nodes, all computed by bnlearn 4.8.3; bic = log_likelihood − d/2 ln n."""

    name: str
    network: Network
    log_likelihood: float
    bic: float
    n_free_parameters: int
    evidences: tuple  # pairs (prior, ln p(y))


# Schoener 1968, Fienberg 1980: species Distichus, Sagrei; perch diameter narrow, wide; perch height high, low.
LIZARDS = Data(
    ("species", "diameter", "height"),
    np.array([[int(digit) for digit in f"{kind:03b}"] for kind in range(8)]),
    np.array([73, 61, 70, 41, 86, 32, 35, 11]),
)


def _lizards(name, parents, log_likelihood, bic, n_free_parameters, uniform, bdeu_1, bdeu_10):
    network = Network(dict.fromkeys(LIZARDS.columns, 2), {**dict.fromkeys(LIZARDS.columns, ()), **parents})
    priors = uniform_prior(network), bdeu_prior(network, 1), bdeu_prior(network, 10)
    evidences = tuple(zip(priors, (uniform, bdeu_1, bdeu_10)))
    return CompleteScores(name, network, log_likelihood, bic, n_free_parameters, evidences)


LIZARD_SCORES = (
    _lizards(
        "independent",
        {},
        *(-813.718463343717, -822.739036077782, 3),
        *(-822.158961909719, -823.418321434481, -820.203792855913),
    ),
    _lizards(
        "species a common cause",
        {"diameter": ("species",), "height": ("species",)},
        *(-802.212909029403, -817.24719691951, 5),
        *(-814.981730580192, -818.873180721482, -812.897036388399),
    ),
    _lizards(
        "species a common effect",
        {"species": ("diameter", "height")},
        *(-801.503938300841, -819.54508376897, 6),
        *(-815.687561399178, -822.078094951836, -814.090353994555),
    ),
    _lizards(
        "complete",
        {"diameter": ("species",), "height": ("species", "diameter")},
        *(-801.200085704465, -822.248088750615, 7),
        *(-817.517434405002, -825.262155700013, -815.686717156501),
    ),
)


# --- EM and VBEM: LC(2) on the twenty rows, concentration one --------------------------------------------------------
#
# Source: float64, by definition, in two programs that share nothing and agree to the digits given.

START = np.where(TWENTY_ROWS.cells.sum(1, keepdims=True) <= 1, [0.9, 0.1], [0.1, 0.9])  # P(class), (8, 2)

VB_TRACE = (  # the bound after M, E, M, E
    -46.166820580924,
    -44.994932393921,
    -44.856643698953,
    -44.802917926618,
)
VB_BOUND = -44.770300050125  # converged
VB_RESPONSIBILITIES = {  # of the first class, converged; a row with 0 and 1 exchanged has the complement
    (0, 0, 0): 0.9864952065,
    (0, 0, 1): 0.9064565688,
    (0, 1, 0): 0.7330198051,
    (1, 0, 0): 0.7330198051,
}
VB_COLLAPSED_BOUND = -43.810538243670  # ⟨ln BD(N)⟩ + H(q) at the converged q(x)

ML_FIRST_CLASS = (  # P(y_j = 0 | c = 0), converged; P(c = 0) = 1/2
    (1 + math.sqrt(0.6)) / 2,
    (1 + math.sqrt(0.6)) / 2,
    0.75819889,
)
ML_LOG_LIKELIHOOD = -35.640943118103
ML_BIC = -46.126006075542  # d' = 7
ML_CHEESEMAN_STUTZ = -44.849631656839

MAP_LOG_LIKELIHOOD = -36.545586308231  # softmax basis
MAP_OBJECTIVE = -48.399997945584
MAP_CHEESEMAN_STUTZ = -44.831672039927
MAP_LAPLACE = -43.804153169626

VB_BOUND_BY_CONCENTRATION = {  # the same start, other concentrations in every cell
    0.25: -48.179052374172,  # not the best there: a start found -48.018837817333
    0.5: -45.895194955776,
    1.0: -44.770300050125,
    2.0: -44.613107727847,
    4.0: -44.569579599909,
}

# The best bound of LC(K) on the twenty rows, from 300 random starts each.
BEST_VB_BOUND_BY_CLASSES = {1: -45.513941256978, 2: -44.770300050125, 3: -46.862247388115, 4: -48.595318250480}

# --- bounds in closed form --------------------------------------------------------------------------------------------


def symmetric_bound_of_one_row(n_features):
    """F of LC(2) with concentration one and n = 1 binary row where both classes share it equally."""
    return math.log(math.pi / 4 * (2 / 3) ** (2 * n_features))


# The best bound of LC(2), n = 1, by number of features, from 100 random starts: the symmetric one up to two features.
BEST_BOUND_OF_ONE_ROW = {1: -1.052494691487, 2: -1.863424907703, 3: -2.659362221578, 4: -3.404354460179}

# LC(2) on the six rows: 200 random starts end in the symmetric point, below even LC(1).
SIX_ROWS_VB_BOUND = -11.217511696858


def empty_class(n_classes, n, concentration):
    """What a class without rows adds to F of LC(n_classes)."""
    k, a = n_classes, concentration
    return math.lgamma((k + 1) * a) + math.lgamma(k * a + n) - math.lgamma(k * a) - math.lgamma((k + 1) * a + n)


def childless_latent(n, r=0.5):
    """What a binary hidden node without children, Dir(1, 1), adds to F if kept in q with probability r in each row."""
    nats = 0.0 if r in (0, 1) else -r * math.log(r) - (1 - r) * math.log(1 - r)
    return n * nats + math.lgamma(1 + n * r) + math.lgamma(1 + n * (1 - r)) - math.lgamma(2 + n)


EMPTY_CLASS_OF_TWENTY_ROWS = -math.log(21)  # empty_class(1, 20, 1)
CHILDLESS_LATENT_OF_TWENTY_ROWS = -1.308370141127  # childless_latent(20), at r = 1/2 the largest of all r

# --- dimensions, structures and symmetries ----------------------------------------------------------------------------
#
# Source: ranks of the exact Jacobian modulo a prime, at two random points; counts by enumeration.

# (n_classes, cardinalities, d', d). A count of parameters and cells would say 14 for LC(3) on four binary features and
# 26 for LC(4) on three ternary ones: the two classical defective cases.
LATENT_CLASS_DIMENSIONS = (
    (2, (2, 2), 5, 3),
    (2, (2, 2, 2), 7, 7),
    (3, (2, 2, 2), 11, 7),
    (2, (2, 2, 2, 2), 9, 9),
    (3, (2, 2, 2, 2), 14, 13),
    (4, (2, 2, 2, 2), 19, 15),
    (3, (2, 2, 2, 2, 2), 17, 17),
    (4, (2, 2, 2, 2, 2), 23, 23),
    (5, (2, 2, 2, 2, 2), 29, 29),
    (2, (3, 3), 9, 7),
    (2, (5, 5), 17, 15),
    (2, (3, 3, 3), 13, 13),
    (3, (3, 3, 3), 20, 20),
    (4, (3, 3, 3), 27, 25),
    (5, (3, 3, 3), 34, 26),
    (2, (5, 5, 5), 25, 25),
    (2, (5, 5, 5, 5), 33, 33),
)

# Two binary latents over four observed nodes of five states [BG, section 4], up to renaming of nodes: the parents of
# the observed nodes, how many labeled structures are like it, d', d and the number of aliases S.
BIPARTITE_DIMENSIONS = (
    (("", "", "", ""), 1, 18, 16, 1),
    (("", "", "", "1"), 8, 22, 16, 2),
    (("", "", "1", "2"), 12, 26, 16, 4),
    (("", "", "1", "1"), 12, 26, 23, 2),
    (("", "1", "1", "2"), 24, 30, 23, 4),
    (("", "1", "1", "1"), 8, 30, 29, 2),
    (("", "", "", "12"), 4, 30, 16, 8),
    (("1", "1", "2", "2"), 6, 34, 30, 4),
    (("1", "1", "1", "2"), 8, 34, 29, 4),
    (("1", "1", "1", "1"), 2, 34, 33, 2),
    (("", "", "1", "12"), 24, 34, 23, 4),
    (("", "1", "2", "12"), 24, 38, 34, 4),
    (("", "1", "1", "12"), 24, 38, 29, 4),
    (("1", "1", "2", "12"), 24, 42, 40, 4),
    (("1", "1", "1", "12"), 8, 42, 33, 4),
    (("", "", "12", "12"), 6, 42, 31, 8),
    (("", "1", "12", "12"), 24, 46, 43, 4),
    (("1", "2", "12", "12"), 12, 50, 50, 4),
    (("1", "1", "12", "12"), 12, 50, 47, 4),
    (("", "12", "12", "12"), 4, 54, 54, 8),
    (("1", "12", "12", "12"), 8, 58, 58, 4),
    (("12", "12", "12", "12"), 1, 66, 66, 8),
)

# (hidden, observed) -> number of bipartite structures when the hidden nodes are exchangeable.
BIPARTITE_COUNTS = {(2, 2): 10, (2, 3): 36, (2, 4): 136, (3, 4): 816}

# Cardinalities of the hidden parents of one observed node -> S.
ALIASES_OF_HIDDEN_PARENTS = {(3, 3, 4): 1728}
