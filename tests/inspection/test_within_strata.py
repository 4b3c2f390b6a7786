"""inspection/verdict.py: the ratio over strata, against published numbers, the formula
written out, the metrics, and simulation.
"""

import json
import re

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import fairmaxent
from clifiles import run
from fairmaxent import inspect
from fairmaxent.fairness.compare import Compare
from fairmaxent.inspection.verdict import pooled_ratio
from fairmaxent.metrics import statistical_rate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison

# Bickel, Hammel and O'Connell (1975): women admitted and in all, and men.
BERKELEY = {
    "A": (89, 108, 512, 825),
    "B": (17, 25, 353, 560),
    "C": (202, 593, 120, 325),
    "D": (131, 375, 138, 417),
    "E": (94, 393, 53, 191),
    "F": (24, 341, 22, 373),
}


def people(strata):
    """So many women with the outcome and in all, and men, in each stratum."""
    rows = []
    for stratum, (women, of_women, men, of_men) in strata.items():
        for sex, having, total in (("f", women, of_women), ("m", men, of_men)):
            rows += [(stratum, sex, "yes")] * having
            rows += [(stratum, sex, "no")] * (total - having)
    return pl.DataFrame(rows, schema=["stratum", "sex", "hired"], orient="row")


def look(frame, **options):
    return inspect(frame, "hired", "sex", favourable="yes", within="stratum", **options)


def gap(frame, **options):
    return look(frame, **options).groupings[0].verdict.gap


def by_hand(strata, confidence=0.95):
    """Greenland and Robins (1985), women over men, written out."""
    top = below = spread = 0.0
    for a, n1, b, n0 in strata.values():
        total = n1 + n0
        top += a * n0 / total
        below += b * n1 / total
        spread += ((a + b) * n1 * n0 - a * b * total) / total**2
    ratio = top / below
    reach = np.exp(norm.ppf((1 + confidence) / 2) * np.sqrt(spread / (top * below)))
    return ratio, ratio / reach, ratio * reach


def test_the_ratio_is_that_of_the_formula():
    ratio, low, high = by_hand(BERKELEY)
    found = gap(people(BERKELEY))
    assert ratio > 1  # women are admitted more often, so men stand first
    assert found.worst.lowest == ("m",)
    assert (found.value, *found.interval) == pytest.approx(
        (1 / ratio, 1 / high, 1 / low)
    )


def test_the_ratio_of_a_published_example():
    """Rothman, Greenland and Lash (2008), Modern Epidemiology, table 15-1: the
    University Group Diabetes Program, deaths by age; 1.33 in all.
    """
    trial = {"young": (8, 106, 5, 120), "old": (22, 98, 16, 85)}
    found = gap(people(trial))
    assert 1 / found.value == pytest.approx(1.33, abs=0.005)


def test_one_stratum_gives_the_plain_ratio_and_few_people_the_formula():
    found = gap(people({"all": (30, 100, 60, 100)}))
    assert found.value == pytest.approx(0.5)
    assert (found.value, *found.interval) == pytest.approx(
        by_hand({"all": (30, 100, 60, 100)})
    )


def test_people_who_are_all_turned_away_have_a_ratio_of_0():
    found = gap(people({"x": (0, 40, 20, 50), "y": (0, 30, 10, 40)}))
    assert found.value == 0
    assert found.interval[0] == 0
    assert 0 < found.interval[1] < 0.5
    assert gap(people({"x": (20, 50, 0, 40)})).worst.lowest == ("m",)


def test_weights_on_another_scale_change_nothing_and_even_ones_count():
    frame = people(BERKELEY)
    plain = gap(frame)
    same = gap(frame.with_columns(w=pl.lit(3.5)), weight="w")
    assert (same.value, *same.interval) == pytest.approx((plain.value, *plain.interval))
    rng = np.random.default_rng(1)
    uneven = gap(
        frame.with_columns(w=pl.Series(rng.lognormal(0, 1, len(frame)))), weight="w"
    )
    width = np.log(uneven.interval[1] / uneven.interval[0])
    assert width > 1.3 * np.log(plain.interval[1] / plain.interval[0])


def test_what_is_said():
    found = look(people(BERKELEY))
    text = repr(found)
    verdict = found.verdicts[0]
    assert verdict.headline.startswith(
        "Compared within stratum, people with sex 'm' have hired 'yes' 0.94 times as"
        " often as people with sex 'f' (between 0.87 and 1.03). That may well be chance"
    )
    assert text.startswith(verdict.headline)
    assert "over all strata together: 6 have people of several groups." in text
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["within"] == ["stratum"]
    assert facts["verdicts"][0]["gap"]["value"] == pytest.approx(verdict.gap.value)
    strata = facts["groupings"][0]["strata"]
    assert strata[0]["groups"][0]["stratum"][0][1] == "A"
    assert all(len(one["groups"]) == 2 for one in strata)


