"""How often do credible intervals hold the truth? Parameters drawn from the prior, data from these, a fit, intervals.

Latent classes of five items of three categories, mixtures of one column of measurements, and hidden Markov models of
three categories; under the prior that the fit has, so that intervals of the exact posterior hold as much as they say.
Counted for the three methods of ``sample_posterior`` at nominal 50, 80 and 95 %:

- what labels have no say in: the predictive probability of rows drawn at other parameters from the prior, the
  probability that two rows (steps) are of one class, weights in order;
- parameters, labels of the truth chosen as labels of draws are: those nearest to q(x) of the fit.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.interval_coverage measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.interval_coverage again --method linear_response --rows 2000
    PYTHONPATH=tests python -P -m reproduction.interval_coverage table

The record, interval_coverage_results.jsonl next to this file, has a line for each simulation; what is there is not
done again. Its first lines lack predictive probabilities; what earlier versions drew, by other random numbers, stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import by_each_method, new_line, read_record, simulate, timed
from scipy.special import logsumexp

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.emissions import Gaussian

RECORD = Path(__file__).with_name("interval_coverage_results.jsonl")
METHODS = ("draws", "linear_response", "vb")
LEVELS = (0.5, 0.8, 0.95)
# Of the prior of mixtures: precisions Gamma(2, 1), means of variance ten times that of a row.
_DOF, _SCALE, _MEAN_PRECISION = 4.0, 2.0, 0.1
_N_ITEMS, _N_CATEGORIES, _N_PAIRS, _N_NEW, _STEPS = 5, 3, 5, 5, 20


@dataclass(frozen=True)
class Classes:
    """A latent class model."""

    n_labels: int
    labels_free = ("predictive probabilities", "co-membership", "weights in order")

    def truth(self, rng: np.random.Generator) -> dict:
        """Parameters drawn from the prior, as arrays of one draw."""
        tables = rng.dirichlet(np.ones(_N_CATEGORIES), size=(1, _N_ITEMS, self.n_labels))
        return {"weights": rng.dirichlet(np.ones(self.n_labels), size=1), "tables": tables}

    def rows(self, truth: Mapping, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn at parameters."""
        label = rng.choice(self.n_labels, size=n, p=truth["weights"][0])
        reached = np.cumsum(truth["tables"][0][:, label], axis=2)
        return (rng.random((_N_ITEMS, n, 1)) > reached[..., :-1]).sum(axis=2).T

    def fitted(self, X: np.ndarray, seed: int) -> Any:
        """The fit."""
        levels = [list(range(_N_CATEGORIES))] * _N_ITEMS
        return VBDiscreteDAG(latents=self.n_labels, categories=levels, random_state=seed).fit(X)

    def parameters(self, draws: Any) -> dict:
        """Those of draws, by name, as `truth` has them."""
        tables = draws.parameters["tables"]
        return {"weights": tables["h0"], "tables": np.stack([tables[f"x{j}"] for j in range(_N_ITEMS)], axis=1)}

    def relabeled(self, parameters: Mapping, order: list[int]) -> dict:
        """Parameters whose labels are in another order."""
        return {"weights": parameters["weights"][:, order], "tables": parameters["tables"][:, :, order]}

    def nearness(self, model: Any, X: np.ndarray, truth: Mapping) -> float:
        """Minus the divergence of rows' labels at parameters from those of the fit, but for a constant."""
        counts = model.counts_
        terms = [(counts["h0"].values * np.log(truth["weights"][0])).sum()]
        terms += [(counts[f"x{j}"].values * np.log(truth["tables"][0, j])).sum() for j in range(_N_ITEMS)]
        return float(np.sum(terms))

    def log_joint(self, parameters: Mapping, X: np.ndarray) -> np.ndarray:
        """ln p(row, label), (n_draws, n_rows, n_labels)."""
        logs = np.log(parameters["tables"])
        return np.log(parameters["weights"])[:, None] + sum(
            np.moveaxis(logs[:, j], 2, 1)[:, X[:, j]] for j in range(_N_ITEMS)
        )

    def label_free(self, parameters: Mapping, X: np.ndarray, new: np.ndarray, pairs: np.ndarray) -> dict:
        """What labels have no say in, each (n_draws, n_quantities)."""
        of_pairs = self.log_joint(parameters, X[pairs.ravel()])
        member = np.exp(of_pairs - logsumexp(of_pairs, axis=2, keepdims=True))
        together = (member[:, 0::2] * member[:, 1::2]).sum(axis=2)
        return {
            "predictive probabilities": logsumexp(self.log_joint(parameters, new), axis=2),
            "co-membership": together,
            "weights in order": np.sort(parameters["weights"], axis=1),
        }


