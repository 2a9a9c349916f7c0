"""Errors in tied tables: where they stand, what they are checked for, what may be relabeled."""

TESTS = ("estimators/network/test_tied_tables.py", "models/network/test_discrete_dag.py")

ERRORS = {
    "parents of tied nodes stand for each other in any order": [
        (
            "{parent: of_other[place] for parent, place in zip(self.parents[node], places)}",
            "{parent: of_other[place] for parent, place in zip(self.parents[node], sorted(places))}",
        )
    ],
    "a tied table is shown with the parents of another": [
        ("whole.transpose(*places, *range(len(places), whole.ndim))", "whole")
    ],
    "states of tied nodes are relabeled one by one": [
        (
            "first_of = {node: layout.turned_together[node][0] for node in hidden}",
            "first_of = {node: node for node in hidden}",
        ),
        ("kept &= (cells[:, place] == target).all(axis=1)", "pass"),
    ],
    "latents tied to what is observed are relabeled": [
        ("None if set(layout.turned_together[first]) <= set(hidden) else 1", "None"),
        ("kept &= (cells[:, place] == target).all(axis=1)", "pass"),
    ],
    "completions count families in the opposite order": [
        (
            "for k, place in enumerate(_by_cells(layout, plan)):",
            "for k, place in enumerate(_by_cells(layout, plan)[::-1]):",
        )
    ],
    "tied columns may have other categories": [("list(categories[one]) != list(categories[other])", "False")],
    "ties begin a slice too early": [("first = 1 if self._before[node] else 0", "first = 0")],
}
