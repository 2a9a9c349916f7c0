"""Do draws from the posterior have the intervals of a long run of another sampler, written from the definition alone?

The models of `interval_coverage`, parameters drawn from their prior. Beside `sample_posterior` run the Gibbs samplers
of this file, which share no line with the library: thirty-two chains side by side in NumPy, from random labels, of
which the second half counts. Labels of their draws are chosen as those of draws and of the truth are: nearest to q(x)
of the fit. For each kind of parameter the record has

- how many intervals of each level hold the truth, by both, in the same simulations;
- how much 95 % intervals have in common: the length of their overlap over that of their union;
- how far posterior means are apart, squared, in units of what both samplers state: the library by `ess`, the long run
  by the variance of its chains' means. It is 1 on average where effective sizes are honest.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.independent_gibbs measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.independent_gibbs table

The record, independent_gibbs_results.jsonl next to this file, has a line for each simulation; what is there is not done
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from reproduction.interval_coverage import PROBLEMS, Chain, Mixture, aligned_truth, held
from reproduction.records import new_line, read_record, simulate, timed

RECORD = Path(__file__).with_name("independent_gibbs_results.jsonl")
N_CHAINS, N_SWEEPS, N_DRAWS = 32, 3000, 1000
# Of the prior of mixtures: precisions Gamma(2, 1), means of variance ten times that of a row.
_SHAPE, _RATE, _MEAN_PRECISION = 2.0, 1.0, 0.1
# Draws whose labels are chosen together.
_BLOCK = 500

Parameters = dict[str, np.ndarray]


# --- samplers ---------------------------------------------------------------------------------------------------------


def dirichlet(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws under a uniform prior given counts (..., n)."""
    drawn = rng.gamma(1.0 + counts)
    return drawn / drawn.sum(axis=-1, keepdims=True)


