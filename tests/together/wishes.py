"""Every option of `debias` with a value that is not its default, and its verifier.

To add an option, add an entry to `WISHES` (`test_pairs.py` fails until there is one):

- `option`: its name in `Request`, or "record.field" for a field of a record;
- `asks`: the options of the call. A dictionary as the value of a record holds some of
  its fields; those of two wishes are put together;
- `needs`: what the value cannot do without, such as a second protected column. Another
  wish may ask for something else there;
- `verify(asked, fit, delivered)`: asserts that the wish holds in one output, which is a
  pandas table whose rows count by their column `MASS`. `asked` reads the options of the
  whole call: a rate of .9 is one of intersections if these are asked for, too. What
  holds without being asked is in `PROMISES`, and is verified in every call;
- `says`: what a report and a document must say about it;
- `names`: other words by which a refusal may name it.

A second entry for the same option, with a `value` that begins with "or", tries another
value; its pairs are made in the slow suite, and by chance among the triples.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asked import (
    MASS,
    Asked,
    Delivered,
    is_near,
    representation_rate,
    statistical_rate,
    tables_by_stratum,
)

from fairmaxent.errors import InputError
from people import EDGES, Quick

REACHED = 1e-6  # how far below the wanted one a rate may be
NOISE = 0.08  # how far shares of a private fit may be from those of the data
DRAWN = 0.06  # how far shares of drawn columns may be from the exact ones
Verify = Callable[[Asked, Any, Delivered], None]


@dataclass(frozen=True)
class Wish:
    """An option with a value, and how to see that it was honoured."""

    option: str
    asks: dict[str, Any]
    verify: Verify
    needs: dict[str, Any] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    value: str = ""  # of another entry for the same option: "or …"

    @property
    def is_variant(self) -> bool:
        """Whether it tries another value than the usual one; then it is slow only."""
        return self.value.startswith("or ")

    @cached_property
    def label(self) -> str:
        return f"{self.option} {self.value}".strip()

    def is_named_in(self, message: str) -> bool:
        """Whether a refusal is about this option."""
        own = self.option.split(".")[-1]
        return any(name in message for name in (own, *self.names))


# ---------------------------------------------------------------- rates and shares


def outcomes_are_equal(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Each outcome has the wanted rate in every comparison; or a limit is to blame."""
    wanted = asked.statistical
    if wanted is None or asked.decides:
        return
    for outcome in asked.outcomes:
        for grouping in asked.groupings:
            reached = statistical_rate(asked, delivered, grouping, outcome)
            if reached < wanted - REACHED:
                assert "largest_weight" in asked, (
                    f"the rate of {outcome} for {grouping} is {reached:.4f}"
                )
                assert_shortfall_is_stated(fit, "statistical rate")


