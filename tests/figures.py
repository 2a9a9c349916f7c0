"""Figures of the pages that no doctest prints: sentences that are made of records, and what the others are."""

import json

import numpy as np
from reproduction import (
    beal_ghahramani,
    chain_evidences,
    clusters,
    default_prior,
    fills,
    hidden_class_or_network,
    large_tables,
    linear_system_coverage,
    linear_system_evidences,
    mixed_search,
    named_families,
    optima,
)
from reproduction.records import read_record
from scipy.special import gammaln

from skvbem.datasets import load_berkeley_admissions


def of_clusters():
    lines = read_record(clusters.RESULTS)
    chains, steps = (clusters.losses(lines, name) for name in ("chains", "steps"))
    yield (
        f"cost {chains.min():.1f} to {chains.max():.1f} nats if each chain is a cluster, and {steps.min():.1f} to "
        f"{steps.max():.1f} nats if each step is one."
    )
    few, many = np.argsort(-steps)[:2]
    gaps = [lines[k]["steps"]["gap"] for k in (few, many)]
    yield (
        f"gaps of {gaps[0]:.1f} and {gaps[1]:.1f} nats stood beside losses of {steps[few]:.1f} and {steps[many]:.1f}."
    )


def of_optima():
    record = read_record(large_tables.RESULTS)
    short = np.concatenate(list(large_tables.shortfalls(record, "after").values()))
    yield f"Of {len(short)} fits of the second table, {(short < 1).sum()} come within 1 nat"
    fits, best = optima.read_fits(), optima.read(optima.BEST)
    first, now = fits["b68e45a"], fits["default"]
    problems = [problem for name, problem in optima.PROBLEMS.items() if name in first]
    short = optima.shortfalls(now, best, problems)
    seconds = [sum(sum(of[problem.name]["seconds"]) for problem in problems) for of in (now, first)]
    yield (
        f"On these {len(problems)} the defaults now come within 0.01 nats in {100 * np.mean(short <= 0.01):.1f} % and "
        f"within 1 nat in {100 * np.mean(short <= 1):.1f} % of fits. They took {seconds[0]:.1f} seconds"
    )
    yield f"where the first defaults took {seconds[1]:.1f}."


def of_named_families():
    lines = {(line["problem"], line["n"]): line for line in read_record(named_families.RECORD)}
    named = lines["zeros 10 %", 2000]["named"]["zero_inflated"]
    yield f'{named} of 400 columns of 2000 rows with 10 % more zeros "zero_inflated".'


def of_mixed_networks():
    lines = read_record(mixed_search.RECORD)
    line = next(each for each in lines if (each["problem"], each["n"], each["seed"]) == ("four", 300, 1))
    yield (
        f"leave another structure {line['behind']['lower_bound']:.1f} nats above the truth by the bound, and the "
        f"sampled evidence puts {line['rank']['auto'] - 1} of the 136 before it."
    )


def of_searches():
    (_, slope), errors = default_prior.calibration(default_prior.lines_of("drawn"))
    yield f"the slope of the truth on their log odds is {slope:.2f} ± {errors[1]:.2f}."


def of_linear_systems():
    known = linear_system_evidences.references(read_record(linear_system_evidences.RECORD))
    nile, air = (
        [f"{value:.{digits}f} ± {error:.{digits}f}" for value, error in (known[f"{name}, {k}"] for k in ("one", "two"))]
        for name, digits in (("nile", 2), ("air quality", 2))
    )
    air[1] = "{:.1f} ± {:.1f}".format(*known["air quality, two"])
    yield f"they give {nile[0]} for one state and {nile[1]} for two."
    yield f"they give {air[0]} for one state and {air[1]} for two."
    lines = [each for each in linear_system_coverage.STUDY.read() if each["problem"] == "two states, rate 1"]
    held = np.sum([each["held"]["draws"]["noises"] for each in lines], axis=0)
    yield f"draws of its variances hold {100 * held[2] / held[3]:.0f} of 95 %."


def of_sequences():
    lines = read_record(chain_evidences.RESULTS)
    seconds = [line["seconds"]["ais"] for line in lines]
    times = [line["seconds"]["ais"] / line["seconds"]["fit"] for line in lines]
    yield f"takes {min(seconds):.1f} to {max(seconds):.1f} s on one thread"
    yield f"{min(times):.0f} to {max(times):.0f} times as long as the default fit"
    for row in chain_evidences.table(lines):
        yield ", ".join(f'"{cell}"' if "," in cell else cell for cell in row)


