"""The order of the gallery: examples that others refer to come first."""

from pathlib import Path

FIRST = ("plot_coleman_panel.py", "plot_soybean_small.py", "plot_tightness.py", "plot_old_faithful.py")


def reading_order(example):
    """A sort key for file names of examples."""
    name = Path(example).name
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)