def test_strata_have_the_rates_of_the_metrics_and_the_clearest_is_first():
    frame = people({**BERKELEY, "men only": (0, 0, 5, 9)})
    found = look(frame)
    strata = found.groupings[0].strata
    rate = statistical_rate(frame, "hired", "sex", favourable="yes", within="stratum")
    assert {group for one in strata for group in one.groups} == set(rate.groups)
    highest = [one.interval[1] for one in strata]
    assert highest == sorted(highest)
    assert ", and 1 of one only, who cannot be compared." in repr(found)


def test_of_many_strata_the_clearest_are_shown_and_the_others_counted():
    many = {f"s{number:02}": (30, 60, 30 + number, 60) for number in range(11)}
    text = repr(look(people(many)))
    pairs = re.findall(r"^(s[01]\d) +([fm]) ", text, re.MULTILINE)
    assert len(pairs) == 16
    assert [sex for _, sex in pairs] == ["f", "m"] * 8
    assert pairs[0][0] == "s10"
    assert "the 8 strata with the clearest gaps; 3 more are not shown" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": "sex"}, "'sex' is named twice"),
        ({"within": "hired"}, "'hired' is named twice"),
        ({"within": "nothing"}, "no column 'nothing'"),
        ({"within": "stratum", "cluster": "stratum"}, "cannot go together"),
        ({"within": "stratum", "weight": "stratum"}, "stratum"),
        ({"within": {"stratum": "Z"}}, "no row is in such a stratum"),
    ],
)
def test_what_within_is_refused_with(options, said):
    with pytest.raises(fairmaxent.errors.FairMaxEntError, match=said):
        inspect(people(BERKELEY), "hired", "sex", favourable="yes", **options)


def test_strata_of_one_group_each_say_nothing():
    frame = people({"x": (10, 40, 0, 0), "y": (0, 0, 10, 40)})
    found = look(frame)
    assert found.groupings[0].verdict.gap is None
    assert "No two groups" in repr(found)


def test_strata_are_not_proposed_as_groups():
    frame = people(BERKELEY).rename({"stratum": "gender", "sex": "race"})
    assert inspect(frame, "hired", favourable="yes").protected == ("gender", "race")
    within = inspect(frame, "hired", favourable="yes", within="gender")
    assert within.protected == ("race",)


def test_the_command_compares_within_and_repeats_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(BERKELEY).write_csv("t.csv")
    shown = run("inspect", "t.csv", "--protected", "sex", "--within", "stratum").stdout
    assert shown.startswith("Compared within stratum, people with sex 'm'")
    assert "--within stratum" in shown.split("Next:")[1]


@pytest.mark.more
def test_a_config_file_keeps_the_strata(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = people(BERKELEY)
    years = np.where(np.arange(len(frame)) % 2, "new", "old")
    frame.with_columns(year=years).write_csv("t.csv")
    for number, strata in enumerate((["stratum"], ["stratum", "year=new"])):
        within = [word for one in strata for word in ("--within", one)]
        config = f"{number}.toml"
        run("inspect", "t.csv", "--protected", "sex", *within, "--write-config", config)
        run("debias", "t.csv", "--config", config, "--save", f"{number}.fair")
        fit = fairmaxent.load(f"{number}.fair")
        assert dict.fromkeys(fit.request.within, None) == dict.fromkeys(
            one.partition("=")[0] for one in strata
        )
    assert fit.request.within == {"stratum": None, "year": ["new"]}


COMPARED = Comparison(Compare("sex", within="stratum", favourable="yes"), "hired")


def covered(rng, strata, ratio, runs):
    """How often the interval holds a common ratio over strata of uneven rates."""
    held = 0
    for _ in range(runs):
        drawn = {}
        for number in range(strata):
            women, men = rng.integers(4, 60, 2)
            rate = rng.uniform(0.2, 0.5)
            drawn[f"s{number}"] = (
                rng.binomial(women, rate * ratio),
                women,
                rng.binomial(men, rate),
                men,
            )
        (rows,) = COMPARED.grouped(people(drawn))
        tables = [GroupedTable.of_outcomes(part, "yes") for part in rows.parts()]
        sums, (low, high) = pooled_ratio(tables, "yes", (("f",), ("m",)), 0.95)
        if sums[0] > sums[1]:  # then it is the ratio of men to women
            low, high = 1 / high, 1 / low
        held += low <= ratio <= high
    return held / runs


@pytest.mark.more
def test_the_interval_covers():
    assert covered(np.random.default_rng(4), strata=6, ratio=0.7, runs=100) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("strata", [2, 6, 20])
@pytest.mark.parametrize("ratio", [0.6, 1.0])
def test_the_interval_covers_as_often_as_it_says(strata, ratio):
    share = covered(np.random.default_rng(strata), strata, ratio, 2000)
    assert share >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / 2000)
