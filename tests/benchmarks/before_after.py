"""Speed of two installed versions: each has a process of its own, and both do the same work in turns.

    python tests/benchmarks/before_after.py --before OLD/bin/python --after NEW/bin/python [--rounds 7] [WORK ...]

Prints for each work the CPU seconds of both and the ratio of speeds, before over after: 1.05 says that the later
version takes 5 % less. Works are whole calls of public names, steps counted by `max_iter` so that both versions take as
many. Naming some works (see `WORKS`) runs these alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from timing import spread

# Steps of which none converges.
STEPS = {"max_iter": 60, "tol": 0.0, "random_state": 0}


def clouds(n: int, d: int, n_components: int) -> np.ndarray:
    """Rows around as many means as there are components."""
    rng = np.random.default_rng(0)
    return 3 * rng.normal(size=(n_components, d))[rng.integers(n_components, size=n)] + rng.normal(size=(n, d))


def with_gaps(X: np.ndarray, share: float = 0.1) -> np.ndarray:
    """The rows, a share of their cells missing."""
    X = X.astype(float)
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


def categories(n: int, d: int, size: int = 4) -> np.ndarray:
    """Rows of categories that hang on one hidden class of three."""
    rng = np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(size), (3, d)).cumsum(-1)
    kinds = rng.integers(3, size=n)
    return (rng.random((n, d, 1)) > tables[kinds]).sum(-1)


def gaussian(covariance_type: str = "full"):
    """Measurements under a prior that every version has, of which nothing is hidden."""
    from skvbem.emissions import Gaussian

    return Gaussian(covariance_type, mean_precision_prior=1.0, covariance_prior=None)


def mixture(X: np.ndarray, n_components: int, **parameters):
    """A fit of a mixture, to be timed."""
    from skvbem import VBMixture

    return lambda: VBMixture(n_components, n_init=2, **STEPS, **parameters).fit(X)


def chain(X: np.ndarray, n_components: int, lengths=None, **parameters):
    """A fit of a hidden Markov model, to be timed."""
    from skvbem import VBHMM

    return lambda: VBHMM(n_components, n_init=2, **STEPS, **parameters).fit(X, lengths=lengths)


def network(X: np.ndarray, structure=None, latents=None):
    """A fit of a network, to be timed."""
    from skvbem import VBDiscreteDAG

    return lambda: VBDiscreteDAG(structure, latents=latents, n_init=2, **STEPS).fit(X)


def structures():
    """Two latents above four answers: 136 structures, ten starts each."""
    from skvbem import BipartiteSpace, StructureSearchCV, VBDiscreteDAG
    from skvbem.datasets import load_coleman_panel

    X = load_coleman_panel(as_frame=True).data
    space = BipartiteSpace({"h": 2}, X.columns) + BipartiteSpace({"h0": 2, "h1": 2}, X.columns, childless=False)
    return lambda: StructureSearchCV(VBDiscreteDAG(), space, scoring="lower_bound", random_state=0).fit(X)


def score(estimator, X, kind: str, **options):
    """A score of the evidence of a fit, to be timed."""
    fitted = estimator.fit(X)
    return lambda: fitted.log_evidence(X, kind=kind, **options)


def of_mixture(kind: str, **options):
    """A score of a mixture of measurements."""
    from skvbem import VBMixture

    return score(VBMixture(3, emission=gaussian(), random_state=0), clouds(500, 3, 3), kind, **options)


def of_chain(kind: str, **options):
    """A score of a hidden Markov model of counts."""
    from skvbem import VBHMM

    counts = np.random.default_rng(0).poisson(np.repeat([[2.0], [8.0]], 100, axis=0))
    return score(VBHMM(2, emission="poisson", random_state=0), counts, kind, **options)


def of_network(kind: str, **options):
    """A score of a latent class model."""
    from skvbem import VBDiscreteDAG

    return score(VBDiscreteDAG(latents={"h": 3}, random_state=0), categories(2000, 8), kind, **options)


def importing():
    """Importing the library, in a process of its own."""
    return lambda: subprocess.run([sys.executable, "-P", "-c", "import skvbem"], check=True)


def many_short(n: int, length: int) -> tuple[np.ndarray, list]:
    """Sequences of one length, one after the other."""
    return clouds(n * length, 2, 4), [length] * n


def tiny_fits():
    """A hundred fits of a mixture of counts to a few rows: what a call costs."""
    from skvbem import VBMixture

    X = np.arange(12.0)[:, None]
    return lambda: [VBMixture(2, emission="poisson", n_init=1, max_iter=4, random_state=0).fit(X) for _ in range(100)]


WORKS = {
    "import": importing,
    "one-row fits": tiny_fits,
    "136 structures": structures,
    "network, 50 000 x 8, latent class": lambda: network(categories(50_000, 8), latents={"h": 3}),
    "network, 20 000 x 8, gaps": lambda: network(
        np.where(np.random.default_rng(1).random((20_000, 8)) < 0.1, np.nan, categories(20_000, 8).astype(float)),
        latents={"h": 3},
    ),
    "mixture, full, 20 000 x 8": lambda: mixture(clouds(20_000, 8, 5), 5, emission=gaussian()),
    "mixture, full, 5 000 x 6, gaps": lambda: mixture(with_gaps(clouds(5000, 6, 5)), 5, emission=gaussian()),
    "mixture, tied, 20 000 x 8": lambda: mixture(clouds(20_000, 8, 5), 5, emission=gaussian("tied")),
    "mixture, diag, 20 000 x 8": lambda: mixture(clouds(20_000, 8, 5), 5, emission=gaussian("diag")),
    "mixture, categorical, 20 000 x 10": lambda: mixture(categories(20_000, 10), 4, emission="categorical"),
    "mixture, poisson, 20 000 x 10": lambda: mixture(categories(20_000, 10), 4, emission="poisson"),
    "mixture, ten small fits": lambda: mixture(clouds(150, 4, 3), 3, emission=gaussian()),
    "chain, full, 20 000 x 4": lambda: chain(clouds(20_000, 4, 4), 4, emission=gaussian()),
    "chain, 400 short": lambda: chain(
        *[many_short(400, 25)[0], 4], lengths=many_short(400, 25)[1], emission=gaussian()
    ),
    "chain, categorical, 20 000 x 1": lambda: chain(categories(20_000, 1, 20), 6, emission="categorical"),
    "ais of a network": lambda: of_network("ais"),
    "ais of a mixture": lambda: of_mixture("ais"),
    "ais of a chain": lambda: of_chain("ais"),
    "laplace of a mixture": lambda: of_mixture("laplace"),
    "collapsed of a network": lambda: of_network("collapsed"),
    "importance of a mixture": lambda: of_mixture("importance"),
}


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it waited for; other work on the machine adds little to them."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def serve() -> None:
    """Time works as their names come on standard input; a work is made once, and run once before it is timed."""
    warnings.simplefilter("ignore")
    works = {}
    for line in sys.stdin:
        name = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            if name not in works:
                works[name] = WORKS[name]()
                works[name]()
            began = cpu_seconds()
            works[name]()
            took = cpu_seconds() - began
        print(took, flush=True)


class Version:
    """An installed version in a process of its own."""

    def __init__(self, python: str):
        serving = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import before_after as b; b.serve()"
        self.process = subprocess.Popen(
            [python, "-P", "-c", serving], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name: str) -> float:
        """CPU seconds of a work."""
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{name!r} failed; its error stands above.")
        return float(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before")
    parser.add_argument("--after")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("works", nargs="*")
    asked = parser.parse_args()
    versions = [Version(asked.before), Version(asked.after)]
    print(f"{'work':36}{'before, ms':>28}{'after, ms':>28}   before / after")
    for name in WORKS:
        if asked.works and not any(word in name for word in asked.works):
            continue
        rounds = np.array([[version.seconds(name) for version in versions] for _ in range(asked.rounds)])
        ratio = np.median(rounds[:, 0] / rounds[:, 1])
        print(f"{name:36}{spread(rounds[:, 0], 1e3):>28}{spread(rounds[:, 1], 1e3):>28}   {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
