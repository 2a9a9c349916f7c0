"""How far can annealed chains be trusted on hidden Markov models? "ais" by default beside runs of 16 times the work.

A line of the record is a problem: the bound of the default fit, the values, standard errors and effective sample sizes
of "ais" with its defaults under three seeds, a long run of four times the chains and steps, and CPU seconds. Run as a
program it adds the problems that are not there yet:

    python chain_evidences.py
"""

import time
import warnings
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBHMM
from skvbem.datasets import load_alice, load_earthquakes, load_fetal_lamb
from skvbem.errors import EvidenceWarning

#: The record.
RESULTS = Path(__file__).with_name("chain_evidences_results.jsonl")
SEEDS, LONG = range(3), {"n_chains": 192, "n_steps": 512}
PROBLEMS = {
    f"{name}, {k}": (name, k, emission)
    for name, emission, numbers in [
        ("earthquakes", "poisson", (2, 3, 4)),
        ("fetal lamb", "poisson", (2, 3)),
        ("Alice, 1000 letters", "categorical", (4,)),
    ]
    for k in numbers
}


def sequence_of(name):
    """The steps of a problem, one column."""
    if name.startswith("Alice"):
        return np.array(list(load_alice()[:1000]), dtype=object)[:, None]
    return {"earthquakes": load_earthquakes, "fetal lamb": load_fetal_lamb}[name]().data


def fitted(name):
    """The default fit of a problem, and its steps."""
    table, k, emission = PROBLEMS[name]
    X = sequence_of(table)
    return VBHMM(k, emission=emission, random_state=0).fit(X), X


def asked(model, X, seed, **options):
    """What annealed chains say: value, standard error, effective sample size, and if they warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)
        found = model.log_evidence(X, kind="ais", random_state=seed, **options)
    return {
        "value": found.value,
        "error": found.standard_error,
        "worth": float(found.details["effective_sample_size"]),
        "warns": bool(found.doubts),
    }


def measured(name):
    """The line of a problem."""
    began = time.process_time()
    model, X = fitted(name)
    of_fit = time.process_time() - began
    runs = [asked(model, X, seed) for seed in SEEDS]
    of_runs = (time.process_time() - began - of_fit) / len(runs)
    line = {"problem": name, "bound": model.lower_bound_, "runs": runs, "long": asked(model, X, 99, **LONG)}
    return line | {"seconds": {"fit": round(of_fit, 2), "ais": round(of_runs, 2)}}


def table(lines):
    """Rows of the page: sequences, states, bound, the run of the median value with error and worth, the long run."""
    for line in lines:
        name, states = line["problem"].rsplit(", ", 1)
        run = sorted(line["runs"], key=lambda run: run["value"])[len(line["runs"]) // 2]
        warns = [" (warns)" * each["warns"] for each in (run, line["long"])]
        yield (
            name,
            states,
            f"{line['bound']:.1f}",
            f"{run['value']:.2f}",
            f"{run['error']:.2f}",
            f"{run['worth']:.2g}{warns[0]}",
            f"{line['long']['value']:.2f} ± {line['long']['error']:.2f}{warns[1]}",
        )


if __name__ == "__main__":
    done = {line["problem"] for line in read_record(RESULTS)}
    for name in PROBLEMS:
        if name not in done:
            add_to_record(RESULTS, measured(name))
    for row in table(read_record(RESULTS)):
        print(", ".join(f'"{cell}"' if "," in cell else cell for cell in row))
