"""``VBHMM("auto")`` beside a fit of each number of states: simulated chains of 1 to 6 states, of four emissions.

The number of states is uniform from 1 to 6. First states, transitions and emissions are drawn from the priors of the
fits: every state has a Dirichlet(1, ..., 1) over the next one, with 5 more for staying in every other chain. A chain
has 100, 300 or 1 000 steps, or 5 sequences of 60. Sizes of negative binomials hang on the data; those drawn are of a
pilot sample of 50 counts, and the posterior over numbers of states is counted without them.

A line has what "auto" found, and the bound of each number of states from 1 to 10, fitted by default, with CPU seconds.
The posterior of a search (`StructureSearchCV` with scoring="lower_bound") is proportional to exp of these bounds.

Run as a program it goes on where it was stopped, for some time, a line of JSON for each chain, and prints a summary:

    python auto_chains.py --minutes 30
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.special import softmax

from skvbem import VBHMM
from skvbem.emissions import Categorical, Gaussian, NegativeBinomial, Poisson
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of

#: The record of 200 chains.
RESULTS = Path(__file__).with_name("auto_chains_results.jsonl")
N_CHAINS, MOST_DRAWN, MOST_FITTED = 200, 6, 10
LENGTHS = ((100,), (300,), (1000,), (60,) * 5)
#: Nats that two fits of one optimum may lie apart.
SAME = 0.01
NORMAL = {"mean_prior": [0.0, 0.0], "mean_precision_prior": 0.05, "degrees_of_freedom_prior": 4.0}
EMISSIONS = {
    "gaussian": Gaussian("diag", covariance_prior=[1.0, 1.0], **NORMAL),
    "poisson": Poisson(1.5, 0.15),
    "categorical": Categorical(1.0),
    "negative_binomial": NegativeBinomial(),
}
#: Emissions whose priors do not hang on the data.
KNOWN_PRIOR = ("gaussian", "poisson", "categorical")


def _pilot(name, rng):
    """Rows of the right kind, from which columns are read."""
    if name == "gaussian":
        return rng.normal(size=(50, 2))
    if name == "categorical":
        return np.tile(np.arange(4), (2, 13)).T
    return rng.negative_binomial(1.0, 0.1, size=(50, 1))


def simulated(number, seed=20261128):
    """Sequences, the number of their states, the name of their emission, and options of their fits."""
    rng = np.random.default_rng([seed, number])
    name, k = list(EMISSIONS)[number % len(EMISSIONS)], int(rng.integers(1, MOST_DRAWN + 1))
    options = {"emission": EMISSIONS[name], "sticky": 5.0 * float(rng.integers(2))}
    if name == "categorical":
        options["categories"] = {"x0": range(4), "x1": range(4)}
    lengths = LENGTHS[int(rng.integers(len(LENGTHS)))]
    estimator = VBHMM(k, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind_of(estimator).model(estimator, read(estimator, _pilot(name, rng)))
    rows, _ = model.sample(model.prior.sample(rng), lengths, rng)
    return np.split(np.asarray(rows, dtype=float), np.cumsum(lengths)[:-1]), k, name, options


def fitted(n_components, X, options, number):
    """A fit by default, and its CPU seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = VBHMM(n_components, **options, random_state=number).fit(X)
    return fit, round(time.process_time() - began, 3)


def found(number, **seed):
    """A line of the record."""
    X, k, name, options = simulated(number, **seed)
    auto, seconds = fitted("auto", X, options, number)
    line = {"number": number, "states": k, "emission": name, "steps": sum(map(len, X)), "sticky": options["sticky"]}
    line |= {"auto": auto.n_components_, "bound": round(auto.lower_bound_, 4), "seconds": seconds}
    fits = [fitted(each, X, options, number) for each in range(1, MOST_FITTED + 1)]
    return line | {"bounds": [round(fit.lower_bound_, 4) for fit, _ in fits], "of_each": [each for _, each in fits]}


def is_mode(line):
    """True if "auto" found the number whose bound is the highest, or a higher one than all."""
    return line["auto"] == 1 + int(np.argmax(line["bounds"])) or line["bound"] > max(line["bounds"]) + SAME


def is_best(line):
    """True if no number of states has a higher bound than "auto" found."""
    return line["bound"] >= max(line["bounds"]) - SAME


def posterior(line):
    """Of the numbers that were drawn from, as a search has it by bounds, (6,)."""
    return softmax(line["bounds"][:MOST_DRAWN])


def summary(lines):
    """Shares, and how sure the posterior is beside how often it is right, by name."""
    of_known_prior = [line for line in lines if line["emission"] in KNOWN_PRIOR]
    shares = np.array([posterior(line) for line in of_known_prior])
    modes, drawn = shares.argmax(axis=1) + 1, np.array([line["states"] for line in of_known_prior])
    return {
        "mode": np.mean([line["auto"] == 1 + int(np.argmax(line["bounds"])) for line in lines]),
        "best": np.mean([is_best(line) for line in lines]),
        "better": np.mean([line["bound"] > max(line["bounds"]) + SAME for line in lines]),
        "seconds": sum(line["seconds"] for line in lines) / sum(sum(line["of_each"]) for line in lines),
        "sure": shares.max(axis=1).mean(),
        "right": np.mean(modes == drawn),
        "too few": np.mean(modes < drawn),
        "drawn": np.mean(shares[np.arange(len(drawn)), drawn - 1]),
    }


def run(path=RESULTS, minutes=30.0):
    """Add chains to the record for some time."""
    done = {line["number"] for line in read_record(path)}
    began = time.monotonic()
    for number in range(N_CHAINS):
        if time.monotonic() - began >= 60 * minutes:
            break
        if number not in done:
            add_to_record(path, found(number))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    run(minutes=parser.parse_args().minutes)
    for what, share in summary(read_record(RESULTS)).items():
        print(f"{what}: {share:.3f}")
