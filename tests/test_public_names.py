"""Importing skvbem imports little; every public name is found when it is asked for, by every way of asking."""

import ast
import importlib
import inspect
import pickle
import re
from pathlib import Path

import pytest
from sklearn.base import clone
from test_floors import ROOT, run_python

import skvbem

ON_DEMAND = ["skvbem", "skvbem.estimators", "skvbem.models", "skvbem.plotting"]
#: What a bare import may load: numpy comes with the compiled part, whose absence an import must tell.
KERNELS = {f"skvbem._kernels.{name}" for name in ("_contraction", "_cython_shared")}
BARE = {"skvbem", "skvbem._lazy", "skvbem._kernels", *KERNELS}


def names_for_type_checkers(module):
    """name -> module that an ``if TYPE_CHECKING`` block of a package imports it from."""
    blocks = [
        node
        for node in ast.parse(Path(module.__file__).read_text("utf-8")).body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    ]
    return {alias.name: line.module for block in blocks for line in block.body for alias in line.names}


def loaded_by(code, folder=ROOT.parent):
    done = run_python(f"{code}; print(*sys.modules)", folder)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_bare_import_loads_nothing_but_the_door():
    loaded = loaded_by("import skvbem")
    assert {name for name in loaded if name.startswith("skvbem")} == BARE
    assert not loaded & {"sklearn", "scipy", "pandas", "joblib", "polars"}


def test_one_estimator_does_not_load_the_models_of_others():
    loaded = loaded_by("from skvbem import VBMixture")
    rooms = {".".join(name.split(".")[:3]) for name in loaded if name.startswith("skvbem.")}
    others = {"hmm", "linear_dynamical_system", "mixed_network", "network", "factor_analysis", "sequences"}
    assert not rooms & {f"skvbem.{room}.{other}" for room in ("estimators", "models") for other in others}
    assert not rooms & {"skvbem.search", "skvbem.plotting", "skvbem.testing", "skvbem.datasets", "skvbem.spaces"}


@pytest.mark.parametrize("package", ON_DEMAND)
def test_every_public_name_is_what_its_module_holds(package):
    module = importlib.import_module(package)
    told = names_for_type_checkers(module)
    assert sorted(told) == sorted({*module.__all__})
    for name, home in told.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    assert {*module.__all__} <= {*dir(module)}


def test_what_methods_of_estimators_return_has_a_public_name():
    """A class of ours that a docstring says is returned is one that users can import and look up."""
    public = {name for room in (*ON_DEMAND, "skvbem.evidence") for name in importlib.import_module(room).__all__}
    classes = re.compile(r"^class ([A-Z]\w+)", re.MULTILINE)
    ours = {name for path in ROOT.rglob("*.py") for name in classes.findall(path.read_text("utf-8"))}
    estimators = [getattr(skvbem, name) for name in skvbem.__all__ if hasattr(getattr(skvbem, name), "_kind")]
    docs = {
        f"{estimator.__name__}.{name}": inspect.getdoc(getattr(estimator, name)) or ""
        for estimator in estimators
        for name in dir(estimator)
        if not name.startswith("_")
    }
    returned = {
        word: method
        for method, doc in docs.items()
        for line in re.findall(r"^Returns\n-+\n(.*)", doc, re.MULTILINE)
        for word in re.findall(r"\w+", line)
        if word in ours
    }
    assert {"GoodnessOfFit", "Summary", "PosteriorDraws"} <= returned.keys()
    assert not returned.keys() - public, {word: returned[word] for word in returned.keys() - public}


def test_everything_is_found_by_a_fresh_python():
    """Without the imports that other tests have left behind."""
    loaded_by(f"from skvbem import *; assert not [name for name in {skvbem.__all__!r} if name not in globals()]")


def test_rooms_are_attributes_before_anyone_imports_them():
    rooms = sorted(path.stem for path in ROOT.iterdir() if not path.name.startswith(("_", "meson", "py.")))
    assert {"datasets", "emissions", "evidence", "plotting", "errors"} < {*rooms} <= {*dir(skvbem)}
    assert [skvbem.__getattr__(room) for room in rooms] == [importlib.import_module(f"skvbem.{room}") for room in rooms]


@pytest.mark.parametrize("package", ON_DEMAND)
def test_a_name_that_is_not_there_is_an_attribute_error(package):
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'VBMixtures'"):
        module.VBMixtures  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'VBMixtures'"):
        exec(f"from {package} import VBMixtures")


def test_a_pickle_is_read_where_nothing_is_imported(tmp_path):
    """Pickles, and with them the workers of joblib, know classes by the modules that hold them."""
    X = [[0.0], [0.1], [5.0], [5.1]]
    estimator = clone(skvbem.VBMixture(n_components=2, random_state=0, n_init=1)).fit(X)
    path = tmp_path / "fit.pickle"
    path.write_bytes(pickle.dumps(estimator))
    done = run_python(f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')).lower_bound_.hex())", ROOT.parent)
    assert done.stdout.strip() == estimator.lower_bound_.hex(), done.stderr
