"""What a fit gives: rows, weights, rows to add, and what it says of itself."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import realdata
from fairmaxent.data.domain import Domain
from fairmaxent.debiasing import debias
from fairmaxent.errors import EvidenceError, InputError, LevelError
from fairmaxent.fit.top_up import fair_counts
from tables import as_table, random_frame, rates_of


def test_weights_are_the_fair_distribution_on_the_rows():
    frame = random_frame(np.random.default_rng(11), (2, 3), 3)
    fit = debias(frame, "y", ["z0", "z1"], representation_rate=1.0)
    weights = fit.weights()
    assert len(weights) == len(frame)
    assert weights.mean() == pytest.approx(1)
    weighted = frame.assign(probability=weights / len(frame))
    for name in ("z0", "z1"):
        shares, rate = rates_of(weighted, [name], "y")
        assert shares == pytest.approx(1, abs=1e-8)
        assert rate == pytest.approx(1, abs=1e-8)


def test_design_weights_count_as_repeated_rows():
    frame = random_frame(np.random.default_rng(12), (2,), 2, rows=200)
    times = np.random.default_rng(0).integers(1, 4, len(frame))
    repeated = frame.loc[np.repeat(frame.index, times)].reset_index(drop=True)
    domain = Domain.infer(repeated)
    by_weight = debias(
        frame.assign(w=times), "y", "z0", weight="w", domain=domain, base_share=0
    )
    by_rows = debias(repeated, "y", "z0", domain=domain, base_share=0)
    names = ["z0", "y", "x0", "x2"]
    np.testing.assert_allclose(
        by_weight.distribution.marginal(names)["probability"],
        by_rows.distribution.marginal(names)["probability"],
        atol=1e-10,
    )
    drawn = by_weight.sample(50, random_state=0)
    assert list(drawn.columns) == [*frame.columns, "w"]
    assert drawn["w"].dtype == times.dtype
    assert (drawn["w"] == 1).all()
    weights = by_weight.weights()
    assert rates_of(frame.assign(probability=weights), ["z0"], "y")[1] == pytest.approx(
        1, abs=1e-8
    )


def test_rows_that_are_left_over_go_to_the_largest_remainders():
    fair = np.array([0.56, 0.29, 0.15])
    np.testing.assert_array_equal(fair_counts(10 * fair, 10), [6, 3, 1])
    two = np.array([0.0, 0.0, 2.0])  # that are there
    np.testing.assert_array_equal(fair_counts(10 * fair - two, 8), [5, 3, 0])
    three = np.array([0.0, 0.0, 3.0])
    assert fair_counts(10 * fair - three, 7) is None


def reaches(fair, old, total: int) -> bool:
    """Whether whole numbers within one of total·fair, none below the old ones, sum to
    the total: by trying them all.
    """
    wanted = (fair * total).round(9)
    choices = [
        {n for n in (int(np.floor(w)), int(np.ceil(w))) if n >= o}
        for w, o in zip(wanted, old, strict=True)
    ]
    return any(sum(counts) == total for counts in itertools.product(*choices))


def test_one_row_that_was_not_fitted_is_named():
    frame = pd.DataFrame(
        {
            "z": ["a", "b"] * 20,
            "y": ["no", "yes", "yes", "no"] * 10,
            "x": ["u"] * 20 + ["v"] * 20,
        }
    )
    fit = debias(frame[~((frame["z"] == "b") & (frame["x"] == "v"))], "y", "z")
    with pytest.raises(InputError, match="row 21 was not in the fitted table"):
        fit.weigh(frame)


def test_top_up_adds_the_fewest_rows():
    for seed in range(2):
        frame = random_frame(np.random.default_rng(seed), (2,), 2)
        fit = debias(frame, "y", "z0")
        added = fit.top_up(random_state=0)
        both = pd.concat([frame, added])
        fair = fit.distribution.marginal(["z0", "y"]).set_index(["z0", "y"])[
            "probability"
        ]
        old = frame.groupby(["z0", "y"]).size()
        counts = both.groupby(["z0", "y"]).size()
        assert (abs(counts - len(both) * fair[counts.index]) <= 1).all()
        fewest = next(
            total
            for total in itertools.count(len(frame))
            if reaches(fair[old.index], old, total)
        )
        assert len(both) == fewest
        assert list(added.columns) == list(frame.columns)


@pytest.mark.parametrize(
    "convert",
    [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas],
    ids=["pandas", "polars", "pyarrow"],
)
def test_every_library_gets_its_own_kind_back(convert):
    frame = convert(random_frame(np.random.default_rng(13), (2,), 2))
    fit = debias(frame, "y", "z0")
    for result in (fit.sample(20, random_state=0), fit.top_up(random_state=0)):
        assert type(result) is type(frame)
        assert (
            (result.schema == frame.schema)
            if not isinstance(frame, pd.DataFrame)
            else (result.dtypes.equals(frame.dtypes))
        )
    assert type(fit.distribution.marginal(["z0", "y"])) is type(frame)


def test_missing_values_are_a_group_and_a_level_if_they_are_compared():
    frame = random_frame(np.random.default_rng(16), (2,), 2)
    frame.loc[::7, "z0"] = None
    frame.loc[::5, "x1"] = np.nan
    fit = debias(frame, "y", "z0", representation_rate=1.0, compare_missing=True)
    shares = fit.distribution.marginal("z0")
    assert len(shares) == 3
    np.testing.assert_allclose(shares["probability"], 1 / 3, atol=1e-9)
    drawn = fit.sample(300, random_state=0)
    assert drawn["z0"].isna().sum() == 100
    assert drawn["x1"].isna().any()


@pytest.mark.more
def test_real_data_full_width_adult():
    frame = realdata.adult()
    fit = debias(
        frame, "income", ["sex", "race"], representation_rate=1.0, random_state=0
    )
    table = fit.distribution.marginal(["sex", "race", "income"])
    for name in ("sex", "race"):
        shares, rate = rates_of(table, [name], "income")
        assert shares == pytest.approx(1, abs=1e-8)
        assert rate == pytest.approx(1, abs=1e-8)
    drawn = fit.sample(10_000)
    assert drawn.dtypes.equals(frame.dtypes)
    for name in ("sex", "race"):
        shares, rate = rates_of(as_table(drawn), [name], "income")
        assert shares == pytest.approx(1, abs=1e-3)
        # one row in a cell of some 170 is 6e-3 of it
        assert rate == pytest.approx(1, abs=5e-3)


def test_rows_of_design_weight_zero_keep_it():
    frame = random_frame(np.random.default_rng(17), (3,), 2)
    frame["w"] = np.where(frame["z0"] == "g2", 0.0, 1.0)
    fit = debias(frame, "y", "z0", weight="w", representation_rate=1.0)
    weights = fit.weights()
    assert (weights[frame["z0"] == "g2"] == 0).all()
    assert weights.mean() == pytest.approx(1)
    assert "z0 = g2" in fit.certificate.removed_levels
    shares = fit.distribution.marginal("z0").set_index("z0")["probability"]
    assert shares.to_dict() == pytest.approx(
        {"g0": 0.5, "g1": 0.5, "g2": 0.0}, abs=1e-9
    )


def test_evidence_on_a_binned_number_is_that_number():
    frame = random_frame(np.random.default_rng(22), (2,), 2)
    frame["age"] = np.random.default_rng(0).integers(18, 80, len(frame))
    fit = debias(frame, "y", "z0", random_state=0)
    assert set(fit.sample(50, given={"age": 30})["age"]) == {30}
    assert set(fit.sample(50, given={"age": [30, 31, 64]})["age"]) == {30, 31, 64}
    assert fit.distribution.expectation("age", given={"age": 30}) == 30
    label = fit.domain.attribute("age").labels[0]
    assert fit.sample(50, given={"age": label})["age"].nunique() > 1
    with pytest.raises(LevelError, match=r"'age' never holds 999"):
        fit.sample(5, given={"age": 999})
    with pytest.raises(
        LevelError, match=r"30 shares its level.*name the complete level, '\["
    ):
        debias(frame, "y", "z0", forbid=[{"age": 30, "x2": True}])
    with pytest.raises(EvidenceError, match="probability zero"):
        fit.distribution.condition({"age": 30}).condition({"age": 31})


def test_evidence_of_several_numbers_keeps_their_proportions():
    """Two ages of which one shares its bin: drawn given both, they stand as in the
    model.
    """
    rng = np.random.default_rng(30)
    frame = pd.DataFrame(
        {"z": rng.choice(["a", "b"], 3000), "y": rng.choice(["n", "p"], 3000)}
    )
    frame["age"] = np.concatenate([rng.integers(18, 80, 2600), np.full(400, 60)])
    fit = debias(frame, "y", "z", base_share=0.5)
    free = fit.sample(400_000, random_state=0, iid=True)["age"]
    wanted = (free == 20).sum() / free.isin([20, 60]).sum()
    drawn = fit.sample(100_000, given={"age": [20, 60]}, random_state=1, iid=True)[
        "age"
    ]
    assert set(drawn) == {20, 60}
    assert (drawn == 20).mean() == pytest.approx(wanted, abs=0.01)
    conditional = fit.distribution.condition({"age": [20, 60]})
    assert conditional.expectation("age") == pytest.approx(
        20 * wanted + 60 * (1 - wanted), abs=0.5
    )
    narrower = conditional.condition({"age": 20})
    rows = pd.DataFrame({"z": ["a", "a"], "y": ["n", "n"], "age": [20, 21]})
    inside, outside = narrower.probability(rows)
    assert inside > 0
    assert outside == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options", [{}, {"estimate": "weights"}, {"base_share": 0}, {"release": True}]
)
def test_whoever_watches_is_not_kept(options):
    """A function of a notebook, which no pickle holds."""
    frame = random_frame(np.random.default_rng(4), (2,), 2)
    called = []
    fit = debias(
        frame, "y", "z0", progress=lambda *call: called.append(call), **options
    )
    assert called
    again = pickle.loads(pickle.dumps(fit))
    pd.testing.assert_frame_equal(
        again.sample(20, random_state=0), fit.sample(20, random_state=0)
    )
