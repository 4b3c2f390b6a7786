"""Every pair of options of `check` is refused, or both are honoured.

To add an option of `Policy`, add a wish to `WISHES`.
"""

from dataclasses import fields, replace
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np
from calls import Wish, together_and_alone, verdicts, wrong
from comparing import (
    LARGEST,
    USUAL,
    as_compared,
    jackknife_error,
    rate_of,
    shared,
    small_labels,
    with_reference,
)

from fairmaxent import Domain, Likely, check
from fairmaxent.gate.policy import Policy
from people import EDGES, GOOD, everybody


@cache
def table():
    """Everybody, with probabilities of being hired that two people predicted."""
    people = everybody()
    lean = 0.7 * people["skill"] + 0.5 * (people["sex"] == "m") - 0.2
    chance = (1 / (1 + np.exp(-lean))).round(3)
    return people.assign(chance=chance, promise=(0.2 + 0.7 * chance).round(2))


def called(**options):
    """Check the table by sex, unless something else is asked for."""
    options = {"statistical_rate": 0.5} | with_reference(options)
    if "favourable" in options:
        compared = options.get("predictions", options["outcome"])
        if options.get("threshold") is not None:
            compared = options["outcome"]
        options["favourable"] = GOOD[compared]
    return check(table(), **options)


class Expected:
    """What pandas finds: of decisions, by what happened, if that counts."""

    def __init__(self, options, people):
        self.options, self.people = shared(options, people)

    @cached_property
    def everybody(self):
        return as_compared(self.options, self.people)

    @cached_property
    def by_what_happened(self):
        """Those with the good outcome, and the others."""
        outcome = (USUAL | self.options)["outcome"]
        is_good = self.people[outcome] == GOOD[outcome]
        return [
            as_compared(self.options, self.people[chosen])
            for chosen in (is_good, ~is_good)
        ]

    def rate(self, finding):
        parts = {"equal_opportunity": 1, "equalised_odds": 2}.get(finding.kind)
        if parts is None:
            return rate_of(self.everybody, finding.columns, finding.kind)
        compared = self.by_what_happened[:parts]
        return min(rate_of(one, finding.columns, "ratio") for one in compared)


def rates_are_those_of_pandas(options, result):
    """Each finding states the rate, and the answer that follows from it."""
    now = Expected(options, table())
    if options.get("against") is not None:
        before = Expected(options, options["against"])
    for finding in result.findings:
        expected = now.rate(finding)
        assert abs(finding.rate.value - expected) <= 1e-6, finding.name
        if finding.before is not None:
            assert abs(finding.before.value - before.rate(finding)) <= 1e-6
            continue
        low = high = expected
        if options.get("confident"):
            low, high = finding.rate.interval
        answers = {low >= finding.limit: "pass", high < finding.limit: "fail"}
        if finding.kind in LARGEST:
            answers = {high <= finding.limit: "pass", low > finding.limit: "fail"}
        assert finding.answer == answers.get(True, "cannot tell")


def limit(kind, value):
    """The wish for a limit."""

    def verify(options, result):
        limits = {one.limit for one in result.findings if one.kind == kind}
        assert options[kind] in limits

    return Wish(kind, {kind: value}, verify, together="limits")


def limit_of_decisions(kind, value):
    """The wish for a limit that compares decisions with outcomes."""
    return replace(limit(kind, value), needs=SCORED, together="limits of decisions")


def every_column_is_checked(options, result):
    columns = {name for finding in result.findings for name in finding.columns}
    if "likely" in options:
        columns.remove(options["likely"].name)
    assert columns == set(options["protected"])


def earlier_table_is_compared(options, result):
    assert any(finding.before is not None for finding in result.findings)


def intervals_are_narrower(options, result):
    surer = called(**(options | {"confidence": 0.95}))
    for finding, other in zip(result.findings, surer.findings, strict=True):
        assert np.ptp(finding.rate.interval) < np.ptp(other.rate.interval)


