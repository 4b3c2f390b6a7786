"""Every pair of options of `inspect` is refused, or both are honoured.

To add an option, add a wish to `WISHES`.
"""

from functools import cache
from inspect import signature

import numpy as np
from asked import tables_by_stratum
from calls import Wish, together_and_alone, verdicts, wrong
from comparing import (
    REFERENCE,
    as_compared,
    rate_of,
    shared,
    small_labels,
    with_reference,
)
from scipy.stats import norm

from fairmaxent import Domain, Likely, Privacy, debias, inspect
from people import EDGES, GOOD, declared, everybody

WEIGHTED = everybody().drop(columns="origin_known")
UNWEIGHTED = WEIGHTED.drop(columns="design")
DECLARED = declared(list(UNWEIGHTED))
PRIVACY = Privacy(epsilon=2.0)
WEIGHED = 0.02  # how far a ratio may be off if rows count by what they tell


def called(**options):
    """Look at the table by sex, unless something else is asked for."""
    options = with_reference(options)
    if "favourable" in options:
        options["favourable"] = GOOD[options["outcome"]]
    table = WEIGHTED if "weight" in options else UNWEIGHTED
    return inspect(table, **options)


def asked_of(options, result, **changes):
    """What pandas compares: the good outcome, which may have been proposed."""
    favourable = None
    if result.favourable:
        favourable = "good"
    changes = {"favourable": favourable} | changes
    return as_compared(options | changes, everybody())


def rates_are_those_of_pandas(options, result):
    """Of all rows, and of each stratum; the worst one is the lowest of all."""
    overall = asked_of(options, result, within=None)
    within = asked_of(options, result)
    assert [one.name.split(" × ") for one in result.groupings] == overall.groupings
    for one, columns in zip(result.groupings, overall.groupings, strict=True):
        for kind in ("statistical", "representation"):
            expected = rate_of(overall, columns, f"{kind}_rate")
            assert abs(getattr(one, kind).value - expected) <= 1e-6
        if "within" in options:
            lowest = min(rate.value for rate in one.strata)
            assert abs(lowest - rate_of(within, columns, "statistical_rate")) <= 1e-6


def gaps_are_those_of_pandas(options, result):
    """Between the largest group, or the reference, and another one, over all strata."""
    asked = asked_of(options, result, smallest_group=0)
    small = asked_of(options, result, within=None)
    slack = WEIGHED if "weight" in options else 1e-6
    for one, columns in zip(result.groupings, asked.groupings, strict=True):
        apart = {group.group for group in one.verdict.set_apart}
        assert apart == small_labels(small, columns)
        gap = one.verdict.gap
        sizes = {group.group: group.rate for group in one.representation.groups}
        compared = max(sizes, key=sizes.get)
        if "reference" in options:
            compared = tuple(REFERENCE[name] for name in columns)
        pair = [gap.worst.lowest, gap.worst.highest]
        assert compared in pair
        expected = pooled_ratio(asked, columns, pair, gap.worst.outcome)
        assert abs(gap.value - expected) <= slack, f"{gap.value}, not {expected}"


def pooled_ratio(asked, columns, pair, level):
    """That of two groups by Mantel and Haenszel; of one stratum, that of its rates."""
    sums = np.zeros(2)
    for table in tables_by_stratum(asked, asked.before, columns, asked["outcome"]):
        both = [table.groups.index(tuple(group)) for group in pair]
        sizes = table.sizes[both]
        rates = table.having(level)[both] / sizes
        sums += rates * sizes.prod() / sizes.sum()
    return sums[0] / sums[1]


def is_a_promise(options, result):
    """`PROMISES` read this option, so there is nothing more to see."""


def intervals_are_wider_than(**other):
    """Whether the same call with another value is surer of its gaps."""

    def verify(options, result):
        surer = called(**(options | other))
        for one, usual in zip(result.groupings, surer.groupings, strict=True):
            wide = np.ptp(one.verdict.gap.interval)
            assert wide > np.ptp(usual.verdict.gap.interval)
            assert np.ptp(one.statistical.interval) > np.ptp(usual.statistical.interval)

    return verify


