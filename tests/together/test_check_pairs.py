"""Every pair of options of `check` is refused, or both are honoured.

To add an option of `Policy`, add a wish to `WISHES`.
"""

from dataclasses import fields
from statistics import NormalDist

import numpy as np
from calls import Wish, verdicts, wrong
from comparing import (
    as_compared,
    jackknife_error,
    rate_of,
    small_labels,
    with_reference,
)

from fairmaxent import Domain, check
from fairmaxent.gate.policy import Policy
from people import EDGES, GOOD, everybody


def called(**options):
    """Check the table by sex, unless something else is asked for."""
    options = {"statistical_rate": 0.5} | with_reference(options)
    if "favourable" in options:
        compared = options.get("predictions", options["outcome"])
        options["favourable"] = GOOD[compared]
    return check(everybody(), **options)


def rates_are_those_of_pandas(options, result):
    """Each finding states the rate, and the answer that follows from it."""
    asked = as_compared(options, everybody())
    for finding in result.findings:
        expected = rate_of(asked, finding.columns, finding.kind)
        assert abs(finding.rate.value - expected) <= 1e-6, finding.name
        if finding.before is not None:
            earlier = as_compared(options, options["against"])
            assert (
                abs(
                    finding.before.value
                    - rate_of(earlier, finding.columns, finding.kind)
                )
                <= 1e-6
            )
            continue
        low = high = expected
        if options.get("confident"):
            low, high = finding.rate.interval
        answers = {low >= finding.limit: "pass", high < finding.limit: "fail"}
        assert finding.answer == answers.get(True, "cannot tell")


def limit_is(kind):
    def verify(options, result):
        limits = {one.limit for one in result.findings if one.kind == kind}
        assert options[kind] in limits

    return verify


def every_column_is_checked(options, result):
    columns = {name for finding in result.findings for name in finding.columns}
    assert columns == set(options["protected"])


def earlier_table_is_compared(options, result):
    assert any(finding.before is not None for finding in result.findings)


def intervals_are_narrower(options, result):
    surer = called(**(options | {"confidence": 0.95}))
    for finding, other in zip(result.findings, surer.findings, strict=True):
        assert np.ptp(finding.rate.interval) < np.ptp(other.rate.interval)


def small_groups_are_listed(options, result):
    """Those that pandas finds, and nobody else."""
    asked = as_compared(options, everybody())
    for finding in result.findings:
        named = {group.group for group in finding.rate.set_apart}
        assert named == small_labels(asked, finding.columns)


def intervals_allow_for_clusters(options, result):
    """They are wider than among independent people, and than by a jackknife."""
    asked = as_compared(options, everybody())
    alone = called(**(options | {"cluster": None}))
    for finding, other in zip(result.findings, alone.findings, strict=True):
        low, high = finding.rate.interval
        assert np.ptp(other.rate.interval) < high - low
        deviate = NormalDist().inv_cdf((1 + options.get("confidence", 0.95)) / 2)
        reach = np.exp(deviate * jackknife_error(asked, finding.rate.worst))
        assert low * reach <= finding.rate.value


def holds_by_rates(options, result):
    """The rates that pandas finds are by this option already."""


EARLIER = everybody().iloc[::-1].head(300).reset_index(drop=True)
WISHES = (
    Wish("outcome", {"outcome": "grade"}, holds_by_rates),
    Wish("protected", {"protected": ["sex", "race"]}, every_column_is_checked),
    Wish("statistical_rate", {"statistical_rate": 0.9}, limit_is("statistical_rate")),
    Wish(
        "representation_rate",
        {"representation_rate": 0.4},
        limit_is("representation_rate"),
    ),
    Wish("favourable", {"favourable": "good"}, holds_by_rates),
    Wish("predictions", {"predictions": "promoted"}, holds_by_rates),
    Wish("against", {"against": EARLIER}, earlier_table_is_compared),
    Wish("confident", {"confident": True}, holds_by_rates),
    Wish("confidence", {"confidence": 0.8}, intervals_are_narrower),
    Wish(
        "groups",
        {"groups": "joint"},
        holds_by_rates,
        needs={"protected": ["sex", "race"]},
    ),
    Wish("within", {"within": "town"}, holds_by_rates),
    Wish(
        "compare_missing",
        {"compare_missing": True},
        holds_by_rates,
        needs={"protected": ["sex", "race"]},
    ),
    Wish(
        "smallest_group",
        {"smallest_group": "25%"},
        small_groups_are_listed,
        needs={"protected": ["drive"]},
    ),
    Wish("reference", {"reference": "by column"}, holds_by_rates),
    Wish("weight", {"weight": "design"}, holds_by_rates),
    Wish("cluster", {"cluster": "branch"}, intervals_allow_for_clusters),
    Wish(
        "domain",
        {"domain": Domain.infer(everybody(), bins={"skill": EDGES})},
        holds_by_rates,
        needs={"protected": ["skill"]},
    ),
)


def test_every_option_has_a_wish():
    assert {wish.option for wish in WISHES} == {field.name for field in fields(Policy)}


def test_every_pair_is_refused_or_honoured():
    found = verdicts(called, WISHES, [rates_are_those_of_pandas])
    assert wrong(found) == []
