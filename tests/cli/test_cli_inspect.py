"""inspection.py and ``fairmaxent inspect``: what a table is like, against counts taken
by hand.
"""

import itertools
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats
from sklearn.metrics import mutual_info_score

import clifiles
import fairmaxent
from clifiles import ROLES, ROWS, biased_table
from fairmaxent import debias
from fairmaxent.cli.group import group
from fairmaxent.files.formats import read_table
from fairmaxent.inspection import inspect
from fairmaxent.inspection.hints import predicted_share
from mixed import TABLES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_id = biased_table().with_columns(
        id=pl.Series([f"p{row}" for row in range(ROWS)])
    )
    with_id.write_csv("data.csv")
    return tmp_path


def run(*args):
    return clifiles.run(*args).stdout


def test_rates_are_those_of_a_group_by():
    found = inspect(biased_table(), "income", ["sex", "race"], favourable=">50K")
    table = biased_table().to_pandas()
    for grouping, name in zip(found.groupings, ["sex", "race"], strict=True):
        shares = table[name].value_counts(normalize=True)
        rates = (table["income"] == ">50K").groupby(table[name]).mean()
        assert grouping.name == name
        np.testing.assert_allclose(
            grouping.representation.value, shares.min() / shares.max()
        )
        np.testing.assert_allclose(
            grouping.statistical.value, rates.min() / rates.max()
        )
        assert grouping.statistical.worst.lowest == (rates.idxmin(),)
        assert {
            own.group[0]: own.rate for own in grouping.statistical.groups
        } == pytest.approx(rates.to_dict())
        assert all(
            own.interval[0] < own.rate < own.interval[1]
            for own in grouping.statistical.groups
        )


def test_columns_are_summed_up():
    table = biased_table().with_columns(
        pl.when(pl.col("age") < 30).then(None).otherwise(pl.col("job")).alias("job"),
        id=pl.Series(range(1000, 1000 + ROWS)),
        name=pl.Series([f"n{row}" for row in range(ROWS)]),
        real=pl.Series(np.random.default_rng(0).random(ROWS)),
    )
    found = inspect(table, "income", "sex")
    by_name = {column.name: column for column in found.columns}
    assert by_name["job"].missing == table["job"].null_count()
    assert by_name["job"].levels == 4
    assert by_name["job"].values == 3
    assert by_name["age"].kind == "numeric"
    assert by_name["age"].values == table["age"].n_unique()
    assert by_name["age"].levels <= 16
    # a measured number differs in every row and is none
    assert found.identifiers == ("id", "name")


def test_empty_cells_are_named():
    table = biased_table().filter(
        (pl.col("sex") == "Male")
        | (pl.col("race") != "Other")
        | (pl.col("income") == "<=50K")
    )
    assert len(table.group_by("income", "sex", "race").len()) == 11
    assert inspect(table, "income", ["sex", "race"]).empty_cells == (
        "income = >50K, sex = Female, race = Other",
    )


@pytest.mark.more
def test_proxies_are_weighed_by_the_design():
    """Weights that make jobs predict sex less and race more, against the KL divergence
    from independence by SciPy.
    """
    table = biased_table().to_pandas()
    rng = np.random.default_rng(2)
    rare = ((table["sex"] == "Male") & (table["age"] > 50)) | (
        (table["race"] == "Other") & (table["job"] == "nurse")
    )
    table["weight"] = rng.uniform(0.5, 1.5, ROWS) * np.where(rare, 9.0, 1.0)
    table = table.drop(columns="age")
    proxies = inspect(table, "income", ["sex", "race"], weight="weight").proxies
    weight = table["weight"]
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert effective < ROWS / 2
    expected = {}
    for column, protected in (
        ("race", "sex"),
        ("job", "sex"),
        ("sex", "race"),
        ("job", "race"),
    ):
        counts = table.pivot_table(
            "weight", protected, column, aggfunc="sum", fill_value=0.0
        ).to_numpy()
        independent = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        chance = (counts.shape[0] - 1) * (counts.shape[1] - 1) / (2 * effective)
        information = stats.entropy(counts.ravel(), independent.ravel()) - chance
        expected[column, protected] = max(
            0.0, information / (stats.entropy(counts.sum(axis=1)) - chance)
        )
    assert {
        (own.column, own.protected): own.strength for own in proxies
    } == pytest.approx(expected, abs=1e-12)
    plain = inspect(table.drop(columns="weight"), "income", ["sex", "race"]).proxies
    assert all(
        abs(own.strength - expected[own.column, own.protected]) > 0.01 for own in plain
    )


def test_mutual_information_is_that_of_scikit_learn():
    table = biased_table()
    counts = (
        pd.crosstab(table["sex"].to_numpy(), table["job"].to_numpy())
        .to_numpy()
        .astype(float)
    )
    shares = counts.sum(axis=1) / ROWS
    entropy, chance = -(shares * np.log(shares)).sum(), 1 * 2 / (2 * ROWS)
    told = mutual_info_score(table["sex"].to_numpy(), table["job"].to_numpy())
    np.testing.assert_allclose(
        predicted_share(counts, ROWS), (told - chance) / (entropy - chance)
    )


def test_the_strongest_proxy_comes_first():
    table = biased_table().with_columns(
        copy=pl.col("sex").replace({"Female": "a", "Male": "b"})
    )
    proxies = inspect(table, "income", ["sex", "race"]).proxies
    assert (proxies[0].column, proxies[0].protected) == ("copy", "sex")
    np.testing.assert_allclose(proxies[0].strength, 1.0)
    of_sex = [own.column for own in proxies if own.protected == "sex"]
    assert of_sex[1] == "job"
    assert "income" not in of_sex
    assert all(
        left.strength >= right.strength for left, right in itertools.pairwise(proxies)
    )


@pytest.mark.more
def test_the_config_it_writes_is_taken_by_debias(folder):
    told = [
        *ROLES,
        "--favourable",
        ">50K",
        "--bins",
        "age: 0, 50, 100",
        "--write-config",
        "c.toml",
    ]
    assert "\nwrote c.toml\n" in run("inspect", "data.csv", *told)
    config = tomllib.loads((folder / "c.toml").read_text())
    assert "keep" not in config  # a suggestion is no setting
    assert config["kinds"]["age"] == "numeric"
    # the groups are large enough for equal sizes
    assert config["representation_rate"] == 1.0
    assert "id" not in config["kinds"]
    assert '# keep_columns = ["id"]' in (folder / "c.toml").read_text()
    result = CliRunner().invoke(
        group, ["debias", "data.csv", "--config", "c.toml", "-o", "fair.csv"]
    )
    assert result.exit_code == 0, result.stderr
    domain = fairmaxent.Domain.infer(biased_table(), bins={"age": [0, 50, 100]})
    fit = debias(
        biased_table(),
        "income",
        "sex",
        favourable=">50K",
        representation_rate=1.0,
        domain=domain,
    )
    assert read_table("fair.csv").frame.equals(fit.sample(ROWS, random_state=0))


@pytest.mark.more
def test_every_library_is_told_the_same():
    for given in ({}, {"outcome": "member", "protected": ["sex", "rank"]}):
        found = [inspect(make(), **given).to_dict() for make in TABLES.values()]
        assert found[0] == found[1] == found[2]
