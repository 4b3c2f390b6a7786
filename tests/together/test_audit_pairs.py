"""Every pair of options of an audit is refused, or both are honoured.

To add an option of `AuditRequest`, add a wish to `WISHES`.
"""

from dataclasses import fields

from calls import Wish, verdicts, wrong

from fairmaxent.gate.audit import AuditRequest
from fairmaxent.gate.papers import audit
from people import everybody

CATEGORIES = ["sex", "race"]
DECISIONS = {"outcome": "hired", "favourable": "yes"}


def called(**options):
    """Audit by sex and race, unless something else is asked for."""
    return audit(everybody(), **({"protected": CATEGORIES} | options))


def chosen_by(options):
    """By what people are chosen: who is, in pandas."""
    table = everybody()
    found = {}
    if "outcome" in options:
        found["Selected"] = table[options["outcome"]] == options["favourable"]
    if "score" in options:
        scores = table[options["score"]]
        found["Above the median"] = scores > scores.median()
    return found


def categories_have_the_counts_of_pandas(options, text):
    """Of each column: how many people, and how many of them were chosen."""
    for column in options.get("protected", CATEGORIES):
        for heading, chosen in chosen_by(options).items():
            head = f"| {column.capitalize()} | People | {heading} |"
            assert head in text
            rows = text[text.index(head) :].split("\n\n")[0]
            for level, people in everybody().groupby(column):
                hits = chosen[people.index].sum()
                assert f"| {level} | {len(people):,} | {hits:,} |" in rows


def only_what_is_asked_is_counted(options, text):
    assert ("Selection rate" in text) == ("outcome" in options)
    assert ("Scoring rate" in text) == ("score" in options)


def columns_are_those(options, text):
    assert f"| {' × '.join(options['protected']).capitalize()} | People |" in text


def is_a_promise(options, text):
    """`PROMISES` read this option, so there is nothing more to see."""


WISHES = (
    Wish("outcome", DECISIONS, is_a_promise),
    Wish("protected", {"protected": ["sex", "drive"]}, columns_are_those),
    Wish("favourable", {"favourable": "no"}, is_a_promise, needs=DECISIONS),
    Wish("score", {"score": "skill"}, is_a_promise),
)
PROMISES = (categories_have_the_counts_of_pandas, only_what_is_asked_is_counted)


def test_every_option_has_a_wish():
    assert {wish.option for wish in WISHES} == {
        field.name for field in fields(AuditRequest)
    }


def test_every_pair_is_refused_or_honoured():
    found = verdicts(called, WISHES, PROMISES)
    assert wrong(found) == []
    assert found["outcome + score"] == "honoured"
