"""The front door: exact fairness, its options and its three outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import realdata
from fairmaxent.debias import debias
from fairmaxent.domain import Domain
from fairmaxent.errors import ColumnError, EvidenceError, InfeasibleError, InputError, LevelError, WeightError

GROUP_SIZES = [(2,), (3,), (6,), (2, 3), (2, 2, 3)]
SHARES = [0.0, 0.1, 0.5, 1.0]


def random_frame(rng: np.random.Generator, groups, outcomes: int, rows: int = 500) -> pd.DataFrame:
    """Groups of unequal size, outcomes that depend on them, and three other columns that depend on both."""
    codes = [rng.choice(size, rows, p=rng.dirichlet(np.full(size, 4.0))) for size in groups]
    lean = sum((codes[i] + 1) * rng.normal() for i in range(len(groups)))
    scores = rng.normal(size=outcomes) + np.outer(lean, rng.normal(size=outcomes)) * 0.4
    outcome = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    frame = {f"z{i}": [f"g{c}" for c in column] for i, column in enumerate(codes)}
    frame["y"] = [f"o{c}" for c in outcome]
    frame["x0"] = [f"v{c}" for c in (outcome + codes[0] + rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])) % 4]
    frame["x1"] = rng.normal(size=rows) + outcome
    frame["x2"] = rng.random(rows) < 0.3
    return pd.DataFrame(frame)


def rates_of(table: pd.DataFrame, columns, outcome: str, favourable=None) -> tuple[float, float]:
    """Both rates from a frame with a column ``probability``, by group-by, not by the library."""
    by_group = table.groupby(list(columns))["probability"].sum()
    by_group = by_group[by_group > 0]
    both = table.groupby([*columns, outcome])["probability"].sum().unstack(outcome, fill_value=0.0).loc[by_group.index]
    conditional = both.div(by_group, axis=0)
    if favourable is not None:
        conditional = conditional[[favourable]]
    return by_group.min() / by_group.max(), (conditional.min() / conditional.max()).min()


def as_table(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(probability=1 / len(frame))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
@pytest.mark.parametrize("groups", ["each", "joint"])
@pytest.mark.parametrize("sizes", GROUP_SIZES, ids=str)
def test_rates_are_exact_for_every_base_and_share(sizes, groups, seed):
    names = [f"z{i}" for i in range(len(sizes))]
    groupings = [[name] for name in names] if groups == "each" else [names]
    cases = itertools.product(["uniform", "product", "tree"], SHARES)
    for number, (base, share) in enumerate(cases):
        rng = np.random.default_rng([seed, number, *sizes])
        outcomes = int(rng.integers(2, 5))
        frame = random_frame(rng, sizes, outcomes)
        representation, statistical = rng.choice([0.5, 0.8, 1.0], 2)
        try:
            fit = debias(
                frame, "y", names, groups=groups, base=base, base_share=share,
                representation_rate=representation, statistical_rate=statistical,
            )  # fmt: skip
        except InfeasibleError:
            if share > 0:
                raise
            continue  # rows alone cannot fill an empty cell
        table = fit.distribution.marginal([*names, "y"])
        assert table["probability"].sum() == pytest.approx(1, abs=1e-12)
        for columns in groupings:
            shares_before, rate_before = rates_of(as_table(frame), columns, "y")
            shares_after, rate_after = rates_of(table, columns, "y")
            assert shares_after == pytest.approx(max(shares_before, representation), abs=1e-8)
            assert rate_after >= statistical - 1e-8
            if len(groupings) == 1 and not fit.certificate.filled_cells and shares_before >= representation:
                assert rate_after == pytest.approx(max(rate_before, statistical), abs=1e-8)
            name = " × ".join(columns)
            assert fit.certificate.achieved["statistical_rate"][name] == pytest.approx(rate_after, abs=1e-10)
            assert fit.certificate.before["statistical_rate"][name] == pytest.approx(rate_before, abs=1e-12)


@pytest.mark.parametrize("rate", [0.3, 0.8, 1.0])
def test_a_rate_below_one_is_met_with_equality_where_the_data_are_worse(rate):
    for seed in range(5):
        frame = random_frame(np.random.default_rng(seed), (3,), 2)
        _, before = rates_of(as_table(frame), ["z0"], "y", "o1")
        fit = debias(frame, "y", "z0", representation_rate=None, statistical_rate=rate, favourable="o1")
        shares, after = rates_of(fit.distribution.marginal(["z0", "y"]), ["z0"], "y", "o1")
        assert after == pytest.approx(max(before, rate), abs=1e-8)
        assert shares == pytest.approx(rates_of(as_table(frame), ["z0"], "y")[0], abs=1e-10)


def test_nothing_asked_gives_the_data_back():
    frame = random_frame(np.random.default_rng(3), (2, 3), 3)
    fit = debias(frame, "y", ["z0", "z1"], representation_rate=None, statistical_rate=None, base_share=0)
    np.testing.assert_allclose(fit.weights(), 1.0, atol=1e-9)
    assert fit.certificate.distance["from_data"] == pytest.approx(0, abs=1e-9)


def test_rates_by_column():
    frame = random_frame(np.random.default_rng(4), (2, 3), 2)
    fit = debias(frame, "y", ["z0", "z1"], representation_rate={"z0": 0.9, "z1": None}, statistical_rate={"z1": 0.7})
    before = {name: rates_of(as_table(frame), [name], "y") for name in ("z0", "z1")}
    after = {name: rates_of(fit.distribution.marginal([name, "y"]), [name], "y") for name in ("z0", "z1")}
    assert after["z0"][0] == pytest.approx(max(0.9, before["z0"][0]), abs=1e-8)
    assert after["z1"][0] == pytest.approx(before["z1"][0], abs=1e-8)
    assert after["z1"][1] >= 0.7 - 1e-8


def test_twenty_to_sixty_percent_keep_the_rest():
    """A target on a protected column: its shares are met, and p(x | y, z) stays."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 2000, p=[0.2, 0.8])})
    frame["y"] = rng.random(2000) < np.where(frame["sex"] == "F", 0.2, 0.4)
    frame["job"] = rng.choice(["a", "b", "c"], 2000)
    fit = debias(frame, "y", "sex", target={"sex": {"F": 0.6, "M": 0.4}}, statistical_rate=None, base_share=0)
    shares = fit.distribution.marginal("sex").set_index("sex")["probability"]
    assert shares["F"] == pytest.approx(0.6, abs=1e-10)
    for sex, y in itertools.product("FM", [True, False]):
        own = frame[(frame["sex"] == sex) & (frame["y"] == y)]["job"].value_counts(normalize=True)
        kept = fit.distribution.marginal("job", given={"sex": sex, "y": y}).set_index("job")["probability"]
        np.testing.assert_allclose(kept[own.index], own, atol=1e-9)


