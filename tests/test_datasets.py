"""The bundled tables are the published ones; the generators draw from the networks they return."""

import csv
import hashlib
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chisquare, norm, poisson

from skvbem import datasets

TESTS = Path(__file__).parent
REFERENCES = {
    path.name.removesuffix(".ref.json"): json.loads(path.read_text()) for path in TESTS.glob("data/*.ref.json")
}
LATENT_CLASS = {name: reference for name, reference in REFERENCES.items() if "columns" in reference}
THIRD_PARTY = TESTS / "data" / "third_party"

LOADERS = {name: getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")}
TABLES = {name: loader for name, loader in LOADERS.items() if name != "load_alice"}
DEDICATED = {"load_sachs"}
CLASSIFIED = {"load_soybean_small", "load_soybean_large", "load_zoo", "load_car"}
SHAPES = {
    "load_coleman_panel": (3398, 4),
    "load_carcinoma": (118, 7),
    "load_stouffer_toby": (216, 4),
    "load_cheating": (319, 5),
    "load_gender_role": (592, 5),
    "load_lsat6": (1000, 5),
    "load_lizards": (409, 3),
    "load_berkeley_admissions": (4526, 3),
    "load_titanic": (2201, 4),
    "load_soybean_small": (47, 35),
    "load_soybean_large": (683, 35),
    "load_zoo": (101, 16),
    "load_car": (1728, 6),
    "load_faithful": (272, 2),
    "load_earthquakes": (107, 1),
    "load_fetal_lamb": (240, 1),
    "load_ability_tests": (7, 6),
    "load_nile": (100, 1),
    "load_co2": (526, 1),
    "load_sachs": (853, 11),
    "load_anes96": (944, 10),
}
DTYPES = {
    "load_cheating": float,
    "load_soybean_large": float,
    "load_faithful": float,
    "load_ability_tests": float,
    "load_co2": float,
    "load_sachs": float,
    "load_lizards": object,
    "load_berkeley_admissions": object,
    "load_titanic": object,
    "load_car": object,
}
MEASURED = {
    "load_faithful",
    "load_earthquakes",
    "load_fetal_lamb",
    "load_ability_tests",
    "load_nile",
    "load_co2",
    "load_anes96",
    "load_sachs",
}
SHA256 = {  # first twelve digits
    "ability_tests.csv": "4ebb6974cdd0",
    "alice_27symbols.txt": "8dfb33fbe0b7",
    "anes96.csv": "add0df3db34e",
    "berkeley_admissions.csv": "36c5aceb7219",
    "car.csv": "0023b86e0dd3",
    "carcinoma.csv": "3f356b8dbb34",
    "cheating.csv": "c3a5fce1c0d5",
    "co2.csv": "fffd40cef4ce",
    "coleman_panel.csv": "718b53899ca6",
    "earthquakes.csv": "4c4b1d822fd6",
    "faithful.csv": "d40b983752ab",
    "fetal_lamb.csv": "798802580443",
    "genderrole.csv": "73d457041b42",
    "lizards.csv": "70cbeb4be5ed",
    "lsat6.csv": "0d9a934de64b",
    "nile.csv": "88e97bea7249",
    "sachs.csv": "74bc06d9b8ee",
    "soybean_large.csv": "965d41faf0b6",
    "soybean_small.csv": "3896fb390c5b",
    "stouffer_toby.csv": "2044c59f9120",
    "titanic.csv": "305e2b7c3358",
    "zoo.csv": "f7135b9c059c",
}
MISSING = {"load_cheating": 4, "load_co2": 5, "load_soybean_large": 2337}


def third_party(*parts):
    path = THIRD_PARTY.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is in a checkout only, under its own license")
    return path


def read_columns(path):
    header, *rows = csv.reader(path.read_text().splitlines())
    return dict(zip(header, zip(*rows)))


def log_likelihood(counts):
    counts = np.asarray(list(counts), dtype=float)
    return float(np.sum(counts * np.log(counts / counts.sum())))


def conditional_log_likelihood(columns, child, parents):
    """Maximum of ln p(child | parents), from the counts of configurations."""
    above = list(zip(*(columns[p] for p in parents))) or [()] * len(columns[child])
    return log_likelihood(Counter(zip(columns[child], above)).values()) - log_likelihood(Counter(above).values())


def dag_log_likelihood(columns, model):
    """Maximum log-likelihood of a network written in the form [A][B|A][C|A:B]."""
    return sum(
        conditional_log_likelihood(columns, child, above.split(":") if above else [])
        for child, above in re.findall(r"\[([^|\]]+)\|?([^\]]*)\]", model)
    )


def named_columns(bunch):
    return {name: bunch.data[:, j].tolist() for j, name in enumerate(bunch.feature_names)}


def by_filename(filename):
    return next(bunch for bunch in (loader() for loader in TABLES.values()) if bunch.filename == filename)


# What every loader returns


def test_every_loader_is_listed():
    assert set(TABLES) == set(SHAPES)


@pytest.mark.parametrize("name", TABLES)
def test_arrays(name):
    bunch = TABLES[name]()
    assert bunch.data.shape == SHAPES[name]
    assert bunch.data.dtype == DTYPES.get(name, np.int64)
    assert int((bunch.data != bunch.data).sum()) == MISSING.get(name, 0)
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == bunch.data.shape[1]
    assert bunch.frame is None
    assert inspect.getdoc(TABLES[name]) == bunch.DESCR
    assert files(bunch.data_module).joinpath(bunch.filename).is_file()
    assert ("target" in bunch) == (name in CLASSIFIED)
    assert bunch.data.flags.writeable


@pytest.mark.parametrize("name", sorted(CLASSIFIED))
def test_classes(name):
    bunch = TABLES[name]()
    X, y = TABLES[name](return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    assert y.shape == (len(X),)
    assert bunch.target_names.tolist() == sorted(set(y))
    assert not {"class", "Class", "type", "name"} & set(bunch.feature_names)


@pytest.mark.parametrize("name", TABLES)
def test_frames_hold_the_arrays(name):
    pd = pytest.importorskip("pandas")
    arrays, frames = TABLES[name](), TABLES[name](as_frame=True)
    assert list(frames.data.columns) == arrays.feature_names
    for j, column in enumerate(arrays.feature_names):
        values = frames.data[column]
        expected = arrays.data[:, j]
        assert values.isna().tolist() == (expected != expected).tolist()
        assert values.dropna().tolist() == expected[expected == expected].tolist()
        if name in MEASURED:
            assert values.dtype.kind in "if"
        else:
            assert isinstance(values.dtype, pd.CategoricalDtype)
            assert not isinstance(values.cat.categories[0], float)
            assert values.cat.categories.tolist() == sorted(set(values.dropna()))
    if name in CLASSIFIED:
        assert frames.target.tolist() == arrays.target.tolist()
        assert list(frames.frame.columns)[-1 if name != "load_soybean_large" else 0] == frames.target.name
        X, y = TABLES[name](as_frame=True, return_X_y=True)
        pd.testing.assert_frame_equal(X, frames.data)
        pd.testing.assert_series_equal(y, frames.target)
    else:
        pd.testing.assert_frame_equal(frames.frame, frames.data)
    assert frames.data.index.tolist() == list(arrays.get("index", range(len(arrays.data))))


def test_row_names():
    assert datasets.load_zoo().index[:2].tolist() == ["aardvark", "antelope"]
    assert len(set(datasets.load_zoo().index)) == 101
    assert datasets.load_earthquakes().index.tolist() == list(range(1900, 2007))


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for module in [name for name in sys.modules if name.startswith("skvbem.datasets")]:
        monkeypatch.delitem(sys.modules, module)
    fresh = importlib.import_module("skvbem.datasets")
    assert fresh.load_cheating().data.shape == (319, 5)
    with pytest.raises(ImportError, match=r"load_zoo with as_frame=True needs pandas.*call load_zoo\(\) for arrays"):
        fresh.load_zoo(as_frame=True)


def test_options_are_named():
    with pytest.raises(TypeError):
        datasets.load_zoo(True)
    with pytest.raises(TypeError):
        datasets.load_carcinoma(return_X_y=True)


# The data are the published ones


@pytest.mark.parametrize("filename", SHA256)
def test_files_are_untouched(filename):
    content = files("skvbem.datasets").joinpath(filename).read_bytes()
    assert hashlib.sha256(content).hexdigest().startswith(SHA256[filename])


@pytest.mark.parametrize("name", sorted(LATENT_CLASS))
def test_one_class_has_the_log_likelihood_of_independent_columns(name):
    reference = LATENT_CLASS[name]
    columns = named_columns(by_filename(reference["data"]))
    counts = [Counter(columns[column]) for column in reference["columns"]]
    assert sum(counts[0].values()) == reference["n"]
    assert [len(c) for c in counts] == reference["cardinalities"]
    coding = [sorted(str(int(value)) for value in c) for c in counts]
    assert coding == [reference["coding"][column] for column in reference["columns"]]
    total = sum(log_likelihood(c.values()) for c in counts)
    assert total == pytest.approx(reference["by_K"]["1"]["max_loglik"], rel=1e-12)


@pytest.mark.parametrize("name", sorted(LATENT_CLASS))
def test_one_class_has_the_evidence_of_independent_dirichlet_multinomials(name):
    reference = LATENT_CLASS[name]
    columns = named_columns(by_filename(reference["data"]))
    total = 0.0
    for column in reference["columns"]:
        counts = np.array(list(Counter(columns[column]).values()))
        total += gammaln(len(counts)) - gammaln(len(counts) + counts.sum()) + gammaln(1 + counts).sum()
    assert total == pytest.approx(reference["by_K"]["1"]["ln_evidence"], rel=1e-11)


def test_coleman_saturated():
    panel = datasets.load_coleman_panel().data
    cells = Counter(map(tuple, panel.tolist()))
    assert len(cells) == 16
    assert (cells[1, 1, 1, 1], cells[0, 0, 0, 0]) == (458, 554)
    saturated = log_likelihood(cells.values())
    assert saturated == pytest.approx(-8494.039342, abs=5e-7)
    checked = REFERENCES["coleman_panel"]["peers"]["checked_here"]
    assert 2 * (saturated - checked["two_latent_loglik"]) == pytest.approx(checked["two_latent_G2"], abs=1e-4)


def test_patterns():
    assert len(np.unique(datasets.load_carcinoma().data, axis=0)) == 20
    cells = Counter(map(tuple, datasets.load_stouffer_toby().data.tolist()))
    assert (cells[2, 2, 2, 2], cells[1, 1, 1, 1]) == (42, 20)
    right = datasets.load_lsat6().data
    assert right.sum(axis=0).tolist() == [924, 709, 553, 763, 870]


def test_those_without_grades_never_cheated():
    cheating = datasets.load_cheating().data
    without = np.isnan(cheating[:, 4])
    assert not np.isnan(cheating[:, :4]).any()
    np.testing.assert_array_equal(cheating[without, :4], np.ones((4, 4)))


def test_lizards_have_the_log_likelihoods_of_bnlearn():
    columns = named_columns(datasets.load_lizards())
    scores = read_columns(TESTS / "data" / "lizards_bnlearn_scores.csv")
    assert len(scores["model"]) == 4
    for model, expected in zip(scores["model"], scores["loglik"]):
        assert dag_log_likelihood(columns, model) == pytest.approx(float(expected), rel=1e-12)


def test_as_many_were_admitted_at_berkeley_as_published():
    """Bickel, Hammel & O'Connell (1975): 1198 of 2691 men and 557 of 1835 women."""
    admitted, _, sex = datasets.load_berkeley_admissions().data.T
    assert [int(np.sum(sex == one)) for one in ("male", "female")] == [2691, 1835]
    assert [int(np.sum(admitted[sex == one] == "yes")) for one in ("male", "female")] == [1198, 557]


def test_as_many_survived_the_titanic_as_published():
    """Dawson (1995): 711 of 2201; 203 of 325 in first class, 57 of 109 children."""
    which, _, age, survived = datasets.load_titanic().data.T
    assert int(np.sum(survived == "yes")) == 711
    assert (int(np.sum(which == "1st")), int(np.sum(survived[which == "1st"] == "yes"))) == (325, 203)
    assert (int(np.sum(age == "child")), int(np.sum(survived[age == "child"] == "yes"))) == (109, 57)


@pytest.mark.parametrize("name", ["earthquakes", "fetal_lamb"])
def test_one_state_is_a_poisson_distribution(name):
    counts = LOADERS[f"load_{name}"]().data[:, 0]
    total = poisson.logpmf(counts, counts.mean()).sum()
    assert len(counts) == REFERENCES[name]["n"]
    assert total == pytest.approx(REFERENCES[name]["by_K"]["1"]["max_loglik"], rel=1e-12)


def test_faithful_is_the_one_of_mclust():
    X = datasets.load_faithful().data
    covariance = np.cov(X.T, bias=True)
    total = -0.5 * len(X) * (2 * np.log(2 * np.pi) + np.linalg.slogdet(covariance).logabsdet + 2)
    assert total == pytest.approx(REFERENCES["mixtures"]["faithful"]["gmm_full"]["1"]["max_loglik"], rel=1e-9)


def test_as_many_voters_expect_to_vote_for_each_as_statsmodels_counts():
    """393 of 944 for Dole, and answers within the classes of its description."""
    voters = datasets.load_anes96()
    columns = dict(zip(voters.feature_names, voters.data.T))
    assert columns["vote"].sum() == 393
    ranges = {"TVnews": (0, 7), "PID": (0, 6), "income": (1, 24)}
    ranges |= dict.fromkeys(("selfLR", "ClinLR", "DoleLR", "educ"), (1, 7))
    assert {name: (columns[name].min(), columns[name].max()) for name in ranges} == ranges


def test_soybean_classes():
    small, large = datasets.load_soybean_small(), datasets.load_soybean_large()
    assert Counter(small.target) == {"D1": 10, "D2": 10, "D3": 10, "D4": 17}
    assert Counter(large.target).most_common(1) == [("brown-spot", 92)]
    assert sorted(Counter(large.target).values()) == [8, 14, 15, 16] + [20] * 9 + [44, 44, 88, 91, 91, 92]
    assert (~np.isnan(large.data).any(axis=1)).sum() == 562
    # the small set was taken from the large one, so that the codes of the two agree
    disease = {tuple(row): label for row, label in zip(large.data.tolist(), large.target)}
    seen = {(label, disease[tuple(row)]) for row, label in zip(small.data.tolist(), small.target) if label != "D4"}
    assert seen == {("D1", "diaporthe-stem-canker"), ("D2", "charcoal-rot"), ("D3", "rhizoctonia-root-rot")}


def test_zoo_classes():
    zoo = datasets.load_zoo()
    assert sorted(Counter(zoo.target).values()) == [4, 5, 8, 10, 13, 20, 41]
    legs = zoo.data[:, zoo.feature_names.index("legs")]
    assert set(legs) == {0, 2, 4, 5, 6, 8}
    assert set(np.delete(zoo.data, zoo.feature_names.index("legs"), axis=1).ravel()) == {0, 1}


def test_car_is_a_full_factorial_design():
    car = datasets.load_car()
    assert len(set(map(tuple, car.data))) == len(car.data) == 4 * 4 * 4 * 3 * 3 * 3
    assert Counter(car.target) == {"unacc": 1210, "acc": 384, "good": 69, "vgood": 65}


def test_alice():
    text = datasets.load_alice()
    assert len(text) == 134919
    assert set(text) == set("abcdefghijklmnopqrstuvwxyz ")
    assert "  " not in text
    assert text == text.strip()
    assert text.startswith("chapter i down the rabbit hole alice was beginning to get very tired")
    assert text.endswith("happy summer days the end")


@pytest.mark.parametrize("name", ["asia5000", "learning_test"])
def test_complete_networks_have_the_log_likelihoods_of_bnlearn(name):
    columns = read_columns(third_party("gpl", f"{name}.csv"))
    reference = REFERENCES["complete_dags"][name]
    assert dag_log_likelihood(columns, reference["dag"]) == pytest.approx(reference["loglik"], abs=0.005)


def test_speed_is_the_one_of_depmix():
    columns = read_columns(third_party("gpl", "speed.csv"))
    assert sorted(Counter(columns["series"]).values()) == [134, 137, 168]
    rt = np.array(columns["rt"], dtype=float)
    total = norm.logpdf(rt, rt.mean(), rt.std()).sum()
    assert total == pytest.approx(REFERENCES["speed_rt"]["by_K"]["1"]["max_loglik"], rel=1e-9)


def test_marijuana_panel_is_the_one_of_lmest():
    columns = read_columns(third_party("gpl", "marijuana_panel_counts.csv"))
    answers = np.array([columns[f"V{j}"] for j in range(1, 6)])
    counts = np.array(columns["V6"], dtype=int)
    assert counts.sum() == 237
    total = log_likelihood([counts @ (answers == level).sum(axis=0) for level in "123"])
    assert total == pytest.approx(REFERENCES["marijuana_panel"]["by_K"]["1"]["max_loglik"], rel=1e-12)


# Licenses


def test_bundled_files_are_those_of_the_loaders_and_attributed():
    folder = files("skvbem.datasets")
    bundled = {entry.name for entry in folder.iterdir() if entry.name.endswith((".csv", ".txt", ".bif", ".gz"))}
    assert bundled == {loader().filename for loader in TABLES.values()} | {"alice_27symbols.txt"} == set(SHA256)
    attribution = folder.joinpath("ATTRIBUTION.md").read_text(encoding="utf-8")
    open_license, public = attribution.split("## Published tables")
    licensed = {TABLES[name]().filename for name in CLASSIFIED | DEDICATED}
    assert set(re.findall(r"^\| `([^`]+)`", open_license, re.MULTILINE)) == licensed
    assert set(re.findall(r"^\| `([^`]+)`", public, re.MULTILINE)) == bundled - licensed
    assert "https://creativecommons.org/licenses/by/4.0/" in open_license
    assert "https://creativecommons.org/publicdomain/zero/1.0/" in open_license


@pytest.mark.parametrize("name", TABLES)
def test_descriptions_name_the_license(name):
    terms = re.search(r"License: (.*)", TABLES[name]().DESCR).group(1)
    licensed = "CC BY 4.0" if name in CLASSIFIED else "CC0 1.0" if name in DEDICATED else None
    assert terms.startswith(licensed or ("counts of a published", "published measure"))


def test_no_copyleft_file_in_the_package():
    third_party("gpl")
    copyleft = {
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in THIRD_PARTY.glob("*/*")
        if path.suffix in (".csv", ".bif", ".gz")
    }
    assert len(copyleft) == 10 + 8
    for path in Path(datasets.__file__).parents[1].rglob("*"):
        if path.is_file():
            assert hashlib.sha256(path.read_bytes()).hexdigest() not in copyleft, path


@pytest.mark.parametrize("folder", ["gpl", "cc-by-sa"])
def test_copyleft_files_have_their_terms_beside_them(folder):
    notice = third_party(folder, "NOTICE").read_text()
    for path in (THIRD_PARTY / folder).iterdir():
        if path.suffix in (".csv", ".bif", ".gz"):
            assert path.name in notice


def test_copyleft_files_stay_out_of_source_distributions():
    third_party("gpl")
    root = TESTS.parent
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("needs a git checkout")
    command = ["git", "check-attr", "export-ignore", "--", "tests/data/third_party", "tests/data/zoo.ref.json"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert answer.splitlines() == [
        "tests/data/third_party: export-ignore: set",
        "tests/data/zoo.ref.json: export-ignore: unspecified",
    ]


# Generators

GENERATORS = [
    lambda n, seed: datasets.make_bipartite(n, random_state=seed),
    lambda n, seed: datasets.make_latent_class(n, 6, 4, cardinality=3, random_state=seed),
]


@pytest.mark.parametrize("make", GENERATORS)
def test_smaller_samples_are_the_first_rows_of_larger_ones(make):
    large = make(500, 3)
    for n in (1, 2, 137, 499):
        small = make(n, 3)
        np.testing.assert_array_equal(small.data, large.data[:n])
        np.testing.assert_array_equal(small.latents, large.latents[:n])
        for node, table in small.tables.items():
            np.testing.assert_array_equal(table, large.tables[node])


@pytest.mark.parametrize("make", GENERATORS)
def test_seeds_decide(make):
    np.testing.assert_array_equal(make(50, 0).data, make(50, np.random.RandomState(0)).data)
    assert not np.array_equal(make(50, 0).tables["y1"], make(50, 1).tables["y1"])


@pytest.mark.parametrize("make", GENERATORS)
def test_rows_follow_the_tables(make):
    n = 60_000
    truth = make(n, 11)
    states = dict(zip(truth.latent_names, truth.latents.T)) | dict(zip(truth.feature_names, truth.data.T))
    assert list(states) == list(truth.tables)
    for node, table in truth.tables.items():
        parents = [parent for parent, child in truth.edges if child == node]
        assert table.shape[:-1] == tuple(truth.tables[parent].shape[-1] for parent in parents)
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-12)
        for configuration in np.ndindex(table.shape[:-1]):
            rows = np.all([states[parent] == k for parent, k in zip(parents, configuration)], axis=0)
            observed = np.bincount(states[node][np.broadcast_to(rows, n)], minlength=table.shape[-1])
            assert len(observed) == table.shape[-1]
            assert chisquare(observed, observed.sum() * table[configuration]).pvalue > 1e-4


def test_columns_are_independent_given_their_parents():
    truth = datasets.make_bipartite(60_000, random_state=11)
    given = truth.latents @ [2, 1]
    for h0, h1 in np.ndindex(2, 2):
        y2, y3 = truth.data[given == 2 * h0 + h1, 1:3].T
        joint = np.bincount(5 * y2 + y3, minlength=25)
        expected = joint.sum() * np.outer(truth.tables["y2"][h0, h1], truth.tables["y3"][h0, h1]).ravel()
        assert chisquare(joint, expected).pvalue > 1e-4


def test_bipartite_is_the_network_of_beal_and_ghahramani():
    truth = datasets.make_bipartite(480, random_state=0)
    assert truth.data.shape == (480, 4)
    assert truth.latents.shape == (480, 2)
    assert truth.feature_names == ["y1", "y2", "y3", "y4"]
    assert truth.latent_names == ["h0", "h1"]
    assert set(truth.edges) == {("h0", f"y{j}") for j in (1, 2, 3)} | {("h1", f"y{j}") for j in (2, 3, 4)}
    free_parameters = sum(table.size - table.size // table.shape[-1] for table in truth.tables.values())
    assert free_parameters == 50
    assert truth.data.min() == 0
    assert truth.data.max() == 4


def test_latent_class_is_naive_bayes():
    truth = datasets.make_latent_class(30, 3, 2, random_state=0)
    assert truth.edges == [("h0", "y1"), ("h0", "y2"), ("h0", "y3")]
    assert truth.latents.shape == (30, 1)
    assert {node: table.shape for node, table in truth.tables.items()} == {
        "h0": (2,),
        "y1": (2, 2),
        "y2": (2, 2),
        "y3": (2, 2),
    }


@pytest.mark.parametrize("concentration", [0.05, 1.0, 4.0])
def test_tables_are_drawn_from_the_dirichlet_distribution(concentration):
    # 4000 rows of three cells: mean 1/3 and variance (2/9) / (3 a + 1) of each
    truth = datasets.make_latent_class(1, 1, 4000, cardinality=3, concentration=concentration, random_state=5)
    table = truth.tables["y1"]
    variance = (2 / 9) / (3 * concentration + 1)
    np.testing.assert_allclose(table.mean(axis=0), 1 / 3, atol=4 * np.sqrt(variance / len(table)))
    np.testing.assert_allclose(table.var(axis=0), variance, rtol=0.1)


def test_small_concentrations_give_whole_tables():
    truth = datasets.make_latent_class(100, 5, 50, concentration=1e-4, random_state=0)
    assert all(np.isfinite(table).all() for table in truth.tables.values())
    np.testing.assert_allclose(truth.tables["y1"].max(axis=-1), 1.0, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "The 'n_samples' parameter of make_latent_class must be an int >= 1. Got 0 instead."),
        ({"n_samples": 2.5}, "The 'n_samples' parameter of make_latent_class must be an int >= 1. Got 2.5 instead."),
        ({"n_samples": True}, "The 'n_samples' parameter of make_latent_class must be an int >= 1. Got True instead."),
        ({"n_features": 0}, "The 'n_features' parameter of make_latent_class must be an int >= 1. Got 0 instead."),
        ({"n_classes": 0}, "The 'n_classes' parameter of make_latent_class must be an int >= 1. Got 0 instead."),
        ({"cardinality": 1}, "The 'cardinality' parameter of make_latent_class must be an int >= 2. Got 1 instead."),
        (
            {"concentration": 0},
            "The 'concentration' parameter of make_latent_class must be a finite number > 0. Got 0 instead.",
        ),
    ],
)
def test_generators_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        datasets.make_latent_class(**({"n_samples": 5, "n_features": 2, "n_classes": 2} | arguments))
    shared = {k: v for k, v in arguments.items() if k in ("n_samples", "concentration")}
    if shared:
        with pytest.raises(ValueError, match=re.escape(message.replace("make_latent_class", "make_bipartite"))):
            datasets.make_bipartite(**({"n_samples": 5} | shared))