def groups_are_large_enough(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Groups have the wanted sizes; or a limit is to blame."""
    wanted = asked.representation
    if wanted is None:
        return
    for grouping in asked.groupings:
        reached = representation_rate(asked, delivered, grouping)
        if reached < wanted - REACHED:
            assert "largest_weight" in asked, f"the sizes of {grouping}: {reached:.4f}"
            assert_shortfall_is_stated(fit, "representation rate")


def assert_shortfall_is_stated(fit: Any, rate: str) -> None:
    reasons = [line for line in fit.certificate.warnings if "no row may count" in line]
    assert any(rate in reason for reason in reasons), f"a lower {rate} is not stated"


def outcomes_keep_their_shares(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """What is not asked to change does not: the outcomes' shares, in each stratum."""
    if asked.decides or "equal_means" in asked:
        return
    if asked.only_sizes:
        rates_of_groups_stay(asked, delivered)
        return
    slack = NOISE if asked.is_private else 0.0
    for outcome in asked.outcomes:
        if outcome in asked.target:
            continue
        assert_shares_stay(asked, delivered, [*asked.strata, outcome], slack)


def assert_shares_stay(
    asked: Asked, delivered: Delivered, columns: list[str], slack: float
) -> None:
    before = asked.before.shares(columns)
    found = delivered.shares(columns)
    assert is_near(delivered, columns, before, slack), f"shares of {columns}: {found}"


def rates_of_groups_stay(asked: Asked, delivered: Delivered) -> None:
    """Where only sizes are asked for, each group keeps its own outcomes."""
    if asked["groups"] != "joint" and len(asked.protected) > 1:
        return  # several columns share their people, so only all of them together stay
    if "likely" in asked:
        return  # which is another column
    slack = NOISE if asked.is_private else 0.0
    (grouping,) = asked.groupings
    before = tables_by_stratum(asked, asked.before, grouping, asked["outcome"])
    after = tables_by_stratum(asked, delivered, grouping, asked["outcome"])
    for old, new in zip(before, after, strict=True):
        assert old.groups == new.groups
        off = delivered.off_in([*asked.strata, *grouping])
        most = 2 * off / new.sizes.min() + slack + 1e-7
        assert np.abs(old.rates - new.rates).max() <= most


def groups_keep_their_sizes(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Groups that are not asked to grow have the share that they had."""
    if asked.representation is not None or "forbid" in asked:
        return
    slack = NOISE if asked.is_private else 0.0
    for grouping in asked.groupings:
        if not asked.target.keys().isdisjoint(grouping):
            continue
        assert_shares_stay(asked, delivered, [*asked.strata, *grouping], slack)


def stated_rates_are_true(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """The rates of the certificate are those that pandas finds in the weighted rows.

    They are not about groups of whom fewer than five would have an outcome, or not.
    """
    if delivered.kind != "weights":
        return
    certificate = fit.certificate
    expected = 0 if "smallest_group" in asked else 5
    names = list(certificate.achieved["statistical_rate"])
    if "likely" in asked:  # seen by `likely_groups_are_equal`
        if asked["groups"] == "joint":
            return
        names = [name for name in names if asked["likely"]["name"] not in name]
    numbered = [
        (outcome, grouping)
        for outcome in asked.outcomes
        for grouping in asked.groupings
    ]
    for name, (outcome, grouping) in zip(names, numbered, strict=True):
        stated = certificate.achieved["statistical_rate"][name]
        found = statistical_rate(asked, delivered, grouping, outcome, expected)
        assert abs(stated - found) <= 1e-5, f"{name}: {stated} is stated, {found} found"


def weights_are_those_of_the_rows(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """`weights()` has the numbers that `weigh()` puts beside the rows."""
    if delivered.kind == "weights" and not asked.relabels:
        np.testing.assert_allclose(fit.weights(), delivered.masses, atol=1e-12)


# ---------------------------------------------------------------- one by one


def is_a_promise(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """`PROMISES` read this option, so there is nothing more to see."""


def small_groups_stay(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """They have the size and the outcomes of the rows that may stay, and are named."""
    named = " ".join(group.name for group in fit.certificate.set_apart)
    table = asked.before.table
    may_stay = Delivered("data", table[~asked.forbidden(table)], asked)
    for grouping in asked.groupings:
        is_small = asked.is_small(grouping)
        if not is_small.any():
            continue
        for at in np.flatnonzero(is_small.any(axis=0)):
            group = asked.groups(grouping)[at]
            assert group[-1] in named, f"{group} is not listed"
        for outcome in asked.outcomes:
            columns = [*asked.strata, *grouping, outcome]
            before = asked.by_stratum(may_stay.shares(columns), grouping)[is_small]
            found = asked.by_stratum(delivered.shares(columns), grouping)[is_small]
            off = delivered.off_in(columns) / delivered.total
            assert np.abs(found - before).max() <= off + 1e-7, f"{columns}: {found}"


def strata_keep_their_sizes(asked: Asked, fit: Any, delivered: Delivered) -> None:
    slack = NOISE if asked.is_private else 0.0
    assert_shares_stay(asked, delivered, asked.strata, slack)


def means_are_equal(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """That of all groups together is what it was in the rows that may stay."""
    outcome = asked["outcome"]
    slack = NOISE if asked.is_private else 0.0
    for grouping in asked.groupings:
        for table in tables_by_stratum(asked, delivered, grouping, outcome):
            means = table.rates @ np.array(table.levels, dtype=float)
            off = delivered.off_in([*asked.strata, *grouping])
            most = 2 * off / table.sizes.min() + 1e-6
            assert np.ptp(means) <= most, f"means of {grouping}: {means}"
    may_stay = ~asked.forbidden(asked.data)
    old = np.average(asked.data[outcome][may_stay], weights=asked.masses[may_stay])
    new = np.average(delivered.table[outcome], weights=delivered.table[MASS])
    off = delivered.off_in([outcome]) / delivered.total
    assert abs(new - old) <= 2 * off + 2 * slack + 1e-6


def target_is_met(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Columns outside the fair table are drawn, so they are near their target only."""
    for name, wanted in asked.target.items():
        if wanted == "free":
            continue
        slack = 0.0
        if name not in asked.root and delivered.kind != "weights":
            slack = DRAWN
        shares = np.array([wanted.get(level, 0.0) for level in asked.levels(name)])
        found = delivered.shares([name])
        assert is_near(delivered, [name], shares, slack), f"{name}: {found}"


def outcome_moves_freely(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """The closest fair table has other shares of the outcome than the data."""
    if asked.statistical is None or delivered.kind != "weights":
        return
    old = asked.before.shares([asked["outcome"]])
    new = delivered.shares([asked["outcome"]])
    assert np.abs(old - new).max() > 1e-9  # where groups hardly differ, it is little


def no_row_counts_too_much(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """A row that is drawn counts as its cell of outcome and groups does."""
    most = asked["largest_weight"]
    if delivered.kind == "weights":
        before = asked.masses / asked.masses.mean()
        assert (delivered.table[MASS] / before).max() <= most + 1e-6
        return
    before = asked.before.shares(asked.root)
    after = delivered.shares(asked.root)
    off = delivered.off / delivered.total + 1e-7
    if asked.is_private:
        off += NOISE
    assert not after[before == 0].any()
    assert (after <= most * before + off).all()


def new_combinations_appear(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """The base gives combinations that nobody has, if it has a share."""
    if delivered.kind != "rows" or asked["base_share"] == 0:
        return
    assert len(unknown_rows(asked, delivered, asked.categories)) > 0


def every_row_is_somebody(asked: Asked, fit: Any, delivered: Delivered) -> None:
    if delivered.added is None:
        return
    columns = asked.categories
    if asked.relabels:
        columns = [name for name in columns if name != asked["outcome"]]
    assert len(unknown_rows(asked, delivered, columns)) == 0


def unknown_rows(asked: Asked, delivered: Delivered, columns: list[str]) -> set:
    """The combinations of these columns in new rows that nobody has."""
    known = asked.data[columns].astype(object).fillna("unknown")
    new = delivered.added[columns].astype(object).fillna("unknown")
    return set(new.itertuples(index=False)) - set(known.itertuples(index=False))


def numbers_are_redrawn(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """The number of a new row is that of the row that it copies only by chance."""
    if delivered.added is None:
        return
    columns = [*asked.categories, "skill"]
    copies = delivered.added[columns].merge(asked.data[columns])
    assert len(copies) <= 0.3 * len(delivered.added)


def numbers_are_nobodys(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """No new row has anybody's exact number."""
    if delivered.added is not None:
        assert not delivered.added["skill"].isin(asked.data["skill"]).any()


def weights_follow_the_design(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Rows of one cell count by their design weights, and drawn rows one each."""
    if delivered.kind != "weights":
        assert (delivered.added[asked["weight"]] == 1).all()
        return
    others = not asked.target.keys() <= set(asked.root)
    if asked.relabels or others or "likely" in asked:
        return  # then rows of a cell count differently
    factors = delivered.table.assign(factor=delivered.table[MASS] / asked.masses)
    factors = factors[~asked.forbidden(factors)].fillna("unknown")
    spread = factors.groupby(asked.root)["factor"].agg(np.ptp)
    assert spread.max() <= 1e-6


def forbidden_rows_are_gone(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Those that somebody has stay in a table to which rows are added."""
    rows = delivered.added
    if rows is None:
        rows = delivered.table[delivered.table[MASS] > 0]
    assert not asked.forbidden(rows).any()


def columns_are_kept(asked: Asked, fit: Any, delivered: Delivered) -> None:
    name = asked["keep_columns"]
    assert name in delivered.table.columns
    if delivered.added is not None:
        assert delivered.added[name].isin(asked.data[name]).all()


def rows_can_be_shared(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """No identifiers, no rare values unless declared, no exact numbers, no copies."""
    rows = delivered.added
    assert "name" not in rows.columns
    numbers_are_nobodys(asked, fit, delivered)
    for name in asked.categories:
        common = asked.data[name].value_counts()
        assert rows[name].dropna().isin(common[common >= 10].index).all()


def seed_is_honoured(asked: Asked, fit: Any, delivered: Delivered) -> None:
    if delivered.kind == "rows":
        pd.testing.assert_frame_equal(fit.sample(30), fit.sample(30))


def columns_are_read_as_declared(asked: Asked, fit: Any, delivered: Delivered) -> None:
    assert fit.domain.attribute("skill").size == len(EDGES) - 1
    if delivered.added is not None:
        assert delivered.added["skill"].between(EDGES[0], EDGES[-1]).all()


class Told:
    """A progress callback that notes what it is told."""

    def __init__(self):
        self.calls: list[tuple[str, float]] = []

    def __call__(self, stage: str, share: float) -> None:
        self.calls.append((stage, share))


def progress_is_told(asked: Asked, fit: Any, delivered: Delivered) -> None:
    calls = asked["progress"].calls
    stages = {stage for stage, _ in calls}
    assert {"base", "solve"} <= stages
    assert all(0 <= share <= 1 for _, share in calls)
    assert ("train" in stages) == asked.decides
    assert ("estimate" in stages) == ("estimate" in asked)
    assert ("measure" in stages) == asked.is_private


# ---------------------------------------------------------------- likely groups


def chances_of(asked: Asked) -> pd.DataFrame:
    """How likely each person is in each group: by the columns, or for certain."""
    likely = asked["likely"]
    chances = asked.data[list(likely["columns"].values())]
    chances = chances.div(chances.sum(axis=1), axis=0)
    chances.columns = list(likely["columns"])
    if "known_groups" in likely:
        known = asked.data[likely["known_groups"]]
        for group in chances:
            is_known = known.notna()
            chances.loc[is_known, group] = (known[is_known] == group).astype(float)
    return chances


def likely_groups_are_equal(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """People count in each group as far as they are likely to be in it."""
    if "likely" not in asked:
        return
    likely = asked["likely"]
    stated = fit.certificate.likely
    assert (stated.name, stated.told_by) == (likely["name"], likely["told_by"])
    new = delivered.added
    if new is not None:
        kept = {*likely["columns"].values()} & {*new.columns}
        assert not kept or asked["keep_columns"]
    is_limited = "largest_weight" in asked or "smallest_group" in asked
    if delivered.kind != "weights" or asked.statistical is None or is_limited:
        return
    for rate in stated.after:
        assert getattr(rate, likely["told_by"]) >= asked.statistical - REACHED
        low, high = rate.bounds
        assert low - REACHED <= rate.expected <= high + REACHED
    if likely["told_by"] == "names":
        return
    chances = chances_of(asked)
    masses = delivered.table[MASS].to_numpy()
    apart = [*asked.strata]
    for _, part in asked.data.groupby(apart) if apart else [("", asked.data)]:
        here = part.index
        shares = chances.loc[here].to_numpy() * masses[here, None]
        has = pd.get_dummies(part[asked["outcome"]])[asked.levels_of(asked["outcome"])]
        rates = has.to_numpy().T @ shares / shares.sum(axis=0)
        reached = (rates.min(axis=1) / rates.max(axis=1)).min()
        # of intersections, some may be of a missing value, which are not compared
        if asked["groups"] != "joint":
            assert reached >= asked.statistical - REACHED


# ---------------------------------------------------------------- models


def features(asked: Asked, table: pd.DataFrame) -> pd.DataFrame:
    """The columns that a model is shown."""
    hidden = [asked["outcome"], "name", "design", MASS]
    if asked.model.get("hide_protected", False):
        hidden += asked.protected
    return table.drop(columns=[name for name in hidden if name in table.columns])


def decided(asked: Asked, model: Any) -> np.ndarray:
    """Whom a model decides for, of the people in the data."""
    good = list(model.classes_).index(asked.good)
    chances = model.predict_proba(features(asked, asked.data))[:, good]
    return chances >= asked.model.get("threshold", 0.5)


def decisions_are_equal(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """The stated shares are those of the model, and the table teaches that model."""
    if not asked.decides or delivered.kind == "top-up":  # rows have said the same
        return
    stated = fit.certificate.decisions
    chosen = decided(asked, fit.model())
    people = asked.data.assign(chosen=chosen, **{MASS: asked.masses})
    if asked.model.get("parity") == "opportunity":
        people = people[people[asked["outcome"]] == asked.good]
    for rate in stated.rates:
        assert rate.wanted == asked.statistical
        if rate.rate is None:  # there is nothing to compare
            assert stated.unsure
        elif rate.rate < rate.wanted - 0.3:
            assert any(stated.student in line for line in fit.certificate.warnings)
    if not asked.strata and asked["groups"] != "joint":
        for grouping in asked.groupings:
            assert_stated_shares(stated, people, grouping[0])
    if delivered.kind == "weights":
        again = type(fit.model())()
        table = delivered.table
        again.fit(features(asked, table), table[asked["outcome"]], table[MASS])
        assert (decided(asked, again) == chosen).mean() >= 0.99


def assert_stated_shares(stated: Any, people: pd.DataFrame, column: str) -> None:
    """Each share is that of people who were not seen, which is near that of all."""
    for share in stated.shares:
        if share.grouping != column:
            continue
        level = share.group.split(" = ")[-1]
        group = people[people[column].astype(object).fillna("missing") == level]
        if not len(group):
            continue
        found = (group["chosen"] * group[MASS]).sum() / group[MASS].sum()
        assert share.low - 0.08 <= found <= share.high + 0.08, f"{share}: {found}"


def model_is_ours(asked: Asked, fit: Any, delivered: Delivered) -> None:
    if asked.decides:
        assert type(fit.model()) is Slower


def model_is_blind(asked: Asked, fit: Any, delivered: Delivered) -> None:
    assert fit.certificate.decisions.hide_protected is True
    fit.model().predict(asked.data.drop(columns=asked.protected))


def threshold_is_used(asked: Asked, fit: Any, delivered: Delivered) -> None:
    assert fit.certificate.decisions.threshold == asked.model["threshold"]


def opportunity_is_equal(asked: Asked, fit: Any, delivered: Delivered) -> None:
    assert fit.certificate.decisions.parity == "opportunity"


def rows_are_split(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Everybody counts as much as before, but for the group's size."""
    assert fit.certificate.decisions is None
    if delivered.kind == "weights" and asked.representation is None:
        by_person = delivered.table.groupby(delivered.table.index)[MASS].sum()
        before = asked.masses / asked.masses.mean()
        np.testing.assert_allclose(by_person.sort_index(), before, atol=1e-6)


def estimate_is_there(asked: Asked, fit: Any, delivered: Delivered) -> None:
    estimate = fit.certificate.estimate
    plan = asked["estimate"]
    assert estimate.output == plan.get("output", "rows")
    assert estimate.hide_protected == plan.get("hide_protected", False)
    assert type(plan.get("model", Quick())).__name__ in estimate.student
    assert all(0 <= rate <= 1 for rate in estimate.after.by_predictions.values())


class Slower(Quick):
    """Another class of model, to see which one was trained."""


# ---------------------------------------------------------------- privacy


def noise_is_paid(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """What was spent is what noise of that scale costs, and within the promise."""
    if not asked.is_private:
        return
    ledger = fit.certificate.privacy
    plan = ledger.privacy
    rows = asked["privacy"].get("rows_per_person", 1)
    assert plan.epsilon == asked["privacy"].get("epsilon", 50)
    assert plan.delta == asked["privacy"].get("delta", 1e-9)
    assert plan.rows_per_person == rows
    cost = 0.0
    for look in ledger.spent:
        assert look.sensitivity >= rows
        cost += (rows / look.scale) ** 2 / 2
    orders = 1 + np.geomspace(1e-4, 1e9, 4000)
    tails = np.log1p(-1 / orders) - np.log(plan.delta * orders) / (orders - 1)
    assert (cost * orders + tails).min() <= plan.epsilon + 1e-3


def undeclared_rows_are_dropped(asked: Asked, fit: Any, delivered: Delivered) -> None:
    assert (asked.data["drive"] == "boat").any()
    assert not (delivered.table["drive"] == "boat").any()


def ledger_is_written(asked: Asked, fit: Any, delivered: Delivered) -> None:
    text = asked["privacy"]["ledger"].read_text()
    assert "epsilon" in text


def budget_is_kept(asked: Asked, fit: Any, delivered: Delivered) -> None:
    """Another such fit would be beyond the budget, and is refused."""
    from fairmaxent import Privacy, debias

    ledger_is_written(asked, fit, delivered)
    again = Privacy(**({"epsilon": 50.0} | asked["privacy"]))
    with pytest.raises(InputError, match="budget"):
        debias(
            asked.data,
            asked["outcome"],
            asked["protected"],
            privacy=again,
            domain=asked["domain"],
        )


PROMISES: tuple[Verify, ...] = (
    outcomes_are_equal,
    groups_are_large_enough,
    outcomes_keep_their_shares,
    groups_keep_their_sizes,
    stated_rates_are_true,
    weights_are_those_of_the_rows,
    likely_groups_are_equal,
    decisions_are_equal,
    noise_is_paid,
)


# ---------------------------------------------------------------- the table

BOTH = {"protected": ["sex", "race"]}
PRIVATE = {"domain": "declared"}
A_MODEL = {"favourable": "good", "model": {"estimator": Quick()}}
AN_ESTIMATE = {"model": Quick()}
ORIGIN = {
    "name": "origin",
    "columns": {"near": "p_near", "far": "p_far"},
    "told_by": "columns",
}
A_LIKELY = {"likely": ORIGIN, "favourable": "good"}
OF_PRIVACY = ("private fit", "privacy", "private", "epsilon")
OF_RELEASE = ("rows to share", "release")
LEDGER = "a file"  # that the test names

WISHES = (
    Wish("outcome", {"outcome": "grade"}, is_a_promise, says=("grade",)),
    Wish("protected", BOTH, is_a_promise, says=("sex", "race")),
    Wish(
        "outcome",
        {"further": "promoted"},  # beside the outcome that the others are about
        is_a_promise,
        says=("promoted",),
        value="and a second",
    ),
    Wish(
        "representation_rate",
        {"representation_rate": 0.9},
        is_a_promise,
        says=("epresentation rate",),
    ),
    Wish(
        "statistical_rate",
        {"statistical_rate": 0.9},
        is_a_promise,
        says=("tatistical rate",),
    ),
    Wish(
        "statistical_rate",
        {"statistical_rate": None},
        is_a_promise,
        value="or none",
    ),
    Wish("favourable", {"favourable": "good"}, is_a_promise),
    Wish(
        "groups",
        {"groups": "joint"},
        is_a_promise,
        needs=BOTH,
        says=("Groups are the intersections of the protected columns.",),
    ),
    Wish(
        "within",
        {"within": "town"},
        strata_keep_their_sizes,
        says=("the strata are those of town",),
    ),
    Wish(
        "equal_means",
        {"equal_means": True},
        means_are_equal,
        needs={"outcome": "grade"},
        says=("The mean of grade is equal in all groups",),
    ),
    Wish(
        "target",
        {"target": {"sex": {"f": 0.5, "m": 0.5}}},
        target_is_met,
        says=("Shares of sex: f 0.5, m 0.5.",),
    ),
    Wish(
        "target",
        {"target": {"drive": {"bike": 0.5, "car": 0.3, "train": 0.2}}},
        target_is_met,
        says=("Shares of drive: bike 0.5, car 0.3, train 0.2.",),
        value="or of another column",
    ),
    Wish(
        "target",
        {"target": {"the outcome": "free"}},
        outcome_moves_freely,
        says=("may change.",),
        value="or free",
    ),
    Wish(
        "compare_missing",
        {"compare_missing": True},
        is_a_promise,
        needs=BOTH,
        says=("Missing values are compared like any other group or outcome.",),
    ),
    Wish(
        "smallest_group",
        {"smallest_group": "25%"},
        small_groups_stay,
        needs={"protected": ["drive"]},
        says=("Groups below 25% of the people compared are not compared, and stay",),
    ),
    Wish(
        "smallest_group",
        {"smallest_group": 80},
        small_groups_stay,
        needs={"protected": ["sex", "drive"]},
        says=("Groups below 80 rows are not compared, and stay",),
        value="or rows",
    ),
    Wish(
        "largest_weight",
        {"largest_weight": 1.6},
        no_row_counts_too_much,
        says=("No row counts more than 1.6 times as much as before.",),
    ),
    Wish(
        "base",
        {"base": "uniform"},
        new_combinations_appear,
        says=("from the base 'uniform'",),
    ),
    Wish(
        "base_share",
        {"base_share": 0.0},
        every_row_is_somebody,
        says=("a share of 0 from the base",),
    ),
    Wish(
        "model",
        {"model": {}},
        is_a_promise,
        needs=A_MODEL,
        says=("The table is made for a model that",),
    ),
    Wish(
        "model.estimator",
        {"model": {"estimator": Slower()}},
        model_is_ours,
        needs=A_MODEL,
        names=("model",),
    ),
    Wish(
        "model.parity",
        {"model": {"parity": "opportunity"}},
        opportunity_is_equal,
        needs=A_MODEL,
        says=("those whose outcome is good in each group",),
        names=("model",),
    ),
    Wish(
        "model.parity",
        {"model": {"parity": "probabilities", "estimator": "logistic"}},
        rows_are_split,
        says=("Outcomes change, not how much rows count",),
        names=("model",),
        value="or probabilities",
    ),
    Wish(
        "model.hide_protected",
        {"model": {"hide_protected": True}},
        model_is_blind,
        needs=A_MODEL,
        says=("for a model that does not see the protected columns",),
        names=("model",),
    ),
    Wish(
        "model.threshold",
        {"model": {"threshold": 0.55}},
        threshold_is_used,
        needs=A_MODEL,
        says=("at a probability of 0.55 or more",),
        names=("model",),
    ),
    Wish(
        "model.decided",
        {"model": {"decided": "best"}},
        is_a_promise,
        needs=A_MODEL,
        says=("is as accurate as it can be",),
        names=("model",),
    ),
    Wish(
        "estimate",
        {"estimate": {}},
        estimate_is_there,
        needs={"estimate": AN_ESTIMATE},
    ),
    Wish(
        "estimate.output",
        {"estimate": {"output": "weights"}},
        estimate_is_there,
        needs={"estimate": AN_ESTIMATE},
        names=("estimate",),
    ),
    Wish(
        "estimate.model",
        {"estimate": {"model": Slower()}},
        estimate_is_there,
        names=("estimate",),
    ),
    Wish(
        "estimate.hide_protected",
        {"estimate": {"hide_protected": True}},
        estimate_is_there,
        needs={"estimate": AN_ESTIMATE},
        names=("estimate",),
    ),
    Wish(
        "likely",
        {"likely": {}},
        is_a_promise,
        needs=A_LIKELY,
        says=("have it equally often",),  # what is assumed
    ),
    Wish(
        "likely.told_by",
        {"likely": {"told_by": "names"}},
        is_a_promise,
        needs=A_LIKELY,
        says=("names or addresses tell the group",),
        names=("likely",),
    ),
    Wish(
        "likely.known_groups",
        {"likely": {"known_groups": "origin_known"}},
        is_a_promise,
        needs=A_LIKELY,
        names=("likely",),
    ),
    Wish(
        "likely.recalibrated",
        {
            "likely": {
                "told_by": "names",
                "known_groups": "origin_known",
                "recalibrated": True,
            }
        },
        likely_groups_are_equal,
        needs=A_LIKELY,
        names=("likely",),
    ),
    Wish(
        "likely.slack",
        {"likely": {"slack": 0.1}},
        is_a_promise,
        needs=A_LIKELY,
        names=("likely",),
    ),
    Wish("detail", {"detail": "bins"}, numbers_are_redrawn),
    Wish(
        "weight",
        {"weight": "design"},
        weights_follow_the_design,
        says=("Rows are weighted by the design weights in design.",),
    ),
    Wish(
        "forbid",
        {"forbid": [{"sex": "f", "drive": "train"}]},
        forbidden_rows_are_gone,
        says=("Never: sex = f, drive = train.",),
    ),
    Wish(
        "keep_columns",
        {"keep_columns": "name"},
        columns_are_kept,
        says=("Kept, even if they look like identifiers: name.",),
    ),
    Wish(
        "privacy",
        {"privacy": {}},
        is_a_promise,
        needs=PRIVATE,
        says=("ε = ",),
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.epsilon",
        {"privacy": {"epsilon": 60.0}},
        is_a_promise,
        needs=PRIVATE,
        says=("ε = 60",),
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.delta",
        {"privacy": {"delta": 1e-7}},
        is_a_promise,
        needs=PRIVATE,
        says=("δ = 1e-07",),
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.undeclared",
        {"privacy": {"undeclared": "drop"}},
        undeclared_rows_are_dropped,
        needs=PRIVATE,
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.rows_per_person",
        {"privacy": {"rows_per_person": 3}},
        is_a_promise,
        needs=PRIVATE,
        says=("at most 3 rows are one person", " | 3 | "),
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.ledger",
        {"privacy": {"ledger": LEDGER}},
        ledger_is_written,
        needs=PRIVATE,
        names=OF_PRIVACY,
    ),
    Wish(
        "privacy.budget",
        {"privacy": {"ledger": LEDGER, "budget": 70.0}},
        budget_is_kept,
        needs=PRIVATE,
        names=OF_PRIVACY,
    ),
    Wish(
        "release",
        {"release": True},
        rows_can_be_shared,
        says=("The rows can be shared", "replaced, unless they were declared."),
        names=OF_RELEASE,
    ),
    Wish("random_state", {"random_state": 5}, seed_is_honoured),
    Wish("domain", {"domain": "declared"}, columns_are_read_as_declared),
    Wish("progress", {"progress": Told}, progress_is_told),
)
