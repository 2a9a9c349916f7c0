"""Graphs as notebooks show them: a row for each node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from skvbem._tabular import html_table


def as_html(nodes: Iterable[Hashable], related: Mapping[Hashable, Iterable[Hashable]], relation: str) -> str:
    """A table of nodes and those that are related to each, such as its parents."""
    rows = [[str(node), ", ".join(map(str, related[node]))] for node in nodes]
    return html_table(["node", relation], rows, align="left", where_all="`edges` has all")
