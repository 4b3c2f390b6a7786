"""Generated calls: each ends in the library's own error, or in numbers that plain
group-bys confirm.

``FUZZ_CALLS=100000 pytest tests/fuzz/test_calls.py`` tries more of them. What is
counted by hand shares no code with the library.
"""

import inspect
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from by_hand import check_rates, compares_all_levels, is_plain, strata_by_hand
from ends import SEED, ends_well, generated
from frame_calls import (
    LEVELS,
    LIBRARIES,
    STRANGE,
    calls,
    framed,
    mostly,
    plain_tables,
    tables,
)
from hypothesis import given, seed
from hypothesis import strategies as st

from fairmaxent import (
    Estimate,
    FairMaxEntError,
    Privacy,
    debias,
    evaluate,
    load,
    paper,
    rake,
)
from fairmaxent.data.limits import max_memory

pytestmark = pytest.mark.more


@seed(SEED)
@generated(0.7)
@given(call=calls())
def test_debias(call):
    table, library, roles, asked = call
    frame = framed(table, library)
    if frame is None:
        return
    with ends_well():
        fit = debias(frame, *roles, **{"estimate": None, **asked})
        check_distribution(fit, asked)
        check_weights(fit, table, asked)
        drawn = fit.sample(15, random_state=1)
        assert isinstance(drawn, type(frame))
        assert len(drawn) == 15
        chances = fit.distribution.probability(drawn)
        assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()
        assert str(fit.certificate) == str(stored(fit).certificate)


PLAIN = pd.DataFrame(
    {"y": ["no", "yes", "yes"] * 20, "z": ["p", "q"] * 30, "a": list("uvw") * 20}
)
FIT = debias(PLAIN, "y", "z", estimate=None)
ROLES = {"frame": PLAIN, "outcome": "y", "protected": "z"}
SHARES_OF_Z = {"z": {"p": 0.5, "q": 0.5}}
# Functions beside debias, with what each needs.
OTHERS = (
    *(
        (kind, {})
        for kind in (Estimate, Privacy, FIT.distribution.condition, FIT.top_up)
    ),
    *(
        (FIT.sample, {"n": 5}),
        (FIT.sample_batches, {"n": 5}),
        (FIT.distribution.marginal, {"columns": "y"}),
    ),
    *((FIT.weigh, {"frame": PLAIN}), (rake, {"frame": PLAIN, "margins": SHARES_OF_Z})),
    *((paper.fit, ROLES), (evaluate, {"real": PLAIN, "new": PLAIN, "attacks": 20})),
)


@seed(SEED)
@generated(0.1)
@given(data=st.data(), value=STRANGE, other=st.sampled_from(OTHERS))
def test_strange_values(data, value, other):
    function, needed = other
    name = data.draw(st.sampled_from([*inspect.signature(function).parameters]))
    with ends_well():
        function(**{**needed, name: value})
    with ends_well(), max_memory(value):
        pass


def check_distribution(fit, asked):
    """The distribution has the rates that the certificate names, and those that were
    asked for.
    """
    names = [
        *fit.request.outcome_names,
        "z",
        *fit.request.within_names,
    ]
    if not compares_all_levels(fit) or any(
        fit.domain.attribute(name).missing is not None for name in names
    ):
        return
    cells = nw.from_native(fit.distribution.marginal(names), eager_only=True).to_dict(
        as_series=False
    )
    check_rates(fit, fit.certificate.achieved, cells, cells.pop("probability"))
    for kind, by_name in (
        fit.certificate.wanted.items() if "largest_weight" not in asked else ()
    ):
        for name, wanted in by_name.items():
            assert (
                wanted is None or fit.certificate.achieved[kind][name] >= wanted - 1e-6
            ), (kind, name)


def check_weights(fit, table, asked):
    """The rows have, with their weights, the rates that the certificate names."""
    weights, strata = fit.weights(), fit.request.within_names
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    if (
        weights.ndim > 1
        or {"weight", "forbid"} & set(asked)
        or not compares_all_levels(fit)
    ):
        return
    if not all(is_plain(table[name]) for name in ("z", *strata)):
        return
    if all(is_plain(table[name]) for name in fit.request.outcome_names):
        check_rates(fit, fit.certificate.achieved, table, weights)
    are_numbers = table["y"] and all(
        type(cell) is int and abs(cell) < 10 for cell in table["y"]
    )
    if fit.request.equal_means and "largest_weight" not in asked and are_numbers:
        for stratum in strata_by_hand(table, weights, strata):
            sums = (
                (stratum["y"].astype(float) * stratum["weight"])
                .groupby(stratum["z"])
                .sum()
            )
            assert (
                np.ptp((sums / stratum.groupby("z")["weight"].sum()).to_numpy()) < 1e-6
            )


