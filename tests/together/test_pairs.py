"""Every pair of options of `debias` is refused, or both are honoured in every output.

`wishes.py` has a value and a verifier for every option, and says how to add one.
"""

from dataclasses import fields

import pytest
from wishes import WISHES

from fairmaxent import Estimate, Likely, Model, Privacy
from fairmaxent.fit.request import Request
from judging import (
    OUTPUTS,
    PAPERS,
    joined_pairs,
    judge,
    judge_joined,
    single_pairs,
)

pytest.importorskip("sklearn", reason="models are trained by scikit-learn")


def options_of(record, prefix=""):
    return {f"{prefix}{field.name}" for field in fields(record)}


def test_every_option_has_a_wish():
    options = options_of(Request)
    options |= options_of(Model, "model.")
    options |= options_of(Estimate, "estimate.")
    options |= options_of(Privacy, "privacy.")
    named = {"likely.name", "likely.columns"}  # every value needs them
    options |= options_of(Likely, "likely.") - named
    assert {wish.option for wish in WISHES} == options


def first_with_all(pairs):
    """The pairs by their first side, so that there is a test for each option."""
    by_first = {}
    for pair in pairs:
        by_first.setdefault(pair[0][-1].label, []).append(pair)
    return by_first


JOINED = first_with_all(joined_pairs())
SINGLE = first_with_all(single_pairs())


@pytest.mark.parametrize("first", JOINED)
def test_every_pair_is_refused_or_honoured(first, tmp_path):
    """In weights and in new rows."""
    found = []
    for joined in JOINED[first]:
        found += judge_joined(joined, tmp_path, ("weights", "rows"))
    assert [str(one) for one in found if one.is_wrong] == []


@pytest.mark.more
@pytest.mark.parametrize("first", JOINED)
def test_every_pair_is_refused_or_honoured_by_rows_to_add(first, tmp_path):
    """In the table with them.

    What is asked for alone is also looked for in files, reports and documents; the slow
    test below looks for every pair there.
    """
    found = []
    for joined in JOINED[first]:
        outputs = ("top-up",) if len(joined) == 2 else ("top-up", *PAPERS)
        found += judge_joined(joined, tmp_path, outputs)
    assert [str(one) for one in found if one.is_wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", SINGLE)
def test_every_pair_is_refused_or_honoured_everywhere(first, tmp_path):
    """Each pair in a call of its own, and in files, reports and documents, too."""
    found = [
        one for pair in SINGLE[first] for one in judge(pair, tmp_path, OUTPUTS + PAPERS)
    ]
    assert [str(one) for one in found if one.is_wrong] == []
