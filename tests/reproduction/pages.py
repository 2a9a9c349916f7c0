"""Pages of the documentation, whose tables are those of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest


def check_page(page: Path, rows: Iterable[Sequence[str]]) -> None:
    """Every row is on a page, as a line of a table of comma-separated cells; skipped without a documentation."""
    if not page.exists():
        pytest.skip("no documentation beside the tests")
    text = page.read_text("utf-8")
    for row in rows:
        assert ", ".join(f'"{cell}"' if "," in cell else cell for cell in row) in text