def test_targets_on_outcome_and_other_columns():
    frame = random_frame(np.random.default_rng(6), (2,), 2)
    wanted = {"v0": 0.4, "v1": 0.3, "v2": 0.2, "v3": 0.1}
    fit = debias(frame, "y", "z0", target={"y": {"o0": 0.5, "o1": 0.5}, "x0": wanted, "x2": None})
    distribution = fit.distribution
    np.testing.assert_allclose(distribution.marginal("y")["probability"], 0.5, atol=1e-9)
    np.testing.assert_allclose(distribution.marginal("x0")["probability"], list(wanted.values()), atol=1e-9)
    own = [1 - frame["x2"].mean(), frame["x2"].mean()]
    np.testing.assert_allclose(distribution.marginal("x2")["probability"], own, atol=1e-9)
    assert rates_of(distribution.marginal(["z0", "y"]), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)
    weighted = frame.assign(probability=fit.weights() / len(frame)).groupby("x0")["probability"].sum()
    np.testing.assert_allclose(weighted, list(wanted.values()), atol=1e-9)


def test_a_level_with_target_zero_is_removed_and_said():
    frame = random_frame(np.random.default_rng(7), (3,), 2)
    fit = debias(frame, "y", "z0", target={"x0": {"v0": 0.5, "v1": 0.5}, "z0": {"g0": 0.5, "g1": 0.5}})
    assert fit.certificate.removed_levels == ("z0 = g2", "x0 = v2", "x0 = v3")
    drawn = fit.sample(500, random_state=0)
    assert set(drawn["x0"]) == {"v0", "v1"}
    assert set(drawn["z0"]) == {"g0", "g1"}


