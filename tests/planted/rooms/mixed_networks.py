"""Errors in what is asked of fitted networks of mixed columns, in their displays, and in searches over them."""

TESTS = (
    "estimators/mixed_network/test_vb_network.py",
    "plotting/test_mixed_network_displays.py",
    "graphs/test_spaces.py",
    "search/test_mixed_networks.py",
)

ERRORS = {
    "searches try graphs in which counts depend on numbers": [
        (
            "product((*numbers, *hidden), unexplained) if edge not in kept",
            "product((*numbers, *hidden), unexplained) if False",
        )
    ],
    "evidence on a measurement is passed over": [
        (
            "cells = [given.get(name) if name in numbers else None for name in names]",
            "cells = [None for name in names]",
        )
    ],
    "missing categories of mixed networks are filled with the least probable one": [
        (
            "{name: of.argmax(axis=1) for name, of in proba.items()}",
            "{name: of.argmin(axis=1) for name, of in proba.items()}",
        )
    ],
    "what a parent tells of numbers takes all its states for as frequent": [
        (
            "weight, joint = joint[states] / n_draws, joint.reshape(sizes)",
            "weight, joint = np.full(len(states), 1 / len(states)), joint.reshape(sizes)",
        )
    ],
    "columns by states of a latent take its states for those of the first parent": [
        (
            "np.moveaxis(by_state, 1, 1 + parents.index(latent))",
            "np.moveaxis(by_state, 1, 1)",
        )
    ],
    "leaves may be parents of latents": [
        (
            "for leaf in self.leaves for node in nodes if node != leaf",
            "for leaf in self.leaves for node in self.nodes if node != leaf",
        )
    ],
    "a search reports edges as if nothing were hidden": [
        (
            "return tables.HiddenStructure(*job.graph(setting))",
            "return tables.HiddenStructure(job.graph(setting)[0], {})",
        )
    ],
    "families of mixed networks are not less what their members score alone": [
        (
            "return value - self._needed_value - sum(self._alone.get(member, 0.0) for member in (*above, node))",
            "return value - self._needed_value - self._alone.get(node, 0.0)",
        )
    ],
    "bounds of mixed graphs are taken for evidences": [
        (
            "has_known_prior = evaluation_of(DAG(dag.nodes, {})).model.prior.hyperprior is None",
            "has_known_prior = True",
        )
    ],
    "gaps of mixed rows do not hinder sums over families": [("return self.extent.n_missing == 0", "return True")],
}
