"""Starts of all kinds for `optima`, made from outside of the library: responsibilities, and moves between them.

Nothing here knows how the library draws its starts, or what it moves: a part is an array (n_rows, n_states) of a
latent's responsibilities, one part for each latent, and a fit starts where its parts put the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from reproduction.optima_problems import COVARIANCES, Problem
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture

try:
    from hmmlearn.hmm import GaussianHMM, PoissonHMM
except ImportError:  # it has no wheels for every Python
    GaussianHMM = PoissonHMM = None

Parts = list[np.ndarray]
# What a start leaves to every other state, so that none is out of reach.
_ELSEWHERE = 1e-3
# More rows than these are not joined two by two.
_MAX_ROWS_JOINED = 3000


def coordinates(problem: Problem) -> np.ndarray:
    """Rows as points whose distances tell how unlike they are: standardized numbers, indicators of categories."""
    X, columns = problem.rows.X, []
    for j, column in enumerate(X.T):
        is_number = problem.kind not in ("categorical", "bernoulli") and not (problem.kind == "mixed" and j == 1)
        if is_number:
            filled = np.where(np.isnan(column), np.nanmean(column), column)
            roots = np.sqrt(filled) if problem.kind.split()[-1] in ("poisson", "multinomial", "exponential") else filled
            columns.append((roots - roots.mean()) / (roots.std() or 1.0))
        else:
            columns.extend((column == level).astype(float) for level in np.unique(column[~np.isnan(column)]))
    return np.array(columns).T


def indicators(label: np.ndarray, n_states: int) -> np.ndarray:
    """Responsibilities of known states, a little of each row left to the others."""
    return (1 - _ELSEWHERE) * (label[:, None] == np.arange(n_states)) + _ELSEWHERE / n_states


def normalized(part: np.ndarray) -> np.ndarray:
    """Rows that sum to 1, a little of each left to every state."""
    part = np.maximum(part, 0.0)
    part = part / np.maximum(part.sum(axis=1, keepdims=True), 1e-300)
    return (1 - _ELSEWHERE) * part + _ELSEWHERE / part.shape[1]


# --- between parts and fits -------------------------------------------------------------------------------------------


def parts_of(problem: Problem, model) -> Parts:
    """The responsibilities that a fit gives its rows, one part for each latent."""
    rows = problem.rows
    options = {"lengths": rows.options["lengths"]} if problem.model == "chain" and "lengths" in rows.options else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probabilities = model.predict_proba(rows.X, **options)
    return probabilities if isinstance(probabilities, list) else [probabilities]


def fit_from(problem: Problem, parts: Parts, **options):
    """A fit that starts where the parts put the rows."""
    init = _tables(problem, parts) if problem.is_network else normalized(parts[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.fit(init=init, **options)


def _tables(problem: Problem, parts: Parts) -> dict[str, np.ndarray]:
    """Tables of all nodes: shares of the rows, the latents of a row held independent, 0.1 of a row in every cell."""
    estimator, X = problem.estimator(), problem.rows.X
    latents = list(estimator.latents)
    of_node = dict(zip(latents, parts))
    for j, column in enumerate(X.T):
        codes = np.unique(column[~np.isnan(column)])
        hits = (column[:, None] == codes).astype(float)
        of_node[f"x{j}"] = np.where(np.isnan(column)[:, None], 1 / len(codes), hits)
    parents = dict(estimator.structure or {f"x{j}": ["h0"] for j in range(X.shape[1])})
    tables, rng = {}, np.random.default_rng(0)
    for node, of_rows in of_node.items():
        above = [of_node[parent] for parent in sorted(parents.get(node, []))]
        axes = "abcd"[: len(above) + 1]
        cells = np.einsum(",".join(f"n{axis}" for axis in axes) + "->" + axes, *above, of_rows)
        cells += 0.1 + 0.01 * rng.random(cells.shape)  # states are never quite alike: that would be a saddle point
        tables[node] = cells / cells.sum(axis=-1, keepdims=True)
    return tables


# --- starts -----------------------------------------------------------------------------------------------------------


def random_parts(problem: Problem, rng: np.random.Generator) -> Parts:
    """Responsibilities drawn row by row, sharp or blurred."""
    n, k, sharpness = len(problem.rows.X), problem.n_components, 10 ** rng.uniform(-1.5, 0.5)
    return [rng.dirichlet(np.full(k, sharpness), size=n) for _ in range(_n_parts(problem))]


def clustered_parts(problem: Problem, rng: np.random.Generator) -> Parts:
    """K-means of random columns, weighted at random: other distances, other clusters; or ward's joins of them."""
    Z = coordinates(problem)
    parts = []
    for _ in range(_n_parts(problem)):
        weighted = Z * rng.exponential(size=Z.shape[1]) * (rng.random(Z.shape[1]) < rng.uniform(0.3, 1.0))
        if rng.random() < 0.2 and len(Z) <= _MAX_ROWS_JOINED:
            linkage = str(rng.choice(["ward", "average", "complete"]))
            label = AgglomerativeClustering(problem.n_components, linkage=linkage).fit_predict(weighted)
        else:
            seed = int(rng.integers(2**31))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # columns may be left with fewer distinct rows than clusters
                label = KMeans(problem.n_components, n_init=1, random_state=seed, init="random").fit_predict(weighted)
        parts.append(indicators(label, problem.n_components))
    return parts


