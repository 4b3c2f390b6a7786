"""The pure parts of the page's JavaScript, run by node: shares, wishes, and the sentence
about people, which pandas counts again.
"""

import re

import numpy as np
import polars
import pytest

import fairmaxent
from appserver import NO_PAGE, run
from fairmaxent.app.shown import seen
from fairmaxent.plain_text import plain_json


def test_shares_and_dots(tmp_path):
    parts, thirds, dots, wholes, same = run(
        tmp_path,
        NO_PAGE
        + """
const { moved, rounded } = await import("./shares.js");
const { dotCounts } = await import("./charts.js");
const { joined, wholes } = await import("./format.js");
const set = [[0, 450], [1, 450], [2, 60], [3, 40], [3, 50]], held = [];
let parts = [400, 300, 200, 100];
for (const [index, value] of set) {
  parts = moved(parts, index, value, held);
  held.push(...held.splice(0).filter((one) => one !== index), index);
}
const same = [[undefined, { "sí": "Sí", constructor: "Constructor" }],
  [{ 1: "yes ", 2: "no" }, { "yes ": "Yes", NO: "no" }]]
  .map(([given, names]) => joined(given, names));
const dots = dotCounts({ people_before: 40, rate_before: 0.1, rate_after: 0.3 });
console.log(JSON.stringify([parts, rounded([1, 1, 1]), dots,
  wholes([116.4, 180.3, 338.3, 0]), same]));
""",
    )
    # what was set stays; when all are, the oldest follows
    assert parts == [440, 450, 60, 50]
    assert (sum(thirds), dots) == (1000, {"dots": 40, "before": 4, "after": 12})
    assert wholes == [117, 180, 338, 0]  # not 634, which 635 people would ask about
    # a level that was renamed before is known by its code
    assert same == [
        {"sí": "Sí", "constructor": "Constructor"},
        {"1": "Yes", "2": "no", "NO": "no"},
    ]


def test_the_wish_of_a_column_stays_with_it(tmp_path):
    kept, single = run(
        tmp_path,
        """
import { keptRates, singleRates } from "./form.js";
const forms = [{ name: "rate", start: 1 }, { name: "sizes", optional: true, start: 1 }];
const kept = data.map(([options, columns]) => keptRates(forms, options, columns));
const one = singleRates(["rate", "sizes"], { rate: { sex: null, race: 0.8 }, sizes: null });
console.log(JSON.stringify([kept, one]));
""",
        [
            [{"protected": ["sex"], "rate": 0.8, "sizes": None}, ["sex", "race"]],
            [{"protected": ["sex"], "rate": 1, "sizes": None}, ["sex", "race"]],
            [
                {
                    "groups": "joint",
                    "protected": ["sex", "race"],
                    "rate": 0.8,
                    "sizes": None,
                },
                ["race"],
            ],
            [
                {
                    "protected": ["sex", "race"],
                    "rate": {"sex": 1, "race": None},
                    "sizes": {"sex": 0.5, "race": None},
                },
                ["sex", "race", "age"],
            ],
        ],
    )
    assert kept == [
        {"rate": {"sex": 0.8, "race": 1}, "sizes": None},
        {"rate": 1, "sizes": None},
        {"rate": 0.8, "sizes": None},
        {
            "rate": {"sex": 1, "race": None, "age": 1},
            "sizes": {"sex": 0.5, "race": None, "age": None},
        },
    ]
    assert single == {"rate": 0.8, "sizes": None}


# ---------------------------------------------------------------- the sentence

TOLD = """
import { groupings, price, textOf, told } from "./people.js";
console.log(JSON.stringify(data.map((see) =>
  [...groupings(see).map((grouping) => textOf(told(grouping))), price(see)])));
"""


def group(name, before, after, people=40, size=None, **more):
    """What the server says about a group whose rate changes."""
    size = people if size is None else size
    return {
        "column": "SEX",
        "group": name,
        "outcome": "yes",
        "name": f"SEX = {name}",
        "about": "hired = yes",
        "called": None,
        "decided": None,
        "is_apart": False,
        "rate_before": before,
        "rate_after": after,
        "people_before": people,
        "people_after": size,
        "with_before": people * before,
        "with_after": size * after,
        **more,
    }


