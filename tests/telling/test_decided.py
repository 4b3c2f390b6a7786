"""For whom a model decides, in words: nobody, everybody, or the shares between."""

from dataclasses import replace

import pytest

from fairmaxent.telling.case import Case, texts_of
from fairmaxent.telling.entries import KEYS


@pytest.mark.parametrize(
    ("shares", "words", "way"),
    [
        ((0.0, 0.0), "for nobody", "lower"),
        ((0.0, 0.026), "for between 0.0% and 2.6% of each group", "lower"),
        ((0.026, 0.026), "for 2.6% of each group", "lower"),
        ((0.97, 1.0), "for between 97.0% and 100.0% of each group", "higher"),
        ((1.0, 1.0), "for everybody", "higher"),
    ],
)
def test_who_is_decided_for_is_said(shares, words, way, made):
    facts = made("model of nobody").fit.certificate
    decisions = facts.decisions
    own = [
        replace(one, share=share)
        for one, share in zip(decisions.shares, shares, strict=True)
    ]
    rates = tuple(replace(rate, vacuous=True) for rate in decisions.rates)
    found = replace(decisions, shares=tuple(own), rates=rates)
    blocks = KEYS["decided_badly"].of(Case(facts=replace(facts, decisions=found)))
    said = texts_of(blocks)[0]
    assert f"{words} at a probability" in said
    assert f"Choose a {way} " in said


def decided(made, shares, **changes):
    """The facts of a fit for a model that decides so for its groups."""
    facts = made("model of nobody").fit.certificate
    own = [
        replace(one, share=share)
        for one, share in zip(facts.decisions.shares, shares, strict=True)
    ]
    rates = tuple(replace(rate, **changes) for rate in facts.decisions.rates)
    return replace(
        facts, decisions=replace(facts.decisions, shares=tuple(own), rates=rates)
    )


def test_groups_that_are_only_small_are_not_said_to_be_decided_alike(made):
    facts = decided(made, (0.40, 0.45), vacuous=True)
    said = " ".join(texts_of(KEYS["decided_badly"].of(Case(facts=facts))))
    assert "say nothing" not in said
    assert "too few people" in said


@pytest.mark.parametrize(
    ("rate", "vacuous", "met"), [(0.97, False, 1), (0.8, False, 0), (0.97, True, 0)]
)
def test_an_expected_rate_meets_a_wish_as_far_as_chance_lets_it(
    rate, vacuous, met, made
):
    facts = decided(made, (0.40, 0.45), rate=rate, wanted=1.0, vacuous=vacuous)
    said = " ".join(texts_of(KEYS["verdict"].of(Case(facts=facts))))
    assert said.endswith(f"among other people, up to 0.1: {met}.")


def test_a_rate_that_is_hardly_missed_is_not_said_to_be_the_one_that_was_wanted(made):
    facts = made("limited").fit.certificate
    name = next(iter(facts.wanted["statistical_rate"]))
    near = replace(
        facts,
        wanted={**facts.wanted, "statistical_rate": {name: 1.0}},
        achieved={**facts.achieved, "statistical_rate": {name: 0.9996}},
    )
    said = " ".join(texts_of(KEYS["missed"].of(Case(facts=near))))
    assert "is 0.999600, not 1.000000" in said


def test_probabilities_that_tell_nothing_refute_nothing(made):
    facts = made("refuted").fit.certificate
    same = replace(facts, likely=replace(facts.likely, is_told=False))
    (said,) = texts_of(KEYS["contradicted"].of(Case(facts=same)))
    assert said.startswith(f"no rate by {facts.likely.name} can be learned.")
    assert "does not hold" not in said