def timed_parts(problem: Problem, rng: np.random.Generator) -> Parts:
    """Runs of successive rows share a state."""
    n, length = len(problem.rows.X), int(2 ** rng.uniform(1, 6))
    states = rng.integers(problem.n_components, size=n // length + 1)
    return [indicators(np.repeat(states, length)[:n], problem.n_components)]


def peer_parts(problem: Problem, rng: np.random.Generator) -> Parts | None:
    """Where a peer's fit of the same likelihood ends, if there is a peer, and it ends at all."""
    with suppress(ValueError):  # hmmlearn's fits may end in NaN, and fail
        return _of_a_peer(problem, rng)
    return None


def _of_a_peer(problem: Problem, rng: np.random.Generator) -> Parts | None:
    X, k, seed = problem.rows.X, problem.n_components, int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = problem.kind.split()[-1]
        if problem.model == "mixture" and kind in COVARIANCES and not np.isnan(X).any():
            init = str(rng.choice(["kmeans", "k-means++", "random", "random_from_data"]))
            peer = GaussianMixture(k, covariance_type=kind, init_params=init, max_iter=500, random_state=seed)
            return [peer.fit(X).predict_proba(X)]
        if problem.model == "chain" and GaussianHMM is not None and "sample_weight" not in problem.rows.options:
            lengths = problem.rows.options.get("lengths")
            if problem.kind == "poisson":
                peer = PoissonHMM(k, n_iter=200, random_state=seed)
                return [peer.fit(X.astype(int), lengths).predict_proba(X.astype(int), lengths)]
            if problem.kind == "full":
                peer = GaussianHMM(k, "full", n_iter=200, random_state=seed)
                return [peer.fit(X, lengths).predict_proba(X, lengths)]
    return None


# --- moves ------------------------------------------------------------------------------------------------------------


def moved(problem: Problem, parts: Parts, rng: np.random.Generator) -> Parts:
    """Parts after a move: two states joined and another split, states of some rows drawn anew, or two at once."""
    parts = [np.array(part) for part in parts]
    at = int(rng.integers(len(parts)))
    for _ in range(1 + int(rng.random() < 0.25)):
        move: Callable = [_joined_and_split, _joined_and_split, _dropped_and_split, _blurred][int(rng.integers(4))]
        parts[at] = move(parts[at], coordinates(problem), rng)
    return parts


def with_empty_states(parts: Parts) -> Parts:
    """Parts with one state more, which hardly any row is in."""
    return [np.column_stack([part, np.full(len(part), 1e-9)]) for part in parts]


def split_parts(problem: Problem, parts: Parts, rng: np.random.Generator) -> Parts:
    """Parts of a solution with one state fewer, a state of each split."""
    Z = coordinates(problem)
    return [
        _split(more, _any_state(part, rng), part.shape[1], Z, rng)
        for part, more in zip(parts, with_empty_states(parts))
    ]


def joined_parts(problem: Problem, parts: Parts, rng: np.random.Generator) -> Parts:
    """Parts of a solution with one state more, two states of each joined, or one dropped."""
    fewer = []
    for part in parts:
        a, b = rng.choice(part.shape[1], 2, replace=False)
        if rng.random() < 0.7:
            part = np.array(part)
            part[:, b] += part[:, a]
        fewer.append(normalized(np.delete(part, a, axis=1)))
    return fewer


def _any_state(part: np.ndarray, rng: np.random.Generator) -> int:
    """A state that rows are in, drawn evenly."""
    return int(rng.choice(np.flatnonzero(part.sum(axis=0) > min(2.0, part.sum(axis=0).max() / 2))))


def _split(part: np.ndarray, state: int, into: int, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows of a state shared with another, which is empty."""
    weight = part[:, state] / part[:, state].sum()
    kind = rng.integers(4)
    if kind == 0:  # one row's neighbors against all others
        seed = rng.choice(len(Z), p=weight)
        away = ((Z - Z[seed]) ** 2).sum(axis=1)
        order = np.argsort(away)
        few = order[np.cumsum(part[order, state]) <= max(1.0, rng.uniform(0.02, 0.5) * part[:, state].sum())]
        goes = np.isin(np.arange(len(Z)), few) | (np.arange(len(Z)) == seed)
    elif kind == 1:  # a cut by a random plane
        side = Z @ rng.normal(size=Z.shape[1])
        goes = side > side[rng.choice(len(Z), p=weight)]
    elif kind == 2:  # near and far from the middle: a narrow state within a wide one
        middle = weight @ Z
        away = ((Z - middle) ** 2).sum(axis=1)
        goes = away > away[rng.choice(len(Z), p=weight)]
    else:  # nearer to one of two rows
        a, b = rng.choice(len(Z), 2, p=weight)
        goes = ((Z - Z[a]) ** 2).sum(axis=1) > ((Z - Z[b]) ** 2).sum(axis=1)
    part = np.array(part)
    part[:, into] = np.where(goes, part[:, state], 0.0)
    part[:, state] -= part[:, into]
    return part


def _joined_and_split(part: np.ndarray, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if part.shape[1] < 3:
        return _dropped_and_split(part, Z, rng)
    a, b = rng.choice(part.shape[1], 2, replace=False)
    part = np.array(part)
    part[:, b] += part[:, a]
    part[:, a] = 0.0
    return _split(part, _any_state(part, rng), int(a), Z, rng)


def _dropped_and_split(part: np.ndarray, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    a = int(rng.integers(part.shape[1]))
    left = np.array(part)
    left[:, a] = 0.0
    left = normalized(left)
    left[:, a] = 0.0
    return _split(left, _any_state(left, rng), a, Z, rng)


def _blurred(part: np.ndarray, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    share = rng.uniform(0.1, 0.7)
    drawn = indicators(rng.integers(part.shape[1], size=len(part)), part.shape[1])
    return np.where(rng.random((len(part), 1)) < share, drawn, part)


def _n_parts(problem: Problem) -> int:
    return 2 if problem.is_network and problem.model != "classes" else 1
