"""The problems of `optima`: real tables, models with everything of their priors said, and where their starts may go.

A problem has one objective, the lower bound or the log likelihood, whatever the defaults of the library are: priors
are spelled out, so that what is recorded of a problem stays true when a default changes. Half of them, of each kind,
are marked "tuning"; whoever chooses defaults looks at no others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from reproduction import real_tables
from scipy.linalg import eigh
from sklearn.datasets import load_digits

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, datasets
from skvbem.emissions import (
    Bernoulli,
    Categorical,
    EmissionSpecification,
    Exponential,
    Gaussian,
    Multinomial,
    Poisson,
)

COVARIANCES = ("full", "tied", "diag", "spherical")
#: Kinds whose prior has a hidden scale, as "hierarchical full".
HIERARCHICAL = "hierarchical"
# Where a variance, relative to that of the table, counts as stopped by the floor of maximum likelihood, which is 1e-6.
_AT_FLOOR = 1.01e-6


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as a fit takes it.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN where missing.
    options : dict
        Further arguments of `fit`: `lengths` of sequences, `sample_weight`.
    """

    X: np.ndarray
    options: dict = field(default_factory=dict)


def _gaps(X: np.ndarray, share: float = 0.1) -> np.ndarray:
    X = X.astype(float)
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


def _coded(bunch) -> Rows:
    """Codes 0, 1, ... of categories, NaN where missing."""
    codes = np.full(bunch.data.shape, np.nan)
    for j, column in enumerate(bunch.data.T):
        seen = np.array([cell == cell for cell in column])
        codes[seen, j] = np.unique(column[seen].astype(str), return_inverse=True)[1]
    return Rows(codes)


def _standardized(name: str, n_columns: int | None = None) -> Rows:
    return Rows(real_tables.standardized(real_tables.raw(name)[:, :n_columns]))


def _pixels() -> Rows:
    X = load_digits().data
    return Rows(X[:, X.std(axis=0) > 0])


