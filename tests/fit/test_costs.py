"""Costs: every number is what a group-by on the delivered weights or rows gives, done
here by pandas.
"""

from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent import datasets, debias, load
from fairmaxent.facts.costs import Costs
from tables import EQUAL_PROBABILITIES, random_frame

# asked for, it moves weights within a cell
SHIFT = {"x0": {"v0": 0.4, "v1": 0.3, "v2": 0.2, "v3": 0.1}}
CASES = {
    "weights by cell": {"representation_rate": 1.0},
    "nothing but the outcome": {"representation_rate": None},
    "no base": {"representation_rate": 1.0, "base_share": 0.0},
    "uniform base": {"representation_rate": 1.0, "base": "uniform"},
    "base alone": {"representation_rate": 1.0, "base_share": 1.0},
    "shares of another column": {"representation_rate": 1.0, "target": SHIFT},
    "shares without a base": {
        "representation_rate": 0.8,
        "target": SHIFT,
        "base_share": 0.0,
    },
    "intersections": {"representation_rate": 1.0, "groups": "joint"},
    "a rule": {"representation_rate": 1.0, "forbid": [{"z0": "g0", "x0": "v0"}]},
    "relabelled": {"representation_rate": None, "model": EQUAL_PROBABILITIES},
    "relabelled and resized": {
        "representation_rate": 1.0,
        "model": EQUAL_PROBABILITIES,
    },
}


def frame_of(seed: int, *, weighted: bool, rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, (2, 3), 2, rows)
    return frame.assign(w=rng.choice([0.0, 0.5, 1.0, 4.0], rows)) if weighted else frame


def fitted(frame: pd.DataFrame, **options):
    weight = "w" if "w" in frame else None
    return debias(frame, "y", ["z0", "z1"], weight=weight, random_state=0, **options)


def name_of(columns, group) -> str:
    return ", ".join(
        f"{column} = {level}"
        for column, level in zip(columns, np.atleast_1d(group), strict=True)
    )


def kish(weights) -> float:
    return weights.sum() ** 2 / (weights**2).sum()


def by_group(frame: pd.DataFrame, weights, grouping: str) -> dict[str, pd.Series]:
    """The weights of the rows of each group, by name."""
    columns = grouping.split(" × ")
    return {
        name_of(columns, group): part
        for group, part in pd.Series(weights).groupby([frame[c] for c in columns])
    }


