"""Known groups, given as probabilities 0 and 1: all that is said is that of a column.

Fifty tables of every kind, each read twice: with a column of groups, and with columns
of probabilities that say the same.
"""

import dataclasses
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent import Domain, Likely, check, debias, inspect, load, metrics
from fairmaxent.report import build_report

GROUPS = ("a", "b", "c")
COLUMNS = {group: f"p_{group}" for group in GROUPS}
SHARES = [0.3, 0.2, 0.5]
RATES = np.array([0.55, 0.35, 0.45])
TABLES = [
    *range(10),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 50)),
]
OPTIONS = [
    {},
    {"within": "sex"},
    {"weight": "paid_for"},
    {"within": "sex", "weight": "paid_for"},
    {"smallest_group": 30},
]
# what a report says of the options themselves, and of those that probabilities lack
ASKED = ("call", "wishes", "first_page", "trade_off", "stamp")


def both(seed):
    """A table with a column of groups, the same with probabilities, and options."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(150, 400))
    group = rng.choice(3, rows, p=SHARES)
    paid = rng.random(rows) < RATES[group]
    others = pd.DataFrame(
        {
            "paid": np.where(paid, "yes", "no"),
            "good": np.where(rng.random(rows) < 0.7, "yes", "no"),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(20, 30, rows),
            "paid_for": rng.integers(1, 4, rows).astype(float),
        }
    )
    names = np.array(GROUPS, dtype=object)[group]
    shares = np.eye(3)[group]
    if seed % 3 == 0:
        absent = rng.random(rows) < 0.1
        names[absent] = None
        shares[absent] = np.nan
    known = others.assign(race=names)
    likely = others.assign(**dict(zip(COLUMNS.values(), shares.T, strict=True)))
    options = OPTIONS[seed % len(OPTIONS)]
    if "weight" not in options:
        known = known.drop(columns="paid_for")
        likely = likely.drop(columns="paid_for")
    if seed % 2:
        return pl.from_pandas(known), pl.from_pandas(likely, nan_to_null=True), options
    return known, likely, options


def groups_of(seed):
    """What is protected of the one, and of the other."""
    told_by = "names" if seed % 4 < 2 else "columns"
    race = Likely("race", COLUMNS, told_by=told_by)
    if seed % 7 == 0 and "within" not in OPTIONS[seed % len(OPTIONS)]:
        return ["sex", "race"], ["sex", race]
    return "race", race


def plain(value):
    """Records, sequences and texts as they are written in JSON."""
    return json.loads(json.dumps(value, default=_part))


def _part(value):
    if dataclasses.is_dataclass(value):
        return vars(value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def assert_same(one, other, where=""):
    """The same texts, and numbers up to 1e-9."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where} {key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for number, parts in enumerate(zip(one, other, strict=True)):
            assert_same(*parts, f"{where} {number}")
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-9, abs=1e-9, nan_ok=True), where
    else:
        assert one == other, where


def assert_told_alike(one, other):
    assert_same(plain(one), plain(other))
    assert str(one) == str(other)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", TABLES)
def test_metrics_are_those_of_a_column(seed):
    *tables, options = both(seed)
    asked = {"favourable": "yes", **options}
    simple = {key: asked[key] for key in asked if key != "within"}
    found = [
        (
            metrics.statistical_rate(table, "paid", groups, **asked),
            metrics.equalised_odds(table, "good", "paid", groups, **simple),
            metrics.representation_rate(table, groups, weight=options.get("weight")),
        )
        for table, groups in zip(tables, groups_of(seed), strict=True)
    ]
    for of_column, of_shares in zip(*found, strict=True):
        assert_told_alike(of_column, of_shares)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", TABLES)