def chosen(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels drawn in proportion to weights (..., n_labels)."""
    reached = np.cumsum(weights, axis=-1)
    return (rng.random(reached.shape[:-1])[..., None] * reached[..., -1:] > reached[..., :-1]).sum(axis=-1)


def counted(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """How often each label is there, (n_chains, n_labels), and which rows have it, (n_chains, n_rows, n_labels)."""
    return (labels[..., None] == np.arange(n_labels)).astype(float)


def classes_gibbs(X: np.ndarray, n_labels: int, rng: np.random.Generator) -> Iterator[Parameters]:
    """Weights (n_chains, K) and tables (n_chains, n_items, K, n_categories) of latent classes, sweep by sweep."""
    of_cells = counted(X, 3)  # (n_rows, n_items, n_categories)
    labels = rng.integers(n_labels, size=(N_CHAINS, len(X)))
    while True:
        member = counted(labels, n_labels)
        weights = dirichlet(member.sum(axis=1), rng)
        cells = member.transpose(0, 2, 1).reshape(-1, len(X)) @ of_cells.reshape(len(X), -1)
        tables = dirichlet(cells.reshape(N_CHAINS, n_labels, X.shape[1], 3), rng).transpose(0, 2, 1, 3)
        yield {"weights": weights, "tables": tables}
        logs = np.log(tables).transpose(0, 2, 1, 3).reshape(N_CHAINS * n_labels, -1) @ of_cells.reshape(len(X), -1).T
        joint = logs.reshape(N_CHAINS, n_labels, len(X)).transpose(0, 2, 1) + np.log(weights)[:, None]
        labels = chosen(np.exp(joint - joint.max(axis=2, keepdims=True)), rng)


def mixture_gibbs(X: np.ndarray, n_labels: int, rng: np.random.Generator) -> Iterator[Parameters]:
    """Weights, means and precisions, each (n_chains, K), of a mixture of one column, sweep by sweep."""
    x = X[:, 0]
    labels = rng.integers(n_labels, size=(N_CHAINS, len(x)))
    while True:
        member = counted(labels, n_labels)
        n, total, square = (np.einsum("cnk,n->ck", member, power) for power in (np.ones(len(x)), x, x**2))
        precision_rows = _MEAN_PRECISION + n
        center = total / precision_rows
        precisions = rng.gamma(_SHAPE + n / 2) / (_RATE + 0.5 * (square - precision_rows * center**2))
        means = rng.normal(center, (precision_rows * precisions) ** -0.5)
        weights = dirichlet(n, rng)
        yield {"weights": weights, "means": means, "precisions": precisions}
        gap = x[:, None] - means[:, None]
        joint = np.log(weights)[:, None] + 0.5 * np.log(precisions)[:, None] - 0.5 * precisions[:, None] * gap**2
        labels = chosen(np.exp(joint - joint.max(axis=2, keepdims=True)), rng)


def chain_gibbs(X: list[np.ndarray], n_labels: int, rng: np.random.Generator) -> Iterator[Parameters]:
    """First states (n_chains, K), transitions and emissions of a hidden Markov model, sweep by sweep."""
    codes = np.stack([of_sequence[:, 0] for of_sequence in X])  # (n_sequences, n_steps)
    n_steps, of_cells = codes.shape[1], counted(codes, 3)
    states = rng.integers(n_labels, size=(N_CHAINS, *codes.shape))
    while True:
        at = counted(states, n_labels)
        first = dirichlet(at[:, :, 0].sum(axis=1), rng)
        transitions = dirichlet(np.einsum("cstk,cstl->ckl", at[:, :, :-1], at[:, :, 1:]), rng)
        emissions = dirichlet(np.einsum("cstk,stv->ckv", at, of_cells), rng)
        yield {"first": first, "transitions": transitions, "emissions": emissions}
        emitted = np.moveaxis(emissions[:, :, codes], 1, -1)  # (n_chains, n_sequences, n_steps, K)
        filtered = [first[:, None] * emitted[:, :, 0]]
        for t in range(1, n_steps):
            state = (filtered[-1] @ transitions) * emitted[:, :, t]
            filtered.append(state / state.sum(axis=2, keepdims=True))
        states = np.empty_like(states)
        states[:, :, -1] = chosen(filtered[-1], rng)
        to = np.moveaxis(transitions, 2, 1)  # by the state that is reached
        for t in range(n_steps - 2, -1, -1):
            reached = np.take_along_axis(to, states[:, :, t + 1, None], axis=1)
            states[:, :, t] = chosen(filtered[t] * reached, rng)


def long_run(problem: Any, X: Any, rng: np.random.Generator) -> Parameters:
    """The second half of chains, draws of each in turn: each parameter (n_chains, n_kept, ...)."""
    sampler = {Mixture: mixture_gibbs, Chain: chain_gibbs}.get(type(problem), classes_gibbs)
    sweeps = sampler(X, problem.n_labels, rng)
    kept = [drawn for sweep, drawn in zip(range(N_SWEEPS), sweeps) if sweep >= N_SWEEPS // 2]
    return {name: np.stack([each[name] for each in kept], axis=1) for name in kept[0]}


# --- comparison -------------------------------------------------------------------------------------------------------


def aligned(problem: Any, drawn: Parameters, model: Any, X: Any) -> Parameters:
    """Draws (n, ...) under those labels, each, that are nearest to q(x) of a fit."""
    orders = [list(order) for order in permutations(range(problem.n_labels))]
    candidates = [problem.relabeled(drawn, order) for order in orders]
    near = np.stack([nearness(problem, each, model, X) for each in candidates])
    best = near.argmax(axis=0)
    return {
        name: np.choose(best.reshape(-1, *[1] * (values.ndim - 1)), [each[name] for each in candidates])
        for name, values in drawn.items()
    }


def nearness(problem: Any, drawn: Parameters, model: Any, X: Any) -> np.ndarray:
    """Minus the divergence of labels at draws from those of a fit, but for a constant, (n_draws,)."""
    if isinstance(problem, Mixture):
        q = np.concatenate(list(model.fitted.e_step([X])))
        blocks = range(0, len(drawn["means"]), _BLOCK)
        parts = ({name: of[at : at + _BLOCK] for name, of in drawn.items()} for at in blocks)
        return np.concatenate([np.einsum("nk,dnk->d", q, problem.log_joint(part, X)) for part in parts])
    expected = expected_counts(problem, model)
    return sum((expected[name] * np.log(of)).reshape(len(of), -1).sum(axis=1) for name, of in drawn.items())


def expected_counts(problem: Any, model: Any) -> Mapping[str, np.ndarray]:
    """What labels of a fit count, in the shapes of parameters."""
    k = problem.n_labels
    if not isinstance(problem, Chain):
        counts = model.counts_
        items = [name for name in counts if name != "h0"]
        return {"weights": counts["h0"].values, "tables": np.stack([counts[name].values for name in items])}
    first, pairs, emitted = np.split(model.fitted.statistics, np.cumsum(model.fitted.model.prior.n_cells)[:-1])
    return {"first": first, "transitions": pairs.reshape(k, k), "emissions": emitted.reshape(k, -1)}


def measured(name: str, n: int, seed: int) -> dict[str, Any]:
    """The record of a simulation, by kind of parameter."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([20261124, list(PROBLEMS).index(name), n, seed])
    truth = problem.truth(rng)
    X = problem.rows(truth, n, rng)
    line = new_line(name, n, seed) | {"common": {}, "squares": {}}
    with timed(line, "fit"):
        model = problem.fitted(X, seed)
    with timed(line, "draws"):
        draws = model.sample_posterior(X, N_DRAWS)
    with timed(line, "long run"):
        chains = long_run(problem, X, rng)
        merged = {what: of.reshape(-1, *of.shape[2:]) for what, of in chains.items()}
        merged = aligned(problem, merged, model, X)
    ours, worth = problem.parameters(draws), of_effective_sizes(problem, draws)
    true = aligned_truth(problem, truth, model, X)
    for what, of_truth in true.items():
        one, other = (of[what].reshape(len(of[what]), -1) for of in (ours, merged))
        line["held"][what] = [held(each, of_truth.ravel()) for each in (one, other)]
        line["common"][what] = in_common(one, other)
        means = other.reshape(N_CHAINS, -1, other.shape[1]).mean(axis=1)
        variance = other.var(axis=0)
        stated = variance / worth[what].ravel() + means.var(axis=0, ddof=1) / N_CHAINS
        line["squares"][what] = float(np.mean((one.mean(axis=0) - other.mean(axis=0)) ** 2 / stated))
    line["converged"] = draws.converged
    return line


def of_effective_sizes(problem: Any, draws: Any) -> Parameters:
    """Effective sizes of draws, in the shapes and by the names of the problem's parameters."""
    sizes = {group: {name: each[None] for name, each in of_group.items()} for group, of_group in draws.ess.items()}
    return {what: of[0] for what, of in problem.parameters(SimpleNamespace(parameters=sizes)).items()}


def in_common(one: np.ndarray, other: np.ndarray) -> float:
    """The mean share of 95 % intervals that both have: the length of the overlap over that of the union."""
    (a, b), (c, d) = (np.quantile(of, [0.025, 0.975], axis=0) for of in (one, other))
    return float(np.mean(np.clip(np.minimum(b, d) - np.maximum(a, c), 0, None) / (np.maximum(b, d) - np.minimum(a, c))))


def read() -> list[dict[str, Any]]:
    """The record, a dict for each simulation."""
    return read_record(RECORD)


def coverages(lines: list[dict[str, Any]], problem: str, what: str) -> np.ndarray:
    """Shares of intervals that hold the truth, in percent: of draws and of the long run, at each level."""
    counts = np.sum([line["held"][what] for line in lines if line["problem"] == problem], axis=0)
    return 100 * counts[:, :-1] / counts[:, -1:]


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: by kind of parameter, coverage by both, what is in common, squares."""
    for problem in PROBLEMS:
        mine = [line for line in lines if line["problem"] == problem]
        for what in mine[0]["held"] if mine else ():
            ours, other = (" ".join(f"{share:.0f}" for share in of) for of in coverages(lines, problem, what))
            common, squares = (np.mean([line[of][what] for line in mine]) for of in ("common", "squares"))
            yield problem, str(len(mine)), what, ours, other, f"{100 * common:.0f} %", f"{squares:.2f}"


if __name__ == "__main__":
    simulate(__doc__ or "", RECORD, PROBLEMS, measured, [table])
