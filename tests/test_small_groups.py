"""Small groups are set apart, and every front door says the same of the others.

Expected numbers are counted with pandas alone.
"""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fairmaxent import check, debias, inspect
from fairmaxent.app.shown import seen
from fairmaxent.document.text import to_markdown
from fairmaxent.errors import FairMaxEntError, InfeasibleError, InputError, LevelError
from fairmaxent.fit.groups import group_changes
from fairmaxent.inspection.findings import inspection_text
from fairmaxent.metrics import (
    calibration,
    conditional_demographic_disparity,
    equal_opportunity,
    equalised_odds,
    fair_scorer,
    representation_rate,
    statistical_rate,
)
from fairmaxent.report.first_page import first_page
from fairmaxent.report.report import build_report

ASKED = {"outcome": "hired", "protected": "sex", "favourable": "yes"}


def table_of(cells, columns=("sex", "hired")):
    """A row for each person, given how many there are of each combination."""
    rows = [levels for levels, people in cells.items() for _ in range(people)]
    return pd.DataFrame(rows, columns=columns)


def people(sizes, having):
    """Groups with their sizes, and how many of them were hired."""
    cells = {}
    for group, size in sizes.items():
        cells[group, "yes"] = having[group]
        cells[group, "no"] = size - having[group]
    return table_of(cells)


# Two large groups and one of three to eight people, with a rate far from theirs.
TABLES = [
    people({"m": 543, "f": 357, small: size}, {"m": 310, "f": 150, small: having})
    for small, size, having in [
        ("No binario", 6, 0),
        ("No binario", 6, 1),
        ("x", 3, 3),
        ("x", 8, 0),
    ]
] + [
    people({"m": men, "f": women, "x": size}, {"m": first, "f": second, "x": having})
    for men, women, size, first, second, having in [
        (90, 60, 4, 45, 45, 0),
        (2000, 1500, 5, 160, 90, 4),
        (300, 300, 7, 240, 200, 0),
        (120, 80, 8, 30, 40, 8),
    ]
]


def counted(table):
    """The two large groups, their ratio, and the number and rate of the small one."""
    sizes = table.sex.value_counts()
    rates = (table.hired == "yes").groupby(table.sex).mean()
    *large, small = sizes.index
    two = rates[large]
    return (
        {*large},
        two.min() / two.max(),
        {small: (sizes[small], pytest.approx(rates[small]))},
    )


def of_rate(rate):
    apart = {group.group[0]: (group.count, group.rate) for group in rate.set_apart}
    return {*rate.worst.lowest, *rate.worst.highest}, rate.value, apart


def of_changes(changes):
    apart = {
        change.group: (change.rows, change.rate_before)
        for change in changes
        if change.is_apart
    }
    return {change.group for change in changes if not change.is_apart}, apart


def from_metrics(table):
    rate = statistical_rate(table, **ASKED)
    return *of_rate(rate), str(rate)


def from_inspect(table):
    look = inspect(table, **ASKED)
    (verdict,) = look.verdicts
    rate = look.groupings[0].statistical
    groups, value, apart = of_rate(rate)
    assert {*verdict.gap.worst.lowest, *verdict.gap.worst.highest} == groups
    assert verdict.gap.value == pytest.approx(value)
    assert {group.group[0] for group in verdict.set_apart} == {*apart}
    return groups, value, apart, inspection_text(look)


def from_check(table):
    result = check(table, **ASKED, statistical_rate=0.8, confident=True)
    return *of_rate(result.findings[0].rate), str(result)


def from_debias(fit):
    certificate = fit.certificate
    apart = {
        group.group: (group.rows, group.rate_before) for group in certificate.set_apart
    }
    groups, same = of_changes(group_changes(fit))
    assert same == {name: pytest.approx(both) for name, both in apart.items()}
    value = certificate.before["statistical_rate"]["sex"]
    assert certificate.achieved["statistical_rate"]["sex"] == pytest.approx(1)
    return groups, value, apart, str(certificate)


