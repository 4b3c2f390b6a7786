"""Three options at once, at random: refused with two names, or all are honoured."""

from functools import cache

import numpy as np
import pytest
from wishes import WISHES

from judging import judge

pytest.importorskip("sklearn", reason="models are trained by scikit-learn")
TRIPLES = 2000
PARTS = 100  # tests that share them
QUICK = 1  # of these are always made


@cache
def triples():
    """Three wishes for different options, `TRIPLES` times."""
    rng = np.random.default_rng(43)
    chosen = []
    while len(chosen) < TRIPLES:
        three = [WISHES[number] for number in rng.choice(len(WISHES), 3, replace=False)]
        if len({wish.option for wish in three}) == 3:
            chosen.append([(wish,) for wish in three])
    return chosen


@pytest.mark.more
@pytest.mark.parametrize(
    "part",
    [
        *range(QUICK),
        *(pytest.param(part, marks=pytest.mark.slow) for part in range(QUICK, PARTS)),
    ],
)
def test_three_options_are_refused_or_honoured(part, tmp_path):
    found = [one for three in triples()[part::PARTS] for one in judge(three, tmp_path)]
    assert [str(one) for one in found if one.is_wrong] == []
