"""Every example runs as a newcomer would run it, without a warning from us."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("plot_*.py"))

# Our warnings, and scikit-learn's about convergence, are UserWarnings, and are raised on the user's behalf in other
# modules: so all UserWarnings are errors, but for matplotlib's that no window can be opened.
RUNNER = """
import runpy, sys, warnings
warnings.simplefilter("error", UserWarning)
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_example_runs_without_our_warnings(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(script)],
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_folder_of_examples_has_a_gallery_header():
    folders = {EXAMPLES, *(script.parent for script in SCRIPTS)}
    assert [folder for folder in folders if not (folder / "README.txt").is_file()] == []