@pytest.mark.some(3)
@pytest.mark.parametrize("case", CASES)
def test_every_cost_is_what_a_group_by_on_the_weights_gives(case):
    frame = frame_of(3, weighted=True)
    fit = fitted(frame, **CASES[case])
    weights, costs = fit.weights(), fit.certificate.costs
    by_person = weights if weights.ndim == 1 else weights.sum(axis=1)
    design = frame["w"]
    assert by_person.sum() == pytest.approx(len(frame))
    assert (
        fit.certificate.effective_rows
        == costs.effective_rows
        == pytest.approx(kish(by_person))
    )
    for grouping in {cost.grouping for cost in costs.groups}:
        groups, before = (
            by_group(frame, by_person, grouping),
            by_group(frame, design, grouping),
        )
        listed = {cost.name: cost for cost in costs.groups if cost.grouping == grouping}
        assert listed.keys() == groups.keys()
        for name, part in groups.items():
            cost = listed[name]
            assert cost.rows == len(part)
            assert cost.before == pytest.approx(before[name].sum() / design.sum())
            assert cost.after == pytest.approx(part.sum() / len(frame), abs=1e-7)
            assert cost.effective_rows == pytest.approx(kish(part), rel=1e-6)
            assert cost.most_weight == pytest.approx(part.max(), rel=1e-6)
    laid_out = fit.weigh(frame, weight_name="fair")
    cells = {
        name_of(["y", "z0", "z1"], cell): part["fair"]
        for cell, part in laid_out.groupby(["y", "z0", "z1"])
    }
    worst = costs.worst_cell
    assert worst.most_weight == pytest.approx(
        max(part.max() for part in cells.values()), rel=1e-6
    )
    assert worst.most_weight == pytest.approx(cells[worst.name].max(), rel=1e-6)
    assert worst.effective_rows == pytest.approx(kish(cells[worst.name]), rel=1e-6)
    assert worst.after == pytest.approx(cells[worst.name].sum() / len(frame), abs=1e-7)
    in_data = (frame["y"] + frame["z0"] + frame["z1"]).value_counts()
    assert (
        worst.rows
        == in_data["".join(part.split(" = ")[1] for part in worst.name.split(", "))]
    )
    if case == "base alone":
        assert all(cost.most_copies == 0 for cost in (*costs.groups, worst))
    assert (
        bool(costs.changed)
        == ("changed" in str(fit.certificate))
        == case.startswith("relabelled")
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("case", ["uniform base", "relabelled and resized"])
def test_copies_are_those_of_drawn_rows(case):
    """Rows have a number of their own here, so a drawn row that copies one is
    recognised; the base makes up others.
    """
    frame = frame_of(5, weighted=True, rows=200)
    frame["x1"] = np.arange(len(frame)) / 7
    fit = fitted(frame, **CASES[case])
    draws = 40
    drawn = pd.concat(
        [fit.sample(len(frame), random_state=seed, iid=True) for seed in range(draws)]
    )
    own = drawn.merge(
        frame.drop(columns=["y", "w"], errors="ignore"),
        on=["z0", "z1", "x0", "x1", "x2"],
    )
    copies = own.groupby(["z0", "x1"]).size().groupby("z0").max() / draws
    for cost in fit.certificate.costs.groups:
        if cost.grouping == "z0":
            counted = copies[cost.name.removeprefix("z0 = ")]
            # The base may make up a copy too, and the largest of many counts lies above
            # the largest expectation.
            assert cost.most_copies - 4 * np.sqrt(cost.most_copies / draws) <= counted
            assert counted <= 1.3 * cost.most_copies + 5 * np.sqrt(
                cost.most_copies / draws
            )


def test_without_a_base_rows_drawn_by_quota_have_the_expected_copies_up_to_one():
    frame = frame_of(6, weighted=False).drop(columns="x1")
    fit = fitted(frame, representation_rate=1.0, base_share=0.0)
    columns = ["z0", "z1", "y", "x0", "x2"]
    # equal rows share them
    copies = fit.sample(len(frame)).value_counts(columns) / frame.value_counts(columns)
    for cost in fit.certificate.costs.groups:
        counted = copies.groupby(cost.grouping).max()[cost.name.split(" = ")[1]]
        assert cost.most_copies == pytest.approx(cost.most_weight)
        assert abs(counted - cost.most_copies) <= 1


@pytest.mark.more
@pytest.mark.parametrize("name", ["compas", "german"])
def test_real_data(name):
    data = datasets.load(name)
    fit = debias(data.frame, data.outcome, data.protected, representation_rate=1.0)
    weights = pd.Series(fit.weights())
    for cost in fit.certificate.costs.groups:
        part = by_group(data.frame, weights, cost.grouping)[cost.name]
        assert (cost.rows, cost.after) == (
            len(part),
            pytest.approx(part.sum() / len(weights)),
        )
        assert (cost.effective_rows, cost.most_weight) == pytest.approx(
            (kish(part), part.max())
        )
    after = weights.groupby(data.frame[data.outcome]).sum() / len(weights)
    for share, level in zip(fit.certificate.outcome_shares, after.index, strict=True):
        assert share.outcome == f"{data.outcome} = {level}"
        assert share.before == pytest.approx((data.frame[data.outcome] == level).mean())
        assert share.after == pytest.approx(after[level])
        assert f"{share.before:.1%} before, {share.after:.1%} after" in str(
            fit.certificate
        )


@pytest.mark.parametrize("weighted", [False, True], ids=["", "design weights"])
def test_an_engine_has_the_same_costs(weighted, tmp_path):
    """Design weights differ within a distinct row, so its largest is more than its
    mean.
    """
    frame = frame_of(7, weighted=weighted).drop(columns="x1")
    options = {"representation_rate": 1.0, "base_share": 0.3}
    here = fitted(frame, **options)
    lazily = debias(
        pl.LazyFrame(pl.from_pandas(frame)),
        "y",
        ["z0", "z1"],
        weight="w" if weighted else None,
        **options,
    )
    assert flat(lazily.certificate.costs) == pytest.approx(
        flat(here.certificate.costs), rel=1e-9
    )
    lazily.save(tmp_path / "fit.fme")
    again = load(tmp_path / "fit.fme")
    assert again.certificate.costs == lazily.certificate.costs
    np.testing.assert_array_equal(again.table.largest, lazily.table.largest)


def flat(costs: Costs) -> list[float]:
    lines = [*costs.groups, costs.worst_cell]
    return [costs.effective_rows] + [
        value
        for cost in lines
        for value in asdict(cost).values()
        if isinstance(value, float | int)
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.startswith("relabelled")]
)
def test_changed_outcomes_are_those_of_the_delivered_weights(case):
    frame = frame_of(10, weighted=True)
    fit = fitted(frame, **CASES[case])
    laid_out = fit.weigh(
        frame.assign(row=np.arange(len(frame)), recorded=frame["y"]), weight_name="fair"
    )
    laid_out["part"] = laid_out["fair"] / laid_out.groupby("row")["fair"].transform(
        "sum"
    )
    assert {change.old for change in fit.certificate.costs.changed} == {"o0", "o1"}
    for change in fit.certificate.costs.changed:
        column, level = change.group.split(" = ")
        people = laid_out[laid_out[column] == level]
        moved = people[(people["recorded"] == change.old) & (people["y"] == change.new)]
        assert change.people == people["row"].nunique()
        assert change.changed == pytest.approx(moved["part"].sum(), rel=1e-6)
        assert change.changed > 0
    line = f"Outcomes were changed for {fit.certificate.costs.changed[0].group}: of "
    assert line in str(fit.certificate)


