"""Generated calls of rake, evaluate and inspect: each ends in the library's own error, or in right numbers.

They are a part of the ``FUZZ_CALLS`` that are asked for; `test_calls.py` has the others.
"""

import math

import numpy as np
import pandas as pd
import pytest
from by_hand import is_plain, rates_by_hand
from call_ends import SEED, ends_well, generated
from frame_calls import LEVELS, LIBRARIES, framed, mostly, plain_tables, tables
from hypothesis import given, seed
from hypothesis import strategies as st

from fairmaxent import evaluate, inspect, rake

TABLES = st.one_of(plain_tables(), plain_tables(), tables())

# ---------------------------------------------------------------- rake

SHARES = st.sampled_from([0.5, 0.3, 0.2, 0.1, 1.0, 0.0, 1e-9, -1, math.nan, "x", 40, 1000])
RAKE = {
    "bounds": mostly([None, None, (0.5, 2), (0.01, 100), (None, 3)], [(2, 1), (0, 0), "x", (1,)]),
    "relax": mostly([None, None, None, "all"], [["z"], "nobody", 3]),
    "replicates": mostly([0, 0, 0, 2], [-1, "x"]),
    "weight": mostly([None], ["a", "w", "nobody"]),
}


@st.composite
def margins(draw, table):
    """Shares of the levels of some columns: mostly those of other rows, sometimes any."""
    names = draw(mostly([["z"], ["z", "y"], ["y", "z"]], [["z", "a"], ["nobody"]]))
    if draw(st.integers(0, 4)) == 0:
        return {name: draw(st.dictionaries(LEVELS, SHARES, min_size=1, max_size=3)) for name in names}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = {name: list({repr(cell): cell for cell in table.get(name, ["p", "q"])}.values()) for name in names}
    shares = {name: rng.dirichlet(np.ones(len(levels))) if levels else [] for name, levels in found.items()}
    try:
        return {name: dict(zip(levels, map(float, shares[name]), strict=True)) for name, levels in found.items()}
    except TypeError:  # lists cannot be keys
        return None


@st.composite
def rakings(draw):
    table = draw(TABLES)
    return table, draw(LIBRARIES), draw(margins(table)), {name: draw(RAKE[name]) for name in RAKE}


@seed(SEED)
@generated(0.1)
@given(call=rakings())
def test_rake(call):
    table, library, known, asked = call
    frame = framed(table, library)
    if frame is None:
        return
    with ends_well():
        raking = rake(frame, known, random_state=0, **asked)
        weights = raking.weights()
        assert str(raking.certificate)
        assert len(raking.sample(5)) == 5
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(raking.certificate.total)
        if asked["weight"] is None and asked["bounds"] is not None:
            low, high = asked["bounds"]
            factors = weights / weights.mean()
            assert (low or 0.0) - 1e-7 <= factors.min() <= factors.max() <= high + 1e-7
        if asked["relax"] is None and all(is_plain(table[name]) for name in known):
            check_margins(table, weights, known)


def check_margins(table, weights, known):
    """Each level has the share that was asked for, of which all may have been scaled together."""
    for name, shares in known.items():
        by_hand = pd.Series(weights).groupby(pd.Series(table[name])).sum() / weights.sum()
        wanted = pd.Series(shares) / sum(shares.values())
        assert by_hand.reindex(wanted.index, fill_value=0.0).to_numpy() == pytest.approx(wanted.to_numpy(), abs=1e-6)


# ---------------------------------------------------------------- evaluate


EVALUATE = {
    "secrets": mostly([None, None, "z", ["y", "z"]], ["nobody", 3]),
    "parts": mostly([None, None, [["y"], ["z"]]], [[["y", "a"], ["z"]], [["y"], ["y"]], "yz", [[], []]]),
    "attacks": mostly([20, 1], [0, "x"]),
}


@st.composite
def evaluations(draw):
    """A table and new rows: some of its own, others, or of another table altogether."""
    real = draw(TABLES)
    order = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = len(real["y"])
    taken = order.integers(0, rows, draw(st.integers(1, 60))) if rows else []
    copied = {name: [cells[row] for row in taken] for name, cells in real.items()}
    shuffled = {name: [cells[row] for row in order.permutation(rows)] for name, cells in real.items()}
    new = draw(st.one_of(st.just(copied), st.just(shuffled), tables()))
    asked = {name: draw(EVALUATE[name]) for name in EVALUATE}
    asked["control"] = draw(st.sampled_from([None, shuffled, copied]))
    roles = draw(mostly([{}, {}, {"outcome": "y"}, {"outcome": "y", "protected": "z"}], [{"protected": "z"}]))
    return real, new, draw(LIBRARIES), asked | roles


@seed(SEED)
@generated(0.1)
@given(call=evaluations())
def test_evaluate(call):
    real, new, library, asked = call
    frames = [framed(table, library) for table in (real, new)]
    asked["control"] = asked["control"] and framed(asked["control"], library)
    if any(frame is None for frame in frames):
        return
    with ends_well():
        result = evaluate(*frames, **asked)
        assert str(result)
        assert len(result.to_frame())
        copies = result.to_dict()["risks"]["copies"]["copies"]
        if all(is_plain(cells) for table in (real, new) for cells in table.values()):
            shared = [name for name in real if name in new]
            people = set(zip(*(real[name] for name in shared), strict=True))
            assert copies == sum(row in people for row in zip(*(new[name] for name in shared), strict=True))


# ---------------------------------------------------------------- inspect


INSPECT = {
    "outcome": mostly([None, "y", "y"], ["a", "nobody", 3]),
    "protected": mostly([None, "z", "z"], [["z", "z2"], "y", []]),
    "favourable": mostly([None], ["yes", "p", 1, ["yes", "no"]]),
    "groups": mostly(["each", "joint"], ["all"]),
    "confidence": mostly([0.95, 0.5], [1.0, "x"]),
}


@st.composite
def inspections(draw):
    return draw(TABLES), draw(LIBRARIES), {name: draw(INSPECT[name]) for name in INSPECT}


@seed(SEED)
@generated(0.1)
@given(call=inspections())
def test_inspect(call):
    table, library, asked = call
    frame = framed(table, library)
    if frame is None:
        return
    with ends_well():
        look = inspect(frame, **asked)
        assert str(look)
        assert look.to_dict()["rows"] == len(table["y"])
        assert len(look.to_frame()) == len(table)
        if look.outcome == "y" and look.protected == ("z",) and is_plain(table["y"]) and is_plain(table["z"]):
            rows = pd.DataFrame({"y": table["y"], "z": table["z"], "weight": 1.0})
            shares, rate = rates_by_hand(rows, "y", look.favourable or sorted(set(table["y"])))
            assert look.groupings[0].representation.value == pytest.approx(shares)
            assert look.groupings[0].statistical.value == pytest.approx(rate)
