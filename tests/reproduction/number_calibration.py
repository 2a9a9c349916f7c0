"""How far posteriors of the number of states are to be believed: short chains drawn from the priors of their fits.

The number of states is uniform from 1 to 4. First states, transitions and emissions are drawn from the priors of the
fits, as in ``auto_chains.py``; a chain has 40 or 80 steps, or 3 sequences of 20. Each number from 1 to 4 is fitted by
default and scored by the bound, and by ``log_evidence(kind="auto")``, which is sampled. Shares proportional to exp of
a score are the posterior that a search has by it (`StructureSearchCV`). Where scores are the evidence, of all answers
given with probability p a share p is right.

Run as a program it goes on where it was stopped, for some CPU time, a line of JSON for each chain, and prints a table:

    PYTHONPATH=tests python -P -m reproduction.number_calibration --minutes 8
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from reproduction.auto_chains import EMISSIONS, KNOWN_PRIOR, _pilot
from reproduction.records import add_to_record, read_record
from scipy.special import softmax

from skvbem import VBHMM
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of

RESULTS = Path(__file__).with_name("number_calibration_results.jsonl")
N_CHAINS, MOST = 60, 4
LENGTHS = ((40,), (80,), (20,) * 3)
SCORES = ("lower_bound", "evidence")


def simulated(number, seed=20261129):
    """Sequences, the number of their states, the name of their emission, and options of their fits."""
    rng = np.random.default_rng([seed, number])
    name, k = KNOWN_PRIOR[number % len(KNOWN_PRIOR)], int(rng.integers(1, MOST + 1))
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


def scored(n_components, X, options, number):
    """The bound of a fit by default, and the sampled evidence with its standard error, nats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = VBHMM(n_components, **options, random_state=number).fit(X)
        evidence = fit.log_evidence(X, kind="auto")
    return round(fit.lower_bound_, 4), round(evidence.value, 4), evidence.kind


def found(number, **seed):
    """A line of the record."""
    X, k, name, options = simulated(number, **seed)
    began = time.process_time()
    bounds, evidences, kinds = zip(*(scored(each, X, options, number) for each in range(1, MOST + 1)))
    line = {"number": number, "states": k, "emission": name, "steps": sum(map(len, X)), "kinds": kinds}
    line |= {"lower_bound": bounds, "evidence": evidences}
    return line | {"seconds": round(time.process_time() - began, 2)}


def shares(lines, score):
    """Posteriors of the numbers 1 to 4 by a score, (n_chains, 4)."""
    return np.array([softmax(line[score]) for line in lines])


def calibration(lines, score):
    """How sure the posterior is of its mode, how often that is right, the gap in deviations, and mean ln of the truth.

    The gap is that between the number of right modes and its mean under the posterior.
    """
    posterior, drawn = shares(lines, score), np.array([line["states"] for line in lines]) - 1
    sure, right = posterior.max(axis=1), posterior.argmax(axis=1) == drawn
    gap = (right.sum() - sure.sum()) / np.sqrt((sure * (1 - sure)).sum())
    of_truth = posterior[np.arange(len(lines)), drawn]
    return {"sure": sure.mean(), "right": right.mean(), "gap": gap, "log": np.log(of_truth).mean()}


def table_rows(lines):
    """Rows of the table of the guide."""
    for score in SCORES:
        of = calibration(lines, score)
        yield score, f"{of['sure']:.2f}", f"{of['right']:.2f}", f"{of['gap']:+.1f}", f"{of['log']:.2f}"


def run(path=RESULTS, minutes=8.0):
    """Add chains to the record for some CPU time."""
    done, began = {line["number"] for line in read_record(path)}, time.process_time()
    for number in range(N_CHAINS):
        if time.process_time() - began >= 60 * minutes:
            break
        if number not in done:
            add_to_record(path, found(number))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=8.0)
    run(minutes=parser.parse_args().minutes)
    for row in table_rows(read_record(RESULTS)):
        print(", ".join(row))