def stored(fit):
    """The fit from a file; what cannot be stored is refused while it is saved, not when
    it is needed.
    """
    with TemporaryDirectory() as folder:
        fit.save(Path(folder) / "fit")
        try:
            return load(Path(folder) / "fit")
        except FairMaxEntError as problem:
            raise AssertionError("an honest file is refused") from problem


TABLES = st.one_of(plain_tables(), plain_tables(), tables())
SHARES = st.sampled_from(
    [0.5, 0.3, 0.2, 0.1, 1.0, 0.0, 1e-9, -1, math.nan, "x", 40, 1000]
)
RAKE = {
    "bounds": mostly(
        [None, None, (0.5, 2), (0.01, 100), (None, 3)], [(2, 1), (0, 0), "x", (1,)]
    ),
    "relax": mostly([None, None, None, "all"], [["z"], "nobody", 3]),
    "replicates": mostly([0, 0, 0, 2], [-1, "x"]),
    "weight": mostly([None], ["a", "w", "nobody"]),
}
EVALUATE = {
    "secrets": mostly([None, None, "z", ["y", "z"]], ["nobody", 3]),
    "attacks": mostly([20, 1], [0, "x"]),
}


@st.composite
def margins(draw, table):
    """Shares of the levels of some columns: mostly those of other rows, sometimes
    any.
    """
    names = draw(mostly([["z"], ["z", "y"], ["y", "z"]], [["z", "a"], ["nobody"]]))
    if draw(st.integers(0, 4)) == 0:
        return {
            name: draw(st.dictionaries(LEVELS, SHARES, min_size=1, max_size=3))
            for name in names
        }
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = {
        name: list({repr(cell): cell for cell in table.get(name, ["p", "q"])}.values())
        for name in names
    }
    shares = {
        name: rng.dirichlet(np.ones(len(levels))) if levels else []
        for name, levels in found.items()
    }
    try:
        return {
            name: dict(zip(levels, map(float, shares[name]), strict=True))
            for name, levels in found.items()
        }
    except TypeError:  # lists cannot be keys
        return None


@seed(SEED)
@generated(0.1)
@given(
    data=st.data(), table=TABLES, library=LIBRARIES, asked=st.fixed_dictionaries(RAKE)
)
def test_rake(data, table, library, asked):
    frame, wanted = framed(table, library), data.draw(margins(table))
    if frame is None:
        return
    with ends_well():
        raking = rake(frame, wanted, random_state=0, **asked)
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
        is_exact = asked["relax"] is None and all(
            is_plain(table[name]) for name in wanted
        )
        for name, shares in wanted.items() if is_exact else ():
            by_hand = (
                pd.Series(weights).groupby(pd.Series(table[name])).sum() / weights.sum()
            )
            # all may have been scaled together
            exact = pd.Series(shares) / sum(shares.values())
            assert by_hand.reindex(
                exact.index, fill_value=0.0
            ).to_numpy() == pytest.approx(exact.to_numpy(), abs=1e-6)


@st.composite
def evaluations(draw):
    """A table and new rows: some of its own, others, or of another table altogether."""
    real = draw(TABLES)
    order = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = len(real["y"])
    taken = order.integers(0, rows, draw(st.integers(1, 60))) if rows else []
    copied = {name: [cells[row] for row in taken] for name, cells in real.items()}
    shuffled = {
        name: [cells[row] for row in order.permutation(rows)]
        for name, cells in real.items()
    }
    roles = draw(
        mostly(
            [{}, {}, {"outcome": "y"}, {"outcome": "y", "protected": "z"}],
            [{"protected": "z"}],
        )
    )
    new = draw(st.one_of(st.just(copied), st.just(shuffled), tables()))
    return real, new, draw(st.sampled_from([None, copied])), roles


@seed(SEED)
@generated(0.1)
@given(rows=evaluations(), library=LIBRARIES, asked=st.fixed_dictionaries(EVALUATE))
def test_evaluate(rows, library, asked):
    real, new, control, roles = rows
    frames = [framed(table, library) for table in (real, new)]
    if any(frame is None for frame in frames):
        return
    with ends_well():
        result = evaluate(
            *frames, control=control and framed(control, library), **asked, **roles
        )
        assert str(result)
        copies = result.to_dict()["risks"]["copies"]["copies"]
        if all(is_plain(cells) for table in (real, new) for cells in table.values()):
            shared = [name for name in real if name in new]
            people = set(zip(*(real[name] for name in shared), strict=True))
            assert copies == sum(
                row in people
                for row in zip(*(new[name] for name in shared), strict=True)
            )
