"""What holds of Chickering & Heckerman's table 1, in the record of a full run, and parts of that run again."""

import json
from pathlib import Path

import numpy as np
import pytest
from reproduction import chickering_heckerman as ch
from reproduction.pages import check_page

RECORDS = json.loads(ch.RESULTS.read_text())
SETTINGS = list(ch.PUBLISHED)
FEW, MANY = ([key for key in SETTINGS if (key[1] > 8) == many] for many in (False, True))
PAGE = Path(__file__).parents[2] / "doc" / "theory" / "chickering_heckerman.rst"


def means_of_models(key, kind, part):
    """The mean error of a score over the data sets of each true model."""
    models = sorted({record["model"] for record in ch.of_setting(RECORDS, key)})
    return np.array([ch.errors(ch.of_setting(RECORDS, key, model), part, kind).mean() for model in models])


def mean_choice(key, part, kind):
    return ch.choices(ch.of_setting(RECORDS, key), part, kind).mean()


def check_as_recorded(key, data_set):
    (old,) = (r for r in ch.of_setting(RECORDS, key, model=0) if r["data_set"] == data_set)
    new = ch.run(ch.Setting(*key), data_set, with_ours=False)
    assert new["remarks"] == []
    assert new["chosen"] == {part: old["chosen"][part] for part in ("protocol", "planted")}


def test_a_row_again():
    check_as_recorded((16, 4, 400), 0)


@pytest.mark.slow
@pytest.mark.parametrize("key", SETTINGS, ids=str)
def test_rows_again(key):
    """Every data set of one true model, or one where classes are many."""
    for data_set in range(5 if key in FEW else 1):
        check_as_recorded(key, data_set)


# --- the record -------------------------------------------------------------------------------------------------------


def test_the_record_is_complete():
    for key in SETTINGS:
        found = sorted((record["model"], record["data_set"]) for record in ch.of_setting(RECORDS, key))
        assert found == [(model, data_set) for model in range(ch.N_MODELS[key[1]]) for data_set in range(5)]
        assert all("ours" in record["chosen"] for record in ch.of_setting(RECORDS, key, model=0))


def test_every_hessian_was_definite():
    """At modes in probabilities always; in the softmax basis but for two models of about as many classes as 32."""
    of_ours = []
    for record in RECORDS:
        for remark in record["remarks"]:
            part, classes, kind = remark.split(", ")[:3]
            assert part == "ours", remark
            if kind != "ais":  # which says where its weights are too unequal
                of_ours.append((classes, kind.split(":")[0]))
    assert of_ours == [("30 classes", "laplace"), ("28 classes", "laplace")]


def test_maxima_are_inside_the_range_of_test_models():
    """But for MLED with few features, sampling of 40 classes, and where the fewest they tried, two, are best."""
    for record in RECORDS:
        for where in record["at_the_edge"]:
            part, kind = where.split(" ", 1)
            assert record["chosen"][part][kind] <= 2 or (record["n_classes"], where) == (32, "ours ais")


@pytest.mark.parametrize("key", SETTINGS, ids=str)
def test_bic_is_too_simple_and_draper_less_so(key):
    """Their first finding, in every row: no score is below BIC but MLED, and none but that has BIC above Laplace."""
    for part in ("protocol", "planted"):
        assert mean_choice(key, part, "bic") <= mean_choice(key, part, "laplace")
        assert mean_choice(key, part, "bic") <= mean_choice(key, part, "draper")
        assert mean_choice(key, part, "bic") <= mean_choice(key, part, "cheeseman_stutz")


@pytest.mark.parametrize("kind", ch.PUBLISHED[8, 4, 400])
@pytest.mark.parametrize("key", FEW, ids=str)
def test_means_agree_with_theirs_where_classes_are_few(key, kind):
    """Within two standard deviations of another true model's mean, theirs with the spread of its five data sets."""
    means, (theirs, spread) = means_of_models(key, kind, "protocol"), ch.PUBLISHED[key][kind]
    variance = means.var(ddof=1) * (1 + 1 / len(means)) + spread**2 / 5
    assert abs(means.mean() - theirs) <= 2 * np.sqrt(variance) + 1e-12


@pytest.mark.parametrize("key", SETTINGS, ids=str)
def test_variational_bounds_choose_as_importance_sampling_does(key):
    if key in FEW:
        gap = mean_choice(key, "ours", "ais") - mean_choice(key, "ours", "lower_bound")
        assert abs(gap) <= 0.2


def test_the_page_shows_the_record():
    of_settings = {tuple(map(str, key)) for key in SETTINGS}
    tables = (ch.beside_theirs(RECORDS, "protocol"), ch.beside_theirs(RECORDS, "planted"), ch.by_score(RECORDS))
    check_page(PAGE, (row for rows in tables for row in rows if row[:3] in of_settings))
