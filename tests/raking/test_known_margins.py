"""Reading margins: mappings and tables, shares and totals, levels that do not match."""

import pandas as pd
import polars as pl
import pytest

import fairmaxent

COLUMNS = {"sex": ["F", "F", "M", "M", "M", "F"]}
COLUMNS |= {
    "age": ["young", "old", "young", "old", "old", "old"],
    "children": [0, 1, 2, 0, 1, 2],
}
FRAME = pl.DataFrame(COLUMNS | {"votes": [True, False, True, True, False, True]})
SEX = {"F": 0.6, "M": 0.4}
AGE = {"young": 0.25, "old": 0.75}
CROSSED = {
    ("F", "young"): 0.2,
    ("F", "old"): 0.3,
    ("M", "young"): 0.1,
    ("M", "old"): 0.4,
}


def weights(margins, frame=FRAME, **options):
    return fairmaxent.rake(frame, margins, **options).weights()


def achieved(weights, *columns, frame=FRAME):
    counted = (
        frame.with_columns(w=weights / weights.sum())
        .group_by(columns)
        .agg(pl.col("w").sum())
    )
    return {
        row[0] if len(columns) == 1 else row[:-1]: row[-1]
        for row in counted.iter_rows()
    }


def long(margins):
    rows = []
    for columns, values in margins.items():
        names = (columns,) if isinstance(columns, str) else columns
        for level, value in values.items():
            parts = [
                str(part) for part in (level if isinstance(level, tuple) else (level,))
            ]
            rows.append([", ".join(names), *parts, *[None] * (2 - len(parts)), value])
    return pl.DataFrame(
        rows, schema=["columns", "level", "level_2", "value"], orient="row"
    )


TABLES = {
    "long": long({"sex": SEX, "age": AGE}),
    "long, one level": (
        long({"sex": SEX, "age": AGE}).drop("level_2").rename({"columns": "column"})
    ),
    "under the columns": pl.DataFrame(
        {
            "sex": ["F", "M", None, None],
            "age": [None, None, "young", "old"],
            "value": [0.6, 0.4, 0.25, 0.75],
        }
    ),
    "several": [{"sex": SEX}, long({"age": AGE}).to_pandas()],
    "of pyarrow": long({"sex": SEX, "age": AGE}).to_arrow(),
    "totals": {"sex": {"F": 600, "M": 400}, "age": {"young": 250, "old": 750}},
    "percentages": {"sex": {"F": 60, "M": 40}, "age": {"young": 25.0, "old": 75.0}},
    "series": {"sex": pd.Series(SEX), "age": pd.Series(AGE)},
}


@pytest.mark.parametrize("cell", ["", None])
def test_a_column_without_a_name_has_a_margin_in_a_line_without_one(cell):
    frame = pd.DataFrame({"": ["F", "M", "M", "M"]})
    margins = pl.DataFrame(
        {"columns": [cell, cell], "level": ["F", "M"], "value": [0.5, 0.5]},
        schema_overrides={"columns": pl.String},
    )
    weights = fairmaxent.rake(frame, margins).weights()
    assert weights == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3])


@pytest.mark.parametrize("form", TABLES)
def test_margins_in_all_forms_mean_the_same(form):
    raked = weights(TABLES[form])
    assert raked / raked.mean() == pytest.approx(
        weights({"sex": SEX, "age": AGE}), abs=1e-12
    )
    assert achieved(raked, "sex") == pytest.approx(SEX)
    assert achieved(raked, "age") == pytest.approx(AGE)


def test_crossed_margins():
    raked = weights({("sex", "age"): CROSSED})
    assert achieved(raked, "sex", "age") == pytest.approx(CROSSED)
    for table in (
        long({("sex", "age"): CROSSED}),
        pl.DataFrame(
            [(*level, share) for level, share in CROSSED.items()],
            ["sex", "age", "value"],
            orient="row",
        ),
        {("sex", "age"): pd.Series(CROSSED)},
    ):
        assert weights(table) == pytest.approx(raked)


