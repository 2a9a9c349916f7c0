"""The gallery is the test of the examples: each runs as a newcomer would run it, without our warnings, and prints."""

import warnings
from contextlib import ExitStack
from pathlib import Path

from sphinx.errors import ExtensionError

_filters = ExitStack()


def warn_as_for_newcomers(gallery_conf, script, when):
    """Give each example the warning filters of a fresh interpreter, but UserWarnings are errors.

    Our warnings, and scikit-learn's about convergence, are UserWarnings, and are raised on the user's behalf in other
    modules: so all UserWarnings are errors, but for matplotlib's that no window can be opened. Without this, a filter
    that one example sets would also hide the warnings of those after it.
    """
    _filters.close()
    if when == "after" or Path(script).suffix != ".py":  # some versions of sphinx-gallery call it for a folder too
        return
    _filters.enter_context(warnings.catch_warnings())
    warnings.resetwarnings()
    for unseen in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", unseen)
    warnings.simplefilter("error", UserWarning)
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def check_every_example_printed(app):
    """Stop the build if an example is not in the gallery, or printed nothing.

    sphinx-gallery passes over a folder without README.txt, and all that it captures is what was printed, as
    ``capture_repr`` is empty in the configuration.
    """
    examples = Path(app.config.sphinx_gallery_conf["examples_dirs"])
    gallery = Path(app.srcdir) / app.config.sphinx_gallery_conf["gallery_dirs"]
    for script in sorted(examples.rglob("plot_*.py")):
        page = gallery / script.relative_to(examples).with_suffix(".rst")
        if not page.is_file():
            raise ExtensionError(f"{script} is not in the gallery; its folder needs a README.txt with a title")
        if "sphx-glr-script-out" not in page.read_text("utf-8"):
            raise ExtensionError(f"{script} printed nothing; an example must print what it found")


def setup(app):
    """Check after sphinx-gallery has run, which is at the same event with priority 500."""
    app.connect("builder-inited", check_every_example_printed, priority=900)
    return {"parallel_read_safe": True}
