"""Generated calls: each ends in the library's own error, or in numbers that an independent group-by confirms.

``FUZZ_CALLS=100000 pytest tests/fuzz/test_calls.py`` tries more of them. What failed once stays
below as an example.
"""

import os
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from frame_calls import LIBRARIES, ROLES, framed, options, tables
from hypothesis import HealthCheck, Phase, given, seed, settings

from fairmaxent import FairMaxEntError, debias

CALLS = int(os.environ.get("FUZZ_CALLS", "300"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
SECONDS = 20
SETTINGS = settings(
    max_examples=CALLS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes where a call takes a second
)


def is_plain(cells):
    """Whether values are groups as they stand: a few texts, none of them missing."""
    return bool(cells) and all(isinstance(cell, str) and len(cell) < 60 for cell in cells)


def rates_by_hand(y, z, weights):
    """Share of each y in each z, by a plain group-by."""
    sums = pd.DataFrame({"y": y, "z": z, "w": weights}).groupby(["z", "y"])["w"].sum().unstack(fill_value=0.0)
    return sums.div(sums.sum(axis=1), axis=0), sums.sum(axis=1) / sums.to_numpy().sum()


def check_weights(fit, table, roles, asked):
    weights = fit.weights()
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    plain = roles == ("y", "z") and all(is_plain(table[name]) for name in "yz")
    if not plain or weights.ndim > 1 or {"weight", "forbid"} & set(asked):
        return
    shares, sizes = rates_by_hand(table["y"], table["z"], weights)
    shares, sizes = shares[sizes > 0], sizes[sizes > 0]
    achieved = fit.certificate.achieved
    assert achieved["representation_rate"]["z"] == pytest.approx(sizes.min() / sizes.max(), abs=1e-6)
    ratios = shares.min() / shares.max()
    favourable = fit.request.favourable
    levels = [favourable] if isinstance(favourable, str) else favourable
    if levels and set(levels) <= set(shares.columns):
        assert achieved["statistical_rate"]["z"] == pytest.approx(ratios[list(levels)].min(), abs=1e-6)


@seed(SEED)
@SETTINGS
@given(table=tables(), library=LIBRARIES, roles=ROLES, asked=options())
def test_a_call_ends_in_an_own_error_or_in_right_numbers(table, library, roles, asked):
    frame = framed(table, library)
    if frame is None:
        return
    began, problem = time.process_time(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = debias(frame, *roles, estimate=None, **asked)
            check_weights(fit, table, roles, asked)
        except FairMaxEntError as own_error:
            problem = str(own_error)
        else:
            with_rows(fit, frame)
    assert len(problem) < 5000
    assert time.process_time() - began < SECONDS


def with_rows(fit, frame):
    """Rows can be drawn and encoded again, the certificate can be read, and probabilities are probabilities."""
    try:
        drawn = fit.sample(15, random_state=1)
    except FairMaxEntError:
        return
    assert isinstance(drawn, type(frame))
    assert len(drawn) == 15
    chances = fit.distribution.probability(drawn)
    assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()
    assert str(fit.certificate)