@pytest.mark.parametrize("base", ["uniform", "product", "tree"])
def test_forbidden_combinations_have_probability_zero(base):
    rng = np.random.default_rng(8)
    frame = random_frame(rng, (2,), 2)
    frame["w"] = rng.choice(["p", "q", "r"], len(frame))
    rules = [
        {"z0": "g0", "y": "o1", "x0": "v1"},  # root with one other column
        {"x0": "v2", "x2": True},  # two other columns
        {"z0": "g1", "x0": "v3", "w": "r"},  # root with two others
    ]
    for share in (0.3, 1.0):
        fit = debias(frame, "y", "z0", base=base, base_share=share, forbid=rules)
        for rule in rules:
            table = fit.distribution.marginal(list(rule))
            hit = np.logical_and.reduce([table[name] == value for name, value in rule.items()])
            assert table[hit]["probability"].tolist() == [0.0]
            assert table["probability"].sum() == pytest.approx(1, abs=1e-12)
        drawn = fit.sample(2000, random_state=1, iid=True)
        for rule in rules:
            assert not np.logical_and.reduce([drawn[name] == value for name, value in rule.items()]).any()
        assert rates_of(fit.distribution.marginal(["z0", "y"]), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)
        broken = ((frame["x0"] == "v2") & frame["x2"]).sum()
        assert any(f"{broken} rows with forbidden x0 = v2, x2 = True" in note for note in fit.certificate.notes)
        assert (fit.weights()[(frame["x0"] == "v2") & frame["x2"]] == 0).all()


def test_a_forbidden_cell_of_the_fair_table_stays_empty():
    frame = random_frame(np.random.default_rng(9), (2, 2), 2)
    rule = {"z0": "g0", "z1": "g1"}
    frame = frame[~((frame["z0"] == "g0") & (frame["z1"] == "g1"))]
    fit = debias(frame, "y", ["z0", "z1"], forbid=[rule], representation_rate=0.5, statistical_rate=0.8)
    table = fit.distribution.marginal(["z0", "z1"])
    assert table[(table["z0"] == "g0") & (table["z1"] == "g1")]["probability"].item() == 0
    for name in ("z0", "z1"):
        assert rates_of(fit.distribution.marginal([name, "y"]), [name], "y")[1] >= 0.8 - 1e-8


def test_an_empty_cell_is_filled_by_the_base_and_said():
    frame = pd.DataFrame({"z": ["a"] * 60 + ["b"] * 40, "y": ["no"] * 30 + ["yes"] * 30 + ["no"] * 40})
    frame["x"] = np.arange(100) % 3
    with pytest.raises(InfeasibleError, match="z = b"):
        debias(frame, "y", "z", base_share=0)
    fit = debias(frame, "y", "z", base_share=0.5)
    assert fit.certificate.filled_cells == ("y = yes, z = b",)
    assert any("outcome y = yes falls from 30.0% to" in note for note in fit.certificate.notes)
    assert rates_of(fit.distribution.marginal(["z", "y"]), ["z"], "y")[1] == pytest.approx(1, abs=1e-8)
    with pytest.raises(InfeasibleError, match=r"y = yes, z = b.*sample\(\)"):
        fit.weights()