def three_people(rows: int = 15_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    race = rng.choice(
        ["White", "Black", "Asian", "Native"], rows, p=[0.7, 0.2, 0.06, 0.04]
    )
    frame = pd.DataFrame(
        {
            "race": race,
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(18, 80, rows),
        }
    )
    frame["y"] = np.where(rng.random(rows) < 0.3, "yes", "no")
    frame.loc[:2, ["race", "y"]] = [["Other", "yes"], ["Other", "no"], ["Other", "no"]]
    return frame


def test_three_people_who_become_a_fifth_are_the_first_thing_said():
    frame = three_people()
    certificate = debias(frame, "y", "race", representation_rate=1.0).certificate
    (other,) = (
        cost for cost in certificate.costs.groups if cost.name == "race = Other"
    )
    first = certificate.warnings[0]
    assert first.startswith(
        "race = Other: 20.0% of the result rests on 3 rows (0.02% of the data); one"
        " person has "
    )
    assert f"{other.most_weight:,.0f} times the average weight" in first
    assert f"expected {other.most_copies:,.0f} times among 15,000 drawn rows" in first
    for remedy in (
        "representation_rate={'race': None}",
        "merge it with another group",
        "largest_weight",
    ):
        assert remedy in first
    lines = str(certificate).splitlines()
    assert lines[0] == f"Warning: {first}"
    assert sum("race = Other" in line and "rests on" in line for line in lines) == 1
    order = [
        str(certificate).index(part)
        for part in ("Warning:", "effective rows", "achieved")
    ]
    assert order == sorted(order)


SHARES = {"White": 0.4, "Black": 0.2, "Asian": 0.1, "Native": 0.1, "Other": 0.2}
REMEDIES = {
    "representation_rate={'sex': 0.9, 'race': None}": {
        "representation_rate": {"sex": 0.9, "race": 1.0}
    },
    "leave the group at its size with representation_rate=None, ": {
        "groups": "joint",
        "representation_rate": 1.0,
    },
    "ask for a smaller share of the group in target, merge it": {
        "protected": "race",
        "target": {"race": SHARES},
    },
    "rests on 3 rows. To do better, merge it with another group, or collect more rows.": {
        "representation_rate": None
    },
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_fits_what_was_asked_for(remedy):
    options = {"protected": ["sex", "race"], "estimate": None, **REMEDIES[remedy]}
    assert remedy in debias(three_people(3000), "y", **options).certificate.warnings[0]


def test_a_group_that_nobody_is_in():
    frame = random_frame(np.random.default_rng(0), (2, 2), 2)
    frame = frame[~((frame["z0"] == "g1") & (frame["z1"] == "g1"))]
    certificate = debias(
        frame, "y", ["z0", "z1"], groups="joint", representation_rate=1.0
    ).certificate
    assert (
        certificate.warnings[0]
        == "z0 = g1, z1 = g1 is 25.0% of the result, but no row that was fitted is in"
        " this group. To avoid this, leave the group at its size with"
        " representation_rate=None, or merge it with another group."
    )
    table = certificate.table[:, 1, 1]
    assert certificate.filled_shares == pytest.approx(table.tolist())
    for cell, share in zip(
        certificate.filled_cells, certificate.filled_shares, strict=True
    ):
        line = (
            f"no row that was fitted has {cell}: the base fills in this combination,"
            f" {share:.1%} of the result"
        )
        assert line in certificate.warnings


def test_a_limit_that_was_asked_for_is_the_largest_weight_and_no_remedy():
    frame = three_people(3000)
    fit = debias(frame, "y", "race", representation_rate=1.0, largest_weight=8.0)
    largest = pd.Series(fit.weights()).groupby(frame["race"]).max()
    for cost in fit.certificate.costs.groups:
        assert cost.most_weight == pytest.approx(
            largest[cost.name.removeprefix("race = ")]
        )
        assert cost.most_weight <= 8 * (1 + 1e-6)
    assert "race = Other: " in fit.certificate.warnings[0]
    assert "limit the weight" not in fit.certificate.warnings[0]
