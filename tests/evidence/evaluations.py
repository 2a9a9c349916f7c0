"""Evaluations (what scores take) of problems of `reference` and of models at hand."""

from dataclasses import replace

import numpy as np
from bridge import FORMS, FastNetwork, rows_of

from skvbem.data import Rows
from skvbem.evidence.evaluation import Evaluation
from skvbem.graphs.dag import DAG
from skvbem.models import DirichletAscent, DiscreteDAG, capabilities_of
from skvbem.models.network import queries
from skvbem.optima.plan import best_of


def evaluate(
    model,
    rows,
    hidden,
    *,
    method="vb",
    starts=None,
    n_init=5,
    tol=1e-13,
    max_iter=20_000,
    accelerate=True,
    seed=0,
    n_jobs=1,
):
    """The evaluation of a model on rows, fitted by `method`.

    Every form is run from the same `n_init` random points, or from the statistics `starts` (n_cells, n_starts) if
    given, and a form asked for later from the statistics of the fit at hand as well.
    """
    program = model.compile(rows)
    if starts is None:
        rng = np.random.default_rng(seed)
        points = np.stack([model.random_point(rng) for _ in range(n_init)], axis=1)
        starts = model.expect(np.log(points), program).statistics

    def run(form, fit):
        ascent = DirichletAscent(model, program, form)
        lanes = starts if fit is None else np.column_stack([fit.statistics, starts])
        fit = best_of(ascent, lanes, tol=tol, max_iter=max_iter, accelerate=accelerate)
        return replace(fit, converged=True)  # tests score points before the end of a run too, and want no warning of it

    fit = run(FORMS[method], None)
    return Evaluation(
        model, capabilities_of(model), program, run, fit, method, rows.total_weight, tuple(hidden), [seed], n_jobs
    )


def evaluation_of(problem, **options):
    """The evaluation of a problem of `reference`; options as in `evaluate`."""
    network, data, prior = problem
    model = FastNetwork(network, prior).model
    hidden = [node for node in network.cards if node not in data.columns]
    return evaluate(model, rows_of(data), hidden, **options)


def uniform_model(dag, cardinalities, concentration=1.0):
    """A network with one concentration in every cell."""
    return DiscreteDAG(
        dag, cardinalities, {v: np.full([cardinalities[w] for w in dag.family(v)], concentration) for v in dag.nodes}
    )


def bipartite_network(parents_of_observed, cards=(5, 5, 5, 5), concentration=1.0):
    """Hidden binary roots s1, s2 over observed y0, y1, ...; parents are strings: "", "1", "2" or "12"."""
    columns = [f"y{i}" for i in range(len(cards))]
    dag = DAG(["s1", "s2", *columns], {y: [f"s{i}" for i in of] for y, of in zip(columns, parents_of_observed)})
    return uniform_model(dag, {"s1": 2, "s2": 2, **dict(zip(columns, cards))}, concentration)


def naive_bayes(n_states, n_features, card=2, concentration=1.0):
    """A hidden class c over observed y0, y1, ..."""
    columns = [f"y{i}" for i in range(n_features)]
    return uniform_model(DAG.naive_bayes("c", columns), {"c": n_states, **dict.fromkeys(columns, card)}, concentration)


def drawn_rows(model, n_rows, rng, hidden):
    """Rows drawn from the model at a point drawn from its prior, hidden nodes left out."""
    drawn = queries.sample(model, model.prior.sample(rng), n_rows, rng)
    columns = tuple(node for node in model.dag.nodes if node not in hidden)
    return Rows(columns, np.stack([drawn[node] for node in columns], axis=1).astype(np.int8))