def from_report(fit):
    report = build_report(fit, trade_off=False)
    (rate,) = (one for one in report.rates if one.kind == "statistical_rate")
    lowest, highest, _ = re.split(" against |, ", rate.worst_before)
    groups, apart = of_changes(report.groups)
    assert groups == {lowest, highest}
    assert rate.delivered > 0.95  # rows of the large groups are hardly rounded
    page = first_page(report)
    for group in groups:
        assert f"people with sex = {group}" in page.summary
    assert all(f"people with sex = {group}" not in page.summary for group in apart)
    return groups, rate.before, apart, to_markdown(page)


def from_app(fit):
    shown = seen(fit)
    (rate,) = (one for one in shown["rates"] if one["kind"] == "statistical_rate")
    groups = {one["group"] for one in shown["groups"] if not one["is_apart"]}
    apart = {
        one["group"]: (round(one["people_before"]), one["rate_before"])
        for one in shown["groups"]
        if one["is_apart"]
    }
    (said,) = (one["says"] for one in shown["told"] if one["key"] == "set_apart")
    return groups, rate["before"], apart, "\n".join(said)


@pytest.mark.some(3)
@pytest.mark.parametrize("table", TABLES)
def test_front_doors_say_the_same(table):
    groups, ratio, apart = counted(table)
    fit = debias(table, **ASKED, random_state=0)
    doors = [
        from_metrics(table),
        from_inspect(table),
        from_check(table),
        from_debias(fit),
        from_report(fit),
        from_app(fit),
    ]
    ((small, (number, _)),) = apart.items()
    for found, value, listed, text in doors:
        assert found == groups
        assert value == pytest.approx(ratio)
        assert listed == apart
        line = next(
            line
            for line in text.splitlines()
            if small in line and re.search("too (small|little)", line.lower())
        )
        assert re.search(rf"\b{number} people", line)


class Says:
    """A model that decides as it happened."""

    def predict(self, people):
        return people["hired"]


@pytest.mark.parametrize("table", TABLES)
def test_every_metric_is_about_the_others(table):
    groups, ratio, apart = counted(table)
    good = table.hired == "yes"
    sizes = table.sex[good].value_counts(), table.sex[~good].value_counts()
    large = sorted(groups)

    def listed(found):
        return {one.group[0]: (one.count, one.rate) for one in found.set_apart}

    disparity = conditional_demographic_disparity(table, **ASKED)
    taken, away = (one / one.sum() for one in sizes)
    assert float(disparity) == pytest.approx(max((away - taken)[large]))
    assert listed(disparity) == apart
    assert {one.group[0] for one in disparity.groups} == groups
    (small,) = apart
    assert f"too small to compare: {small}" in str(disparity)

    chance = np.where(good, 0.9, 0.2)
    gap = calibration(table, "hired", chance, "sex", favourable="yes")
    surplus = (good - chance).groupby(table.sex).mean()[large]
    assert gap.gap == pytest.approx(surplus.max() - surplus.min())
    assert listed(gap) == apart
    assert {one.group[0] for one in gap.groups} == groups
    assert f"too small to compare: {small}" in str(gap)

    scorer = fair_scorer("sex", favourable="yes", base=None)
    assert scorer(Says(), table, table.hired) == pytest.approx(ratio)


@pytest.mark.parametrize("kind", ["equal_opportunity", "equalised_odds"])
def test_errors_of_few_people_decide_nothing(kind):
    """Of 8 people 4 have the outcome, and are decided about in the wrong way."""
    groups = {"m": (300, 200, 60), "f": (200, 150, 40), "x": (4, 0, 4)}
    rows = []
    for sex, (having, right, wrong) in groups.items():
        rows += [(sex, "yes", "yes")] * right + [(sex, "yes", "no")] * (having - right)
        rows += [(sex, "no", "yes")] * wrong + [(sex, "no", "no")] * (having - wrong)
    table = pd.DataFrame(rows, columns=["sex", "hired", "said"])
    metric = {"equal_opportunity": equal_opportunity}.get(kind, equalised_odds)
    expected = {"equal_opportunity": 8 / 9, "equalised_odds": 8 / 9}[kind]
    found = metric(table, **ASKED, predictions="said")
    assert float(found) == pytest.approx(expected)
    assert "too small to compare: x" in str(found)
    assert float(metric(table, **ASKED, predictions="said", smallest_group=0)) == 0
    (checked,) = check(table, **ASKED, predictions="said", **{kind: 0.8}).findings
    assert checked.rate.value == pytest.approx(float(found))