def test_a_look_and_a_check_are_those_of_a_column(seed):
    *tables, options = both(seed)
    looks = []
    checks = []
    for table, groups in zip(tables, groups_of(seed), strict=True):
        looks.append(inspect(table, "paid", groups, favourable="yes", **options))
        limits = {"statistical_rate": 0.8, "statistical_difference": 0.2}
        checked = check(
            table, "paid", groups, favourable="yes", confident=True, **limits, **options
        )
        checks.append((str(checked), [vars(one.rate) for one in checked.findings]))
    assert str(looks[0]) == str(looks[1])
    assert_same(plain(looks[0].groupings), plain(looks[1].groupings))
    assert checks[0][0] == checks[1][0]
    assert_same(plain(checks[0][1]), plain(checks[1][1]))


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", TABLES)
def test_a_fit_and_its_report_are_those_of_a_column(seed):
    known, likely, options = both(seed)
    column, race = groups_of(seed)
    asked = {"favourable": "yes", **options}
    of_column = debias(known, "paid", column, base_share=0, **asked)
    of_shares = debias(likely, "paid", race, **asked)
    assert of_shares.weights() == pytest.approx(of_column.weights(), rel=1e-9)
    assert_same(of_column.certificate.to_dict(), of_shares.certificate.to_dict())
    assert str(of_column.certificate) == str(of_shares.certificate)
    summaries = [fit.summary() for fit in (of_column, of_shares)]
    assert str(summaries[0]) == str(summaries[1])
    if seed % 5 == 0:
        reports = [build_report(fit).to_dict() for fit in (of_column, of_shares)]
        for own in reports:  # what was asked differs, and what may still be asked
            own["told"].pop("asked", None)
            own["told"].pop("not_estimated", None)
            own["told"].pop("asked", None)
        said = [{key: own[key] for key in own if key not in ASKED} for own in reports]
        assert_same(*map(plain, said))


def test_the_table_itself_is_weighed_and_stored_and_reported(tmp_path):
    _, likely, _ = both(1)
    race = Likely("race", COLUMNS, told_by="names")
    fit = debias(likely, "paid", race, favourable="yes")
    fit.save(tmp_path / "fit")
    for one in (fit, load(tmp_path / "fit")):
        weighed = one.weigh(likely)
        assert weighed["fair_weight"].to_numpy() == pytest.approx(fit.weights())
        assert weighed.columns == [*likely.columns, "fair_weight"]
        assert one.sample(3).columns == ["paid", "good", "sex", "age", "race"]
    fit.report(tmp_path / "report.md", data=likely)
    assert "Nobody's race" not in (tmp_path / "report.md").read_text()


def test_a_lazy_frame_and_a_domain_are_read_alike():
    known, likely, _ = both(3)
    race = Likely("race", COLUMNS, told_by="columns")
    of_column = debias(known, "paid", "race", base_share=0)
    lazily = debias(likely.lazy(), "paid", race)
    assert_same(
        plain(of_column.certificate.achieved), plain(lazily.certificate.achieved)
    )
    described = Domain.infer(likely)
    declared = debias(likely, "paid", race, domain=described)
    assert declared.weights() == pytest.approx(of_column.weights(), rel=1e-9)
    lazily = debias(likely.lazy(), "paid", race, domain=described)
    assert_same(
        plain(of_column.certificate.achieved), plain(lazily.certificate.achieved)
    )
    look = inspect(likely, "paid", race, domain=described)
    assert str(look) == str(inspect(known, "paid", "race", domain=Domain.infer(known)))


def test_one_person_of_two_groups_is_told_of():
    _, likely, _ = both(1)
    shares = likely["p_a"].to_numpy().copy()
    other = likely["p_b"].to_numpy().copy()
    shares[0] = other[0] = 0.5
    third = likely["p_c"].to_numpy().copy()
    third[0] = 0.0
    one = likely.with_columns(p_a=shares, p_b=other, p_c=third)
    race = Likely("race", COLUMNS, told_by="names")
    assert debias(one, "paid", race).certificate.likely is not None
    assert metrics.statistical_rate(one, "paid", race).likely is not None
    assert inspect(one, "paid", race).likely is not None