def test_small_groups_are_said():
    frame = random_frame(np.random.default_rng(10), (2,), 2)
    few = frame[frame["z0"] == "g0"].head(7)
    frame = pd.concat([few, frame[frame["z0"] == "g1"]])
    fit = debias(frame, "y", "z0", statistical_rate=0.5)
    assert fit.certificate.small_groups == ("z0 = g0 (7 rows)",)
    assert "small group: z0 = g0 (7 rows)" in str(fit.certificate)


def test_weights_are_the_fair_distribution_on_the_rows():
    frame = random_frame(np.random.default_rng(11), (2, 3), 3)
    fit = debias(frame, "y", ["z0", "z1"])
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
    by_weight = debias(frame.assign(w=times), "y", "z0", weight="w", domain=domain, base_share=0)
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
    assert rates_of(frame.assign(probability=weights), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)


def reaches(fair, old, total: int) -> bool:
    """Whether whole numbers within one of total·fair, none below the old ones, sum to the total: by trying them all."""
    wanted = (fair * total).round(9)
    choices = [{n for n in (int(np.floor(w)), int(np.ceil(w))) if n >= o} for w, o in zip(wanted, old, strict=True)]
    return any(sum(counts) == total for counts in itertools.product(*choices))


def test_top_up_adds_the_fewest_rows():
    for seed in range(5):
        frame = random_frame(np.random.default_rng(seed), (2,), 2)
        fit = debias(frame, "y", "z0")
        added = fit.top_up(random_state=0)
        both = pd.concat([frame, added])
        fair = fit.distribution.marginal(["z0", "y"]).set_index(["z0", "y"])["probability"]
        old = frame.groupby(["z0", "y"]).size()
        counts = both.groupby(["z0", "y"]).size()
        assert (abs(counts - len(both) * fair[counts.index]) <= 1).all()
        fewest = next(total for total in itertools.count(len(frame)) if reaches(fair[old.index], old, total))
        assert len(both) == fewest
        assert list(added.columns) == list(frame.columns)


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"]
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


def test_the_same_rows_from_every_library():
    frame = random_frame(np.random.default_rng(14), (2,), 3)
    drawn = [
        debias(convert(frame), "y", "z0").sample(200, random_state=7)
        for convert in (pd.DataFrame, pl.from_pandas, pa.Table.from_pandas)
    ]
    assert drawn[0].equals(drawn[1].to_pandas()[list(frame.columns)].astype(frame.dtypes.to_dict()))
    assert drawn[0].equals(drawn[2].to_pandas()[list(frame.columns)].astype(frame.dtypes.to_dict()))


def test_moment_features_keep_the_mean():
    frame = random_frame(np.random.default_rng(15), (2,), 2)
    domain = Domain.infer(frame, features={"x1": "moment"})
    fit = debias(frame, "y", "z0", domain=domain, base="uniform")
    weights = debias(frame, "y", "z0", base_share=0).weights()
    scores = domain.attribute("x1").scores()
    levels = domain.encode(frame)[:, domain.index("x1")]
    assert fit.distribution.expectation("x1") == pytest.approx(np.average(scores[levels], weights=weights), abs=1e-8)
    assert rates_of(fit.distribution.marginal(["z0", "y"]), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)


def test_missing_values_are_a_group_and_a_level():
    frame = random_frame(np.random.default_rng(16), (2,), 2)
    frame.loc[::7, "z0"] = None
    frame.loc[::5, "x1"] = np.nan
    fit = debias(frame, "y", "z0")
    shares = fit.distribution.marginal("z0")
    assert len(shares) == 3
    np.testing.assert_allclose(shares["probability"], 1 / 3, atol=1e-9)
    drawn = fit.sample(300, random_state=0)
    assert drawn["z0"].isna().sum() == 100
    assert drawn["x1"].isna().any()


@pytest.mark.parametrize("base", ["uniform", "product", "tree"])
def test_real_data_full_width_adult(base):
    frame = realdata.adult()
    fit = debias(frame, "income", ["sex", "race"], base=base, random_state=0)
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
        assert rate == pytest.approx(1, abs=5e-3)  # one row in a cell of some 170 is 6e-3 of it


