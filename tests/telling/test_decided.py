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
