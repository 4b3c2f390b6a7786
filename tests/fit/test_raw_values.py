"""Details: drawn rows that keep the numbers of a real row, also under evidence, after
saving, and never forbidden.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairmaxent
from fairmaxent.fit.pipeline import refit
from tables import EQUAL_PROBABILITIES

DRAWS = 4000


@pytest.fixture(scope="module")
def table():
    """Numbers in bins, and an amount that is a function of the row, so that copies of a
    row are known for sure.
    """
    rng = np.random.default_rng(0)
    rows = 400
    sex = rng.choice(["F", "M"], rows)
    age = rng.integers(20, 70, rows)
    amount = age * 1000 + np.arange(rows)
    income = np.where(
        rng.random(rows) < 0.2 + 0.3 * (sex == "M") + 0.2 * (age > 45), "high", "low"
    )
    return pd.DataFrame({"sex": sex, "age": age, "amount": amount, "income": income})


def fitted(table, **options):
    return fairmaxent.debias(
        table, "income", "sex", **({"base_share": 0, "random_state": 1} | options)
    )


def copies(drawn, table):
    return (
        drawn.merge(table, how="left", indicator=True)["_merge"] == "both"
    ).to_numpy()


def test_rows_alone_are_copies_and_bins_are_not(table):
    assert copies(fitted(table).sample(DRAWS), table).all()
    assert copies(fitted(table, detail="rows").sample(DRAWS), table).all()
    assert copies(fitted(table, detail="bins").sample(DRAWS), table).mean() < 0.5


def test_with_a_base_the_copies_are_those_of_the_rows_component(table):
    """Rows of the rows component are copies, those of the base are by chance, as often
    as with the base alone.
    """
    fit, alone = fitted(table, base_share=0.5), fitted(table, base_share=1)
    by_chance = copies(alone.sample(DRAWS), table).mean()
    base, rows = fit.distribution.tilted.shares
    assert by_chance < 0.2
    assert (
        abs(copies(fit.sample(DRAWS), table).mean() - (rows + base * by_chance)) < 0.03
    )
    assert alone.distribution.details is None


def skewed(seed=0, rows=600):
    """Skewed numbers in a few wide bins, which depend on the outcome within a bin; some
    are missing.
    """
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    income = np.where(rng.random(rows) < 0.25 + 0.3 * (sex == "M"), "high", "low")
    wealth = np.exp(rng.normal(2 + (income == "high"), 1.5, rows)).round(2)
    columns = {"sex": sex, "wealth": np.where(rng.random(rows) < 0.1, np.nan, wealth)}
    columns |= {"area": rng.choice(list("abc"), rows), "income": income}
    return pd.DataFrame(columns | {"w": rng.integers(1, 5, rows).astype(float)})


@pytest.mark.parametrize(
    "options", [{}, {"weight": "w"}], ids=["unweighted", "weighted"]
)
def test_the_expectation_of_rows_is_an_exact_weighted_sum(options):
    """Without a base, the mean is that of the rows themselves, each counting by its
    fair weight.
    """
    frame = skewed() if options else skewed().drop(columns="w")
    fit = fitted(frame, **options)
    weights, known = fit.weights(), frame["wealth"].notna()
    for given in (None, {"sex": "F"}, {"area": ["a", "b"], "income": "high"}):
        kept = known.copy()
        for name, value in (given or {}).items():
            kept &= frame[name].isin(value if isinstance(value, list) else [value])
        exact = np.average(frame["wealth"][kept], weights=weights[kept])
        assert fit.distribution.expectation("wealth", given=given) == pytest.approx(
            exact, rel=1e-9
        )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("detail", "model"), [("rows", None), ("bins", None), ("rows", EQUAL_PROBABILITIES)]
)
def test_the_expectation_is_the_mean_of_what_is_drawn(detail, model):
    fit = fitted(skewed().drop(columns="w"), base_share=0.3, detail=detail, model=model)
    drawn = fit.sample(50_000, random_state=3)["wealth"].dropna()
    assert fit.distribution.expectation("wealth") == pytest.approx(
        drawn.mean(), abs=5 * drawn.sem()
    )
    given = {"income": "high", "wealth": fit.domain.attribute("wealth").labels[3]}
    drawn = fit.sample(20_000, random_state=4, given=given)["wealth"]
    assert fit.distribution.expectation("wealth", given=given) == pytest.approx(
        drawn.mean(), abs=5 * drawn.sem()
    )


@pytest.mark.parametrize(
    ("given", "iid"),
    [({"age": [33, 58], "sex": "F"}, True), ({"age": 40, "income": "low"}, False)],
)
def test_evidence_on_raw_values_is_met_by_a_real_row(table, given, iid):
    drawn = fitted(table).sample(300, given=given, iid=iid)
    assert copies(drawn, table).all()
    for column, wanted in given.items():
        assert (
            drawn[column].isin(wanted if isinstance(wanted, list) else [wanted]).all()
        )


def test_given_a_raw_value_rows_weigh_as_bayes_says(table):
    """By enumeration: P(row | age = 33) is the row's weight among those that are 33."""
    fit = fitted(table)
    weights = fit.weights() * (table["age"] == 33).to_numpy()
    expected = pd.Series(weights / weights.sum(), table["amount"])
    given = fit.distribution.condition({"age": 33})
    seen = given.sample(20_000, iid=True, random_state=2)["amount"].value_counts(
        normalize=True
    )
    seen = seen.reindex(expected.index, fill_value=0.0)
    assert np.abs(seen - expected).max() < 0.02
    by_sex = expected.groupby(table["sex"].to_numpy()).sum()
    exact = given.marginal("sex").set_index("sex")["probability"]
    np.testing.assert_allclose(exact[by_sex.index], by_sex, atol=1e-9)


