"""Plants errors in a copy of the package, one at a time, and shows that the tests notice each.

Run as ``python tests/planted_errors.py``, from anywhere, with the test requirements of skvbem, a C compiler, and
meson-python, meson, ninja and Cython (without which pip fetches them). Words as arguments plant the errors named so,
"evidence" those of its scores, "search" those of the search over structures, "mixture" those of
mixtures and what they are made of, "chains" those of hidden Markov models. The working tree is not touched. Exits
with 1 if an error survives or can no longer be planted.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("skvbem", "pyproject.toml", "meson.build", "meson.options", "README.md", "LICENSE")
TESTS = (
    "tests/families",
    "tests/kernels",
    "tests/models",
    "tests/vbem",
    "tests/laws/test_known_numbers.py",
    "tests/laws/test_invariance.py",
    "tests/laws/test_prediction.py",
    "tests/laws/test_bound.py",
    "tests/estimators/test_encoding.py",
)
OF_THE_EVIDENCE = ("tests/evidence", "tests/kernels/test_random.py")
OF_THE_SEARCH = ("tests/search", "tests/graphs", "tests/plotting/test_search_displays.py")
OF_MIXTURES = (
    "tests/families",
    "tests/emissions",
    "tests/models/test_mixture.py",
    "tests/evidence/test_mixture_scores.py",
    "tests/evidence/test_mixtures.py",
    "tests/estimators/test_vb_mixture.py",
    "tests/estimators/test_vb_mixture_blocks.py",
)
OF_CHAINS = (
    "tests/kernels/test_hmm.py",
    "tests/models/test_hmm.py",
    "tests/models/test_hmm_starts.py",
    "tests/evidence/test_hmm_scores.py",
    "tests/evidence/test_hmms.py",
    "tests/estimators/test_vb_hmm.py",
)
PARTS = {"evidence": OF_THE_EVIDENCE, "search": OF_THE_SEARCH, "mixture": OF_MIXTURES, "chains": OF_CHAINS}
KERNELS = "skvbem/_kernels/"
SEARCH = "skvbem/search/"


@dataclass(frozen=True)
class Error:
    """What is wrong, the texts that make it so: (file, right, wrong), each found once, and the tests to notice it."""

    name: str
    changes: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...]

    @property
    def compiled(self) -> bool:
        return any(file.startswith(KERNELS) for file, _, _ in self.changes)


def error(name, *changes, tests=TESTS):
    return Error(name, changes, tests)


def error_of_the_evidence(name, *changes):
    return error(name, *changes, tests=OF_THE_EVIDENCE)


def error_of_the_search(name, *changes):
    return error(name, *changes, tests=OF_THE_SEARCH)


def error_of_mixtures(name, *changes):
    return error(name, *changes, tests=OF_MIXTURES)


def error_of_chains(name, *changes):
    return error(name, *changes, tests=OF_CHAINS)


ERRORS = (
    error(
        "the KL of the first table row is dropped",
        (
            KERNELS + "_dirichlet.pyx",
            "for row in range(n_rows):\n        for lane in range(n_lanes):\n            at = row * n_lanes + lane\n",
            "for row in range(1, n_rows):\n        for lane in range(n_lanes):\n            at = row * n_lanes + lane\n",  # noqa: E501
        ),
        (
            KERNELS + "_dirichlet.pyx",
            "    for cell in range(n_cells):\n        if offset[cell] < 32.0:",
            "    for cell in range(starts[1], n_cells):\n        if offset[cell] < 32.0:",
        ),
    ),
    error(
        "the last restart is taken, not the best",
        ("skvbem/vbem/fit.py", "best = result.best\n", "best = result.objective.size - 1\n"),
    ),
    error(
        "two parents' strides are swapped",
        (
            "skvbem/models/network/layout.py",
            "for member in (node, *reversed(parents)):",
            "for member in (node, *parents):",
        ),
    ),
    error(
        "weights of rows with hidden parts are forgotten",
        (
            "skvbem/models/network/assembly.py",
            "self._weight = None if weight is None else picked(weight)",
            "self._weight = None",
        ),
    ),
    error(
        "weights of complete families are forgotten",
        ("skvbem/models/network/program.py", "w = None if weight is None else weight[rows]", "w = None"),
    ),
    error(
        "expected parameters are normalized before the E step",
        (
            KERNELS + "_lanes.h",
            "            natural[cell * n_lanes + lane] = value;\n"
            "            exp_natural[cell * n_lanes + lane] = skvbem_exp(value);\n        }\n",
            "            natural[cell * n_lanes + lane] = value;\n"
            "            exp_natural[cell * n_lanes + lane] = skvbem_exp(value);\n        }\n"
            "    for (intptr_t lane = 0; lane < n_lanes; lane++) {\n"
            "        double total = 0.0;\n"
            "        for (intptr_t cell = 0; cell < n_cells; cell++) total += exp_natural[cell * n_lanes + lane];\n"
            "        for (intptr_t cell = 0; cell < n_cells && total > 0.0; cell++) {\n"
            "            exp_natural[cell * n_lanes + lane] /= total;\n"
            "            natural[cell * n_lanes + lane] -= log(total);\n"
            "        }\n"
            "    }\n",
        ),
    ),
    error(
        "missing leaves are summed, not pruned",
        (
            "skvbem/models/network/program.py",
            "kept[node] = node in observed or node in wanted or any(kept[child] for child in layout.children[node])",
            "kept[node] = True",
        ),
    ),
    error(
        "missing cells of complete families are counted as the last category",
        (
            "skvbem/models/network/layout.py",
            "        rows = np.flatnonzero(np.logical_and.reduce([columns[member] >= 0 for member in gappy]))\n",
            "        columns = {m: np.where(c < 0, layout.cardinalities[m] - 1, c) for m, c in columns.items()}\n",
        ),
    ),
    error(
        "wholly missing rows are not counted",
        (
            "skvbem/models/network/program.py",
            "total = float(n_rows if weight is None",
            "total = 0.0 * float(n_rows if weight is None",
        ),
        ("skvbem/data.py", "return float(len(self) if", "return float((self.codes >= 0).any(axis=1).sum() if"),
    ),
    error(
        "n is the number of rows, not the sum of weights",
        (
            "skvbem/data.py",
            "return float(len(self) if self.weight is None else self.weight.sum())",
            "return float(len(self))",
        ),
    ),
    error(
        "the last context of a run is skipped",
        (
            KERNELS + "_lanes.h",
            "for (intptr_t context = first; context < last; context++) {",
            "for (intptr_t context = first; context < last - 1; context++) {",
        ),
    ),
    error(
        "threads start a block one context late",
        (
            KERNELS + "_contraction.pyx",
            "self.program.block_context[block],\n",
            "self.program.block_context[block] + (1 if block > 0 else 0),\n",
        ),
    ),
    error(
        "the scale is lost where logarithms take over",
        (
            KERNELS + "_contraction.pyx",
            "log_z[lane] += weight * (z - self.scale_undone(plan, context, lane, n_lanes, exp_natural))",
            "log_z[lane] += weight * z",
        ),
    ),
    error(
        "the scale of messages is lost",
        (
            KERNELS + "_contraction.pyx",
            "log_scale[lane] += self.mass[self.slot_mass[slot] + value] * (power * LN_2)",
            "log_scale[lane] += 0.0",
        ),
    ),
    error(
        "messages are not divided out on the way back",
        (
            KERNELS + "_contraction.pyx",
            "                            ratio[s] /= target[s]\n",
            "                            pass\n",
        ),
    ),
    error(
        "the MAP penalty is of the other basis",
        (
            KERNELS + "_dirichlet.pyx",
            "penalty[lane] += offset[cell] * natural[at]",
            "penalty[lane] += (offset[cell] - 1.0) * natural[at]",
        ),
    ),
    error(
        "the mode in probabilities is the natural one",
        ("skvbem/vbem/posteriors.py", 'Form("map", density=False, lowered_by=1.0)', 'Form("map", density=False)'),
    ),
    error(
        "a sign is wrong in the log rising factorial",
        (
            KERNELS + "_lanes.h",
            "(skvbem_stirling_tail(a + n) - skvbem_stirling_tail(a))",
            "(skvbem_stirling_tail(a) - skvbem_stirling_tail(a + n))",
        ),
    ),
    error(
        "one coefficient of the digamma series is off",
        (KERNELS + "_lanes.h", "z * (1.0 / 12 - z * (1.0 / 120 -", "z * (1.0 / 12 - z * (1.0 / 122 -"),
    ),
    error(
        "an unseen category is the first one",
        ("skvbem/estimators/input/categories.py", "codes_of.get(value, -1)", "codes_of.get(value, 0)"),
    ),
    error(
        "an extrapolation is kept though the bound falls",
        ("skvbem/vbem/driver.py", "accepted = value >= second\n", "accepted = value == value\n"),
    ),
    error(
        "the bound of one start is reported for another's tables",
        (
            "skvbem/vbem/fit.py",
            "np.ascontiguousarray(result.statistics[:, best])",
            "np.ascontiguousarray(result.statistics[:, best - 1])",
        ),
    ),
    error(
        "a tournament keeps the worse half",
        ("skvbem/vbem/starts.py", "np.argsort(-objective,", "np.argsort(objective,"),
    ),
    error(
        "annealing forgets the temperature",
        ("skvbem/vbem/fit.py", "starts *= inverse_temperature\n", "starts *= 1.0\n"),
    ),
    error(
        "the joint mode forgets that separators are settled",
        (
            "skvbem/models/network/queries.py",
            "chosen = potential[(np.arange(n), *(states[v] for v in known))]",
            "chosen = potential[(np.arange(n), *(0 * states[v] for v in known))]",
        ),
    ),
    error(
        "KL is taken the other way round",
        (
            "skvbem/families/base.py",
            "natural = self.expected_natural() if expected_natural is None else expected_natural",
            "natural = other.expected_natural()",
        ),
    ),
    error_of_the_evidence(
        "the ratio of annealed densities forgets the anchor",
        (
            KERNELS + "_annealing.pyx",
            "trace[step, lane] -= (there - here) * anchor_counts[cell, lane] * log_point[cell, lane]",
            "trace[step, lane] -= 0.99 * (there - here) * anchor_counts[cell, lane] * log_point[cell, lane]",
        ),
    ),
    error_of_the_evidence(
        "chains draw tables at the temperature before",
        (
            KERNELS + "_annealing.pyx",
            "prior[cell] + (1.0 - there) * anchor_counts[cell, lane] + there * counts[cell, lane])",
            "prior[cell] + (1.0 - here) * anchor_counts[cell, lane] + here * counts[cell, lane])",
        ),
    ),
    error_of_the_evidence(
        "proposals are accepted as if they were symmetric",
        (
            KERNELS + "_annealing.pyx",
            "add_log_density(starts, n_lanes, 1.0, concentration,",
            "add_log_density(starts, n_lanes, 0.0, concentration,",
        ),
        (
            KERNELS + "_annealing.pyx",
            "add_log_density(starts, n_lanes, -1.0, concentration,",
            "add_log_density(starts, n_lanes, 0.0, concentration,",
        ),
    ),
    error_of_the_evidence(
        "proposals are accepted without regard to the prior",
        (KERNELS + "_annealing.pyx", "log_odds[lane] += (prior[cell] - 1.0) *", "log_odds[lane] += 0.0 *"),
    ),
    error_of_the_evidence(
        "each start stands for all of the evidence",
        (
            "skvbem/evidence/ais.py",
            "log_weights = trace[-1] + starts.log_parts(which[: len(trace[-1])], log_points)",
            "log_weights = trace[-1]",
        ),
    ),
    error_of_the_evidence(
        "labels of the starts are not made symmetric",
        ("skvbem/evidence/starts.py", "relabelings.n > 1 and self.shares.any():", "relabelings.n > 10**9:"),
    ),
    error_of_the_evidence(
        "weights are averaged as logarithms",
        (
            "skvbem/evidence/chains.py",
            "value = float(logsumexp([logsumexp(weights) - np.log(len(weights)) for weights in strata]))",
            "value = float(logsumexp([np.mean(weights) for weights in strata]))",
        ),
    ),
    error_of_the_evidence(
        "the standard error is that of one weight",
        (
            "skvbem/evidence/chains.py",
            "float(np.mean((ratios - ratios.mean()) ** 2)) / len(weights)",
            "float(np.mean((ratios - ratios.mean()) ** 2))",
        ),
    ),
    error_of_the_evidence(
        "particles are drawn again without regard to their shares",
        (
            "skvbem/evidence/smc.py",
            "systematic(np.exp(log_shares[run]), rngs[run])",
            "systematic(np.full(n_particles, 1.0 / n_particles), rngs[run])",
        ),
    ),
    error_of_the_evidence(
        "the densities that draws come from weigh more than one",
        ("skvbem/evidence/importance.py", "np.log((1 - _DEFENSE) / n_completions)", "np.log(1 / n_completions)"),
    ),
    error_of_the_evidence(
        "backward chains start from any labeling",
        ("skvbem/evidence/certify.py", "starts.relabelings.n > 1:", "starts.relabelings.n > 10**9:"),
    ),
    error_of_the_evidence(
        "picks in turn are those of the first state",
        (
            "skvbem/models/network/relabelings.py",
            "found += own[k, k] - log_sum_exp(own[k, turns[at:]])",
            "found += own[k, k] - log_sum_exp(own[k])",
        ),
    ),
    error_of_the_evidence(
        "permanents leave a column out",
        (
            "skvbem/models/network/relabelings.py",
            "columns = [column for column in range(n) if subset >> column & 1]",
            "columns = [column for column in range(n) if subset >> column & 1][: max(n - 1, 1)]",
        ),
    ),
    error_of_the_evidence(
        "certain rows are not counted in the collapsed bound",
        (
            "skvbem/evidence/collapsed.py",
            "marginals.known + np.bincount(target[certain], weights=weight[certain], minlength=n_targets)",
            "marginals.known + 0.0",
        ),
    ),
    error_of_the_evidence(
        "what is mixed over labelings forgets the labeling at hand",
        (
            "skvbem/evidence/aliasing.py",
            "total = logsumexp([0.0, *np.concatenate(log_overlaps)])",
            "total = logsumexp(np.concatenate(log_overlaps))",
        ),
    ),
    error_of_the_evidence(
        "the entropy of the completions has the wrong sign",
        (
            "skvbem/evidence/cheeseman_stutz.py",
            "completed.log_bd + completed.entropy,",
            "completed.log_bd - completed.entropy,",
        ),
    ),
    error_of_the_evidence(
        "the correction for identifiable dimensions has the wrong sign",
        ("skvbem/evidence/cheeseman_stutz.py", "0.5 * (free - d) *", "0.5 * (d - free) *"),
    ),
    error_of_the_evidence(
        "Laplace forgets the change of variables",
        (
            "skvbem/evidence/laplace.py",
            "log_det += 2.0 * (log_prior - float(prior.log_density(point)))",
            "log_det += log_prior - float(prior.log_density(point))",
        ),
    ),
    error_of_the_evidence(
        "BIC with the prior takes its density in natural parameters",
        (
            "skvbem/evidence/asymptotic.py",
            'log_density(point, basis="probability")',
            'log_density(point, basis="natural")',
        ),
    ),
    error_of_the_evidence(
        "small gamma variates are not lifted",
        (
            KERNELS + "_lanes.h",
            "concentration[i] = skvbem_gamma(&stream, concentration[i], log_point + i);",
            "concentration[i] = skvbem_gamma(&stream, concentration[i], log_point + i), log_point[i] = 0.0;",
        ),
    ),
    error_of_the_search(
        "the posterior forgets the prior",
        (SEARCH + "_posterior.py", "-np.inf) + log_priors - logsumexp", "-np.inf) - logsumexp"),
    ),
    error_of_the_search(
        "latents of other structures keep their names",
        (SEARCH + "_posterior.py", "linear_sum_assignment(common, maximize=True)", "linear_sum_assignment(common)"),
    ),
    error_of_the_search(
        "a latent with one child counts as shared",
        (SEARCH + "_posterior.py", "weight * ((has @ has.T) > 0)", "weight * (has @ has.T)"),
    ),
    error_of_the_search(
        "candidates are told apart by the names of latents",
        (SEARCH + "_jobs.py", "content(canonical(setting))", "content(dict(setting))"),
    ),
    error_of_the_search(
        "ties go to more parameters",
        (SEARCH + "_results.py", "return -value, size, describe(setting)", "return -value, -size, describe(setting)"),
    ),
    error_of_the_search(
        "what is scored again keeps its place",
        (SEARCH + "structure_search_cv.py", "order = [rescored[k] for k in again] +", "order = rescored +"),
    ),
    error_of_the_search(
        "one candidate more than asked for is tried",
        (SEARCH + "_runner.py", "len(self._asked) >= self._most:", "len(self._asked) > self._most:"),
    ),
    error_of_the_search(
        "records of another search are taken from a journal",
        (SEARCH + "_checkpoint.py", 'if entry["search"] != self._tag:', "if False:"),
    ),
    error_of_the_search(
        "a damaged checkpoint is read",
        (SEARCH + "_checkpoint.py", "if seal != (_SEAL % hashlib.sha256(body).hexdigest()).encode():", "if False:"),
    ),
    error_of_the_search(
        "the journal is emptied before it was taken in",
        (
            SEARCH + "_checkpoint.py",
            "            self._length = self._write()\n            os.ftruncate(descriptor, 0)\n",
            "            os.ftruncate(descriptor, 0)\n            self._length = self._write()\n",
        ),
    ),
    error_of_the_search(
        "chains forget how many neighbors a structure has",
        (
            SEARCH + "strategies/mc3.py",
            "+ np.log(here[chain].n_neighbors / proposal.n_neighbors)",
            "+ 0.0",
        ),
    ),
    error_of_the_search(
        "the bound of completed rows lacks their entropy",
        (
            SEARCH + "strategies/family_scores.py",
            "return self.completed.entropy + sum(",
            "return sum(",
        ),
    ),
    error_of_the_search(
        "turning an edge gains what removing it does",
        (SEARCH + "strategies/fitter.py", "if isinstance(move, ReverseEdge):", "if move is None:"),
    ),
    error_of_the_search(
        "families are remembered whatever the child",
        (
            SEARCH + "strategies/family_scores.py",
            "(*sorted(parents, key=self.completed.place.__getitem__), node)",
            "tuple(sorted([*parents, node], key=self.completed.place.__getitem__))",
        ),
    ),
    error_of_the_search(
        "candidates are pruned by twice their penalty",
        (
            SEARCH + "strategies/exhaustive.py",
            "self.per_parameter * dag.n_free_parameters(sizes)",
            "2.0 * self.per_parameter * dag.n_free_parameters(sizes)",
        ),
    ),
    error_of_the_search(
        "a sink may have parents above it only",
        (SEARCH + "strategies/best_dag.py", "rest = layer[inside] ^ (1 << sink)", "rest = layer[inside]"),
    ),
    error_of_the_search(
        "an orbit has as many graphs as there are renamings",
        ("skvbem/spaces/settings.py", ".values())) // dag.n_automorphisms(latents)", ".values()))"),
    ),
    error_of_mixtures(
        "a component counts once for each row, whatever the row's weight",
        (
            "skvbem/models/mixture/model.py",
            "shares = self._shares(step, block, log_weights, data.weight[rows], log_z)\n",
            "shares = self._shares(step, block, log_weights, 0.0 * data.weight[rows] + 1.0, log_z)\n",
        ),
    ),
    error_of_mixtures(
        "rows without an observed cell count for the weights",
        (
            "skvbem/models/mixture/model.py",
            "counted = counts if observed is None else np.where(observed, counts, 0.0)",
            "counted = counts",
        ),
    ),
    error_of_mixtures(
        "log weights of the components are left out",
        (
            "skvbem/models/mixture/model.py",
            "log_weights, step = self._at(natural, data)\n        n_lanes",
            "log_weights, step = self._at(natural, data)\n        log_weights *= 0.0\n        n_lanes",
        ),
    ),
    error_of_mixtures(
        "what is left of a stick is forgotten",
        (
            "skvbem/models/mixture/weights.py",
            "np.concatenate([none, np.cumsum(left, axis=0)])",
            "np.concatenate([none, 0.0 * np.cumsum(left, axis=0)])",
        ),
    ),
    error_of_mixtures(
        "completed cells of a Gaussian are as good as observed ones",
        (
            "skvbem/emissions/gaussian/quadratic.py",
            "return Observed(self, keep, shift, root, log_det, m)",
            "return Observed(self, keep, shift, 0.0 * root, log_det, m)",
        ),
    ),
    error_of_mixtures(
        "the volume of hidden Gaussian cells is left out",
        (
            "skvbem/emissions/gaussian/quadratic.py",
            "(self.n_hidden * _LOG_2PI - self.log_det_hidden) / 2",
            "(self.n_hidden * _LOG_2PI) / 2",
        ),
    ),
    error_of_mixtures(
        "the unit of measurements is left out of their density",
        ("skvbem/emissions/gaussian/diagonal.py", "of_mean + of_log - np.log(self.unit)", "of_mean + of_log"),
    ),
    error_of_mixtures(
        "Poisson exposures are counted in rows, not in units",
        ("skvbem/emissions/poisson.py", "sums[..., :d].shape) * self.unit]", "sums[..., :d].shape)]"),
    ),
    error_of_mixtures(
        "a Student t has a degree of freedom too many",
        (
            "skvbem/emissions/gaussian/dense.py",
            "((dof - m + 1) / 2)[:, None] * np.log1p(squares)",
            "((dof - m + 2) / 2)[:, None] * np.log1p(squares)",
        ),
    ),
    error_of_mixtures(
        "multinomial coefficients are left out",
        (
            "skvbem/emissions/multinomial.py",
            "log_rising(1.0, counts.sum(axis=1)) - log_rising(1.0, counts).sum(axis=1)",
            "0.0 * log_rising(1.0, counts.sum(axis=1))",
        ),
    ),
    error_of_mixtures(
        "the natural measure of precisions is that of variances",
        ("skvbem/families/normal_wishart.py", "(means - d - 1) / 2 * log_det", "(means + d + 1) / 2 * log_det"),
    ),
    error_of_mixtures(
        "precisions are drawn with as many degrees of freedom in every direction",
        (
            "skvbem/families/normal_wishart.py",
            "halves = np.moveaxis((dof[..., None] - np.arange(d)) / 2, [-2, -1], [0, 1])",
            "halves = np.moveaxis((dof[..., None] - np.arange(d) * 0) / 2, [-2, -1], [0, 1])",
        ),
    ),
    error_of_mixtures(
        "seeds keep close to each other",
        ("skvbem/models/mixture/starts.py", "            away = nearest\n", "            away = 1 / (1 + nearest)\n"),
    ),
    error_of_mixtures(
        "seeds depend on the order of rows",
        (
            "skvbem/models/labels/candidates.py",
            "return self.segment, self.row, self.total\n",
            "return tuple(each[np.argsort(self.row)] for each in (self.segment, self.row, self.total))\n",
        ),
    ),
    error_of_mixtures(
        "hidden cells have no part in the information",
        ("skvbem/models/mixture/information.py", "if hidden is not None:", "if hidden is None:"),
    ),
    error_of_mixtures(
        "weights and parameters of a component are taken to be independent",
        (
            "skvbem/models/mixture/information.py",
            "second[np.ix_(weights, of)] += crossed\n",
            "second[np.ix_(weights, of)] += 0.0 * crossed\n",
        ),
    ),
    error_of_mixtures(
        "equal rows are allocated in one way",
        (
            "skvbem/models/mixture/enumeration.py",
            "logsumexp(own + others[::-1] + _log_ways(weight, strides))",
            "logsumexp(own + others[::-1])",
        ),
    ),
    error_of_mixtures(
        "the exact sum forgets how the weights share the rows",
        (
            "skvbem/models/mixture/enumeration.py",
            "rest = _convolved(own, others, weight, strides) - whole",
            "rest = _convolved(own, others, weight, strides)",
        ),
    ),
    error_of_mixtures(
        "the collapsed bound is scored by the draws that chose it",
        ("skvbem/evidence/collapsed.py", "_CHOOSING, _SCORING = 8, 9", "_CHOOSING, _SCORING = 8, 8"),
    ),
    error_of_mixtures(
        "draws gain without what is linear in them",
        (
            "skvbem/evidence/collapsed.py",
            "linear = prior.log_evidence(statistics) + slope[drawn]",
            "linear = prior.log_evidence(statistics) + 0.5 * slope[drawn]",
        ),
    ),
    error_of_mixtures(
        "Metropolis chains of mixtures forget the prior",
        (
            "skvbem/models/gibbs.py",
            "log_odds = there_prior - log_prior + there",
            "log_odds = 0.5 * (there_prior - log_prior) + there",
        ),
    ),
    error_of_mixtures(
        "chains leave missing Gaussian cells where they are expected",
        (
            "skvbem/emissions/gaussian/dense_step.py",
            "observed.shift[lane, k][:, None] + root @ noise[:, which == k]",
            "observed.shift[lane, k][:, None] + 0.0 * root @ noise[:, which == k]",
        ),
    ),
    error_of_mixtures(
        "the entropy of the components is that of rows counted once",
        (
            "skvbem/models/mixture/scoring.py",
            "total -= float(segment.weight[rows] @ xlogy(q, q).sum(axis=1))",
            "total -= float(xlogy(q, q).sum())",
        ),
    ),
    error_of_chains(
        "expected transitions are normalized before the E step",
        (
            "skvbem/models/hmm/model.py",
            "return of_initial.T, np.moveaxis(of_pairs, -1, 0)",
            "return of_initial.T, np.moveaxis(of_pairs - np.logaddexp.reduce(of_pairs, axis=1)[:, None], -1, 0)",
        ),
    ),
    error_of_chains(
        "transitions are counted from the end of a sequence to the next one",
        (
            KERNELS + "_chain.h",
            "left[j] = ends ? 0.0 : left[j] * share;",
            "left[j] = left[j] * share;",
        ),
    ),
    error_of_chains(
        "weights of sequences are forgotten in the bound",
        (
            "skvbem/models/hmm/model.py",
            "(weight * np.where(weight > 0, log_z, 0.0)).sum(axis=1), passes",
            "np.where(weight > 0, log_z, 0.0).sum(axis=1), passes",
        ),
    ),
    error_of_chains(
        "steps after the last observed one are summed, not left out",
        (
            "skvbem/models/hmm/model.py",
            "ends = np.where(before[1:] > before[:-1], last + 1, starts[:-1]).astype(np.int64)",
            "ends = starts[1:]",
        ),
    ),
    error_of_chains(
        "states of the steps after the last observed one stay as they are",
        (
            "skvbem/models/hmm/model.py",
            "states[going] @ transition",
            "states[going]",
        ),
    ),
    error_of_chains(
        "what a mask rules out is only improbable",
        (
            "skvbem/models/hmm/model.py",
            "self.transitions.matrix(pairs, -np.inf)",
            "self.transitions.matrix(pairs, -9.0)",
        ),
    ),
    error_of_chains(
        "the first row of each sequence but one counts as a transition",
        (
            "skvbem/models/hmm/model.py",
            "weight[self.starts[:-1][self.lengths > 0]] = 0.0",
            "weight[:1] = 0.0",
        ),
    ),
    error_of_chains(
        "the bound leaves out the prior of the first state",
        (
            "skvbem/families/product.py",
            "np.sum([block.log_normalizer_increment(u) for block, u in parts], axis=0)",
            "np.sum([block.log_normalizer_increment(u) for block, u in list(parts)[1:]], axis=0)",
        ),
    ),
    error_of_chains(
        "what is out of range is not passed over in logarithms",
        (
            KERNELS + "_hmm.pyx",
            "if (least if at_every_row else share) >= 1.0 - SKVBEM_LOST:",
            "if (least if at_every_row else share) >= -1.0:",
        ),
    ),
    error_of_chains(
        "best paths are followed back one step late",
        (
            KERNELS + "_hmm.pyx",
            "                states[t] = state\n                state = source[t, state]\n",
            "                state = source[t, state]\n                states[t] = state\n",
        ),
    ),
    error_of_chains(
        "of equal states a best path ends in the last",
        (
            KERNELS + "_hmm.pyx",
            "                if here[j] > top:",
            "                if here[j] >= top:",
        ),
    ),
    error_of_chains(
        "drawn transitions between pieces are not counted",
        (
            KERNELS + "_hmm.pyx",
            "counts[lane, states[lane, ends[s] - 1], next_state] += 1.0",
            "counts[lane, states[lane, ends[s] - 1], next_state] += 0.0",
        ),
    ),
    error_of_chains(
        "relabelings of states leave the rows of transitions in place",
        (
            "skvbem/models/hmm/transitions.py",
            "rows = orders if n_rows > 1 else np.zeros((*orders.shape[:-1], 1), dtype=int)\n",
            "rows = np.broadcast_to(np.arange(n_rows), (*orders.shape[:-1], n_rows))\n",
        ),
    ),
    error_of_chains(
        "learned strengths are those of half the transitions",
        (
            "skvbem/estimators/hmm/fitted.py",
            "_strengthened(model.transitions, of_pairs, bases[1])",
            "_strengthened(model.transitions, 0.5 * of_pairs, bases[1])",
        ),
    ),
    error_of_chains(
        "forecasts go back in time",
        (
            "skvbem/estimators/hmm/fitted.py",
            "filtered = filtered @ self.transmat",
            "filtered = filtered @ self.transmat.T",
        ),
    ),
    error_of_chains(
        "forecasts start from the first step",
        (
            "skvbem/estimators/hmm/vb_hmm.py",
            "last = np.cumsum(sequences.lengths) - 1\n",
            "last = np.cumsum(sequences.lengths) - sequences.lengths\n",
        ),
    ),
    error_of_chains(
        "the score is the mean over sequences, not over steps",
        (
            "skvbem/estimators/hmm/vb_hmm.py",
            "/ (weights @ sequences.lengths))",
            "/ weights.sum())",
        ),
    ),
    error_of_chains(
        "the average over q is one of logarithms",
        (
            "skvbem/estimators/hmm/fitted.py",
            "found = logsumexp(logs, axis=0) - np.log(n_draws)",
            "found = logs.mean(axis=0)",
        ),
    ),
    error_of_chains(
        "Laplace's covariance forgets steps before a transition",
        (
            "skvbem/models/hmm/information.py",
            "crossed = self.crossed + of_pairs.T @",
            "crossed = self.crossed + 0.0 * of_pairs.T @",
        ),
    ),
    error_of_chains(
        "Laplace's recursion loses states out of the range of doubles",
        (
            "skvbem/models/hmm/information.py",
            "                log_alpha = self.log_first + of_rows\n",
            "                log_alpha = self.log_first + np.where(of_rows < of_rows.max() - 745, -np.inf, of_rows)\n",
        ),
    ),
    error_of_chains(
        "the exact sum takes all sequences for one",
        (
            "skvbem/models/hmm/enumeration.py",
            "begins[data.starts[:-1]] = True",
            "begins[0] = True",
        ),
    ),
    error_of_chains(
        "the dimension is that of sequences of two steps less",
        (
            "skvbem/models/hmm/dimension.py",
            "2 * model.n_components - 1)",
            "2 * model.n_components - 3)",
        ),
    ),
    error_of_chains(
        "the entropy of paths is that of independent steps",
        (
            "skvbem/models/hmm/scoring.py",
            " - _expected(passes.counts[0], log_pairs)",
            "",
        ),
    ),
)


class Copy:
    """A copy of the package, built, in which errors come and go."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.source, self.site = folder / "source", folder / "site"
        self.source.mkdir()
        ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
        for name in SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.source / name, ignore=ignored)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, self.source / name)
        self.build()

    def build(self) -> None:
        """Compile what changed, install all."""
        isolation = ["--no-build-isolation"] if importlib.util.find_spec("mesonpy") else []
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", *isolation]
        command += ["--target", str(self.site), f"-Cbuild-dir={self.folder / 'build'}", str(self.source)]
        environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise SystemExit(f"The copy does not build:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def plant(self, planted: Error) -> dict[Path, str]:
        """Put the wrong texts in the place of the right ones, all or none; the files as they were."""
        before: dict[Path, str] = {}
        after: dict[Path, str] = {}
        for file, right, wrong in planted.changes:
            for tree in (self.source,) if planted.compiled else (self.source, self.site):
                path = tree / file
                before.setdefault(path, path.read_text())
                text = after.get(path, before[path])
                if text.count(right) != 1:
                    raise LookupError(f"{file} holds {text.count(right)} times: {right.strip()[:60]}")
                after[path] = text.replace(right, wrong)
        for path, text in after.items():
            path.write_text(text)
        return before

    def test(self, tests: tuple[str, ...], *options: str) -> tuple[bool, list[str]]:
        """(whether all these tests pass, the names of those that do not)."""
        environment = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=no",
            "-rfE",
            *options,
            *tests,
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
        names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
        if done.returncode not in (0, 1, 2) and not names:
            names = [f"the tests themselves end with {done.returncode}"]
        return done.returncode == 0, names

    def check_origin(self) -> None:
        """An editable installation would be tested in place of the copy."""
        code = "import skvbem; print(skvbem.__file__)"
        environment = {**os.environ, "PYTHONPATH": str(self.site)}
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False, env=environment
        )
        if not done.stdout.startswith(str(self.site)):
            raise SystemExit(f"The copy is not what is imported, but {done.stdout.strip() or done.stderr}")