def likely_groups_are_checked(options, result):
    likely = options["likely"]
    own = [one for one in result.findings if likely.name in one.columns]
    assert own
    for finding in own:
        evidence = finding.rate.likely
        assert evidence.told_by == likely.told_by
        assert abs(getattr(evidence, likely.told_by) - finding.rate.value) <= 1e-9
        low, high = evidence.bounds
        assert low <= finding.rate.value <= high


def small_groups_are_listed(options, result):
    """Those that pandas finds, and nobody else."""
    asked = as_compared(*shared(options, table()))
    for finding in result.findings:
        named = {group.group for group in finding.rate.set_apart}
        assert named == small_labels(asked, finding.columns)


def intervals_allow_for_clusters(options, result):
    """They are wider than among independent people, and than by a jackknife."""
    asked = as_compared(options, table())
    alone = called(**(options | {"cluster": None}))
    for finding, other in zip(result.findings, alone.findings, strict=True):
        low, high = finding.rate.interval
        assert np.ptp(other.rate.interval) < high - low
        doubt = (1 - options.get("confidence", 0.95)) / len(result.findings)
        deviate = NormalDist().inv_cdf(1 - doubt / 2)
        reach = np.exp(deviate * jackknife_error(asked, finding.rate.worst))
        assert low * reach <= finding.rate.value


def holds_by_rates(options, result):
    """The rates that pandas finds are by this option already."""


EARLIER = table().iloc[::-1].head(300).reset_index(drop=True)
ORIGIN = Likely("origin", {"near": "p_near", "far": "p_far"}, told_by="columns")
BOTH = {"protected": ["sex", "race"]}
SCORED = {"predictions": "chance", "favourable": "good", "threshold": 0.5}
WISHES = (
    Wish("outcome", {"outcome": "grade"}, holds_by_rates, together="outcomes"),
    Wish("protected", BOTH, every_column_is_checked, together="groups"),
    Wish("likely", {"likely": ORIGIN}, likely_groups_are_checked),
    limit("statistical_rate", 0.9),
    limit("representation_rate", 0.4),
    limit("statistical_difference", 0.2),
    limit_of_decisions("equal_opportunity", 0.7),
    limit_of_decisions("equalised_odds", 0.6),
    limit_of_decisions("calibration", 0.1),
    Wish(
        "threshold",
        {"predictions": "chance", "threshold": 0.6},
        holds_by_rates,
        needs={"favourable": "good"},
        together="scores",
    ),
    Wish("favourable", {"favourable": "good"}, holds_by_rates, together="outcomes"),
    Wish(
        "predictions",
        {"predictions": "promise"},
        holds_by_rates,
        needs={"favourable": "good", "threshold": 0.5},
        together="scores",
    ),
    Wish("against", {"against": EARLIER}, earlier_table_is_compared),
    Wish("confident", {"confident": True}, holds_by_rates, together="confidence"),
    Wish(
        "confidence",
        {"confidence": 0.8},
        intervals_are_narrower,
        together="confidence",
    ),
    Wish("groups", {"groups": "joint"}, holds_by_rates, BOTH, "groups"),
    Wish("within", {"within": "town"}, holds_by_rates),
    Wish("compare_missing", {"compare_missing": True}, holds_by_rates, BOTH, "groups"),
    Wish(
        "smallest_group",
        {"smallest_group": "25%"},
        small_groups_are_listed,
        needs={"protected": ["drive"]},
    ),
    Wish("reference", {"reference": "by column"}, holds_by_rates, together="rates"),
    Wish("weight", {"weight": "design"}, holds_by_rates, together="rates"),
    Wish("cluster", {"cluster": "branch"}, intervals_allow_for_clusters),
    Wish(
        "domain",
        {"domain": Domain.infer(table(), bins={"skill": EDGES})},
        holds_by_rates,
        needs={"protected": ["skill"]},
    ),
)


def test_every_option_has_a_wish():
    assert {wish.option for wish in WISHES} == {field.name for field in fields(Policy)}


@together_and_alone(WISHES)
def test_every_pair_is_refused_or_honoured(wishes):
    assert wrong(verdicts(called, wishes, [rates_are_those_of_pandas])) == []