def test_totals_are_what_the_weights_add_up_to():
    raking = fairmaxent.rake(FRAME, {"sex": {"F": 600, "M": 400}, "age": AGE})
    assert raking.weights().sum() == pytest.approx(1000)
    assert raking.certificate.total == 1000
    (note,) = raking.certificate.notes
    assert (
        note
        == "shares are known for age, and totals for the rest; the weights add up to"
        " 1,000"
    )
    assert fairmaxent.rake(FRAME, {"sex": SEX}).weights().sum() == pytest.approx(6)


def test_levels_are_found_by_value_and_by_text():
    for children in (
        {0: 0.5, 1: 0.3, 2: 0.2},
        {"0": 0.5, "1": 0.3, "2": 0.2},
        {0.0: 0.5, 1.0: 0.3, 2.0: 0.2},
    ):
        assert achieved(weights({"children": children}), "children") == pytest.approx(
            {0: 0.5, 1: 0.3, 2: 0.2}
        )
    for votes in (
        {True: 0.3, False: 0.7},
        {"true": 0.3, "false": 0.7},
        {"True": 0.3, "False": 0.7},
    ):
        assert achieved(weights({"votes": votes}), "votes") == pytest.approx(
            {True: 0.3, False: 0.7}
        )
    texts = FRAME.with_columns(pl.col("children").cast(pl.String))
    assert weights({"children": {0: 0.5, 1: 0.3, 2: 0.2}}, texts) == pytest.approx(
        weights({"children": {"0": 0.5, "1": 0.3, "2": 0.2}})
    )


def test_a_domain_cuts_numbers_into_bins():
    frame = pl.DataFrame({"age": list(range(18, 90)), "sex": ["F", "M"] * 36})
    domain = fairmaxent.Domain.infer(frame, bins={"age": [18, 40, 65, 90]})
    margins = {"age": {"[18, 40)": 0.5, "[40, 65)": 0.3, "[65, 90]": 0.2}, "sex": SEX}
    raked = weights(margins, frame, domain=domain)
    assert raked[frame["age"].to_numpy() < 40].sum() == pytest.approx(36)
    lazy = (
        fairmaxent.rake(frame.lazy(), margins, domain=domain)
        .weigh(frame.lazy())
        .collect()
    )
    assert lazy["raked_weight"].to_list() == pytest.approx(raked.tolist())


@pytest.mark.parametrize(
    ("margins", "note"),
    [
        (
            {"sex": {"F": 0.599, "M": 0.4}},
            "the shares of sex add up to 0.999, and were rescaled to 1",
        ),
        (
            {"sex": {"F": 60, "M": 40}},
            "the margin of sex adds up to 100, and was read as percentages",
        ),
        (
            {"sex": {"F": 60, "M": 40.3}},
            "the percentages of sex add up to 100.3, and were rescaled to 100",
        ),
        (
            {"sex": {"F": 600, "M": 400}, "age": {"young": 250, "old": 751}},
            "the margin of age adds up to 1,001, and was rescaled to 1,000",
        ),
    ],
)
def test_rounding_is_rescaled_with_a_note(margins, note):
    raking = fairmaxent.rake(FRAME, margins)
    assert raking.certificate.notes == (note,)
    assert note in str(raking)
    for name, values in margins.items():
        shares = {
            level: value / sum(values.values()) for level, value in values.items()
        }
        assert achieved(raking.weights(), name) == pytest.approx(shares)


def test_missing_values_keep_their_share_or_have_one_of_their_own():
    frame = FRAME.with_columns(sex=pl.Series(["F", None, "M", "M", "M", "F"]))
    raking = fairmaxent.rake(frame, {"sex": SEX, "age": AGE})
    shares = achieved(raking.weights(), "sex", frame=frame)
    assert shares == pytest.approx({"F": 0.6 * 5 / 6, "M": 0.4 * 5 / 6, None: 1 / 6})
    assert "16.67% of the weight has no value in sex" in raking.certificate.notes[0]
    own = {"F": 0.5, "M": 0.4, None: 0.1}
    raking = fairmaxent.rake(frame, {"sex": own})
    assert achieved(raking.weights(), "sex", frame=frame) == pytest.approx(own)
    assert raking.certificate.notes == ()
    with pytest.raises(fairmaxent.errors.LevelError, match="no row has a value in sex"):
        fairmaxent.rake(FRAME.with_columns(sex=pl.lit(None, pl.String)), {"sex": SEX})


