"""Sampled evidences of mixtures with covariates of the component, in the record of a run, and one of them again."""

from pathlib import Path

import numpy as np
from reproduction import membership_evidences as study
from reproduction.records import read_record

LINES = read_record(study.RECORD)


def test_runs_lie_about_long_runs_as_far_as_they_say():
    lines = [line for line in LINES if study.kind_of(line["problem"]) == "bridge"]
    assert len(lines) == 10
    z = study.differences(lines)
    assert len(z) >= 60  # without warnings
    assert abs(z.mean()) < 0.5
    assert np.sqrt((z**2).mean()) < 1.5
    assert np.abs(z).max() < 4.5


def test_two_errors_of_auto_cover_what_they_say():
    lines = [line for line in LINES if study.kind_of(line["problem"]) == "auto"]
    z = study.differences(lines)
    assert len(z) >= 0.95 * sum(len(line["runs"]) for line in lines)  # the others warn
    page = " ".join((Path(__file__).parents[2] / "doc" / "user_guide" / "membership.rst").read_text().split())
    assert f'In {len(z)} runs of "auto"' in page
    assert f"long run {(np.abs(z) < 2).sum()} times" in page
    chance = np.sqrt(0.954 * 0.046 / len(z))
    assert abs((np.abs(z) < 2).mean() - 0.954) < 2 * chance
    assert abs(z.mean()) < 3 / np.sqrt(len(z))
    assert np.abs(z).max() < 4


def test_a_run_again():
    line = LINES[0]
    again = study.run(line["problem"], 0, kind="bridge")
    assert abs(again["value"] - line["runs"][0]["value"]) < 3 * again["error"]