def of_fills():
    record = json.loads(fills.RESULTS.read_text("utf-8"))
    error, cost = (
        np.array([each["ours"][what] / each["peer"][what] for each in record.values()]) for what in ("error", "seconds")
    )
    yield (
        f"The root mean square error is {np.median(error):.2f} times its own in the median, and from {error.min():.2f} "
        f"to {error.max():.2f}. That takes {cost.min():.1f} to {cost.max():.0f} times its CPU seconds, "
        f"{np.median(cost):.1f} times in the median."
    ).replace(" 0.", " .")


def of_hidden_classes():
    some = hidden_class_or_network.of_size(json.loads(hidden_class_or_network.RESULTS.read_text("utf-8")), 12)
    scores = ("ais", "lower_bound", "collapsed_ascent", "laplace", "bic")
    sampled, *means = (hidden_class_or_network.gains(some, kind, "best") for kind in scores)
    behind = [round(float(np.mean(sampled) - np.mean(each))) for each in means]
    yield f"VB leans towards the network by {behind[0]} nats, the ascended bound by {behind[1]}"
    yield f"and Laplace by {behind[2]}, of which"
    yield f"BIC leans by {behind[3]} nats"
    lost = -sampled[sampled < 0]
    yield f"In {len(lost)} of 40 the best network is more probable, by {lost.min():.0f} to {lost.max():.0f} nats."


def of_bayesian_searches():
    records = read_record(beal_ghahramani.RESULTS)

    def shares(better, worse):
        sizes = sorted({record["n"] for record in records})
        a, b = (np.concatenate([beal_ghahramani.ranks_of(records, n, name) for n in sizes]) for name in (better, worse))
        return f"{100 * np.mean(a < b):.0f} %", f"{100 * np.mean(a > b):.0f} %"

    yield "better than BIC in {} of them and worse in {}.".format(*shares("lower_bound", "bic"))
    yield "than the variational bound in {} and worse in {}.".format(*shares("collapsed_ascent", "lower_bound"))
    yield "than the ascended bound in {} and worse in {}.".format(*shares("ais", "collapsed_ascent"))


def of_admissions():
    X = load_berkeley_admissions(as_frame=True).data
    men, women = (100 * (X.admitted[X.sex == sex] == "yes").mean() for sex in ("male", "female"))
    yield f"admitted {men:.0f} % of men and {women:.0f} % of women."


def of_log_gammas():
    lost = gammaln(1e12 + 1) - gammaln(1e12) - np.log(1e12)
    yield f"loses {lost:.0e} nats".replace("e-0", "e-")


#: Sentences, or parts of them, that a page must have, by page.
COMPUTED = {
    "user_guide/approximate_inference.rst": of_clusters,
    "user_guide/optima.rst": of_optima,
    "user_guide/mixed_networks.rst": of_mixed_networks,
    "user_guide/searching.rst": of_searches,
    "user_guide/state_space.rst": of_linear_systems,
    "user_guide/pipelines.rst": of_fills,
    "user_guide/sequences.rst": of_sequences,
    "theory/chickering_heckerman.rst": of_hidden_classes,
    "coming_from/networks.rst": of_admissions,
    "user_guide/emissions.rst": of_named_families,
    "theory/search.rst": of_bayesian_searches,
    "theory/identities.rst": of_log_gammas,
}