def main(wanted: list[str]) -> int:
    chosen = [
        planted
        for planted in ERRORS
        if not wanted or any(word in planted.name or PARTS.get(word) is planted.tests for word in wanted)
    ]
    survived, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        copy.check_origin()
        left_out = {}
        for tests in {planted.tests: None for planted in chosen}:
            began = time.perf_counter()
            clean, failing = copy.test(tests)
            took = time.perf_counter() - began
            of_them = "all pass" if clean else f"{len(failing)} fail, and are left out below"
            print(f"without an error: {of_them}, {took:.0f} s", flush=True)
            left_out[tests] = [f"--deselect={name}" for name in failing]
        stale = False  # whether what is built holds an error that the source no longer does
        for planted in sorted(chosen, key=lambda planted: planted.compiled):
            try:
                before = copy.plant(planted)
            except LookupError as why:
                rows.append((planted.name, f"CANNOT BE PLANTED: {why}"))
                survived.append(planted.name)
                continue
            if planted.compiled or stale:
                copy.build()
            passed, names = copy.test(planted.tests, "--maxfail=3", *left_out[planted.tests])
            for path, text in before.items():
                path.write_text(text)
            stale = planted.compiled
            if passed:
                survived.append(planted.name)
            rows.append((planted.name, "NOBODY" if passed else ", ".join(short(name) for name in names)))
            print(f"{rows[-1][0]} → {rows[-1][1]}", flush=True)
    width = max(len(name) for name, _ in rows)
    print(f"\n{'error':{width}}   noticed by (the first three)\n{'-' * width}   {'-' * 28}")
    for name, noticed in rows:
        print(f"{name:{width}} → {noticed}")
    print(f"\n{len(rows) - len(survived)} of {len(rows)} noticed")
    return bool(survived)


def short(name: str) -> str:
    return name.removeprefix("tests/").replace("::", " ", 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