def about(*groups, **more):
    """An answer about some groups."""
    rate = {"kind": "statistical_rate", "grouping": "SEX", "columns": "SEX"}
    return {
        "rows": 1000,
        "worth": 1000,
        "effective_rows": 970,
        "changed_people": 0,
        "means": [],
        "told": [],
        "chosen": [],
        "heaviest": 1.5,
        "model": None,
        "rates": [rate],
        "groups": [*groups],
        **more,
    }


def test_the_sentence_names_both_sides_and_sums_the_rest(tmp_path):
    women, men = (
        group("f", 0.1, 0.3, called="women"),
        group("m", 0.5, 0.4, called="men"),
    )
    others = group("others", 0.2, 0.25)
    towns = [
        group(f"town {number}", 0.5, 0.35 if number == 3 else 0.5 + number / 40)
        for number in range(9)
    ]
    small = group("few", 0.0, 0.5, people=4, is_apart=True)
    cases = {
        "two": about(women, men),
        "three": about(women, men, others),
        "many": about(*towns),
        "apart": about(women, men, small),
        "codes": about(group("1", 0.1, 0.3), group("No", 0.5, 0.4)),
        "nothing": about(group("f", 0.2, 0.201), group("m", 0.2, 0.199)),
        "sizes": about(group("f", 0.1, 0.3, size=50), group("m", 0.5, 0.4, size=30)),
        "outcomes": about(
            *(
                {**group(name, before, after), "outcome": level}
                for level, both in {
                    "yes": ((0.1, 0.3), (0.5, 0.3)),
                    "no": ((0.6, 0.4), (0.4, 0.6)),
                    "perhaps": ((0.3, 0.3), (0.1, 0.1)),
                }.items()
                for name, (before, after) in zip("fm", both, strict=True)
            )
        ),
        "means": about(
            *(
                {**group(f"town {one}", 0.5, 0.5), "outcome": cut, "is_apart": apart}
                for one in range(6)
                # of the last, too little is known of most outcomes
                for cut, apart in (("low", True), ("high", one == 5))
            ),
            means=[
                {"group": f"SEX = town {one}", "before": 20.0, "after": 20 + change}
                for one, change in enumerate((1.5, -2.0, 0.4, -0.3, 0.2, 9.0))
            ],
        ),
    }
    told = dict(zip(cases, run(tmp_path, TOLD, [*cases.values()]), strict=True))
    have = "would have “yes” in hired."
    assert told["two"][0] == f"8 more women and 4 fewer men {have}"
    assert told["three"][0] == f"8 more women, 4 fewer men and 2 more others {have}"
    # 1, 2, 4, 5, 6 and 7 more; the largest of each side is named, not the two largest
    assert (
        told["many"][0]
        == f"8 more town 8 and 6 fewer town 3 {have[:-1]}; 25 more in 6 other groups."
    )
    assert (
        told["apart"][0]
        == f"8 more women and 4 fewer men {have[:-1]}; 2 more in 1 other group."
    )
    assert told["codes"][0] == (
        f"8 more whose SEX is 1 and 4 fewer whose SEX is No {have}"
    )
    assert told["nothing"][0] == f" {have}"  # and the page says why
    assert (
        told["sizes"][0]
        == "30.0\u00a0% of f instead of 10.0\u00a0% and 40.0\u00a0% of m instead of"
        f" 50.0\u00a0% {have}"
    )
    # and the third one stays
    assert told["outcomes"][0].endswith("in hired; 1 other outcome changes, too.")
    assert (
        told["means"][0]
        == "On average, hired would be 2.0 less for town 1 and 1.5 more for town 0;"
        " more for 3 and less for 1 other group."
    )
    assert told["two"][1] == "It costs 3\u00a0% of your data."