def test_a_level_of_zero_gets_no_weight():
    assert weights({"age": {"young": 1.0, "old": 0.0}}) == pytest.approx(
        [3, 0, 3, 0, 0, 0]
    )


@pytest.mark.parametrize(
    ("margins", "error", "words"),
    [
        ({}, "TargetError", "no margin was given"),
        ({"sxe": SEX}, "ColumnError", "did you mean 'sex'"),
        ({("sex", "sex"): {("F", "F"): 1}}, "ColumnError", "names a column twice"),
        ({3: SEX}, "ColumnError", "name a column"),
        ({"sex": 0.5}, "TargetError", "give a number for each level"),
        ({"sex": {"F": -0.1, "M": 1.1}}, "TargetError", "not negative"),
        ({"sex": {"F": float("nan"), "M": 1}}, "TargetError", "not negative"),
        ({"sex": {"F": 1e308, "M": 1e308}}, "TargetError", "finite"),
        ({"sex": {"F": "half", "M": 0.5}}, "TargetError", "not negative"),
        ({"sex": {"F": 0, "M": 0}}, "TargetError", "zero everywhere"),
        (
            {"sex": {("F", "x"): 1.0}},
            "TargetError",
            "one value for each of its 1 columns",
        ),
        (
            {("sex", "age"): {"F": 1.0}},
            "TargetError",
            "one value for each of its 2 columns",
        ),
        (
            {"sex": {"F": 1.0}},
            "LevelError",
            "does not list M, which rows of the data have; add",
        ),
        (
            {"sex": {"F": 1.0, "X": 1.0}},
            "LevelError",
            "does not list M, which rows of the data have, but X, which no ",
        ),
        ({"sex": {"f": 0.5, "M ": 0.5}}, "LevelError", "'f' is 'F' in the data"),
        (
            {"sex": {"F": 10, "M": 10}, "age": {"young": 300, "old": 700}},
            "TargetError",
            "different totals",
        ),
        ([{"sex": SEX}, {"sex": SEX}], "TargetError", "twice"),
        (
            {"children": {0: 0.5, "0": 0.1, 1: 0.2, 2: 0.2}},
            "LevelError",
            "twice, spelt differently",
        ),
        (
            pl.DataFrame({"sex": ["F", "M"], "share": [0.5, 0.5]}),
            "TargetError",
            "no column 'value'",
        ),
        (pl.DataFrame({"value": [0.5, 0.5]}), "TargetError", "a line without a column"),
        (
            pl.DataFrame({"columns": ["sex, age"], "level": ["F"], "value": [1.0]}),
            "TargetError",
            r"2 level\(s\)",
        ),
        (
            pl.DataFrame({"sex": ["F", None], "value": [0.5, 0.5]}),
            "TargetError",
            "a line without a column",
        ),
        (3, "TargetError", "cannot read the margins"),
    ],
)
def test_margins_that_make_no_sense_are_refused(margins, error, words):
    with pytest.raises(getattr(fairmaxent.errors, error), match=words):
        fairmaxent.rake(FRAME, margins)


@pytest.mark.parametrize("weight", ["nobody", "sex", 3])
def test_weights_that_make_no_sense_are_refused(weight):
    with pytest.raises(fairmaxent.InputError):
        fairmaxent.rake(FRAME, {"age": AGE}, weight=weight)


def test_what_a_hostile_level_holds_is_shown_as_an_escape():
    frame = pl.DataFrame({"sex": ["F\x1b[2J", "M"]})
    text = str(fairmaxent.rake(frame, {"sex": {"F\x1b[2J": 0.5, "M": 0.5}}))
    assert "\x1b" not in text
    assert "\\x1b" in text


@pytest.mark.parametrize(
    "margins", [{"sex": {"F": 0.5, "M": 0.6}}, {"sex": {"F": 0.4, "M": 0.5}}]
)
def test_shares_that_do_not_add_up_are_not_taken_for_totals(margins):
    """Otherwise the shares that somebody typed would silently become others."""
    with pytest.raises(fairmaxent.errors.TargetError, match="shares must add up to 1"):
        weights(margins)
    assert weights({"sex": {"F": 1, "M": 1}}).sum() == pytest.approx(2)