def bins_are_groups(options, result):
    summary = next(column for column in result.columns if column.name == "skill")
    assert summary.levels == len(EDGES) - 1


@cache
def certified_range(outcome, protected, within):
    """The range of counts of a private fit, with 95 %."""
    fit = debias(
        UNWEIGHTED,
        outcome,
        list(protected),
        within=within,
        privacy=PRIVACY,
        domain=DECLARED,
        estimate=None,
    )
    return fit.certificate.privacy.count_ranges[0]


def likely_rates_are_those_of_pandas(options, result):
    """As columns tell the group, which share people without looking at outcomes."""
    favourable = "good" if result.favourable else None
    asked = as_compared(*shared(options | {"favourable": favourable}, everybody()))
    groupings = [one for one in asked.groupings if options["likely"].name in one]
    rates = result.likely.before
    named = [one.grouping.removesuffix(" within town") for one in rates]
    assert named == [" × ".join(columns) for columns in groupings]
    for rate, columns in zip(rates, groupings, strict=True):
        expected = rate_of(asked, columns, "statistical_rate")
        assert abs(rate.columns - expected) <= 1e-6
        low, high = rate.bounds
        assert low <= rate.columns <= high


def noise_is_as_foreseen(options, result):
    """As the certificate of a private fit says, which has 95 %."""
    certified = certified_range(
        options["outcome"], tuple(options["protected"]), options.get("within")
    )
    foreseen = result.private.count_range
    quantile = norm.ppf((1 + options.get("confidence", 0.95)) / 2)
    # The budget is split by the noisy number of rows.
    assert abs(foreseen / quantile / certified * 1.96 - 1) < 0.1
    assert result.private.rate_ranges.keys() >= {*options["protected"]}


BOTH = {"protected": ["sex", "race"]}
ORIGIN = Likely("origin", {"near": "p_near", "far": "p_far"}, told_by="columns")
WISHES = (
    Wish("outcome", {"outcome": "grade"}, is_a_promise, together="outcomes"),
    Wish("protected", BOTH, is_a_promise, together="groups"),
    Wish("likely", {"likely": ORIGIN}, likely_rates_are_those_of_pandas),
    Wish("favourable", {"favourable": "good"}, is_a_promise, together="outcomes"),
    Wish("groups", {"groups": "joint"}, is_a_promise, BOTH, "groups"),
    Wish("within", {"within": "town"}, is_a_promise),
    Wish("weight", {"weight": "design"}, is_a_promise, together="rows"),
    Wish("cluster", {"cluster": "branch"}, intervals_are_wider_than(cluster=None)),
    Wish(
        "domain",
        {"domain": Domain.infer(UNWEIGHTED, bins={"skill": EDGES})},
        bins_are_groups,
        needs={"protected": ["skill"]},
        together="rows",
    ),
    Wish(
        "smallest_group",
        {"smallest_group": "25%"},
        is_a_promise,
        needs={"protected": ["drive"]},
    ),
    Wish("reference", {"reference": "by column"}, is_a_promise, together="intervals"),
    Wish(
        "privacy",
        {"privacy": PRIVACY},
        noise_is_as_foreseen,
        needs={"domain": DECLARED, "outcome": "hired", "protected": ["sex"]},
    ),
    Wish(
        "confidence",
        {"confidence": 0.99},
        intervals_are_wider_than(confidence=0.9),
        together="intervals",
    ),
)
PROMISES = (rates_are_those_of_pandas, gaps_are_those_of_pandas)


def test_every_option_has_a_wish():
    options = [*signature(inspect).parameters][1:]
    assert {wish.option for wish in WISHES} == set(options)


@together_and_alone(WISHES)
def test_every_pair_is_refused_or_honoured(wishes):
    assert wrong(verdicts(called, wishes, PROMISES)) == []
