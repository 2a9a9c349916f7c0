"""Errors in undirected structures: orders, priors, spaces, essential graphs, reports."""

TESTS = ("estimators/network/test_markov_networks.py", "graphs/test_undirected.py", "plotting/**/test_displays.py")

ERRORS = {
    "directions of undirected structures heed no missing cells": [
        ("DAG.from_chordal(graph.reorder(nodes), dict(observed))", "DAG.from_chordal(graph.reorder(nodes), {})")
    ],
    "undirected structures take priors whose margins differ": [("_TOLERANCE, atol=0.0):", "_TOLERANCE, atol=np.inf):")],
    "undirected structures learn priors": [
        ("if estimator.learn_prior and is_undirected(estimator.structure):", "if estimator.learn_prior and False:")
    ],
    "each separator of a clique tree counts once": [
        ("{separator: counts[separator] for separator in", "{separator: 1 for separator in")
    ],
    "a node may be joined to what is no clique beyond": [("touched |= reached & joined", "touched = reached & joined")],
    "an edge may go though no chord is left": [
        ("all(b in around[a] for a, b in combinations(common, 2))", "any([True, *common])")
    ],
    "arrows behind an immorality keep no direction": [
        ("(c, a) in arrows and c not in neighbors[b]", "(c, a) in arrows and c in neighbors[b] and False")
    ],
    "edges from tables to numbers may turn": [
        ("if child in among and parent not in among", "if child in among and parent in among")
    ],
    "an edge without a direction counts one way": [
        (
            "            if isinstance(dag, UndirectedGraph):\n                probability[position[child]",
            "            if False:\n                probability[position[child]",
        )
    ],
    "lines end in triangles": [("has_head=not self.undirected", "has_head=True")],
    "equivalent graphs are told apart": [
        ("graph = dag if isinstance(dag, UndirectedGraph) else dag.essential(parted)", "graph = dag")
    ],
}
