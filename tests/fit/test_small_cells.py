"""Small cells of outcome and groups: they borrow from the base, and do not colour the
others.
"""

import numpy as np
import pandas as pd
import pytest

from fairmaxent import debias
from fairmaxent.maxent.priors.mixture import Mixture

COLUMNS = [f"x{number}" for number in range(6)]


def three_of_many(seed, rows=15_000, few=3):
    """Five groups, the last of very few people, and columns that depend on outcome and
    group.
    """
    rng = np.random.default_rng(seed)
    group = rng.choice(4, rows, p=[0.6, 0.2, 0.1, 0.1])
    group[:few] = 4
    outcome = (rng.random(rows) < 0.2 + 0.05 * group).astype(int)
    frame = pd.DataFrame(
        {"y": np.array(["no", "yes"])[outcome], "z": np.array(list("abcde"))[group]}
    )
    last = group
    for column in COLUMNS:
        logits = rng.normal(0, 0.5, (2, 1, 4)) + rng.normal(0, 0.5, (5, 4))
        shares = np.exp(logits)[outcome, group]
        drawn = (
            rng.random((rows, 1))
            > np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        ).sum(axis=1)
        last = np.where(rng.random(rows) < 0.3, last % 4, drawn)
        frame[column] = np.array(list("pqrs"))[last]
    return frame


def test_no_record_of_three_people_makes_up_a_tenth_of_their_group():
    frame = three_of_many(0)
    rows = debias(
        frame, "y", "z", representation_rate=1.0, base_share=1, random_state=0
    ).sample(20_000)
    group = rows[rows["z"] == "e"]
    assert len(group) == pytest.approx(4000, abs=2)
    assert group.value_counts(COLUMNS, normalize=True).max() < 0.1


@pytest.mark.some(1)
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_three_people_do_not_change_what_the_large_groups_are_like(share):
    frame = three_of_many(1)
    fit = debias(
        frame,
        "y",
        "z",
        representation_rate=1.0,
        statistical_rate=None,
        base_share=share,
    )
    for column in COLUMNS:
        fair = fit.distribution.marginal([column], given={"z": "a"}).set_index(column)[
            "probability"
        ]
        data = frame[frame["z"] == "a"][column].value_counts(normalize=True)
        assert (fair - data).abs().max() < 0.02


def test_the_target_cell_by_cell():
    """θ of a column is Σ t(y, z)·m(y, z); m is the rows' mean, but the prior's in cells
    of fewer than 30 rows.
    """
    frame = three_of_many(2, rows=2000, few=20)
    fit = debias(frame, "y", "z", representation_rate=1.0, base_share=0.3)
    prior, blocks = fit.optimum.dual.prior, fit.roles.blocks
    assert isinstance(prior, Mixture)
    fair, codes = (
        fit.certificate.table.ravel(),
        fit.roles.blocks.pool(fit.domain.encode(frame)),
    )
    cells = prior.parts[0].tilt(np.zeros(blocks.width))
    counts = np.bincount(codes[:, 0], minlength=10)
    assert ((counts > 0) & (counts < 30)).any()
    for block in range(1, len(blocks.levels)):
        expected = np.zeros(blocks.levels[block])
        joint = cells.joint([0, block])
        for cell in np.flatnonzero(fair):
            inside = codes[codes[:, 0] == cell, block]
            rows = np.bincount(inside, minlength=len(expected)) / max(len(inside), 1)
            base = joint[cell] / joint[cell].sum()
            lent = 1.0 if not len(inside) else 0.3 if len(inside) < 30 else 0.0
            expected += fair[cell] * ((1 - lent) * rows + lent * base)
        np.testing.assert_allclose(
            fit.target[blocks.slices[block]], expected, atol=1e-12
        )


def test_weights_do_not_borrow():
    """All rows of a cell have the same weight, t(y, z) / e(y, z), however few they are
    and whatever the base is.
    """
    frame = three_of_many(4, rows=2000, few=12)
    fit = debias(frame, "y", "z", representation_rate=1.0, base_share=0.5)
    cells = fit.roles.blocks.pool(fit.domain.encode(frame))[:, 0]
    ratio = fit.certificate.table.ravel() / np.maximum(
        np.bincount(cells, minlength=10) / len(frame), 1e-9
    )
    np.testing.assert_allclose(fit.weights(), ratio[cells], rtol=1e-8)
