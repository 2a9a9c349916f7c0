"""`VBMixture` of many rows: how much memory it takes beside them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skvbem import VBMixture

approx = pytest.approx

# Growth of resident memory at its peak, in bytes, beside X of a million rows of ten floats.
PEAK = """
import sys
from pathlib import Path
import numpy as np
from skvbem import VBMixture

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])

rng = np.random.default_rng(0)
means = 3 * rng.normal(size=(10, 10))
X = np.empty((1_000_000, 10))
for rows in np.split(X, 100):
    rows[:] = means[rng.integers(10, size=len(rows))] + rng.normal(size=rows.shape)
model = VBMixture(10, covariance_type=sys.argv[2], n_init=1, max_iter=4, tol=1e9, random_state=0)
if sys.argv[1] != "fit":
    model.fit(X[::100])
work = getattr(model, sys.argv[1])
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
work(X)
print((status("VmHWM") - before) / X.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc, as Linux has it")
@pytest.mark.parametrize(
    ("method", "covariance_type"),
    [
        ("fit", "full"),
        pytest.param("fit", "diag", marks=pytest.mark.slow),
        pytest.param("predict", "full", marks=pytest.mark.slow),
        pytest.param("score_samples", "full", marks=pytest.mark.slow),
    ],
)
def test_memory_beside_a_large_table(method, covariance_type):
    """At most 0.3 X, whatever is computed of it."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PEAK, method, covariance_type], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) <= 0.3


# The same of rows in blocks of 50 000, as many as the argument says.
PEAK_OF_BLOCKS = (
    PEAK[: PEAK.index("X = np.empty")]
    + """
from skvbem import blocks_of

def blocks():
    for k in range(int(sys.argv[1])):
        drawn = np.random.default_rng(k + 1)
        yield means[drawn.integers(10, size=50_000)] + drawn.normal(size=(50_000, 10))

model = VBMixture(10, n_init=1, max_iter=4, tol=1e9, random_state=0)
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
model.fit(blocks_of(blocks))
print(status("VmHWM") - before)
"""
)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc, as Linux has it")
def test_memory_of_blocks_does_not_grow_with_their_number():
    few, more, many = (
        float(subprocess.run([sys.executable, "-P", "-c", PEAK_OF_BLOCKS, n], capture_output=True, check=True).stdout)
        for n in ("10", "30", "60")
    )
    assert few <= 40e6  # a block is 4 MB, and is made of a few such arrays
    assert more <= few + 28e6  # the largest sample has 2^15 rows, or 20 MB, where there are many
    assert many <= more + 4e6


def test_the_users_array_is_not_written_to(rng):
    X = rng.normal(size=(200, 3))
    X[::5, 1] = -1.0
    before, X.flags.writeable = X.copy(), False
    model = VBMixture(2, random_state=0, missing_values=-1.0).fit(X)
    model.predict(X), model.score_samples(X), model.impute(X)
    assert (before == X).all()
    gaps = np.where(before == -1.0, np.nan, before)
    assert VBMixture(2, random_state=0).fit(gaps).lower_bound_ == model.lower_bound_


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8"), lambda X: X[::-1].copy()[::-1]])
def test_any_layout_gives_the_same_bits(convert, rng):
    X = rng.normal(size=(500, 3))
    one, other = (VBMixture(2, random_state=0).fit(Z) for Z in (X, convert(X)))
    assert one.lower_bound_ == other.lower_bound_
    assert one.score_samples(X).tolist() == other.score_samples(convert(X)).tolist()