def test_options_of_the_front_door():
    import inspect

    names = list(inspect.signature(debias).parameters)
    assert names == [
        "frame", "outcome", "protected", "representation_rate", "statistical_rate", "favourable", "groups", "target",
        "base", "base_share", "weight", "forbid", "domain", "random_state",
    ]  # fmt: skip


def test_rows_of_design_weight_zero_keep_it():
    frame = random_frame(np.random.default_rng(17), (3,), 2)
    frame["w"] = np.where(frame["z0"] == "g2", 0.0, 1.0)
    fit = debias(frame, "y", "z0", weight="w")
    weights = fit.weights()
    assert (weights[frame["z0"] == "g2"] == 0).all()
    assert weights.mean() == pytest.approx(1)
    assert "z0 = g2" in fit.certificate.removed_levels
    shares = fit.distribution.marginal("z0").set_index("z0")["probability"]
    assert shares.to_dict() == pytest.approx({"g0": 0.5, "g1": 0.5, "g2": 0.0}, abs=1e-9)


def test_a_table_of_nothing_but_outcome_and_protected():
    frame = random_frame(np.random.default_rng(18), (2,), 2)[["y", "z0"]]
    for base, share in itertools.product(["uniform", "product", "tree"], SHARES):
        fit = debias(frame, "y", "z0", base=base, base_share=share)
        assert rates_of(as_table(fit.sample(10_000, random_state=0)), ["z0"], "y")[1] == pytest.approx(1, abs=1e-3)


def test_what_is_shown_is_short():
    fit = debias(random_frame(np.random.default_rng(19), (2,), 2), "y", "z0")
    for shown in (repr(fit), repr(fit.distribution), repr(fit.domain)):
        assert len(shown) < 1000
    assert repr(fit).startswith("<Fit of 'y' by ['z0'], 500 rows>")


def test_a_root_column_with_target_none_keeps_its_marginal():
    frame = random_frame(np.random.default_rng(20), (2,), 3)
    fit = debias(frame, "y", "z0", target={"z0": None, "y": None})
    for name in ("z0", "y"):
        own = frame[name].value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(fit.distribution.marginal(name)["probability"], own, atol=1e-9)
    assert rates_of(fit.distribution.marginal(["z0", "y"]), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)


def test_a_target_on_a_protected_column_is_what_the_certificate_calls_wanted():
    frame = random_frame(np.random.default_rng(21), (2, 2), 2)
    fit = debias(frame, "y", "z0", target={"z0": {"g0": 0.6, "g1": 0.4}})
    assert fit.certificate.wanted["representation_rate"]["z0"] == pytest.approx(2 / 3)
    assert fit.certificate.achieved["representation_rate"]["z0"] == pytest.approx(2 / 3)
    joint = debias(frame, "y", ["z0", "z1"], groups="joint", target={"z0": {"g0": 0.6, "g1": 0.4}})
    assert joint.certificate.wanted["representation_rate"]["z0 × z1"] is None
    shares = joint.distribution.marginal(["z0", "z1"])["probability"]
    np.testing.assert_allclose(shares, [0.3, 0.3, 0.2, 0.2], atol=1e-9)  # parity within each level of z0


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
    with pytest.raises(LevelError, match=r"30 shares its level.*name the whole level, '\["):
        debias(frame, "y", "z0", forbid=[{"age": 30, "x2": True}])
    with pytest.raises(EvidenceError, match="probability zero"):
        fit.distribution.condition({"age": 30}).condition({"age": 31})


def test_before_counts_the_rows_that_are_forbidden():
    frame = random_frame(np.random.default_rng(23), (2,), 2)
    plain, forbidding = debias(frame, "y", "z0"), debias(frame, "y", "z0", forbid=[{"z0": "g0", "x2": True}])
    assert forbidding.certificate.before == plain.certificate.before