def test_the_largest_weight_has_the_digits_that_tell_it_from_the_price(tmp_path):
    script = """
import { price, priceInFull } from "./people.js";
console.log(JSON.stringify(data.map((see) => [price(see), priceInFull(see)])));
"""
    see = {"rows": 1679, "worth": 1679, "effective_rows": 1658, "changed_people": 0}
    weights = (1.27, 12.3, 4.318, 1.004, 1 + 1e-12)
    told = run(tmp_path, script, [{**see, "heaviest": weight} for weight in weights])
    assert told[0] == [
        "It costs 1.3\u00a0% of your data.",
        "1,679 rows count like 1,658: the heaviest counts 1.27 times as much as the"
        " average.",
    ]
    assert "counts 12.3 times" in told[1][1]
    assert "counts 4.32 times" in told[2][1]
    assert "counts 1.004 times" in told[3][1]
    # no row counts more than another
    assert told[4][1] == "1,679 rows count like 1,658: all count alike."


def test_for_a_model_the_sentence_is_about_its_decisions(tmp_path):
    shares = {"f": 0.31, "m": 0.33, "others": 0.32}
    groups = [group(name, 0.3, 0.3, decided=share) for name, share in shares.items()]
    cases = [
        about(*groups[:2]),  # for no model
        about(*groups[:2], model={"is_opportunity": False}),
        about(*groups, model={"is_opportunity": True}),
    ]
    script = """
import { decided, groupings } from "./people.js";
console.log(JSON.stringify(data.map((see) => decided(see, groupings(see)[0]))));
"""
    assert run(tmp_path, script, cases) == [
        "",
        "The model would give “yes” in hired to 31.0\u00a0% of f and 33.0\u00a0% of m. ",
        "The model would give “yes” in hired to 31.0\u00a0% of f and 33.0\u00a0% of m"
        " whose outcome is good; 1 other group in between. ",
    ]


def test_a_curve_begins_with_the_data_as_they_are(tmp_path):
    """Not with what its lowest rate asks for, which is a little less or more."""
    points = [
        {"value": rate, "see": about(group("f", 0.1, low), group("m", 0.5, high))}
        for rate, low, high in ((0.2, 0.12, 0.48), (0.6, 0.2, 0.4), (1, 0.3, 0.3))
    ]
    script = """
import { axis, rateCurve } from "./charts.js";
const { groups } = data[0].see, at = axis(800, 0.2, groups);
const drawn = rateCurve({ points: data, kind: "statistical_rate", grouping: "SEX",
  outcome: "yes", value: 1, now: [0.3, 0.3], at });
console.log(JSON.stringify(drawn.props["aria-label"]));
"""
    assert run(tmp_path, script, points) == (
        "f from 10.0\u00a0% to 30.0\u00a0%; m from 50.0\u00a0% to 30.0\u00a0%."
    )


def test_a_scenario_is_named_by_its_wishes(tmp_path):
    rates = [
        {"kind": "statistical_rate", "grouping": name, "wanted": wanted}
        for name, wanted in (("sex", 1), ("race", 1), ("age", 0.8), ("town", None))
    ]
    sizes = {"kind": "representation_rate", "grouping": "sex", "wanted": 0.9}
    other = group("f", 0.1, 0.3, size=50)  # by shares that were chosen
    cases = [
        {"means": [], "model": None, "rates": rates, "groups": []},
        {"means": [], "model": {"student": "A"}, "rates": [rates[0]], "groups": []},
        {"means": [1], "model": None, "rates": [sizes], "groups": []},
        about(other, rates=[rates[0]]),
    ]
    script = """
const { scenarioName } = await import("./store.js");
console.log(JSON.stringify(data.map((see) => scenarioName({ see }))));
"""
    assert run(tmp_path, NO_PAGE + script, cases) == [
        "rate 1 for sex and race, rate 0.8 for age, sizes kept",
        "for A, rate 1 for sex, sizes kept",
        "equal means, sizes 0.9 for sex",
        "rate 1 for sex",
    ]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"effective_rows": 1000}, "It costs none of your data."),
        ({"effective_rows": 999.97}, "It costs less than 0.01\u00a0% of your data."),
        ({"effective_rows": 999.6}, "It costs 0.04\u00a0% of your data."),
        ({"effective_rows": 968}, "It costs 3.2\u00a0% of your data."),
        # what design weights cost already is no part of the price
        ({"effective_rows": 400, "worth": 500}, "It costs 20\u00a0% of your data."),
        (
            {"effective_rows": 1000, "changed_people": 60.2},
            "It costs another outcome for 60 of 1,000 people.",
        ),
        (
            {"changed_people": 60.2},
            "It costs another outcome for 60 of 1,000 people and 3\u00a0% of your"
            " data.",
        ),
    ],
)
def test_the_price_says_what_is_lost(tmp_path, more, said):
    see = about(group("f", 0.1, 0.3), group("m", 0.5, 0.4), **more)
    assert run(tmp_path, TOLD, [see])[0][1] == said


