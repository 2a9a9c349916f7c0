"""Errors in questions to networks with known tables, and in what graphs say of independence and of effects."""

TESTS = ("graphs/**/test_separation.py", "fitted/test_asked_networks.py")

ERRORS = {
    "marginals forget what was observed of a node": [
        (
            "changed.model, changed.point, row, asked.targets, **self.limits\n        )\n        _check_possible",
            "changed.model, changed.point, _row({}), asked.targets, **self.limits\n        )\n        _check_possible",
        )
    ],
    "a node that is set keeps its parents": [
        (
            "parents = {node: () if node in asked.actions else dag.parents(node) for node in dag.nodes}",
            "parents = {node: dag.parents(node) for node in dag.nodes}",
        ),
        ("tables[node] = np.eye(len(self.levels[node]))[code]", "assert code >= 0"),
    ],
    "a likelihood counts for the state that was not observed": [("seen[child] = 0", "seen[child] = 1")],
    "parents of a common child are not joined": [
        (
            "neighbors[member] |= family - {member}",
            "neighbors[member] |= {child} - {member} if member != child else family",
        )
    ],
    "a hidden common cause does not confound": [
        ("pairs = {Nodes(pair) for node in hidden for pair in combinations(reached(node), 2)}", "pairs: set = set()")
    ],
    "evidence on an effect's cause is taken for set": [
        (
            "child: () if child in actions else tuple(parent for parent in family if parent != node)",
            "child: () if child in actions or child == node else tuple(parent for parent in family if parent != node)",
        )
    ],
}
