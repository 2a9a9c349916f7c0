"""Jobs of people who come from lavaan and semopy, with figures that these print."""

import numpy as np
import pytest

from skvbem import VBNetwork
from skvbem.datasets import load_ability_tests, make_rows_with_moments

approx = pytest.approx

ABILITY = {
    "picture": ["spatial"],
    "blocks": ["spatial"],
    "maze": ["spatial"],
    "reading": ["verbal"],
    "vocab": ["verbal"],
    "general": ["spatial", "verbal"],
    "verbal": ["spatial"],
}
#: By semopy 2.3.11: 'verbal ~ spatial' and loadings, in the order of their 'std_est'.
STANDARDIZED = {
    "spatial -> verbal": 0.440230,
    "spatial -> picture": 0.643552,
    "spatial -> blocks": 0.882101,
    "spatial -> maze": 0.478082,
    "spatial -> general": 0.467128,
    "verbal -> general": 0.407655,
    "verbal -> reading": 0.938181,
    "verbal -> vocab": 0.843520,
}

PEOPLE = ["anomia67", "powerless67", "anomia71", "powerless71", "education", "sei"]
#: Covariances of 932 people, row by row, as in the tutorial of lavaan (Wheaton, Muthén, Alwin and Summers 1977).
COVARIANCES = (
    (11.834,),
    (6.947, 9.364),
    (6.819, 5.091, 12.532),
    (4.783, 5.028, 7.495, 9.986),
    (-3.839, -3.889, -3.841, -3.625, 9.610),
    (-21.899, -18.831, -21.748, -18.775, 35.522, 450.288),
)
ALIENATION = {
    "education": ["ses"],
    "sei": ["ses"],
    "anomia67": ["alien67"],
    "powerless67": ["alien67"],
    "anomia71": ["alien71"],
    "powerless71": ["alien71"],
    "alien67": ["ses"],
    "alien71": ["ses", "alien67"],
}


@pytest.fixture(scope="module")
def alienation():
    """The rows of 932 people, and their weights."""
    pd = pytest.importorskip("pandas")
    lower = np.zeros((6, 6))
    for k, row in enumerate(COVARIANCES):
        lower[k, : len(row)] = row
    rows = make_rows_with_moments(np.zeros(6), lower + np.tril(lower, -1).T, 932)
    return pd.DataFrame(rows.data, columns=PEOPLE), rows.sample_weight


def test_two_factors_of_six_tests():
    """'cfa(...); fitMeasures(fit); standardizedSolution(fit)'."""
    pytest.importorskip("pandas")
    tests = load_ability_tests(as_frame=True)
    X, n = tests.data, tests.sample_weight
    options = {"method": "ml", "tol": 1e-11, "max_iter": 5000, "n_init": 2, "random_state": 0}
    model = VBNetwork(ABILITY, latents={"spatial": "number", "verbal": "number"}, **options).fit(X, sample_weight=n)
    indices = model.fit_indices(X, n)
    assert indices.degrees_of_freedom == 7
    assert [indices.chi2, indices.p_value, indices.cfi, indices.tli] == approx(
        [7.124937, 0.415989, 0.999525, 0.998982], abs=2e-5
    )
    assert indices.rmsea == approx(0.012680, abs=1e-4)
    table = model.summary().to_frame()
    ours = table[table["table"] == "standardized coefficients"].set_index("row")["estimate"]
    assert ours.to_dict() == approx(STANDARDIZED, abs=1e-3)


def test_errors_that_go_together(alienation):
    """'anomia67 ~~ anomia71; powerless67 ~~ powerless71': lavaan has 4.735 on 4 degrees of freedom, p = 0.316."""
    X, n = alienation
    hidden = dict.fromkeys(["ses", "alien67", "alien71"], "number")
    options = {"method": "ml", "tol": 1e-10, "max_iter": 5000, "n_init": 2, "random_state": 0}
    alone = VBNetwork(ALIENATION, latents=hidden, **options).fit(X, sample_weight=n).fit_indices(X, n)
    assert alone.degrees_of_freedom == 6
    errors = {"anomia": ["anomia67", "anomia71"], "powerless": ["powerless67", "powerless71"]}
    above = {child: [*ALIENATION[child], name] for name, children in errors.items() for child in children}
    latents = hidden | dict.fromkeys(errors, "number")
    together = VBNetwork(ALIENATION | above, latents=latents, **options).fit(X, sample_weight=n).fit_indices(X, n)
    assert (round(together.chi2, 3), together.degrees_of_freedom) == (4.735, 4)
    assert together.p_value == approx(0.316, abs=5e-4)
    assert together.n_free_parameters == 17 + 6  # of lavaan, and the means
    assert alone.p_value < 1e-10