def test_no_real_row_agrees_with_the_evidence(table):
    absent = next(
        a
        for a in table["amount"]
        if table.loc[table["amount"] == a, "sex"].item() == "F"
    )
    with pytest.raises(fairmaxent.errors.EvidenceError, match="probability zero"):
        fitted(table).sample(5, given={"amount": int(absent), "sex": "M"})
    drawn = fitted(table, base_share=0.5).sample(
        5, given={"amount": int(absent), "sex": "M"}
    )
    assert (drawn["amount"] == absent).all()
    assert (drawn["sex"] == "M").all()


def test_forbidden_rows_are_not_copied(table):
    rule = {
        "sex": "F",
        "age": fairmaxent.Domain.infer(table).attribute("age").labels[0],
    }
    fit = fitted(table, base_share=0.5, forbid=[rule])
    drawn = fit.sample(DRAWS)
    first = fit.domain.encode(drawn)[:, fit.domain.index("age")] == 0
    assert first.any()
    assert not (first & (drawn["sex"] == "F")).any()


def test_of_a_lazy_frame_no_row_is_kept_and_the_certificate_says_so(table):
    lazy = pl.from_pandas(table).lazy()
    fit = fitted(lazy)
    assert any(
        "'age', 'amount' are redrawn within their bins" in note
        for note in fit.certificate.warnings
    )
    assert refit(fit, fit.request).certificate.redrawn == fit.certificate.redrawn
    asked = fitted(lazy, detail="bins").certificate
    assert asked.redrawn.columns == ("age", "amount")
    assert asked.redrawn.reason is None
    # nobody needs to be told what they asked for
    assert not any("redrawn" in note for note in asked.warnings)
    with pytest.raises(
        fairmaxent.errors.InputError, match="detail='rows' is not available"
    ):
        fitted(lazy, detail="rows")


def test_copies_whose_numbers_were_redrawn_on_request_are_not_called_rows_of_the_data(
    table, tmp_path
):
    words = "rows of the data but for their numbers, which are redrawn within bins"
    fit = fitted(table, detail="bins")
    assert words in str(fit.certificate)
    fit.save(tmp_path / "fit.fme")
    assert words in str(fairmaxent.load(tmp_path / "fit.fme").certificate)
    assert words not in str(fitted(table).certificate)
    exact = table.drop(columns=["age", "amount"])  # nothing is left to redraw
    assert fitted(exact, detail="bins").certificate.redrawn is None
