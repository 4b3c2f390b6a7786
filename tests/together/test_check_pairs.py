"""Every pair of options of `check` is refused, or both are honoured.

To add an option of `Policy`, add a wish to `WISHES`.
"""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pandas as pd
from asked import Asked, representation_rate, statistical_rate
from calls import Wish, verdicts, wrong

from fairmaxent import Domain, check
from fairmaxent.gate.policy import Policy
from people import EDGES, GOOD, everybody

NAMED = [f"[{low:g}, {high:g})" for low, high in pairwise(EDGES)]


def called(**options):
    """Check the table by sex, unless something else is asked for."""
    usual = {"outcome": "hired", "protected": ["sex"], "statistical_rate": 0.5}
    options = usual | options
    if "favourable" in options:
        compared = options.get("predictions", options["outcome"])
        options["favourable"] = GOOD[compared]
    return check(everybody(), **options)


def as_compared(options, table):
    """The options and a table as pandas compares them: decisions are the outcome."""
    options = {"outcome": "hired", "protected": ["sex"]} | options
    if "predictions" in options:
        options["outcome"] = options["predictions"]
    if options.get("domain") is not None:
        bins = pd.cut(table["skill"], EDGES, right=False, labels=NAMED)
        table = table.assign(skill=bins.astype(object))
    return Asked(options, table)


def rates_are_those_of_pandas(options, result):
    """Each finding states the rate, and the answer that follows from it."""
    asked = as_compared(options, everybody())
    for finding in result.findings:
        expected = rate_of(asked, finding)
        assert abs(finding.rate.value - expected) <= 1e-6, finding.name
        if finding.before is not None:
            earlier = as_compared(options, options["against"])
            assert abs(finding.before.value - rate_of(earlier, finding)) <= 1e-6
            continue
        low = high = expected
        if options.get("confident"):
            low, high = finding.rate.interval
        answers = {low >= finding.limit: "pass", high < finding.limit: "fail"}
        assert finding.answer == answers.get(True, "cannot tell")


def rate_of(asked, finding):
    grouping = list(finding.columns)
    assert grouping in asked.groupings
    if finding.kind == "representation_rate":
        return representation_rate(asked, asked.before, grouping)
    return statistical_rate(asked, asked.before, grouping, asked["outcome"])


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
        "missing",
        {"missing": "compare"},
        holds_by_rates,
        needs={"protected": ["sex", "race"]},
    ),
    Wish("weight", {"weight": "design"}, holds_by_rates),
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
