"""Likelihoods of structural time series by maximum likelihood, here and by UnobservedComponents of statsmodels.

Four series, one with gaps. First states are known there, with the means and variances that they have here. Waves of two
steps have a second state there, which no cell sees. A line has the series, the log likelihood of the fit there, and
there at the variances of the fit here, in nats, and CPU seconds of fits: medians of interleaved runs.

    PYTHONPATH=tests python -P -m reproduction.structural_likelihoods

writes structural_likelihoods_results.jsonl next to this file. It needs statsmodels; tests need the record alone.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skvbem import VBLinearDynamicalSystem
from skvbem.datasets import load_co2, load_nile
from skvbem.structural import Block, Level, Season, Trend

RESULTS = Path(__file__).with_name("structural_likelihoods_results.jsonl")
N_RUNS = 9
BLOCKS: dict[str, list[Block]] = {
    "carbon dioxide": [Trend(), Season(12)],
    "Nile": [Level()],
    "output": [Trend(level_noise=False)],
    "unemployment": [Level(), Season(4)],
}
THERE = {
    "carbon dioxide": {"level": "lltrend", "freq_seasonal": [{"period": 12}]},
    "Nile": {"level": "llevel"},
    "output": {"level": "strend"},
    "unemployment": {"level": "llevel", "freq_seasonal": [{"period": 4}]},
}
STATES = {"sigma2.level": "level", "sigma2.trend": "slope"}


def series_of(name: str) -> np.ndarray:
    """A series, (n, 1), NaN where missing; quarters of macrodata of statsmodels, output by its logarithm, per cent."""
    if name == "carbon dioxide":
        return load_co2().data
    if name == "Nile":
        return load_nile().data
    from statsmodels.datasets import macrodata

    quarters = macrodata.load_pandas().data
    y = 100 * np.log(quarters["realgdp"]) if name == "output" else quarters["unemp"]
    return y.to_numpy().round(6)[:, None]


def fitted(name: str, y: np.ndarray) -> VBLinearDynamicalSystem:
    """The fit of a series by maximum likelihood, with all other defaults."""
    return VBLinearDynamicalSystem(blocks=BLOCKS[name], method="ml", random_state=0).fit(y)


def log_likelihood(model: VBLinearDynamicalSystem, y: np.ndarray) -> float:
    """ln p(y) at the variances of a fit, nats."""
    return float(model.score_samples(y, lengths=[len(y)])[0])


def there(name: str, y: np.ndarray, model: VBLinearDynamicalSystem):
    """The model of statsmodels that starts as a fit does, and variances of the fit in its order."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    other = UnobservedComponents(y[:, 0], **THERE[name])
    n_of_level, variance = len(BLOCKS[name][0].states.start), np.diag(model.initial_covariance_)
    mean, spread = np.zeros(other.k_states), np.full(other.k_states, variance[-1])
    mean[:n_of_level], spread[:n_of_level] = model.initial_mean_[:n_of_level], variance[:n_of_level]
    other.initialize_known(mean, np.diag(spread))
    other.loglikelihood_burn = other.ssm.loglikelihood_burn = 0
    moves = {key: float(value[0]) ** 2 for key, value in model.state_deviation_.items()}
    season = next((value for key, value in moves.items() if key.startswith("season")), None)
    variances = [
        model.noise_variance_[0] if each == "sigma2.irregular" else moves.get(STATES.get(each, ""), season)
        for each in other.param_names
    ]
    return other, variances


def measured(name: str) -> dict:
    """The line of a series."""
    y = series_of(name)
    model = fitted(name, y)
    other, variances = there(name, y, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [(seconds(lambda: fitted(name, y)), seconds(lambda: other.fit(disp=0))) for _ in range(N_RUNS)]
        best = other.fit(disp=0, maxiter=500).llf
    here, of_other = np.median(runs, axis=0).tolist()
    return {
        "problem": name,
        "series": [None if np.isnan(value) else value for value in y[:, 0].tolist()],
        "of_fit": round(float(best), 6),
        "at_ours": round(float(other.loglike(variances)), 6),
        "seconds": {"here": round(here, 4), "there": round(of_other, 4)},
    }


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: log likelihoods there, best and at the variances of here, and milliseconds here and there."""
    return [
        (
            line["problem"],
            f"{line['of_fit']:.4f}",
            f"{line['at_ours']:.4f}",
            *(f"{1000 * line['seconds'][where]:.0f}" for where in ("here", "there")),
        )
        for line in lines
    ]


def main() -> None:
    """Measure all series."""
    lines = [measured(name) for name in BLOCKS]
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for row in table(lines):
        print(", ".join(row))


if __name__ == "__main__":
    main()