def _passages(length: int = 500) -> Rows:
    """How often each symbol occurs in successive passages of a text."""
    codes = _symbols()
    passages = codes[: len(codes) // length * length].reshape(-1, length)
    return Rows((passages[:, :, None] == np.arange(27)).sum(axis=1).astype(float))


def _symbols() -> np.ndarray:
    return np.array([" abcdefghijklmnopqrstuvwxyz".index(symbol) for symbol in datasets.load_alice()])


def _speed(*names: str) -> Rows:
    """Three series of response times, or of correct answers."""
    columns = real_tables.columns_of(real_tables.GPL / "speed.csv")
    series = np.array(columns["series"])
    read = {"rt": lambda: np.array(columns["rt"], dtype=float), "corr": lambda: np.array(columns["corr"]) == "cor"}
    return Rows(
        np.array([read[name]() for name in names], dtype=float).T, {"lengths": np.unique(series, return_counts=True)[1]}
    )


def _panel() -> Rows:
    """Five yearly answers of 237 people, equal ones together."""
    columns = real_tables.columns_of(real_tables.GPL / "marijuana_panel_counts.csv")
    cells = np.array([columns[f"V{j}"] for j in range(1, 7)], dtype=float).T
    years, weight = cells[:, :5], cells[:, 5]
    return Rows(years.reshape(-1, 1), {"lengths": [5] * len(years), "sample_weight": np.repeat(weight, 5)})


def _survey(seed: int, n: int = 400) -> Rows:
    """Age and income, and columns with ties: children, sex, years of school."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    children = rng.poisson(np.exp(0.3 * age)).clip(0, 4)
    sex, school = rng.integers(0, 2, n), rng.choice([9, 12, 14, 16, 17], n, p=[0.1, 0.4, 0.2, 0.2, 0.1])
    return Rows(real_tables.standardized(np.c_[age, rng.normal(size=n) + 0.5 * age, children, sex, school]))


def _wide(seed: int) -> Rows:
    """120 rows of 35 columns in three clumps of unlike covariances."""
    rng = np.random.default_rng(seed)
    clumps = [rng.normal(size=(40, 35)) @ rng.normal(size=(35, 35)) / 6 + rng.normal(size=35) for _ in range(3)]
    return Rows(real_tables.standardized(np.concatenate(clumps)))


def _rare(seed: int) -> Rows:
    """Nine rows of a clump of their own beside 400."""
    rng = np.random.default_rng(seed)
    return Rows(np.r_[rng.normal(size=(400, 3)), 0.3 * rng.normal(size=(9, 3)) + rng.normal(size=3) * 2.5])


#: The rows on which all starts of scikit-learn's kinds, and all around rows, end below the optimum.
EIGHT = [
    *((-1.489, -1.811), (-0.906, -1.27), (-2.573, 0.467), (-3.322, -3.277)),
    *((3.076, 2.226), (1.791, 2.239), (2.724, 1.614), (1.402, 0.987)),
]
#: Groups of tables that are made by formula.
MADE = {"survey": "columns with ties", "wide": "wide tables", "rare": "rare components"}
#: Tables by name. Measurements are standardized.
TABLES: dict[str, Callable[[], Rows]] = {
    **{name: lambda name=name: _standardized(name) for name in real_tables.MEASUREMENTS},
    "wine 6": lambda: _standardized("wine", 6),
    "breast_cancer 6": lambda: _standardized("breast_cancer", 6),
    "diabetes 6": lambda: _standardized("diabetes", 6),
    "digits 4": lambda: _standardized("digits", 4),
    "iris, gaps": lambda: Rows(_gaps(_standardized("iris").X)),
    "breast_cancer 6, gaps": lambda: Rows(_gaps(_standardized("breast_cancer", 6).X)),
    "eight rows": lambda: Rows(np.array(EIGHT)),
    "engel, raw": lambda: Rows(real_tables.raw("engel")),
    "us_arrests, raw": lambda: Rows(real_tables.raw("us_arrests")),
    "earthquakes": lambda: Rows(datasets.load_earthquakes().data.astype(float)[:, -1:]),
    "fetal_lamb": lambda: Rows(datasets.load_fetal_lamb().data.astype(float)),
    "pixels": _pixels,
    "passages": _passages,
    **{f"survey {seed}": lambda seed=seed: _survey(seed) for seed in range(10, 14)},
    **{f"wide {seed}": lambda seed=seed: _wide(seed) for seed in range(4)},
    **{f"rare {seed}": lambda seed=seed: _rare(seed) for seed in range(4)},
    "speed, rt": lambda: _speed("rt"),
    "speed, corr": lambda: _speed("corr"),
    "speed": lambda: _speed("rt", "corr"),
    "marijuana": _panel,
    "alice 2000": lambda: Rows(_symbols()[:2000, None].astype(float)),
    "alice vowels": lambda: Rows(np.isin(_symbols()[:1000, None], [1, 5, 9, 15, 21]).astype(float)),
    **{
        name: lambda load=load: _coded(load())
        for name, load in {
            "coleman_panel": datasets.load_coleman_panel,
            "carcinoma": datasets.load_carcinoma,
            "stouffer_toby": datasets.load_stouffer_toby,
            "cheating": datasets.load_cheating,
            "gender_role": datasets.load_gender_role,
            "lsat6": datasets.load_lsat6,
            "lizards": datasets.load_lizards,
            "soybean_small": datasets.load_soybean_small,
            "soybean_large": datasets.load_soybean_large,
            "zoo": datasets.load_zoo,
            "car": datasets.load_car,
        }.items()
    },
}


@cache
def rows_of(table: str) -> Rows:
    """The table of a name."""
    return TABLES[table]()


#: Networks of two latents by name: table, and parents of the nodes that have any.
NETWORKS = {
    "coleman linked": ("coleman_panel", {"h1": ["h0"], "x0": ["h0"], "x2": ["h0"], "x1": ["h1"], "x3": ["h1"]}),
    "coleman crossed": ("coleman_panel", {"x0": ["h0"], "x1": ["h0", "h1"], "x2": ["h0", "h1"], "x3": ["h1"]}),
    "carcinoma crossed": (
        "carcinoma",
        {f"x{j}": ["h0"] * (j < 5) + ["h1"] * (j > 1) for j in range(7)},
    ),
    "carcinoma linked": ("carcinoma", {"h1": ["h0"]} | {f"x{j}": ["h0" if j < 4 else "h1"] for j in range(7)}),
    "gender_role crossed": (
        "gender_role",
        {f"x{j}": ["h0"] * (j < 3) + ["h1"] * (j > 1) for j in range(5)},
    ),
    "gender_role linked": ("gender_role", {"h1": ["h0"]} | {f"x{j}": ["h0" if j < 2 else "h1"] for j in range(5)}),
    "lsat6 linked": ("lsat6", {"h1": ["h0"]} | {f"x{j}": ["h0" if j < 2 else "h1"] for j in range(5)}),
    "stouffer_toby crossed": (
        "stouffer_toby",
        {"x0": ["h0"], "x1": ["h0", "h1"], "x2": ["h0", "h1"], "x3": ["h1"]},
    ),
    "cheating linked": (
        "cheating",
        {"h1": ["h0"], "x0": ["h0"], "x1": ["h0"], "x2": ["h1"], "x3": ["h1"], "x4": ["h0", "h1"]},
    ),
    "car linked": ("car", {"h1": ["h0"]} | {f"x{j}": ["h0" if j < 3 else "h1"] for j in range(6)}),
    "zoo crossed": ("zoo", {f"x{j}": ["h0"] * (j < 12) + ["h1"] * (j > 3) for j in range(16)}),
}


@dataclass(frozen=True)
class Problem:
    """One objective to be made as large as can be.

    Parameters
    ----------
    model : str
        "mixture", "chain", "classes" (a network of one latent) or a name of `NETWORKS`.
    table : str
    kind : str
        A covariance type, a family of columns, either of them "hierarchical", "mixed", or "process" (sticks broken in
        turn over full covariances).
    n_components : int
        Of each latent.
    method : str
        "vb" or "ml".
    """

    model: str
    table: str
    kind: str
    n_components: int
    method: str

    @property
    def name(self) -> str:
        """What records call it."""
        return f"{self.model}, {self.table}, {self.kind}, {self.n_components}, {self.method}"

    @property
    def half(self) -> str:
        """Whether defaults may be tuned on it, "tuning", or not, "held"."""
        return HALVES[self.name]

    @property
    def is_network(self) -> bool:
        """Whether its starts are tables of probabilities, not responsibilities."""
        return self.model not in ("mixture", "chain")

    @property
    def group(self) -> str:
        """Kind of problems that tables of results put together."""
        if self.is_network:
            return "latent classes" if self.model == "classes" else "networks of two latents"
        if self.model == "chain":
            return "chains"
        if self.table.split()[0] in MADE:
            return MADE[self.table.split()[0]]
        if self.kind.startswith(HIERARCHICAL):
            return "hierarchical priors"
        return f"Gaussian {self.kind}" if self.kind in COVARIANCES else "other mixtures"

    @property
    def rows(self) -> Rows:
        """The data."""
        return rows_of(self.table)

    @property
    def is_here(self) -> bool:
        """Whether the table can be read."""
        name = self.table.partition(",")[0]
        if name in ("speed", "marijuana"):
            return (real_tables.GPL / "speed.csv").exists()
        return real_tables.is_here(name)

    @property
    def n_starts_wanted(self) -> int:
        """Starts before the best known counts as such."""
        n_rows, n_columns = self.rows.X.shape
        return 100 if n_rows > 2000 or n_columns > 20 else 500

    def emission(self) -> EmissionSpecification | list:
        """What the columns hold, every parameter of the prior said."""
        X = self.rows.X
        d = X.shape[1]
        if self.table == "eight rows":
            return Gaussian(
                mean_prior=[0.0, 0.0],
                mean_precision_prior=0.5,
                degrees_of_freedom_prior=4.0,
                covariance_prior=np.eye(2),
            )
        if self.kind.startswith(HIERARCHICAL):
            return hierarchical(self.kind.split()[-1], d)
        if self.kind in (*COVARIANCES, "process"):
            return gaussian("full" if self.kind == "process" else self.kind, d)
        if self.kind == "mixed":  # the columns of speed
            return [("times", gaussian("full", 1), [0]), ("answers", Categorical(concentration_prior=1.0), [1])]
        mean = np.nanmean(X, axis=0)
        return {
            "poisson": lambda: Poisson(shape_prior=1.0, rate_prior=1.0 / mean),
            "exponential": lambda: Exponential(shape_prior=1.0, rate_prior=mean),
            "bernoulli": lambda: Bernoulli(concentration_prior=1.0),
            "categorical": lambda: Categorical(concentration_prior=1.0),
            "multinomial": lambda: Multinomial(concentration_prior=1.0),
        }[self.kind]()

    def estimator(self, **options):
        """The estimator, with its defaults for all that is no part of the objective."""
        options["method"] = self.method
        if self.is_network:
            parents = None if self.model == "classes" else NETWORKS[self.model][1]
            latents = dict.fromkeys(["h0"] if parents is None else ["h0", "h1"], self.n_components)
            return VBDiscreteDAG(parents, latents=latents, prior=1.0, **options)
        if self.model == "chain":
            return VBHMM(
                self.n_components, emission=self.emission(), startprob_prior=1.0, transmat_prior=1.0, **options
            )
        weights = "dirichlet_process" if self.kind == "process" else "dirichlet_distribution"
        return VBMixture(
            self.n_components,
            emission=self.emission(),
            weight_concentration_prior_type=weights,
            weight_concentration_prior=1.0,
            **options,
        )

    def fit(self, **options):
        """A fit, its parameters as given and else the defaults."""
        rows = self.rows
        more = dict(rows.options)
        if self.model != "chain":
            more.pop("lengths", None)
        return self.estimator(**options).fit(rows.X, **more)

    def objective(self, model) -> float:
        """What is to be made large, nats."""
        return float(model.lower_bound_ if self.method == "vb" else model.log_likelihood_)

    def is_proper(self, model) -> bool:
        """Whether the fit counts: of maximum likelihood, no Gaussian component may be a spike.

        A spike has a variance at the floor in some direction, or no more than as many rows as there are columns.
        """
        if self.method == "vb" or self.kind not in (*COVARIANCES, "mixed"):
            return True
        X = self.rows.X[:, :1] if self.kind == "mixed" else self.rows.X
        return bool(self._least_variance(model, X) > _AT_FLOOR and model.counts_.min() > X.shape[1])

    def _least_variance(self, model, X: np.ndarray) -> float:
        """The least variance of a component in any direction, relative to that of the table."""
        covariances = np.asarray(model.covariances_)
        if self.kind == "tied":
            covariances = covariances[None]
        if covariances.ndim == 3:
            moments = np.atleast_2d(np.ma.cov(np.ma.masked_invalid(X), rowvar=False, bias=True).data)
            return float(min(eigh(each, moments, eigvals_only=True)[0] for each in covariances))
        variances = np.nanvar(X, axis=0)
        if covariances.ndim == 1:  # spherical: one for all columns
            return float(covariances.min() / variances.max())
        return float((covariances / variances).min())


def gaussian(kind: str, d: int) -> Gaussian:
    """The prior of fixed scale: the covariance of the table, one row's worth of its mean, d degrees of freedom."""
    return Gaussian(kind, mean_precision_prior=1.0, covariance_prior=None, degrees_of_freedom_prior=float(d))


def hierarchical(kind: str, d: int) -> EmissionSpecification:
    """The prior whose scale, and weight of the mean, are hidden."""
    if kind == "poisson":
        return Poisson(shape_prior=1.0, rate_prior=HIERARCHICAL)
    degrees_of_freedom = d + 2.0 if kind in ("full", "tied") else 3.0
    return Gaussian(
        kind,
        mean_precision_prior=HIERARCHICAL,
        covariance_prior=HIERARCHICAL,
        degrees_of_freedom_prior=degrees_of_freedom,
    )


def _mixtures() -> Iterator[Problem]:
    vb = {
        "full": {
            "iris": (2, 3, 4, 5, 6, 8),
            "wine 6": (2, 3, 4, 5, 6, 8),
            "wine": (2, 3, 4, 5),
            "breast_cancer 6": (2, 3, 4, 5, 6, 8),
            "diabetes 6": (2, 3, 4, 5, 6, 8),
            "galaxies": (2, 3, 4, 5, 6, 8, 10),
            "faithful": (2, 3, 4, 5, 6, 8),
            "crabs": (2, 3, 4, 5, 6),
            "us_arrests": (2, 3, 4),
            "engel": (2, 3, 4, 5),
            "digits 4": (4, 10),
            "iris, gaps": (3, 4),
            "breast_cancer 6, gaps": (3,),
            "eight rows": (2,),
        },
        "tied": {
            "iris": (3, 5),
            "wine 6": (3,),
            "breast_cancer 6": (4,),
            "faithful": (3,),
            "crabs": (4,),
            "engel": (4,),
        },
        "diag": {
            "iris": (3, 6),
            "wine": (3, 5),
            "breast_cancer": (3, 6),
            "diabetes 6": (4,),
            "faithful": (5,),
            "crabs": (4,),
            "digits": (10,),
            "iris, gaps": (4,),
        },
        "spherical": {"iris": (4, 8), "wine": (4,), "crabs": (6,), "faithful": (5,), "digits": (10,)},
        "process": {"iris": (6,), "galaxies": (10,), "faithful": (6,), "wine 6": (5,)},
        "poisson": {"earthquakes": (2, 3, 4), "fetal_lamb": (2, 3, 4), "pixels": (10,)},
        "exponential": {"engel, raw": (2, 3), "us_arrests, raw": (3,)},
        "multinomial": {"passages": (2, 3, 5)},
        "bernoulli": {"lsat6": (2, 3), "gender_role": (3,)},
        "categorical": {"soybean_large": (6,), "zoo": (5,), "cheating": (3,)},
        "mixed": {"speed": (2, 3, 4)},
        "hierarchical full": {
            "iris": (2, 3, 4, 6),
            "wine 6": (3, 5),
            "wine": (3,),
            "breast_cancer 6": (3, 5),
            "diabetes 6": (3, 5),
            "galaxies": (3, 6),
            "faithful": (2, 4),
            "crabs": (3, 5),
            "engel": (3,),
            "us_arrests": (3,),
        },
        "hierarchical tied": {"iris": (4,), "crabs": (4,)},
        "hierarchical diag": {"iris": (4,), "wine": (3,), "breast_cancer 6": (4,)},
        "hierarchical spherical": {"iris": (4,), "faithful": (5,)},
        "hierarchical poisson": {"earthquakes": (3,), "fetal_lamb": (3,)},
    }
    ml = {
        "full": {
            "iris": (2, 3, 4),
            "wine 6": (2, 3),
            "breast_cancer 6": (2, 3, 4, 5),
            "diabetes 6": (2, 3, 4),
            "galaxies": (2, 3, 4),
            "faithful": (2, 3, 4, 5),
            "crabs": (2, 3),
            "engel": (2, 3),
            "digits 4": (4,),
        },
        "tied": {"iris": (4,), "faithful": (3,), "crabs": (4,), "diabetes 6": (3,)},
        "diag": {"iris": (3,), "wine": (3,), "faithful": (4,), "breast_cancer 6": (4,)},
        "spherical": {"iris": (5,), "faithful": (5,), "wine": (4,)},
        "poisson": {"earthquakes": (3, 4), "fetal_lamb": (3,)},
        "mixed": {"speed": (3,)},
    }
    for method, kinds in (("vb", vb), ("ml", ml)):
        for kind, tables in kinds.items():
            for table, sizes in tables.items():
                yield from (Problem("mixture", table, kind, k, method) for k in sizes)


def _made() -> Iterator[Problem]:
    """Problems of tables made by formula: ties, more columns than a component has rows, rare components."""
    for seed in range(10, 14):
        for kind, k in (("full", 3), ("full", 4), ("diag", 5), ("hierarchical full", 3)):
            yield Problem("mixture", f"survey {seed}", kind, k, "vb")
    for seed in range(4):
        yield Problem("mixture", f"wide {seed}", "full", 3, "vb")
        for k in (2, 3):
            yield Problem("mixture", f"rare {seed}", "full", k, "ml")


def _networks() -> Iterator[Problem]:
    vb = {
        "carcinoma": (2, 3, 4, 5),
        "stouffer_toby": (2, 3),
        "cheating": (2, 3, 4),
        "gender_role": (2, 3, 4),
        "lsat6": (2, 3),
        "coleman_panel": (2, 3, 4),
        "lizards": (2,),
        "zoo": (4, 7),
        "soybean_small": (4, 6),
        "car": (3,),
    }
    ml = {
        "carcinoma": (2, 3, 4),
        "stouffer_toby": (2,),
        "cheating": (2,),
        "gender_role": (3,),
        "lsat6": (2,),
        "zoo": (3,),
    }
    for method, tables in (("vb", vb), ("ml", ml)):
        for table, sizes in tables.items():
            yield from (Problem("classes", table, "categorical", k, method) for k in sizes)
    for model, (table, _) in NETWORKS.items():
        yield Problem(model, table, "categorical", 2, "vb")
    for model, k, method in (("carcinoma crossed", 3, "vb"), ("zoo crossed", 3, "vb"), ("coleman linked", 2, "ml")):
        yield Problem(model, NETWORKS[model][0], "categorical", k, method)


def _chains() -> Iterator[Problem]:
    vb = {
        ("earthquakes", "poisson"): (2, 3, 4, 5),
        ("fetal_lamb", "poisson"): (2, 3, 4, 5),
        ("speed, rt", "full"): (2, 3, 4),
        ("speed, corr", "categorical"): (2, 3),
        ("speed", "mixed"): (2, 3),
        ("marijuana", "categorical"): (2, 3, 4),
        ("alice 2000", "categorical"): (2, 4),
        ("alice vowels", "categorical"): (3,),
    }
    ml = {
        ("earthquakes", "poisson"): (2, 3, 4),
        ("fetal_lamb", "poisson"): (2, 3),
        ("speed, rt", "full"): (2, 3),
        ("marijuana", "categorical"): (3,),
    }
    for method, tables in (("vb", vb), ("ml", ml)):
        for (table, kind), sizes in tables.items():
            yield from (Problem("chain", table, kind, k, method) for k in sizes)


#: All problems by name.
PROBLEMS = {problem.name: problem for make in (_mixtures, _networks, _chains, _made) for problem in make()}


def _halves() -> dict[str, str]:
    """Of the problems of a group and method every other one, in an order that depends on their names alone."""
    members: dict[tuple[str, str], list[str]] = {}
    for problem in PROBLEMS.values():
        members.setdefault((problem.group, problem.method), []).append(problem.name)
    return {
        name: ("tuning", "held")[at % 2]
        for names in members.values()
        for at, name in enumerate(sorted(names, key=lambda name: zlib.crc32(name.encode())))
    }


#: Whether a problem is one to tune on, by name.
HALVES = _halves()
