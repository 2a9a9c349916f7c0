"""Build of the documentation. Nothing here reaches for a network, and neither do the pages."""

import importlib
import os
import re
import sys
from pathlib import Path

import numpydoc.xref

import skvbem

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["MPLBACKEND"] = "Agg"

project = "skvbem"
author = "The skvbem developers"
copyright = "2026, The skvbem developers"
version = release = skvbem.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "examples_as_tests",
    "mathml",
    "code_links",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
default_role = "code"
toc_object_entries_show_parents = "hide"
highlight_language = "python3"

autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True  # of types that the API pages describe, and of no others
numpydoc_xref_ignore = "all"
numpydoc.xref.DEFAULT_LINKS.clear()  # they lead to other sites
numpydoc_xref_aliases = {
    name: f"skvbem.{room}{name}"
    for room in ("estimators.", "emissions.", "evidence.", "spaces.", "search.strategies.", "")
    for name in importlib.import_module(f"skvbem.{room}".rstrip(".")).__all__
    if name[0].isupper() and name != name.upper()
}

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "doc_module": ("skvbem",),
    "within_subsection_order": "gallery_order.reading_order",
    "backreferences_dir": "api/generated/backreferences",
    "reference_url": {"skvbem": None},
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "capture_repr": (),
    "parallel": True,  # as many as sphinx-build -j
    "reset_modules": ("matplotlib", "examples_as_tests.warn_as_for_newcomers"),
    "reset_modules_order": "both",
}

html_theme = "pydata_sphinx_theme"
html_title = "skvbem"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["skvbem.css"]
html_search_scorer = str(HERE / "_static/scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "skvbem"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "show_prev_next": False,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "show_toc_level": 2,
}


def changelog(app, docname, source):
    """The page of changes is CHANGELOG.md, whose Markdown differs from reStructuredText in its headings only."""
    if docname == "changes":
        lines = []
        for line in (HERE.parent / "CHANGELOG.md").read_text("utf-8").splitlines():
            heading = re.fullmatch(r"(#+) (.+)", line)
            lines += [heading[2], "=-~"[len(heading[1]) - 1] * len(heading[2])] if heading else [line]
        source[0] = "\n".join(lines)


def skip_metadata_requests(app, what, name, obj, skip, options):
    """The methods that scikit-learn adds for metadata routing are documented there."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    """Sphinx calls this."""
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("source-read", changelog)