def test_rules_that_empty_a_cell_through_another_column_are_understood():
    frame = random_frame(np.random.default_rng(24), (2,), 3)
    frame["u"] = np.random.default_rng(1).choice(["p", "q"], len(frame))
    through = [{"z0": "g1", "y": "o2", "u": value} for value in ("p", "q")]
    for rules in (through, [{"z0": "g1", "y": "o2"}]):
        fit = debias(frame, "y", "z0", forbid=rules, favourable="o1")
        table = fit.distribution.marginal(["z0", "y"]).set_index(["z0", "y"])["probability"]
        assert table["g1", "o2"] == 0
        assert rates_of(table.reset_index(), ["z0"], "y", "o1")[1] == pytest.approx(1, abs=1e-8)


def test_the_bound_of_theorem_4_5_never_exceeds_what_is_achieved():
    for seed in range(60):
        rng = np.random.default_rng([25, seed])
        frame = random_frame(rng, (int(rng.integers(2, 4)),), int(rng.integers(2, 4)), rows=80)
        rate = rng.choice([0.5, 1.0, 0.0])
        fit = debias(
            frame, "y", "z0", base=str(rng.choice(["uniform", "tree"])), base_share=float(rng.choice([0.1, 0.5, 1])),
            statistical_rate=rate or None, representation_rate=float(rng.choice([0.3, 1.0])), favourable="o1",
        )  # fmt: skip
        assert fit.certificate.bound <= fit.certificate.achieved["statistical_rate"]["z0"] + 1e-9


def test_a_favourable_outcome_may_be_targeted_away():
    frame = random_frame(np.random.default_rng(26), (2,), 3)
    fit = debias(frame, "y", "z0", favourable="o1", target={"y": {"o0": 0.5, "o2": 0.5}})
    assert fit.distribution.marginal("y")["probability"].tolist() == pytest.approx([0.5, 0, 0.5])


def test_a_filled_cell_takes_its_columns_from_the_base_and_leaves_the_others_alone():
    frame = random_frame(np.random.default_rng(27), (2,), 2)
    frame = frame[~((frame["z0"] == "g1") & (frame["y"] == "o1"))]
    fit = debias(frame, "y", "z0", base_share=0.5)
    assert fit.certificate.filled_cells == ("y = o1, z0 = g1",)
    assert fit.certificate.distance["to_prior"] < 0.2
    assert rates_of(fit.distribution.marginal(["z0", "y"]), ["z0"], "y")[1] == pytest.approx(1, abs=1e-8)


def test_top_up_of_fair_weighted_data_is_empty():
    frame = pd.DataFrame({"z": ["a", "a", "b", "b"] * 5, "y": ["n", "p"] * 10, "w": 1})
    added = debias(frame, "y", "z", weight="w").top_up()
    assert len(added) == 0
    assert list(added.columns) == ["z", "y", "w"]


def test_a_given_domain_keeps_the_order_of_the_frame():
    frame = random_frame(np.random.default_rng(28), (2,), 2)
    turned = frame[frame.columns[::-1]]
    drawn = debias(turned, "y", "z0", domain=Domain.infer(frame)).sample(10, random_state=0)
    assert list(drawn.columns) == list(turned.columns)
    with pytest.raises(InputError, match="learned from a pandas table and the frame is of polars"):
        debias(pl.from_pandas(frame), "y", "z0", domain=Domain.infer(frame))


def test_what_a_careful_reader_should_know_is_noted():
    frame = random_frame(np.random.default_rng(29), (3,), 2)
    frame.loc[::9, "z0"] = None
    frame.loc[frame["z0"] == "g0", "z0"] = "g1"
    frame.loc[:2, "z0"] = "g0"
    notes = " ".join(debias(frame, "y", "z0", statistical_rate=None).certificate.notes)
    assert "missing counts as a level of 'z0'" in notes
    assert "the fair weights are worth" in notes
    assert "compared in 16 levels made of its numbers" in " ".join(debias(frame, "y", "x1").certificate.notes)


