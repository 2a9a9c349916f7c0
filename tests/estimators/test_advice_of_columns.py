"""Advice in messages about columns, rows, sequences, labels, structures and files: copied, followed, and it works."""

import re
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from estimators.advice import Case, both, check, each_keyword, each_line, each_name, with_slow
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skvbem
from skvbem import (
    DAG,
    VBHMM,
    DAGSpace,
    StructureSearchCV,
    UndirectedGraph,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.blocks import blocks_of
from skvbem.durations import Hazards, Stages
from skvbem.emissions import Gaussian, Ordinal, Poisson, Regression, Softmax
from skvbem.plotting import ClassProfileDisplay

RNG = np.random.default_rng(20261128)
NUMBERS = RNG.normal(size=(40, 3))
TABLE = pd.DataFrame(NUMBERS, columns=["x", "y", "z"])
CODES = pd.DataFrame(RNG.integers(0, 2, size=(40, 3)), columns=list("abc"))
ANSWERS = pd.DataFrame({"a": ["never", "often", "always", "often"] * 10})
SERIES = NUMBERS[:, :1]
ROWS = TABLE[["x"]].assign(n=[f"r{i}" for i in range(40)])
FOLDER = tempfile.TemporaryDirectory()
ALIKE = np.r_[np.zeros((20, 1)), 5.0 + SERIES]
MANY_SETS = DAG(
    {f"b{k}": [f"a{k}"] for k in range(9)}
    | {f"c{k}": [f"b{k}"] for k in range(9)}
    | {"x": [f"a{k}" for k in range(9)], "y": ["x", *(f"c{k}" for k in range(9))]}
)
LABELS = np.where(np.arange(40) < 20, "u", "v").astype(object)
Y = LABELS.copy()
FEW = {"random_state": 0, "n_init": 1}
EXPLAINED_CHAIN = VBHMM(1, emission=[("y", Regression(covariates=["x"]), ["y"])], **FEW).fit(TABLE[["x", "y"]])
BLOCKS = blocks_of([NUMBERS[:20], NUMBERS[20:]])
IN_BLOCKS = VBMixture(2, **FEW).fit(BLOCKS)
POINTS = {"means": [[0.0], [1.0]], "covariances": [[[1.0]], [[1.0]]]}


def labeled(labels, n_components=2, **options):
    return VBMixture(n_components, **FEW, **options).fit(NUMBERS, labels=labels)


def missing(column):
    return CODES.assign(d=column)


def written(path, **options):
    """Write a network, and read it again."""
    network = VBDiscreteDAG({"b": ["a"]}).fit(CODES).network_
    with tempfile.TemporaryDirectory() as folder:
        skvbem.write_network(network, Path(folder, path), **options)
        return skvbem.read_network(Path(folder, path), **options)


def raised(followed):
    """Calls with a parameter, and the number to which the advice raises it."""
    return lambda text: [
        lambda name=name, n=n: followed(name, int(n)) for name, n in re.findall(r"Raise '(\w+)' to (\d+)", text)
    ]


def without_pandas(call):
    def called(**options):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            return call(**options)

    return called


def table_of(X):
    """A file with a table that lasts as long as this process."""
    path = Path(FOLDER.name, "table.csv")
    pd.DataFrame(X).to_csv(path, index=False)
    return path


COVARIATE = VBMixture(2, membership=Softmax("z"), **FEW)
LEARNED = Softmax("z", slope_prior="hierarchical")
TWICE = VBMixture(2, membership=Softmax(["z", "twice"]), **FEW | {"method": "ml"})


def _one_die(**options):
    """An honest die."""
    return VBHMM.from_parameters([1], [[1]], {"probabilities": [[1 / 6] * 6]}, emission="categorical", **options)


def _honest_and_loaded(change=((0.95, 0.05), (0.1, 0.9)), **options):
    """Two dice whose probabilities are known."""
    faces = {"probabilities": [[1 / 6] * 6, [0.1] * 5 + [0.5]]}
    of_columns = {"emission": "categorical", "categories": {"x0": range(1, 7)}}
    return VBHMM.from_parameters([1.0, 0.0], change, faces, **of_columns, **options)


def _ahead(emission, **options):
    """A forecast of one step."""
    return VBHMM(2, emission=emission, n_init=1, random_state=0, **options).fit(SERIES).forecast([SERIES])


DRIVEN = VBHMM(2, emission={"gaussian": ["x"], "remainder": "drop"}, transitions=Softmax("z"), **FEW)

CODED = CODES.assign(z=NUMBERS[:, 2])
EDGES = [("h0", "a"), ("h1", "b")]
ROOTS = VBDiscreteDAG(EDGES, latents=["h0", "h1"], covariates="z", **FEW)
CHORDAL = UndirectedGraph([*"abc"], [("a", "b")])

CASES = {
    "covariates without a root": Case(
        lambda: clone(ROOTS).set_params(structure=[("a", "h0"), ("h0", "b"), ("a", "h1")]).fit(CODED),
        "Name a root, as in covariates={'h0': ['age']}",
        lambda text: [
            lambda: (
                clone(ROOTS)
                .set_params(structure=[("a", "h0"), ("h0", "b")], covariates={"a": ["z"]}, latents=["h0"])
                .fit(CODED)
            )
        ],
    ),
    "answers in words": Case(
        lambda: VBMixture(1, emission=Ordinal(), **FEW).fit(ANSWERS),
        "whose data type says no order. They are taken in this one: ",
        each_keyword(lambda **advice: VBMixture(1, emission=Ordinal(), **FEW, **advice).fit(ANSWERS)),
    ),
    "covariates of an undirected structure": Case(
        lambda: VBDiscreteDAG(CHORDAL, prior="bdeu", covariates={"a": "z"}, **FEW).fit(CODED),
        "Give a directed one, as by DAG.from_chordal(structure)",
        each_line(
            r"DAG.from_chordal\(structure\)",
            lambda dag: VBDiscreteDAG(dag, prior="bdeu", covariates={dag.nodes[0]: "z"}, **FEW).fit(CODED),
            DAG=DAG,
            structure=CHORDAL,
        ),
    ),
    "parameters that do not go with covariates": Case(
        lambda: clone(ROOTS).set_params(learn_prior=True).fit(CODED),
        "does not go with 'covariates'. Leave it ",
        lambda text: [
            lambda: clone(ROOTS).set_params(learn_prior=False).fit(CODED),
            lambda: clone(ROOTS).set_params(learn_prior=True, covariates=None).fit(CODES),
        ],
    ),
    "odds of one of several nodes": Case(
        lambda: clone(ROOTS).set_params(method="ml").fit(CODED).odds_ratios(CODED),
        "name it, as in node=",
        each_keyword(lambda **options: clone(ROOTS).set_params(method="ml").fit(CODED).odds_ratios(CODED, **options)),
    ),
    "covariates of a chain beside its prior": Case(
        lambda: clone(DRIVEN).set_params(transmat_prior=2.0).fit(TABLE),
        "leave that at its default, and say the prior in Softmax",
        lambda text: [
            lambda: clone(DRIVEN).set_params(transmat_prior=1.0, transitions=Softmax("z", slope_prior=2.0)).fit(TABLE)
        ],
    ),
    "covariates of a sticky chain": Case(
        lambda: clone(DRIVEN).set_params(sticky=2.0).fit(TABLE),
        "Leave 'sticky' at 0: ",
        lambda text: [lambda: clone(DRIVEN).set_params(sticky=0).fit(TABLE)],
    ),
    "durations beside covariates of transitions": Case(
        lambda: clone(DRIVEN).set_params(durations=Hazards(2)).fit(TABLE),
        " at None, or 'durations' at 'geometric'",
        lambda text: [
            lambda: clone(DRIVEN).set_params(durations=Hazards(2), transitions=None).fit(TABLE),
            lambda: clone(DRIVEN).set_params(durations="geometric").fit(TABLE),
        ],
    ),
    "durations of a chain whose prior is learned": Case(
        lambda: VBHMM(2, durations=Stages(2), learn_prior=True, random_state=0).fit(TABLE[["y"]]),
        "Leave it False; their prior='hierarchical'",
        lambda text: [
            lambda: VBHMM(2, durations=Stages(2, prior="hierarchical"), random_state=0).fit(TABLE[["y"]]),
        ],
    ),
    "durations of a chain at the mode": Case(
        lambda: VBHMM(2, durations=Hazards(4), method="map", random_state=0).fit(TABLE[["y"]]),
        "Take prior='transitions' or a pair of concentrations, such as (1.0, 1.0), in 'durations'; method='vb' or "
        "'ml'; or a score that needs no MAP fit, such as 'lower_bound', 'bridge' or 'importance'",
        lambda text: [
            lambda: VBHMM(2, durations=Hazards(4, prior="transitions"), method="map", **FEW).fit(TABLE[["y"]]),
            lambda: VBHMM(2, durations=Hazards(4, prior=(1.0, 1.0)), method="map", **FEW).fit(TABLE[["y"]]),
            *(lambda m=m: VBHMM(2, durations=Hazards(4), method=m, **FEW).fit(TABLE[["y"]]) for m in ("vb", "ml")),
            *(
                lambda k=k: VBHMM(2, durations=Hazards(4), **FEW).fit(TABLE[["y"]]).log_evidence(TABLE[["y"]], kind=k)
                for k in ("lower_bound", "bridge", "importance")
            ),
        ],
    ),
    "durations of a chain with parameters that are given": Case(
        lambda: _honest_and_loaded(stays={"stage_ends": [0.1, 0.2]}),
        "Give these, or leave them out",
        lambda text: [
            _honest_and_loaded,
            lambda: _honest_and_loaded([[0, 1], [1, 0]], durations=Stages(2), stays={"stage_ends": [0.1, 0.2]}),
        ],
    ),
    "stays of a single state": Case(
        lambda: _one_die(durations=Stages(2), stays={"stage_ends": [0.1]}),
        "Leave 'stays' out",
        lambda text: [lambda: _one_die(durations=Stages(2))],
    ),
    "forecasts of a chain with durations and earlier values": Case(
        lambda: _ahead(Regression(lags=1), durations=Stages(2)),
        "Take an emission without 'lags', or leave 'durations' at 'geometric'",
        lambda text: [lambda: _ahead(Gaussian(), durations=Stages(2)), lambda: _ahead(Regression(lags=1))],
    ),
    "durations of a sticky chain": Case(
        lambda: VBHMM(2, durations=Stages(2), sticky=2.0, random_state=0).fit(TABLE[["y"]]),
        "Leave 'sticky' at 0, or give 'durations' prior='transitions'",
        lambda text: [
            lambda: VBHMM(2, durations=Stages(2), random_state=0).fit(TABLE[["y"]]),
            lambda: VBHMM(2, durations=Stages(2, prior="transitions"), sticky=2.0, random_state=0).fit(TABLE[["y"]]),
        ],
    ),
    "covariates of a chain whose prior is learned": Case(
        lambda: clone(DRIVEN).set_params(learn_prior=True).fit(TABLE),
        "Leave it False, and compare ",
        lambda text: [
            lambda: clone(DRIVEN).set_params(learn_prior=False, transitions=Softmax("z", slope_prior=3.0)).fit(TABLE)
        ],
    ),
    "covariates of a chain that predicts at the point of its bound": Case(
        lambda: clone(DRIVEN).set_params(predictive="vb").fit(TABLE),
        "Take 'mean' or 'average' where covariates drive",
        each_name(lambda predictive: clone(DRIVEN).set_params(predictive=predictive).fit(TABLE), among="mean|average"),
    ),
    "scores of a chain that covariates drive": Case(
        lambda: clone(DRIVEN).fit(TABLE).log_evidence(TABLE, kind="exact"),
        "what is known of them has no closed form. Take 'auto', 'lower_bound', 'bic', 'laplace' or 'linear_response'",
        each_name(
            lambda kind: clone(DRIVEN).fit(TABLE).log_evidence(TABLE, kind=kind),
            among="auto|lower_bound|bic|laplace|linear_response",
        ),
    ),
    "a membership beside weights": Case(
        lambda: clone(COVARIATE).set_params(weight_concentration_prior=2.0).fit(TABLE),
        "leave 'weight_concentration_prior' and its type at ",
        lambda text: [lambda: clone(COVARIATE).set_params(weight_concentration_prior=1.0).fit(TABLE)],
    ),
    "a membership without covariates": Case(
        lambda: VBMixture(2, membership=Softmax([]), **FEW).fit(TABLE),
        "Name one, or leave 'membership' out",
        each_name(lambda name: VBMixture(2, **{name: None}, **FEW).fit(TABLE), among="membership"),
    ),
    "steps of a membership": Case(
        lambda: VBMixture(2, membership=Softmax("z", at="arrival"), **FEW).fit(TABLE),
        "Leave 'at' out",
        lambda text: [lambda: VBMixture(2, membership=Softmax("z"), **FEW).fit(TABLE)],
    ),
    "a covariate that follows from another, by maximum likelihood": Case(
        lambda: clone(TWICE).fit(TABLE.assign(twice=2 * TABLE["z"])),
        "Leave it out of Softmax, or take method='vb'",
        each_keyword(lambda **advice: clone(TWICE).set_params(**advice).fit(TABLE.assign(twice=2 * TABLE["z"]))),
    ),
    "a gap in a covariate of the component": Case(
        lambda: COVARIATE.fit(TABLE.assign(z=TABLE["z"].where(TABLE.index > 3))),
        "or leave out such rows, as by ",
        each_line(
            r"X\.dropna\(subset=\['z'\]\)",
            lambda X: clone(COVARIATE).fit(X),
            X=TABLE.assign(z=TABLE["z"].where(TABLE.index > 3)),
        ),
    ),
    "odds ratios without covariates": Case(
        lambda: clone(COVARIATE).set_params(membership=None).fit(TABLE).odds_ratios(TABLE),
        "Fit with membership=Softmax([...]), which names them",
        lambda advice: [lambda: clone(COVARIATE).fit(TABLE).odds_ratios(TABLE)],
    ),
    "scores of coefficients": Case(
        lambda: clone(COVARIATE).fit(TABLE).log_evidence(TABLE, kind="smc_data"),
        "and what is known of them has no closed form. Take 'auto', ",
        each_name(
            lambda kind: clone(COVARIATE).fit(TABLE).log_evidence(TABLE, kind=kind),
            among="auto|lower_bound|bic|laplace|linear_response",
        ),
    ),
    "draws of hidden precisions of slopes": Case(
        lambda: VBMixture(2, membership=LEARNED, **FEW).fit(TABLE).log_evidence(TABLE, kind="ais"),
        "Set slope_prior=1.0 in Softmax, or take 'lower_bound', ",
        lambda text: [
            *each_keyword(
                lambda slope_prior: (
                    VBMixture(2, membership=Softmax("z", slope_prior=slope_prior), **FEW)
                    .fit(TABLE)
                    .log_evidence(TABLE, kind="ais", n_chains=4)
                )
            )(text),
            *each_name(
                lambda kind: VBMixture(2, membership=LEARNED, **FEW).fit(TABLE).log_evidence(TABLE, kind=kind),
                among="lower_bound|bic|laplace|linear_response",
            )(text),
        ],
    ),
    "before a fit": Case(
        lambda: VBMixture(2).means_,
        "Call 'fit' first",
        each_name(lambda name: getattr(VBMixture(2, **FEW), name)(NUMBERS).means_, among="fit"),
    ),
    "masked weights": Case(
        lambda: VBMixture(2).fit(NUMBERS, sample_weight=np.ma.array(np.ones(40), mask=np.arange(40) < 2)),
        "Some are masked: give each row a weight",
        each_line(
            r"sample_weight\.filled\(0\)",
            lambda weight: VBMixture(2, **FEW).fit(NUMBERS, sample_weight=weight),
            sample_weight=np.ma.array(np.ones(40), mask=np.arange(40) < 2),
        ),
    ),
    "groups without relevance": Case(
        lambda: VBFactorAnalysis(1, groups=[[0, 1], [2]], relevance="fixed").fit(NUMBERS),
        "Leave out 'groups', or take ",
        each_keyword(lambda **advice: VBFactorAnalysis(1, groups=[[0, 1], [2]], **advice).fit(NUMBERS)),
    ),
    "a Gaussian node with numbers as parents": Case(
        lambda: VBNetwork(
            {"y": ["h", "x"]},
            latents={"h": 2},
            emission=[
                ("y", Gaussian(mean_precision_prior=2.0), ["y"]),
                ("x", "gaussian", ["x"]),
                ("z", "gaussian", ["z"]),
            ],
        ).fit(TABLE),
        "with priors of its own. Give ",
        each_line(
            r"Regression\(\)",
            lambda regression: VBNetwork(
                {"y": ["h", "x"]},
                latents={"h": 2},
                emission=[("y", regression, ["y"]), ("x", "gaussian", ["x"]), ("z", "gaussian", ["z"])],
            ).fit(TABLE),
            Regression=Regression,
        ),
    ),
    "blocks of two kinds": Case(
        lambda: VBMixture(1, **FEW).fit(blocks_of([CODES[["a"]], CODES[["a"]].astype("category")])),
        "of X holds numbers in some blocks and categories in others. Make them one kind, or name its family in the ",
        each_name(
            lambda name: VBMixture(1, **FEW, **{name: {"categorical": ["a"]}}).fit(
                blocks_of([CODES[["a"]], CODES[["a"]].astype("category")])
            )
        ),
    ),
    "children of answers in an order": Case(
        lambda: VBNetwork([("a", "b")], emission={"ordinal": ["a", "b"], "categorical": ["c"]}).fit(CODES),
        "no family here depends on answers in an order. Turn the edge round, or give ",
        each_name(
            lambda name: VBNetwork([("a", "b")], emission={"ordinal": ["b"], name: ["a", "c"]}, **FEW).fit(CODES),
            among="categorical",
        ),
    ),
    "lags without an order": Case(
        lambda: VBMixture(1, emission=Regression(lags=1)).fit(SERIES),
        "and its rows have no order. ",
        each_line(r"VBHMM", lambda chain: chain(1, emission=Regression(lags=1), **FEW).fit(SERIES), VBHMM=VBHMM),
    ),
    "parameters without columns": Case(
        lambda: VBMixture.from_parameters([0.5, 0.5], POINTS, emission="auto"),
        "no X that tells what columns hold: give ",
        both(
            each_name(lambda name: VBMixture.from_parameters([0.5, 0.5], POINTS, emission=name), among="gaussian"),
            each_line(
                r"Poisson\(\)",
                lambda emission: VBMixture.from_parameters([0.5, 0.5], {"rates": [[1.0], [2.0]]}, emission=emission),
                Poisson=Poisson,
            ),
        ),
    ),
    "a number of factors that no bound chooses": Case(
        lambda: VBFactorAnalysis("auto", method="ml").fit(NUMBERS),
        "Fit by 'vb' first, and give ",
        each_name(
            lambda name: VBFactorAnalysis(
                max(1, getattr(VBFactorAnalysis("auto", random_state=0).fit(NUMBERS), name)), method="ml"
            ).fit(NUMBERS),
            among="n_.*?_",
        ),
    ),
    "a first state of one sequence": Case(
        lambda: VBLinearDynamicalSystem(1, initial="learned", method="ml").fit(SERIES),
        "first states say nothing of a covariance",
        both(
            each_name(
                lambda name: VBLinearDynamicalSystem(1, initial="learned", method=name, **FEW).fit(SERIES), among="map"
            ),
            each_keyword(lambda **advice: VBLinearDynamicalSystem(1, **FEW, **advice).fit(SERIES)),
        ),
    ),
    "covariates of a network": Case(
        lambda: VBNetwork(
            {"y": ["h", "x"]},
            latents={"h": 2},
            emission=[("y", Regression(covariates=["x"]), ["y"]), ("z", "gaussian", ["z"])],
        ).fit(TABLE),
        "In a network edges do this: leave ",
        each_name(
            lambda name: VBNetwork(
                {"y": ["h", "x"]},
                latents={"h": 2},
                emission=[("y", Regression(), ["y"]), ("x", "gaussian", ["x"]), ("z", "gaussian", ["z"])],
            ).fit(TABLE),
            among="covariates",
        ),
    ),
    "rows to explain, and their number": Case(
        lambda: (
            VBMixture(1, emission=[("y", Regression(covariates=["x"]), ["y"])])
            .fit(TABLE[["x", "y"]])
            .sample(3, given=TABLE[["x", "y"]])
        ),
        "Leave 'n_samples' out",
        each_name(
            lambda name: (
                VBMixture(1, emission=[("y", Regression(covariates=["x"]), ["y"])])
                .fit(TABLE[["x", "y"]])
                .sample(given=TABLE[["x", "y"]])
            )
        ),
    ),
    "draws without what explains them": Case(
        lambda: VBMixture(1, emission=[("y", Regression(covariates=["x"]), ["y"])]).fit(TABLE[["x", "y"]]).sample(3),
        "Give rows that have them, as in ",
        each_line(
            r"(?<=given=)X",
            lambda rows: (
                VBMixture(1, emission=[("y", Regression(covariates=["x"]), ["y"])])
                .fit(TABLE[["x", "y"]])
                .sample(given=rows)
            ),
            X=TABLE[["x", "y"]],
        ),
    ),
    "a hierarchy of labels": Case(
        lambda: labeled(LABELS, init="hierarchical"),
        "joins rows whatever their labels. Take ",
        each_keyword(lambda **advice: labeled(LABELS, **advice)),
    ),
    "more labels than components": Case(
        lambda: labeled(np.resize(["u", "v", "w"], 40)),
        ". Raise 'n_components' to ",
        raised(lambda name, value: labeled(np.resize(["u", "v", "w"], 40), **{name: value})),
    ),
    "numbers of components as labels": Case(
        lambda: labeled(np.resize([0, 2], 40)),
        ". Raise 'n_components' to ",
        raised(lambda name, value: labeled(np.resize([0, 2], 40), **{name: value})),
    ),
    "a hidden node without states": Case(
        lambda: VBDiscreteDAG("[h][a|h][b|h][c|h]").fit(CODES),
        "Declare hidden nodes with their numbers of states, as in ",
        each_keyword(lambda **advice: VBDiscreteDAG("[h][a|h][b|h][c|h]", **advice).fit(CODES)),
    ),
    "columns that a structure does not name": Case(
        lambda: VBDiscreteDAG({"b": ["a"]}).fit(CODES),
        "as by X.drop(",
        both(
            each_line(r"X\.drop\(columns=.*?\]\)", lambda X: VBDiscreteDAG({"b": ["a"]}).fit(X), X=CODES),
            each_line(
                r"DAG\.coerce\(.*?\]\)", lambda dag: VBDiscreteDAG(dag).fit(CODES), DAG=DAG, structure={"b": ["a"]}
            ),
        ),
    ),
    "ties of an undirected structure": Case(
        lambda: VBDiscreteDAG(UndirectedGraph(["a", "b", "c"]), ties={"c": ("b",)}).fit(CODES),
        "belong to directions that it does not have. Give ",
        each_line(
            r"DAG\.from_chordal\(structure\)",
            lambda dag: VBDiscreteDAG(dag).fit(CODES),
            DAG=DAG,
            structure=UndirectedGraph(["a", "b", "c"]),
        ),
    ),
    "weights of sequences": Case(
        lambda: VBHMM(1).fit(SERIES, lengths=[15, 25], sample_weight=[1.0, 2.0]),
        "the same for all rows of a sequence, as by ",
        each_line(
            r"np\.repeat\(.*?\)",
            lambda weight: VBHMM(1, **FEW).fit(SERIES, lengths=[15, 25], sample_weight=weight),
            np=np,
            sample_weight=[1.0, 2.0],
            lengths=[15, 25],
        ),
    ),
    "tables of several sequences": Case(
        lambda: (
            VBLinearDynamicalSystem(1, **FEW)
            .set_output(transform="pandas")
            .fit([SERIES, SERIES])
            .transform([SERIES, SERIES])
        ),
        "Give rows with 'sequence_id', or take set_output(",
        each_keyword(
            lambda **advice: (
                VBLinearDynamicalSystem(1, **FEW).set_output(**advice).fit([SERIES, SERIES]).transform([SERIES, SERIES])
            )
        ),
    ),
    "lengths of sequences twice": Case(
        lambda: VBHMM(1).fit(SERIES, lengths=[40], sequence_id=np.zeros(40)),
        "not both: each says which rows are one sequence",
        lambda text: [lambda: VBHMM(1, **FEW).fit(SERIES, lengths=[40])],
    ),
    "sparse sequences": Case(
        lambda: VBHMM(1).fit([sparse.csr_matrix(SERIES)]),
        "dense data is required. Use ",
        lambda text: [
            lambda: VBHMM(1, **FEW).fit(
                [eval("X" + text.split("Use '")[1].split("'")[0], {"X": sparse.csr_matrix(SERIES)})]
            )
        ],
    ),
    "latents of no structure": Case(
        lambda: VBClassifier(latents={"h": 2}).fit(CODES, Y),
        "give the network, or leave 'latents' out",
        each_name(lambda name: VBClassifier(**{name: VBClassifier().get_params()[name]}).fit(CODES, Y)),
    ),
    "a structure without the class": Case(
        lambda: VBClassifier([("kind", "a"), ("a", "b")]).fit(CODES, Y),
        "Add an edge from ",
        both(
            each_name(lambda name: VBClassifier([(name, "a"), ("a", "b")]).fit(CODES, Y), among="class"),
            each_name(lambda name: VBClassifier([("kind", "a")], **{name: "kind"}).fit(CODES, Y), among="class_node"),
        ),
    ),
    "a column with the name of the class": Case(
        lambda: VBClassifier().fit(CODES.rename(columns={"a": "class"}), Y),
        "Leave it out of X, or give another ",
        each_name(lambda name: VBClassifier(**{name: "species"}).fit(CODES.rename(columns={"a": "class"}), Y)),
    ),
    "questions about blocks": Case(
        lambda: IN_BLOCKS.predict(BLOCKS),
        "Ask about one block at a time, as in ",
        each_line(r"\[model.*\]", model=IN_BLOCKS, X=BLOCKS),
    ),
    "steps of a fit": Case(
        lambda: VBMixture(2, max_iter=2, **FEW).fit(NUMBERS),
        " did not converge in ",
        each_name(
            lambda name: VBMixture(2, **FEW, **({"max_iter": 2} | {name: {"max_iter": 10000, "tol": 1e9}[name]})).fit(
                NUMBERS
            )
        ),
    ),
    "a format without an end": Case(
        lambda: written("here.unknown"),
        "pass format=",
        each_name(lambda name: written("here.unknown", format=name)),
    ),
    "blocks that come once": Case(
        lambda: VBMixture(1).fit(blocks_of(iter([NUMBERS]))),
        "Give a function that makes it, as in ",
        each_line(
            r"blocks_of\(.*\)(?=, or)",
            lambda blocks: VBMixture(1, **FEW).fit(blocks),
            blocks_of=blocks_of,
            pandas=pd,
            path=table_of(NUMBERS),
        ),
    ),
    "processes that share no list": Case(
        lambda: blocks_of(lambda: [NUMBERS], n_jobs=2),
        "or leave 'n_jobs' out",
        each_name(lambda name: VBMixture(1, **FEW).fit(blocks_of(lambda: [NUMBERS]))),
    ),
    "more sets than can be listed": Case(
        lambda: MANY_SETS.adjustment_sets("y", "x"),
        "Name nodes that cannot be observed as ",
        each_name(
            lambda name: MANY_SETS.adjustment_sets("y", "x", **{name: [f"{a}{k}" for a in "ab" for k in range(9)]})
        ),
    ),
    "labels that no row has": Case(
        lambda: labeled(np.resize([0, 2], 40), "auto"),
        "Leave out what labels no row, or say ",
        each_name(lambda name: labeled(np.resize([0, 2], 40), **{name: 3})),
    ),
    "sequences that are split": Case(
        lambda: GridSearchCV(VBHMM(**FEW), {"n_components": [1]}, cv=2, error_score="raise").fit(
            SERIES, lengths=[20, 20]
        ),
        "Give a list of sequences, or ",
        each_name(
            lambda name: GridSearchCV(VBHMM(**FEW), {"n_components": [1]}, cv=2, error_score="raise").fit(
                SERIES, **{name: np.repeat([0, 1], 20)}
            )
        ),
    ),
    "an adjacency without pandas": Case(
        without_pandas(lambda **options: DAG({"b": ["a"]}).to_adjacency(**options)),
        "or pass as_frame=",
        each_keyword(without_pandas(lambda **options: DAG({"b": ["a"]}).to_adjacency(**options))),
    ),
    "tied columns of other categories": Case(
        lambda: VBDiscreteDAG({"b": ["a"], "c": ["b"]}, ties={"c": ("a", "b")}).fit(
            CODES.assign(c=np.resize([5, 6], 40))
        ),
        "Declare all with the ",
        each_name(
            lambda name: VBDiscreteDAG(
                {"b": ["a"], "c": ["b"]}, ties={"c": ("a", "b")}, **{name: {key: [0, 1] for key in "abc"}}
            ).fit(CODES)
        ),
    ),
    "a matrix without names": Case(
        lambda: DAG.from_adjacency(np.triu(np.ones((3, 3)), 1)),
        "give the names of its rows as ",
        each_name(lambda name: DAG.from_adjacency(np.triu(np.ones((3, 3)), 1), **{name: ["a", "b", "c"]})),
    ),
    "profiles of what is no latent class model": Case(
        lambda: ClassProfileDisplay.from_estimator(VBDiscreteDAG("[a][b|a][c|a]").fit(CODES)),
        ", or see DAGDisplay",
        each_line(
            "DAGDisplay",
            lambda display: display.from_estimator(VBDiscreteDAG("[a][b|a][c|a]").fit(CODES)),
            DAGDisplay=skvbem.plotting.DAGDisplay,
        ),
    ),
    "a column without a cell": Case(
        lambda: VBDiscreteDAG("[a][b|a][c][d]").fit(missing(np.full(40, None))),
        "or declare its levels with the ",
        each_name(
            lambda name: VBDiscreteDAG("[a][b|a][c][d]", **{name: {"d": [0, 1]}}).fit(missing(np.full(40, None)))
        ),
    ),
    "categories without an order": Case(
        lambda: VBDiscreteDAG("[a][b|a][c][d]").fit(missing([(1, 2), ("u",)] * 20)),
        "Declare its levels with the ",
        each_name(
            lambda name: VBDiscreteDAG("[a][b|a][c][d]", **{name: {"d": [(1, 2), ("u",)]}}).fit(
                missing([(1, 2), ("u",)] * 20)
            )
        ),
    ),
    "a covariance type said twice": Case(
        lambda: VBMixture(2, covariance_type="diag", emission=Gaussian(covariance_type="full")).fit(NUMBERS),
        "Set it once: leave it out of ",
        each_name(lambda name: VBMixture(2, emission=Gaussian(), **FEW).set_params(**{name: "diag"}).fit(NUMBERS)),
    ),
    "an emission that is a class": Case(
        lambda: VBMixture(2, emission=Gaussian).fit(NUMBERS),
        "Give an object of it: ",
        each_line(
            r"Gaussian\(\)", lambda emission: VBMixture(2, emission=emission, **FEW).fit(NUMBERS), Gaussian=Gaussian
        ),
    ),
    "names that are no strings": Case(
        lambda: VBMixture(1).fit(TABLE.rename(columns={"x": 1})),
        "Make all of them strings, as by ",
        lambda text: [
            lambda: (
                X := TABLE.rename(columns={"x": 1}),
                exec(text.split("as by ")[1].rstrip("."), {"X": X}),
                VBMixture(1, **FEW).fit(X),
            )
        ],
    ),
    "names of rows": Case(
        lambda: VBMixture(2, **FEW).fit(ROWS),
        "leave them out, as by ",
        lambda text: [
            lambda: VBMixture(2, **FEW).fit(
                eval(text.split("as by ")[1].split(";")[0].replace("[...]", "['n']"), {"X": ROWS})
            )
        ],
    ),
    "a search that goes on without a seed": Case(
        lambda: StructureSearchCV(VBDiscreteDAG(), DAGSpace(list("abc")), checkpoint="nowhere.jsonl").fit(CODES),
        "must draw as before. Set ",
        lambda text: [
            lambda: StructureSearchCV(
                VBDiscreteDAG(), DAGSpace(list("abc")), **{text.split("Set '")[1].split("'")[0]: 0}
            ).fit(CODES)
        ],
    ),
    "a latent without a name": Case(
        lambda: VBDiscreteDAG(latents={"": 2}).fit(CODES),
        "has a latent without a name. Take ",
        each_line(r"\{.*\}", lambda latents: VBDiscreteDAG(latents=latents, **FEW).fit(CODES)),
    ),
    "steps to come without what explains them": Case(
        lambda: EXPLAINED_CHAIN.forecast(TABLE[["x", "y"]]),
        "append rows with them to X, leave the explained columns missing, and take ",
        each_name(lambda name: getattr(EXPLAINED_CHAIN, name)(pd.concat([TABLE[["x", "y"]], TABLE[["x"]][:3]]))),
    ),
    "sequences of numbers": Case(
        lambda: VBHMM(1).fit([[1.0, 2.0, 4.0], [1.0, 3.0]]),
        "make each a table, such as by ",
        each_line(
            r"np\.asarray\(.*\)(?=\.)", lambda table: VBHMM(1, **FEW).fit([table, table]), np=np, item=[1.0, 2.0, 4.0]
        ),
    ),
    "words where numbers are asked": Case(
        lambda: VBFactorAnalysis(1).fit(ROWS.assign(n=LABELS)),
        "Make numbers of such a column first, or give it to ",
        lambda text: [
            lambda cls=cls, family=family: cls(1, emission={family: ["n"], "gaussian": ["x"]}, **FEW).fit(
                ROWS.assign(n=LABELS)
            )
            for family in re.findall(r"'(\w+)' in the", text)
            for cls in (VBMixture, VBHMM)
            if cls.__name__ in text
        ],
    ),
    "a component of rows that are alike": Case(
        lambda: VBMixture(2, method="ml", **FEW).fit(ALIKE),
        ", without which the likelihood has no maximum. Take fewer ",
        both(
            each_keyword(lambda **advice: VBMixture(2, **FEW, **advice).fit(ALIKE)),
            each_name(lambda name: VBMixture(2, method=name, **FEW).fit(ALIKE)),
        ),
    ),
    "steps in the place of a series": Case(
        lambda: VBHMM(1, **FEW).fit(SERIES).forecast(3),
        "Name the number of steps: ",
        each_line(r"forecast\(.*\)", forecast=VBHMM(1, **FEW).fit(SERIES).forecast, X=SERIES),
    ),
}


SLOW = {
    "more sets than can be listed",
    "profiles of what is no latent class model",
    "a first state of one sequence",
}


@pytest.mark.parametrize("name", with_slow(CASES, SLOW))
def test_advice_is_followed(name):
    check(CASES[name])
