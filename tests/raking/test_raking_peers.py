"""The weights are those of iterative proportional fitting, and of other libraries for
surveys.
"""

import numpy as np
import polars as pl
import pytest
import raking_problems

import fairmaxent

ROWS = 600


def survey():
    """Columns that go together, one with a rare level, and design weights."""
    rng = np.random.default_rng(5)
    age = rng.choice(["18-34", "35-64", "65+"], ROWS, p=[0.2, 0.5, 0.3])
    sex = np.where(rng.random(ROWS) < 0.4 + 0.2 * (age == "65+"), "F", "M")
    region = rng.choice(
        ["North", "East", "South", "West"], ROWS, p=[0.03, 0.27, 0.4, 0.3]
    )
    degree = np.where(rng.random(ROWS) < 0.6 - 0.3 * (age == "65+"), "yes", "no")
    size = rng.choice(["1", "2", "3", "4", "5+"], ROWS, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    design = rng.gamma(4, size=ROWS)
    columns = {
        "age": age,
        "sex": sex,
        "region": region,
        "degree": degree,
        "size": size,
        "design": design,
    }
    frame = pl.DataFrame(columns)
    crossed = ("sex_age", "age_region", "sex_region")
    return frame.with_columns(
        **{name: pl.concat_str(name.split("_"), separator="|") for name in crossed}
    )


AGE = {"18-34": 0.28, "35-64": 0.49, "65+": 0.23}
SEX = {"F": 0.51, "M": 0.49}
REGION = {"North": 0.1, "East": 0.2, "South": 0.42, "West": 0.28}
DEGREE = {"yes": 0.3, "no": 0.7}
SIZE = {"1": 0.41, "2": 0.33, "3": 0.12, "4": 0.09, "5+": 0.05}


def crossed_shares(*columns):
    """A crossed margin that agrees with the other margins of the same columns: that of
    some other weights.
    """
    frame = survey()
    weights = np.exp(
        0.8 * (frame["sex"] == "F")
        - 0.5 * (frame["age"] == "65+")
        + 0.9 * (frame["region"] == "North")
    )
    name = "_".join(columns)
    counted = (
        frame.with_columns(weight=weights)
        .group_by(name)
        .agg(pl.col("weight").sum())
        .sort(name)
    )
    return dict(
        zip(counted[name], counted["weight"] / counted["weight"].sum(), strict=True)
    )


DESIGNS = {
    "two margins": ({"age": AGE, "sex": SEX}, None),
    "five margins by design": (
        {"age": AGE, "sex": SEX, "region": REGION, "degree": DEGREE, "size": SIZE},
        "design",
    ),
    "totals": (
        {
            "age": {key: 8e6 * share for key, share in AGE.items()},
            "region": REGION,
            "size": SIZE,
        },
        None,
    ),
    "one crossed margin": (
        {"sex_age": crossed_shares("sex", "age"), "region": REGION, "degree": DEGREE},
        "design",
    ),
    "three overlapping crossed margins": (
        {
            f"{a}_{b}": crossed_shares(a, b)
            for a, b in (("sex", "age"), ("age", "region"), ("sex", "region"))
        },
        None,
    ),
}


def raked(margins, weight):
    """Our weights, with crossed columns as such; 1 on average."""
    known = {}
    for column, shares in margins.items():
        if "_" in column:
            known[tuple(column.split("_"))] = {
                tuple(level.split("|")): share for level, share in shares.items()
            }
        else:
            known[column] = shares
    raking = fairmaxent.rake(survey(), known, weight=weight)
    assert raking.certificate.largest_error < 1e-12
    return raking.weights() / raking.weights().mean()


@pytest.mark.parametrize("design", DESIGNS)
def test_the_weights_of_proportional_fitting(design):
    margins, weight = DESIGNS[design]
    frame = survey()
    base = np.ones(ROWS) if weight is None else frame[weight].to_numpy()
    assert (
        np.abs(
            raked(margins, weight)
            - raking_problems.proportional_fitting(frame, margins, base)
        ).max()
        < 1e-10
    )


def in_total(margins, total):
    return {
        name: {k: total * v / sum(shares.values()) for k, v in shares.items()}
        for name, shares in margins.items()
    }


@pytest.mark.parametrize("design", DESIGNS)
def test_the_weights_of_svy(design):
    svy = pytest.importorskip("svy", reason="svy is not installed")
    margins, weight = DESIGNS[design]
    frame = survey().with_columns(
        base=pl.lit(1.0) if weight is None else pl.col(weight)
    )
    weighting = svy.Sample(frame, svy.Design(wgt="base")).weighting
    theirs = (
        weighting.rake(shares=in_total(margins, 1), tol=1e-13, max_iter=100_000)
        .data["rk_wgt"]
        .to_numpy()
    )
    assert np.abs(raked(margins, weight) - theirs / theirs.mean()).max() < 1e-8


@pytest.mark.parametrize("design", DESIGNS)
def test_the_weights_of_weightipy(design):
    weightipy = pytest.importorskip("weightipy", reason="weightipy is not installed")
    margins, _ = DESIGNS[design]  # weightipy knows no design weights
    limits = {"convcrit": 1e-14, "max_iterations": 100_000}
    scheme = weightipy.scheme_from_dict(in_total(margins, 100), rim_params=limits)
    theirs = weightipy.weight_dataframe(survey().to_pandas(), scheme)[
        "weights"
    ].to_numpy()
    assert np.abs(raked(margins, None) - theirs / theirs.mean()).max() < 1e-8


def test_three_margins_that_share_a_column():
    """ipfn#22: the data has these margins already, so nothing must change; ipfn does
    not converge.
    """
    rng = np.random.default_rng(22)
    names = ["education", "age", "gender", "children"]
    cells = pl.DataFrame({"education": range(4)})
    for name, size in zip(names[1:], (5, 2, 3), strict=True):
        cells = cells.join(pl.DataFrame({name: range(size)}), how="cross")
    cells = cells.with_columns(weight=pl.Series(rng.uniform(1, 100, len(cells))))
    margins = {}
    for other in names[1:]:
        counted = (
            cells.group_by("education", other)
            .agg(pl.col("weight").sum())
            .sort("education", other)
        )
        margins["education", other] = {
            (a, b): total for a, b, total in counted.iter_rows()
        }
    raking = fairmaxent.rake(cells, margins, weight="weight")
    assert raking.certificate.largest_error <= 1e-12
    assert np.abs(raking.weights() / cells["weight"].to_numpy() - 1).max() <= 1e-12
    uniform = fairmaxent.rake(cells, margins)
    assert uniform.certificate.largest_error <= 1e-12