def test_evidence_of_several_numbers_keeps_their_proportions():
    """Two ages of which one shares its bin: drawn given both, they stand as in the model."""
    rng = np.random.default_rng(30)
    frame = pd.DataFrame({"z": rng.choice(["a", "b"], 3000), "y": rng.choice(["n", "p"], 3000)})
    frame["age"] = np.concatenate([rng.integers(18, 80, 2600), np.full(400, 60)])
    fit = debias(frame, "y", "z", base_share=0.5)
    free = fit.sample(400_000, random_state=0, iid=True)["age"]
    wanted = (free == 20).sum() / free.isin([20, 60]).sum()
    drawn = fit.sample(100_000, given={"age": [20, 60]}, random_state=1, iid=True)["age"]
    assert set(drawn) == {20, 60}
    assert (drawn == 20).mean() == pytest.approx(wanted, abs=0.01)
    conditional = fit.distribution.condition({"age": [20, 60]})
    assert conditional.expectation("age") == pytest.approx(20 * wanted + 60 * (1 - wanted), abs=0.5)
    narrower = conditional.condition({"age": 20})
    rows = pd.DataFrame({"z": ["a", "a"], "y": ["n", "n"], "age": [20, 21]})
    inside, outside = narrower.probability(rows)
    assert inside > 0
    assert outside == 0


def test_a_number_never_seen_is_not_taken_for_its_neighbour():
    rng = np.random.default_rng(31)
    frame = random_frame(rng, (2,), 2)
    frame["gain"] = np.where(rng.random(len(frame)) < 0.7, 0, rng.integers(1, 1000, len(frame)))
    with pytest.raises(LevelError, match="'gain' never holds -5"):
        debias(frame, "y", "z0", forbid=[{"gain": -5}])


def test_a_raw_value_goes_before_a_label_of_the_same_text():
    frame = random_frame(np.random.default_rng(32), (2,), 2)
    frame["o"] = pd.Series([1, "1", True, "True"] * 125, dtype=object)
    fit = debias(frame, "y", "z0", random_state=0)
    for value in (1, "1", True, "True"):
        drawn = fit.sample(20, given={"o": value})["o"].tolist()
        assert all(type(cell) is type(value) and cell == value for cell in drawn)


def test_weights_of_another_scale_are_refused_by_top_up():
    frame = random_frame(np.random.default_rng(33), (2,), 2).assign(w=0.002)
    fit = debias(frame, "y", "z0", weight="w")
    with pytest.raises(WeightError, match=r"0\.002 on average; scale them"):
        fit.top_up()
    assert len(fit.sample(10)) == 10


@pytest.mark.parametrize("groups", ["each", "joint"])
def test_a_level_without_weight_takes_no_part_in_either_way_of_grouping(groups):
    frame = random_frame(np.random.default_rng(34), (3, 2), 2)
    frame["w"] = np.where(frame["z0"] == "g2", 0.0, 1.0)
    fit = debias(frame, "y", ["z0", "z1"], groups=groups, weight="w")
    np.testing.assert_allclose(fit.distribution.marginal("z0")["probability"], [0.5, 0.5, 0.0], atol=1e-9)


def test_effective_rows_are_kishs():
    frame = random_frame(np.random.default_rng(35), (2,), 2)
    design = np.random.default_rng(0).choice([0.0, 1.0, 3.0], len(frame))
    fit = debias(frame.assign(w=design), "y", "z0", weight="w", forbid=[{"x0": "v0"}])
    weights = fit.weights()
    assert fit.certificate.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_a_domain_that_includes_the_weight_column_is_refused():
    frame = random_frame(np.random.default_rng(36), (2,), 2).assign(w=1.0)
    with pytest.raises(ColumnError, match="includes the weight column 'w'"):
        debias(frame, "y", "z0", weight="w", domain=Domain.infer(frame))