DIFFERENCE = "difference of printed numbers"
#: What a figure is, by page and the words that hold it, where neither a doctest nor a record of this file makes it: the
#: file of a test that holds it; a difference of numbers that a doctest prints; "definition" of a word, a unit or an
#: example; or a "setting" of the library.
OTHERWISE = {
    "README.md": {
        "# 116 nats (natural": "test_doc.py",
        "# 122 nats, by samplers": "test_doc.py",
        "with 95 % intervals": "definition",
    },
    "coming_from/latent_classes.rst": {"with 95 % intervals": "definition"},
    "coming_from/networks.rst": {
        "Here 5 % of the answers are gone": "definition",
        "is -2 times the score": "definition",
    },
    "faq.rst": {
        "A lead of 3 nats in evidence makes one model 20 times as probable as the other": "definition",
        "a lead of 5 nats 150 times": "definition",
    },
    "quick_start.rst": {"the data are 27 nats more probable": DIFFERENCE, "higher by 4.5 nats": DIFFERENCE},
    "releasing.rst": {"below 3 MB": "setting"},
    "theory/algorithm.rst": {
        "after 2, 5 or 15 % of the statistics": "setting",
        "by more than 0.01 nats": "setting",
        "at most 12 nats below": "setting",
        "more than 32 MB, have no secants": "setting",
    },
    "theory/chickering_heckerman.rst": {
        "was 26 ± 33 nats in five repetitions": "reproduction/test_hidden_class_or_network.py",
        "by 1.8, 4.7 and 6.9 nats on average": "reproduction/test_hidden_class_or_network.py",
    },
    "theory/evidence.rst": {
        "drawn 1.2 times as wide": "setting",
        "An error above 0.2 nats": "setting",
        "the root is below 0.6 nats": "setting",
    },
    "theory/hidden_markov.rst": {"(K - 1) / 2 nats for each state": "definition", "as take 134 MB": "setting"},
    "theory/search.rst": {"hold intervals of 95 %": "definition"},
    "user_guide/comparing.rst": {"by 3.7 nats over four classes": DIFFERENCE},
    "theory/one_more_number.rst": {"the integrand has fallen by 36 nats": "setting"},
    "user_guide/emissions.rst": {"by 0.86 ± 0.07 nats a row": "reproduction/test_held_out.py"},
    "user_guide/factors.rst": {
        "nominal 50, 80, 95 %:": "definition",
        "nominal 50, 80, 95 %": "definition",
        "an interval of 90 %": "definition",
        "A million rows of 50 columns, 400 MB": "definition",
    },
    "user_guide/intervals.rst": {
        "nominal 50, 80, 95 %, and": "definition",
        "nominal 50, 80, 95 %:": "definition",
        "nominal 50, 80, 95 %, both": "definition",
    },
    "user_guide/limits.rst": {"as fit in 10 MB": "setting"},
    "user_guide/log_linear_models.rst": {
        "by as much as 25.7 nats": "estimators/network/test_markov_networks.py",
    },
    "user_guide/methods.rst": {"1e-5 nats in total": "setting"},
    "user_guide/sequences.rst": {
        "in 18 % of their CPU time": "reproduction/test_auto_chains.py",
        "best number .96 on average, and 46 %": "reproduction/test_auto_chains.py",
    },
    "user_guide/membership.rst": {"held the value of a long run 45 times": "reproduction/test_membership_evidences.py"},
    "user_guide/mixed_networks.rst": {"ends 6 nats lower": "search/test_mixed_networks.py"},
    "user_guide/mixtures.rst": {
        "the lead of 1.6 nats": DIFFERENCE,
        "A million rows of ten columns are 80 MB": "definition",
    },
    "user_guide/optima.rst": {
        "whose steps gain less than .001 nats": "setting",
        "one that is 19 nats short loses against a model that is 10 nats worse": "definition",
        "not more than 12 nats below": "setting",
        "*Near* is within 1 nat of it": "definition",
        "if it comes within 0.01 nats of the best known, and *near* within 1 nat.": "definition",
        "A row that is 1 nat higher was thought 2.7 times as probable": "definition",
        "5 nats above the second": "definition",
    },
    "user_guide/pipelines.rst": {"with 30 % of all cells": "definition"},
    "user_guide/scores.rst": {
        "4 errors and 0.3 nats": "definition",
        "above the 0.1 nats that were wanted": "setting",
        "a lead of 3.7 nats over four": "test_doc.py",
        "ln 6 = 1.79 nats": "definition",
        "95 % of either are within 2": "reproduction/test_evidence_calibration.py",
        "knows the evidence within 0.01 nats": "reproduction/test_evidence_calibration.py",
        "Laplace's value alone is up to 0.04 nats too low": "reproduction/test_evidence_calibration.py",
        "within 0.7 nats of the evidence": DIFFERENCE,
    },
    "user_guide/searching.rst": {
        "within 20 nats of the best": "setting",
        "differed by 2.0 nats in half": "reproduction/test_default_prior.py",
        "1.9 % had a direction": "reproduction/test_default_prior.py",
    },
    "user_guide/state_space.rst": {
        "far off (by 0.3 nats": "definition",
        "reaches the 0.1 nats": "setting",
        "more than the 0.1 nats": "setting",
        "nominal 50, 80, 95 %:": "definition",
    },
    "user_guide/structural.rst": {
        "how often intervals of 95 % hold these": "definition",
    },
    "user_guide/trust.rst": {
        "levels 50, 80 and 95 % say": "definition",
        "a 95 % interval contains the truth 60 to 70 times in a hundred": "definition",
    },
}
