"""domain.py: that a table survives the way to codes and back."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain, EncodedTable, learn_columns
from fairmaxent.data.levels import ColumnOptions
from fairmaxent.errors import ColumnError, InputError, LevelError
from fairmaxent.fit.records import pack, unpack
from mixed import (
    BINNED,
    LUMPED,
    TABLES,
    cells,
    generator,
    infer_and_encode,
    raw_columns,
    same_tables,
    schema,
)
from tables import times


def test_a_table_survives_the_way_to_codes_and_back(table):
    domain, codes = infer_and_encode(table)
    decoded = domain.decode(codes, rng=generator())
    assert schema(decoded) == schema(table)
    assert np.array_equal(domain.encode(decoded), codes)
    by_value = [
        attribute.name for attribute in domain.attributes if attribute.is_value_coded
    ]
    assert by_value == [name for name in domain.names if name not in (*BINNED, LUMPED)]
    assert all(cells(decoded, name) == cells(table, name) for name in by_value)


def test_one_pass_gives_levels_and_the_position_of_every_raw_value(table):
    opened = frames.open_frame(table)
    columns = learn_columns(table, ColumnOptions(opened.columns), None)
    domain = Domain.of(columns)
    learned = EncodedTable.of(domain, columns)
    assert np.array_equal(learned.codes, infer_and_encode(table)[1])
    assert {domain.names[index] for index in learned.positions} == {*BINNED, LUMPED}
    for index, positions in learned.positions.items():
        attribute = domain.attributes[index]
        assert raw_cells(frames.take(attribute.values, positions)) == raw_cells(
            opened.get_column(attribute.name)
        )
        levels = np.searchsorted(attribute.level_starts, positions, side="right") - 1
        assert np.array_equal(levels, learned.codes[:, index])
    again = domain.encode_rows(table)
    assert np.array_equal(again.codes, learned.codes)
    assert again.unknown == ""
    for index, positions in learned.positions.items():
        assert np.array_equal(again.positions[index], positions)
        assert again.positions[index].dtype == positions.dtype


def raw_cells(column):
    return [None if frames.is_missing(value) else value for value in column.to_list()]


def test_a_number_never_seen_in_its_bin_has_a_level_but_no_position():
    domain = Domain.infer(pl.DataFrame({"x": range(0, 200, 2)}))
    encoded = domain.encode_rows(pl.DataFrame({"x": [0, 7]}))
    assert encoded.codes[:, 0].tolist() == [0, domain.attributes[0].level(7)]
    assert encoded.positions is None
    assert encoded.unknown.startswith("column 'x' holds 7")


def test_a_stored_domain_decodes_the_same_table_for_the_same_seed(table):
    domain, codes = infer_and_encode(table)
    arrays, arrays_again = {}, {}
    record = pack(domain, arrays)
    restored = unpack(json.loads(json.dumps(record)), Domain, arrays)
    assert same_tables(
        restored.decode(codes, rng=generator()), domain.decode(codes, rng=generator())
    )
    assert np.array_equal(restored.encode(table), codes)
    assert pack(restored, arrays_again) == record
    assert {key: array.tobytes() for key, array in arrays_again.items()} == {
        key: array.tobytes() for key, array in arrays.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_three_libraries_give_the_same_codes_labels_and_notes(seed):
    learned = [infer_and_encode(make(seed)) for make in TABLES.values()]
    first, codes = learned[0]
    for domain, other_codes in learned[1:]:
        assert np.array_equal(other_codes, codes)
        assert [a.labels for a in domain.attributes] == [
            a.labels for a in first.attributes
        ]
        assert [a.kind for a in domain.attributes] == [a.kind for a in first.attributes]
        assert domain.notes == first.notes


def test_a_domain_encodes_the_same_data_of_another_library_in_any_column_order(table):
    domain, codes = infer_and_encode(table)
    assert np.array_equal(
        domain.encode(TABLES["polars"]().select(list(reversed(domain.names)))), codes
    )


value = st.one_of(
    st.none(), st.sampled_from(["a", "b", "é", "other", "missing", "1", ""])
)
number = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@settings(max_examples=times(60), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(value, number, st.booleans()), min_size=1, max_size=60),
    st.integers(1, 6),
)
def test_any_small_table_survives_the_round_trip(rows, bins):
    words, numbers, truths = map(list, zip(*rows, strict=True))
    numbers = [None if one is None else float(one) for one in numbers]
    schema = {"w": pl.String, "n": pl.Float64, "t": pl.Boolean}
    table = pl.DataFrame({"w": words, "n": numbers, "t": truths}, schema=schema)
    domain, codes = infer_and_encode(table, bins=bins, max_levels=3)
    assert all(
        len(set(attribute.labels)) == attribute.size for attribute in domain.attributes
    )
    decoded = domain.decode(codes, rng=generator())
    assert decoded.schema == table.schema
    assert np.array_equal(domain.encode(decoded), codes)
    other_codes = infer_and_encode(table.to_pandas(), bins=bins, max_levels=3)[1]
    assert np.array_equal(other_codes, codes)


def test_true_one_and_their_texts_are_not_confused():
    table = pd.DataFrame(
        {
            "mixed": pd.Series([True, 1, "1", "True"], dtype=object),
            "int": [0, 1, 0, 1],
            "text": ["0", "1", "0", "1"],
        }
    )
    domain = Domain.infer(table)
    mixed = domain.attribute("mixed")
    assert (
        mixed.size == len({mixed.level(value) for value in (True, 1, "1", "True")}) == 4
    )
    assert (
        domain.attribute("int").level("1")
        == domain.attribute("int").level(np.int8(1))
        == 1
    )
    for name, value in (("int", True), ("text", 1), ("text", True)):
        with pytest.raises(LevelError, match=f"column '{name}' has no level"):
            domain.attribute(name).level(value)


def test_levels_are_found_by_value_bin_label_and_none(table):
    domain = Domain.infer(table)
    age = domain.attribute("age")
    assert age.level(40) == age.level(40.0) == age.level(np.float32(40))
    assert age.level(age.labels[3]) == 3
    assert (
        domain.attribute("few").level(None)
        == domain.attribute("few").level(float("nan"))
        == 4
    )
    when = domain.attribute("when")
    assert when.level(dt.datetime(1900, 1, 1)) == 0
    assert when.level(np.datetime64("2100-01-01")) == when.size - 2
    assert domain.attribute("born").level(dt.date(2000, 1, 3)) == 2


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sex", "f", "column 'sex' has no level 'f'"),
        ("rank", "hgh", "did you mean 'high'"),
        ("sex", None, "column 'sex' had no missing values"),
        ("age", "forty", "no level 'forty'"),
        ("sex", [1], "no level"),
    ],
)
def test_an_unknown_level_names_column_and_value(table, name, value, words):
    with pytest.raises(LevelError, match=words):
        Domain.infer(table).attribute(name).level(value)


def test_scores_are_the_mean_raw_values_of_the_levels(table):
    domain, codes = infer_and_encode(table)
    ages, levels = np.array(raw_columns()["age"]), codes[:, domain.index("age")]
    expected = [
        ages[levels == level].mean() for level in range(domain.attribute("age").size)
    ]
    assert domain.attribute("age").scores() == pytest.approx(expected)
    assert np.array_equal(
        domain.attribute("paid").scores(), [0, 1, np.nan], equal_nan=True
    )
    assert (
        domain.attribute("born").scores()[0]
        == dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp()
    )
    with pytest.raises(InputError, match="column 'sex' is categorical"):
        domain.attribute("sex").scores()


def test_decoding_a_bin_draws_its_values_as_often_as_they_were_seen():
    domain = Domain.infer(
        pl.DataFrame({"x": [1, 1, 1, 2, 5, 6]}), bins={"x": [0, 5, 9]}
    )
    drawn = domain.decode(np.zeros((8_000, 1), dtype=np.uint8), rng=generator())[
        "x"
    ].to_numpy()
    assert set(drawn) == {1, 2}
    assert np.mean(drawn == 1) == pytest.approx(0.75, abs=0.02)


def test_encode_refuses_what_was_not_learned():
    domain = Domain.infer(
        pl.DataFrame({"word": ["apple", "pear"], "number": [1, 2]}),
        bins={"number": [0, 2, 3]},
    )
    with pytest.raises(ColumnError, match="no column 'number'"):
        domain.encode(pl.DataFrame({"word": ["apple"]}))
    with pytest.raises(
        LevelError,
        match=r"column 'word' holds 'aple'.*did you mean 'apple'.*replace it",
    ):
        domain.encode(pl.DataFrame({"word": ["aple"], "number": [1]}))
    with pytest.raises(LevelError, match="column 'word' had no missing values"):
        domain.encode(pl.DataFrame({"word": [None, "pear"], "number": [1, 2]}))
    with pytest.raises(
        LevelError, match="column 'number' was learned as numeric but is now String"
    ):
        domain.encode(pl.DataFrame({"word": ["pear"], "number": ["1"]}))
    extra = domain.encode(
        pl.DataFrame({"extra": [0], "number": [99], "word": ["pear"]})
    )
    assert extra.tolist() == [[1, 1]]


@pytest.mark.parametrize("code", [-1, 2])
def test_decode_refuses_codes_out_of_range(code):
    with pytest.raises(LevelError, match="column 'x' must lie in 0 … 1"):
        Domain.infer(pl.DataFrame({"x": ["a", "b"]})).decode(
            np.array([[code]]), rng=generator()
        )


@pytest.mark.parametrize(
    ("kept", "expected"),
    [(["a", None], [True, False, True]), (["a", "b"], [True, True, False])],
)
def test_what_can_be_drawn_once_a_domain_is_narrowed(kept, expected):
    """Missing comes last; a column that never lacked a value cannot have it missing."""
    frame = pd.DataFrame({"x": ["a", "b", None]})
    values = Domain.infer(frame.dropna()).attribute("x")
    assert (
        Domain.infer(frame)
        .attribute("x")
        .narrowed(kept)
        .can_draw(values.values)
        .tolist()
        == expected
    )
    assert values.can_draw(values.values).tolist() == [True, True, False]