@pytest.mark.parametrize("missing", ["true_positive", "false_positive"])
def test_one_of_two_odds_may_have_nothing_to_compare(missing):
    few, many = 4, 400
    truth = {"true_positive": few, "false_positive": many}
    rows = []
    for sex in "mf":
        rows += [(sex, "yes", said) for said in ["yes", "no"]] * (truth[missing] // 2)
        others = many + few - truth[missing]
        rows += [(sex, "no", said) for said in ["yes", "no"]] * (others // 2)
    table = pd.DataFrame(rows, columns=["sex", "hired", "said"])
    odds = equalised_odds(table, **ASKED, predictions="said")
    assert float(odds) == 1
    assert odds.difference == 0
    few_of = {few: "true_positive", many: "false_positive"}[truth[missing]]
    assert np.isnan(getattr(odds, few_of).value)
    known = {"true_positive": "false positives", "false_positive": "true positives"}
    assert known[few_of] in str(odds)


def test_where_all_groups_are_small_there_is_no_value():
    table = people({"m": 6, "f": 6}, {"m": 3, "f": 1})
    chance = np.full(len(table), 0.5)
    for found, value in [
        (statistical_rate(table, **ASKED), "value"),
        (conditional_demographic_disparity(table, **ASKED), "value"),
        (calibration(table, "hired", chance, "sex", favourable="yes"), "gap"),
    ]:
        assert np.isnan(getattr(found, value))
        assert str(found).startswith("nothing to compare")
        assert "too small to compare: f (6 people, 0.167), m (6 people, 0.500)" in str(
            found
        )
    # a search over models needs a score of each
    scorer = fair_scorer("sex", favourable="yes", base=None)
    assert scorer(Says(), table, table.hired) == pytest.approx(1 / 3)


# ---------------------------------------------------------------- within strata


def spanish():
    """543 men, 357 women and 6 non-binary people in two departments."""
    columns = ("sexo", "area", "contratado")
    cells = {}
    for area, numbers in {
        "ventas": {"Hombre": (150, 130), "Mujer": (70, 110), "No binario": (0, 3)},
        "técnica": {"Hombre": (160, 103), "Mujer": (80, 97), "No binario": (0, 3)},
    }.items():
        for group, (yes, no) in numbers.items():
            cells[group, area, "sí"] = yes
            cells[group, area, "no"] = no
    return table_of(cells, columns)


SPANISH = {"outcome": "contratado", "protected": "sexo", "favourable": "sí"}


def rates_of(table, weight=1.0):
    table = table.assign(weight=weight)
    table["having"] = table.weight * (table.contratado == "sí")
    sums = table.groupby(["area", "sexo"])[["having", "weight"]].sum()
    return (sums.having / sums.weight).unstack()


def test_within_strata_the_answer_is_about_men_and_women():
    table = spanish()
    large = rates_of(table)[["Hombre", "Mujer"]]
    expected = (large.min(axis=1) / large.max(axis=1)).min()

    limits = {"statistical_rate": 0.5, "confident": True, "within": "area"}
    result = check(table, **SPANISH, **limits)
    (found,) = result.findings
    assert (result.answer, found.rate.value) == ("pass", pytest.approx(expected))
    assert {group.group for group in found.rate.set_apart} == {("No binario",)}
    assert check(table, **SPANISH, **limits, smallest_group=0).answer == "cannot tell"

    fit = debias(table, **SPANISH, within="area", random_state=0)
    certificate = fit.certificate
    name = "sexo within area"
    assert certificate.before["statistical_rate"][name] == pytest.approx(expected)
    assert certificate.achieved["statistical_rate"][name] == pytest.approx(1)
    assert [group.rows for group in certificate.set_apart] == [3, 3]
    with pytest.raises(InfeasibleError, match="No binario") as refused:
        fit.weights()
    for way in ("smallest_group='2%'", "levels", "sample()"):
        assert way in str(refused.value)


@pytest.mark.some(3)
@pytest.mark.parametrize("smallest", ["2%", 30])
@pytest.mark.parametrize("within", [None, "area"])
@pytest.mark.parametrize("sizes", [None, 1.0])
def test_a_group_that_is_set_apart_keeps_its_outcomes_and_its_size(
    smallest, within, sizes
):
    table = spanish()
    table.loc[table.sexo.eq("No binario").idxmax(), "contratado"] = "sí"
    fit = debias(
        table,
        **SPANISH,
        within=within,
        representation_rate=sizes,
        smallest_group=smallest,
        random_state=0,
    )
    weights = fit.weights()
    small = table.sexo == "No binario"
    np.testing.assert_allclose(weights[small], 1, atol=1e-6)
    assert weights.sum() == pytest.approx(len(table))
    if within is None:
        table = table.assign(area="all")
    after = rates_of(table, weights)
    np.testing.assert_allclose(after.Hombre, after.Mujer, atol=1e-6)
    if sizes:
        masses = pd.Series(weights).groupby([table.area, table.sexo]).sum().unstack()
        np.testing.assert_allclose(masses.Hombre, masses.Mujer, atol=1e-4)
    for rates in (fit.certificate.achieved, fit.certificate.before):
        assert min(rates["statistical_rate"].values()) > 0.7
        assert min(rates["representation_rate"].values()) > 0.6


def test_several_columns_and_intersections():
    """A small intersection is set apart, although its two levels are large."""
    cells = {}
    for sex, race, size, having in [
        ("m", "a", 300, 200),
        ("f", "a", 300, 100),
        ("m", "b", 200, 60),
        ("f", "b", 5, 5),
    ]:
        cells[sex, race, "yes"] = having
        cells[sex, race, "no"] = size - having
    table = table_of(cells, ("sex", "race", "hired"))
    asked = ASKED | {"protected": ["sex", "race"], "groups": "joint"}
    fit = debias(table, **asked, smallest_group=10, random_state=0)
    weights = fit.weights()
    small = (table.sex == "f") & (table.race == "b")
    np.testing.assert_allclose(weights[small], 1, atol=1e-6)
    (apart,) = fit.certificate.set_apart
    assert (apart.name, apart.rows) == ("sex = f, race = b", 5)
    (found,) = check(table, **asked, statistical_rate=0.8).findings
    assert [group.group for group in found.rate.set_apart] == [("f", "b")]


def test_fewer_than_two_groups_are_left():
    table = people({"m": 500, "f": 6}, {"m": 250, "f": 0})
    result = check(table, **ASKED, statistical_rate=0.8)
    assert result.answer == "cannot tell"
    assert "Fewer than two groups are large enough" in str(result)
    assert "f (6 people, 0.000)" in str(result)
    assert inspect(table, **ASKED).verdicts[0].gap is None
    # a table of small groups alone has rates all the same: they are exact
    fit = debias(table, **ASKED)
    assert fit.certificate.before["statistical_rate"] == {"sex": 0}
    assert fit.certificate.set_apart == ()
    with pytest.raises(LevelError, match="fewer than two groups"):
        debias(table, **ASKED, smallest_group="2%")


def test_everybody_or_nobody_has_the_outcome():
    """Then all groups are equal, however small they are."""
    table = people({"m": 500, "f": 6}, {"m": 500, "f": 6})
    assert check(table, **ASKED, statistical_rate=0.8).answer == "pass"


# ---------------------------------------------------------------- the option


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("smallest", "apart"),
    [
        (None, {"x"}),
        (0, set()),
        (8, set()),
        (9, {"x"}),
        ("0.5%", set()),
        ("1.5%", {"x"}),
        ("20 %", {"x", "f"}),
    ],
)
def test_smallest_group_is_rows_or_a_share_of_the_people_compared(smallest, apart):
    having = {"m": 300, "n": 200, "f": 60, "x": 0}
    table = people({"m": 500, "n": 300, "f": 120, "x": 8}, having)
    for rate in (
        statistical_rate(table, **ASKED, smallest_group=smallest),
        check(table, **ASKED, statistical_rate=0.1, smallest_group=smallest)
        .findings[0]
        .rate,
        inspect(table, **ASKED, smallest_group=smallest).groupings[0].statistical,
    ):
        assert {group.group[0] for group in rate.set_apart} == apart
        assert {group.group[0] for group in rate.groups} == {*"mnfx"} - apart
    # how large a group is, is known, unless a size was chosen
    sizes = representation_rate(table, "sex", smallest_group=smallest)
    chosen = apart if smallest else set()
    assert {group.group[0] for group in sizes.set_apart} == chosen


@pytest.mark.parametrize("smallest", [-1, True, 1.5, "2", "100%", "few", "-1%"])
def test_other_sizes_are_refused(smallest):
    table = TABLES[0]
    for act in (
        lambda: debias(table, **ASKED, smallest_group=smallest),
        lambda: check(table, **ASKED, statistical_rate=1, smallest_group=smallest),
        lambda: inspect(table, **ASKED, smallest_group=smallest),
        lambda: statistical_rate(table, **ASKED, smallest_group=smallest),
        lambda: fair_scorer("sex", favourable="yes", smallest_group=smallest),
    ):
        with pytest.raises(InputError, match="smallest_group"):
            act()


def test_people_needed_are_those_of_the_same_groups():
    """Though many times six people would not be a small group."""
    table = people({"m": 60, "f": 60, "x": 6}, {"m": 30, "f": 22, "x": 0})
    large = table[table.sex != "x"]
    limits = {"statistical_rate": 0.8, "confident": True}
    needed = check(table, **ASKED, **limits).findings[0].needed
    assert needed == check(large, **ASKED, **limits).findings[0].needed


# ---------------------------------------------------------------- an earlier table


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("now", "answer"),
    [
        ({"m": 500, "n": 400, "f": 300}, "pass"),
        ({"m": 500, "n": 400, "f": 20}, "cannot tell"),
        ({"m": 500, "n": 400, "f": 6}, "cannot tell"),
        ({"m": 500, "n": 400}, "cannot tell"),
        ({"m": 500}, "cannot tell"),
    ],
)
def test_a_group_that_vanished_or_became_small_does_not_pass(now, answer):
    def half(sizes):
        return people(sizes, {group: size // 2 for group, size in sizes.items()})

    earlier = half({"m": 500, "n": 400, "f": 300})
    result = check(half(now), **ASKED, against=earlier)
    assert result.answer == answer
    (found,) = result.findings
    expected = {group for group in "mnf" if now.get(group, 0) < 30}
    assert {group.group[0] for group in found.lost} >= expected
    if len(now) > 1 and expected:
        assert "Too few are left to compare: f" in found.sentence
    # whoever chooses a size says what is too small
    chosen = check(half(now), **ASKED, against=earlier, smallest_group=10).answer
    assert chosen == ("pass" if min([now.get(g, 0) for g in "mnf"]) >= 10 else answer)


# ---------------------------------------------------------------- a reference


def random_table(seed):
    rng = np.random.default_rng(seed)
    rows = 600
    return pd.DataFrame(
        {
            "sex": rng.choice(["m", "f", "x"], rows, p=[0.5, 0.35, 0.15]),
            "race": rng.choice(["a", "b"], rows),
            "area": rng.choice(["east", "west"], rows),
            "hired": rng.choice(["yes", "no"], rows, p=[0.4, 0.6]),
            "guess": rng.choice(["yes", "no"], rows),
        }
    )


def worst_to(rates, reference):
    """The smallest ratio to the reference, in either direction."""
    own = rates[reference]
    others = rates.drop(reference)
    return min(min(rate, own) / max(rate, own) for rate in others)


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_reference_is_compared_with_each_other_group(seed):
    table = random_table(seed)
    good = table.hired == "yes"
    by_sex = good.groupby(table.sex).mean()
    by_race = good.groupby(table.race).mean()
    for reference in "mfx":
        expected = worst_to(by_sex, reference)
        rate = statistical_rate(table, **ASKED, reference=reference)
        assert float(rate) == pytest.approx(expected)
        assert (reference,) in (rate.worst.lowest, rate.worst.highest)
        assert rate.interval[0] <= expected <= rate.interval[1]
        by_column = {"sex": reference, "race": "a"}
        both = ASKED | {"protected": ["sex", "race"]}
        found = check(table, **both, statistical_rate=0.5, reference=by_column).findings
        assert [one.rate.value for one in found] == pytest.approx(
            [expected, worst_to(by_race, "a")]
        )
        joint = good.groupby([table.sex, table.race]).mean()
        rate = statistical_rate(table, **both, groups="joint", reference=by_column)
        assert float(rate) == pytest.approx(worst_to(joint, (reference, "a")))
        gap = inspect(table, **ASKED, reference=reference).verdicts[0].gap
        assert (reference,) in (gap.worst.lowest, gap.worst.highest)
        strata = good.groupby([table.area, table.sex]).mean().unstack()
        rate = statistical_rate(table, **ASKED, within="area", reference=reference)
        assert float(rate) == pytest.approx(
            min(worst_to(row, reference) for _, row in strata.iterrows())
        )
        sizes = table.sex.value_counts()
        rate = representation_rate(table, "sex", reference=reference)
        assert float(rate) == pytest.approx(worst_to(sizes, reference))
        guessed = (table.guess == "yes").groupby([table.hired, table.sex]).mean()
        how = {**ASKED, "predictions": "guess", "reference": reference}
        true, false = (
            worst_to(guessed[outcome], reference) for outcome in ("yes", "no")
        )
        assert float(equal_opportunity(table, **how)) == pytest.approx(true)
        assert float(equalised_odds(table, **how)) == pytest.approx(min(true, false))


def test_the_interval_of_two_groups_does_not_depend_on_who_is_the_reference():
    table = people({"m": 80, "f": 60}, {"m": 40, "f": 20})
    plain = statistical_rate(table, **ASKED)
    for reference in ("m", "f"):
        rate = statistical_rate(table, **ASKED, reference=reference)
        assert (rate.value, rate.interval) == (plain.value, plain.interval)


@pytest.mark.parametrize(
    ("reference", "match"),
    [
        ("mm", "did you mean 'm'"),
        ({"sexx": "m"}, "did you mean 'sex'"),
        ({"sex": "q"}, "no row has sex = 'q'"),
    ],
)
def test_an_unknown_reference_is_refused(reference, match):
    table = random_table(0)
    for act in (
        lambda: statistical_rate(table, **ASKED, reference=reference),
        lambda: check(table, **ASKED, statistical_rate=1, reference=reference),
        lambda: inspect(table, **ASKED, reference=reference),
    ):
        with pytest.raises(FairMaxEntError, match=match):
            act()


def test_a_reference_of_several_columns_names_each():
    table = random_table(0)
    both = ASKED | {"protected": ["sex", "race"]}
    with pytest.raises(InputError, match="name its column"):
        statistical_rate(table, **both, reference="m")
    joint = both | {"groups": "joint"}
    with pytest.raises(InputError, match="no level of 'race', but groups are"):
        statistical_rate(table, **joint, reference={"sex": "m"})
    # a column without one is compared as ever
    rate = statistical_rate(table, **both, reference={"race": "a"})
    by_sex = (table.hired == "yes").groupby(table.sex).mean()
    worst = min(
        worst_to(by_sex[list(pair)], pair[0]) for pair in combinations("mfx", 2)
    )
    assert float(rate) <= worst + 1e-12


def test_a_reference_that_is_too_small_leaves_nothing_to_compare():
    result = check(TABLES[2], **ASKED, statistical_rate=0.5, reference="x")
    assert result.answer == "cannot tell"
    assert inspect(TABLES[2], **ASKED, reference="x").verdicts[0].gap is None


def test_an_outcome_that_nobody_has_is_no_comparison():
    """All groups are small, and one outcome occurs in a single stratum: elsewhere all
    groups have it equally often, which is not the rate of the table.
    """
    cells = {
        ("m", "a", "no"): 6,
        ("m", "a", "yes"): 5,
        ("f", "a", "no"): 4,
        ("f", "a", "yes"): 2,
        ("m", "b", "no"): 5,
        ("m", "b", "later"): 4,
        ("f", "b", "no"): 6,
        ("f", "b", "yes"): 3,
    }
    frame = table_of(cells, ("sex", "town", "hired"))
    fit = debias(frame, "hired", "sex", within="town", estimate=None)
    before = fit.certificate.before["statistical_rate"]["sex within town"]
    assert before == 0  # of later and yes in town b
    assert "set apart" not in str(fit.certificate)