@dataclass(frozen=True)
class Mixture(Classes):
    """A mixture of normal distributions of one column."""

    def truth(self, rng: np.random.Generator) -> dict:
        """Parameters drawn from the prior, as arrays of one draw."""
        precision = rng.gamma(_DOF / 2, 2 / _SCALE, size=(1, self.n_labels))
        means = rng.normal(size=(1, self.n_labels)) / np.sqrt(_MEAN_PRECISION * precision)
        return {"weights": rng.dirichlet(np.ones(self.n_labels), size=1), "means": means, "precisions": precision}

    def rows(self, truth: Mapping, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn at parameters."""
        label = rng.choice(self.n_labels, size=n, p=truth["weights"][0])
        return rng.normal(truth["means"][0, label], truth["precisions"][0, label] ** -0.5)[:, None]

    def fitted(self, X: np.ndarray, seed: int) -> Any:
        """The fit."""
        prior = {"mean_prior": [0.0], "degrees_of_freedom_prior": _DOF, "covariance_prior": [[_SCALE]]}
        emission = Gaussian(mean_precision_prior=_MEAN_PRECISION, **prior)
        return VBMixture(self.n_labels, emission=emission, weight_concentration_prior=1.0, random_state=seed).fit(X)

    def parameters(self, draws: Any) -> dict:
        """Those of draws, by name, as `truth` has them."""
        gaussian = draws.parameters["gaussian"]
        return {
            "weights": draws.parameters["mixture"]["weights"],
            "means": gaussian["means"][:, :, 0],
            "precisions": gaussian["precisions"][:, :, 0, 0],
        }

    def relabeled(self, parameters: Mapping, order: list[int]) -> dict:
        """Parameters whose labels are in another order."""
        return {name: of[:, order] for name, of in parameters.items()}

    def nearness(self, model: Any, X: np.ndarray, truth: Mapping) -> float:
        """Minus the divergence of rows' labels at parameters from those of the fit, but for a constant."""
        q = np.concatenate(list(model.fitted.e_step([X])))
        return float((q * self.log_joint(truth, X)[0]).sum())

    def log_joint(self, parameters: Mapping, X: np.ndarray) -> np.ndarray:
        """ln p(row, label), (n_draws, n_rows, n_labels)."""
        precision = parameters["precisions"][:, None]
        square = precision * (X - parameters["means"][:, None]) ** 2
        return np.log(parameters["weights"])[:, None] + 0.5 * (np.log(precision / (2 * np.pi)) - square)


@dataclass(frozen=True)
class Chain:
    """A hidden Markov model of three categories, in sequences of twenty steps."""

    n_labels: int
    labels_free = ("predictive probabilities", "co-membership")

    def truth(self, rng: np.random.Generator) -> dict:
        """Parameters drawn from the prior, as arrays of one draw."""
        k = self.n_labels
        return {
            "first": rng.dirichlet(np.ones(k), size=1),
            "transitions": rng.dirichlet(np.ones(k), size=(1, k)),
            "emissions": rng.dirichlet(np.ones(_N_CATEGORIES), size=(1, k)),
        }

    def rows(self, truth: Mapping, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Sequences drawn at parameters."""
        sequences = []
        for _ in range(max(n // _STEPS, 1)):
            state, codes = rng.choice(self.n_labels, p=truth["first"][0]), []
            for _ in range(_STEPS):
                codes.append(rng.choice(_N_CATEGORIES, p=truth["emissions"][0, state]))
                state = rng.choice(self.n_labels, p=truth["transitions"][0, state])
            sequences.append(np.array(codes)[:, None])
        return sequences

    def fitted(self, X: list[np.ndarray], seed: int) -> Any:
        """The fit."""
        categories = {"x0": list(range(_N_CATEGORIES))}
        model = VBHMM(
            self.n_labels, emission="categorical", categories=categories, startprob_prior=1.0, transmat_prior=1.0,
            random_state=seed,
        )  # fmt: skip
        return model.fit(X)

    def parameters(self, draws: Any) -> dict:
        """Those of draws, by name, as `truth` has them."""
        chain = draws.parameters["chain"]
        emissions = draws.parameters["categorical"]["probabilities"][:, :, 0]
        return {"first": chain["startprob"], "transitions": chain["transmat"], "emissions": emissions}

    def relabeled(self, parameters: Mapping, order: list[int]) -> dict:
        """Parameters whose labels are in another order."""
        return {
            "first": parameters["first"][:, order],
            "transitions": parameters["transitions"][:, order][:, :, order],
            "emissions": parameters["emissions"][:, order],
        }

    def nearness(self, model: Any, X: list[np.ndarray], truth: Mapping) -> float:
        """Minus the divergence of paths at parameters from those of the fit, but for a constant."""
        prior = model.fitted.model.prior
        counts = np.split(model.fitted.statistics, np.cumsum(prior.n_cells)[:-1])
        logs = truth["first"][0], truth["transitions"][0], truth["emissions"][0]
        return float(sum(of.reshape(log.shape).ravel() @ np.log(log).ravel() for of, log in zip(counts, logs)))

    def label_free(self, parameters: Mapping, X: list, new: list, pairs: np.ndarray) -> dict:
        """What labels have no say in, each (n_draws, n_quantities)."""
        sequence, k = X[0][:, 0], self.n_labels
        forward, _ = self._passed(parameters, sequence)
        backward = np.ones((len(forward), _STEPS, k))
        emitted = np.moveaxis(parameters["emissions"][:, :, sequence], 2, 1)
        for t in range(_STEPS - 2, -1, -1):
            backward[:, t] = ((emitted[:, t + 1] * backward[:, t + 1])[:, None] * parameters["transitions"]).sum(axis=2)
            backward[:, t] /= backward[:, t].sum(axis=1, keepdims=True)
        pairs = np.arange(1, _STEPS, _STEPS // _N_PAIRS)  # of neighbors
        joint = forward[:, pairs - 1, :, None] * parameters["transitions"][:, None]
        joint = joint * (emitted[:, pairs] * backward[:, pairs])[:, :, None]
        stays = np.trace(joint, axis1=2, axis2=3) / joint.sum(axis=(2, 3))
        return {
            "predictive probabilities": np.stack([self._passed(parameters, of[:, 0])[1] for of in new], axis=1),
            "co-membership": stays,
        }

    @staticmethod
    def _passed(parameters: Mapping, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Filtered states (n_draws, n_steps, n_labels), and ln p(sequence)."""
        filtered, log_p = [], 0.0
        state = parameters["first"]
        for code in codes:
            state = state * parameters["emissions"][:, :, code]
            total = state.sum(axis=1, keepdims=True)
            state, log_p = state / total, log_p + np.log(total[:, 0])
            filtered.append(state)
            state = (state[:, :, None] * parameters["transitions"]).sum(axis=1)
        return np.stack(filtered, axis=1), log_p


#: What is simulated, by name.
PROBLEMS = {
    "classes, K = 2": Classes(2),
    "classes, K = 3": Classes(3),
    "mixture, K = 2": Mixture(2),
    "chain, K = 2": Chain(2),
}


def measured(name: str, n: int, seed: int, methods: Iterable[str] = METHODS) -> dict:
    """The record of a simulation: how many intervals of each kind hold the truth, of how many, and seconds."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([20261123, list(PROBLEMS).index(name), n, seed])
    truth = problem.truth(rng)
    X = problem.rows(truth, n, rng)
    # Rows of other parameters: at the truth, rows that are drawn from it are more probable than at draws.
    new = problem.rows(problem.truth(rng), _STEPS * _N_NEW if isinstance(problem, Chain) else _N_NEW, rng)
    pairs = rng.integers(len(X), size=(_N_PAIRS, 2))
    record = new_line(name, n, seed)
    with timed(record, "fit"):
        model = problem.fitted(X, seed)
    aligned = aligned_truth(problem, truth, model, X)
    for method, draws in drawn_by_each_method(record, model, X, methods):
        parameters = problem.parameters(draws)
        true, drawn = (
            problem.label_free(of, X, new, pairs)
            | {what: values.reshape(len(values), -1) for what, values in of.items()}
            for of in (aligned, parameters)
        )
        record["held"][method] = {what: held(drawn[what], true[what][0]) for what in true}
    return record


def aligned_truth(problem: Any, truth: dict, model: Any, X: np.ndarray) -> dict:
    """The truth under those labels that are nearest to q(x) of a fit."""
    orders = permutations(range(problem.n_labels))
    candidates = (problem.relabeled(truth, list(order)) for order in orders)
    return max(candidates, key=lambda each: problem.nearness(model, X, each))


def drawn_by_each_method(
    record: dict, model: Any, X: Any, methods: Iterable[str] = METHODS
) -> Iterator[tuple[str, Any]]:
    """1 000 draws of the posterior by each method, but for linear response at a saddle, which is refused."""
    for method, draws in by_each_method(record, methods, lambda method: model.sample_posterior(X, 1000, method=method)):
        if method == "draws":
            record["converged"], record["n_sweeps"] = draws.converged, draws.n_sweeps
        yield method, draws


def held(drawn: np.ndarray, truth: np.ndarray) -> list[int]:
    """How many intervals hold the truth at each level, and how many there are."""
    counts = []
    for level in LEVELS:
        low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        counts.append(int(((low <= truth) & (truth <= high)).sum()))
    return [*counts, len(truth)]


@dataclass(frozen=True)
class CoverageStudy:
    """A study of coverage by posterior draws: its record, and what is made of it.

    Parameters
    ----------
    description : str
        The docstring of its script.
    record : Path
    problems : mapping
        By name, what is simulated.
    measured : callable of (str, int, int, iterable of str)
        The line of a problem, a number of rows and a seed, by some of the methods.
    """

    description: str
    record: Path
    problems: Mapping[str, Any]
    measured: Callable[..., dict]

    def read(self) -> list[dict]:
        """The record, a dict for each simulation."""
        return read_record(self.record)

    def table(self, records: list[dict]) -> Iterator[tuple[str, ...]]:
        """Rows of the table of the guide: coverage in percent at each level, by problem, quantity and method."""
        for name, n in self._cells(records):
            of_problem = self._of(records, name, n)
            for what in of_problem[-1]["held"]["draws"]:
                cells, asked = [], [each["held"] for each in of_problem if what in each["held"]["draws"]]
                for method in METHODS:
                    *hits, total = np.sum([each[method][what] for each in asked if each[method]], axis=0)
                    cells.append(" ".join(f"{100 * hit / total:.0f}" for hit in hits))
                yield name, str(n), str(len(asked)), what, *cells

    def costs(self, records: list[dict]) -> Iterator[tuple[str, ...]]:
        """Rows of the table of costs: median CPU seconds of the fit and of each method, and how often chains agreed."""
        for name, n in self._cells(records):
            of_problem = self._of(records, name, n)
            seconds = [
                f"{np.median([each['seconds'][what] for each in of_problem if what in each['seconds']]):.2f}"
                for what in ("fit", *METHODS)
            ]
            yield name, str(n), *seconds, f"{100 * np.mean([each['converged'] for each in of_problem]):.0f} %"

    def _cells(self, records: list[dict]) -> list[tuple[str, int]]:
        """Problems and numbers of rows that there are simulations of."""
        sizes = sorted({each["n"] for each in records})
        return [(name, n) for name in self.problems for n in sizes if self._of(records, name, n)]

    @staticmethod
    def _of(records: list[dict], name: str, n: int) -> list[dict]:
        return [each for each in records if each["problem"] == name and each["n"] == n]

    def run(self) -> None:
        """Measure further simulations, or print the tables."""
        first_line = self.description.splitlines()[0]
        simulate(first_line, self.record, self.problems, self.measured, (self.table, self.costs), self._again)

    def _again(self, line: dict, method: str) -> dict:
        """A line in which the intervals of one method are those that the installed version finds."""
        fresh = self.measured(line["problem"], line["n"], line["seed"], (method,))
        rest = {key: value for key, value in line.items() if key != "refused"}
        found = {what: line[what] | fresh[what] for what in ("seconds", "held")}
        found["seconds"]["fit"] = line["seconds"]["fit"]
        return rest | found | {key: value for key, value in fresh.items() if key == "refused"}


STUDY = CoverageStudy(__doc__, RECORD, PROBLEMS, measured)

if __name__ == "__main__":
    STUDY.run()