TABLES, PARTS = 500, 20


@pytest.mark.more
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(1, PARTS))]
)
def test_the_gains_and_losses_of_the_sentence_are_those_of_pandas(tmp_path, part):
    pytest.importorskip("pandas")
    cases = [random_case(number) for number in range(part, TABLES, PARTS)]
    told = run(tmp_path, TOLD, [see for see, _ in cases])
    for (see, changes), (sentence, _) in zip(cases, told, strict=True):
        gains, losses = (
            sum(map(int, re.findall(rf"(\d+) {word}", sentence.replace(",", ""))))
            for word in ("more", "fewer")
        )
        assert gains == sum(change for change in changes.values() if change > 0)
        assert losses == -sum(change for change in changes.values() if change < 0)
        assert gains == losses  # as many have the outcome as before
        assert "nobody" not in sentence
        named = {
            name: int(number) * (1 if word == "more" else -1)
            for number, word, name in re.findall(
                r"(\d+) (more|fewer) (g\d+)", sentence.replace(",", "")
            )
        }
        assert named.items() <= changes.items()
        # the largest of each side is named, unless too little is known about it
        apart = {one["group"] for one in see["groups"] if one["is_apart"]}
        for sign in (1, -1):
            largest = max(sign * changes[name] for name in changes.keys() - apart)
            if largest > 0:
                assert largest == max(sign * change for change in named.values())


def random_case(number):
    """What the page is told about a random table, and what pandas counts in it."""
    rng = np.random.default_rng(number)
    rows, groups = int(rng.integers(60, 1500)), int(rng.integers(2, 12))
    names = np.array([f"g{one}" for one in range(groups)])
    shares = rng.dirichlet(np.full(groups, 2.0))
    # each group has somebody with each outcome, so that weights can do it
    everybody = np.repeat(np.arange(groups), 2)
    of = np.concatenate([everybody, rng.choice(groups, rows, p=shares)])
    hired = rng.random(len(of)) < rng.uniform(0.05, 0.9, groups)[of]
    hired[: len(everybody)] = np.arange(len(everybody)) % 2 == 0
    table = polars.DataFrame(
        {"group": names[of], "hired": np.where(hired, "yes", "no")}
    )
    fit = fairmaxent.debias(
        table,
        "hired",
        "group",
        favourable="yes",
        statistical_rate=float(rng.choice([1.0, 0.95, 0.8])),
        estimate=None,
        random_state=0,
    )
    people = table.to_pandas()
    people["weight"] = fit.weights()
    have = people[people["hired"] == "yes"]
    names = sorted(people["group"].unique())
    before = have.groupby("group").size().reindex(names, fill_value=0)
    after = have.groupby("group")["weight"].sum().reindex(names, fill_value=0.0)
    return plain_json(seen(fit)), (whole_people(after) - before).to_dict()


def whole_people(exact):
    """Round down, and give who is left to the largest remainders."""
    exact = exact.round(6)
    whole = np.floor(exact).astype(int)
    left = round(exact.sum()) - whole.sum()
    rests = (exact - whole).round(6)
    order = rests.sort_values(ascending=False, kind="stable").index
    whole[order[:left]] += 1
    return whole
