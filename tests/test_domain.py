"""domain.py: what is learned about columns, and that a table survives the way to codes and back."""

import datetime as dt
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairmaxent.domain import Domain
from fairmaxent.errors import ColumnError, InputError, LevelError, WeightError

ROWS = 400
WORDS = ["low", "mid", "high"]
RANKS = ["none", *WORDS]
BINNED = ("age", "gain", "hours", "height", "when")
LUMPED = "city"


def raw_columns(seed=0):
    """Plain Python columns: gaps in some, many numbers, many words, one constant."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

    def gaps(values):
        return [None if hole else value for hole, value in zip(rng.random(ROWS) < 0.1, values, strict=True)]

    return {
        "age": rng.integers(17, 91, ROWS).tolist(),
        "gain": np.where(rng.random(ROWS) < 0.9, 0, rng.integers(100, 9999, ROWS)).tolist(),
        "hours": gaps(rng.integers(1, 99, ROWS).tolist()),
        "height": rng.normal(1.7, 0.1, ROWS).tolist(),
        "few": gaps(rng.integers(0, 4, ROWS).tolist()),
        "sex": rng.choice(["F", "M"], ROWS).tolist(),
        "city": gaps(rng.choice([f"city {i}" for i in range(90)], ROWS).tolist()),
        "rank": gaps(rng.choice(WORDS, ROWS).tolist()),
        "group": gaps(rng.choice(["x", "y", "missing"], ROWS).tolist()),
        "member": rng.choice([True, False], ROWS).tolist(),
        "paid": gaps(rng.choice([True, False], ROWS).tolist()),
        "born": rng.choice([dt.date(2000, 1, day) for day in range(1, 9)], ROWS).tolist(),
        "when": gaps([start + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 10**6, ROWS)]),
        "same": ["one"] * ROWS,
    }


def pandas_table(seed=0):
    raw = raw_columns(seed)
    table = pd.DataFrame(
        {
            "age": raw["age"],
            "gain": raw["gain"],
            "hours": pd.array(raw["hours"], dtype="Int64"),
            "height": raw["height"],
            "few": pd.array(raw["few"], dtype="Int64"),
            "sex": pd.Series(raw["sex"], dtype=object),
            "city": pd.Series(raw["city"], dtype="string"),
            "rank": pd.Categorical(raw["rank"], RANKS, ordered=True),
            "group": pd.Categorical(raw["group"]),
            "member": raw["member"],
            "paid": pd.array(raw["paid"], dtype="boolean"),
            "born": pd.Series(raw["born"], dtype=pd.ArrowDtype(pa.date32())),
            "when": pd.Series(raw["when"], dtype="datetime64[us, UTC]"),
            "same": pd.Series(raw["same"], dtype="str"),
        }
    )
    return table.set_index(pd.RangeIndex(5, ROWS + 5))


def polars_table(seed=0):
    overrides = {"rank": pl.Enum(RANKS), "group": pl.Categorical, "when": pl.Datetime("us", "UTC")}
    return pl.DataFrame(raw_columns(seed), schema_overrides=overrides)


def pyarrow_table(seed=0):
    columns = {name: pa.array(values) for name, values in raw_columns(seed).items()}
    codes = [None if word is None else RANKS.index(word) for word in raw_columns(seed)["rank"]]
    columns["rank"] = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), RANKS, ordered=True)
    columns["group"] = columns["group"].dictionary_encode()
    columns["when"] = columns["when"].cast(pa.timestamp("us", "UTC"))
    return pa.table(columns)


TABLES = {"pandas": pandas_table, "polars": polars_table, "pyarrow": pyarrow_table}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]()


def schema(table):
    if isinstance(table, pd.DataFrame):
        return list(table.dtypes.items())
    return list(zip(table.columns, table.dtypes, strict=True)) if isinstance(table, pl.DataFrame) else table.schema


def cells(table, name):
    """Return a column as Python values, every kind of missing as None."""
    column = table[name]
    values = column.to_pylist() if isinstance(table, pa.Table) else column.to_list()
    return [None if value is None or value is pd.NA or value != value else value for value in values]


def same_tables(left, right):
    return schema(left) == schema(right) and all(cells(left, name) == cells(right, name) for name in raw_columns())


def generator(seed=7):
    return np.random.default_rng(seed)


# ---------------------------------------------------------------- there and back


def test_decode_keeps_columns_order_dtypes_and_categories(table):
    domain, codes = Domain.learn(table)
    assert schema(domain.decode(codes, rng=generator())) == schema(table)


def test_encoding_what_was_decoded_gives_the_codes_again(table):
    domain, codes = Domain.learn(table)
    assert np.array_equal(domain.encode(domain.decode(codes, rng=generator())), codes)
    assert np.array_equal(domain.encode(table), codes)


def test_columns_coded_by_value_come_back_equal(table):
    domain, codes = Domain.learn(table)
    decoded = domain.decode(codes, rng=generator())
    by_value = [attribute.name for attribute in domain.attributes if attribute.is_value_coded]
    assert by_value == [name for name in domain.names if name not in (*BINNED, LUMPED)]
    assert all(cells(decoded, name) == cells(table, name) for name in by_value)


def test_a_stored_domain_decodes_the_same_table_for_the_same_seed(table):
    domain, codes = Domain.learn(table)
    record, arrays = domain.to_storage()
    restored = Domain.from_storage(json.loads(json.dumps(record)), arrays)
    assert same_tables(restored.decode(codes, rng=generator()), domain.decode(codes, rng=generator()))
    assert np.array_equal(restored.encode(table), codes)
    again, arrays_again = restored.to_storage()
    assert again == record
    assert {key: array.tobytes() for key, array in arrays_again.items()} == {
        key: array.tobytes() for key, array in arrays.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_three_libraries_give_the_same_codes_labels_and_notes(seed):
    learned = [Domain.learn(make(seed)) for make in TABLES.values()]
    first, codes = learned[0]
    for domain, other_codes in learned[1:]:
        assert np.array_equal(other_codes, codes)
        assert [a.labels for a in domain.attributes] == [a.labels for a in first.attributes]
        assert [a.kind for a in domain.attributes] == [a.kind for a in first.attributes]
        assert domain.notes == first.notes


@pytest.mark.parametrize("other", TABLES)
def test_a_domain_encodes_the_same_data_of_another_library_in_any_column_order(table, other):
    domain, codes = Domain.learn(table)
    again = TABLES[other]()
    assert np.array_equal(
        domain.encode(again.select(list(reversed(domain.names))) if other != "pandas" else again), codes
    )


def test_codes_are_small_unsigned_and_in_fortran_order(table):
    domain, codes = Domain.learn(table)
    assert codes.dtype == np.uint8
    assert codes.flags.f_contiguous
    assert codes.shape == (ROWS, len(domain.names))
    wide = Domain.learn(pl.DataFrame({"x": [str(i) for i in range(300)]}), max_levels=300)[1]
    assert wide.dtype == np.uint16


value = st.one_of(st.none(), st.sampled_from(["a", "b", "é", "other", "missing", "1", ""]))
number = st.one_of(st.none(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False, width=32))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(value, number, st.booleans()), min_size=1, max_size=60), st.integers(1, 6))
def test_any_small_table_survives_the_round_trip(rows, bins):
    words, numbers, truths = map(list, zip(*rows, strict=True))
    numbers = [None if one is None else float(one) for one in numbers]
    table = pl.DataFrame(
        {"w": words, "n": numbers, "t": truths}, schema={"w": pl.String, "n": pl.Float64, "t": pl.Boolean}
    )
    domain, codes = Domain.learn(table, bins=bins, max_levels=3)
    assert all(len(set(attribute.labels)) == attribute.size for attribute in domain.attributes)
    decoded = domain.decode(codes, rng=generator())
    assert decoded.schema == table.schema
    assert np.array_equal(domain.encode(decoded), codes)
    other_codes = Domain.learn(table.to_pandas(), bins=bins, max_levels=3)[1]
    assert np.array_equal(other_codes, codes)


# ---------------------------------------------------------------- determinism and lean imports

SCRIPT = """
import hashlib, json, sys
if {block_pandas}:
    sys.modules["pandas"] = sys.modules["pyarrow"] = None
import numpy as np, polars as pl
from fairmaxent.domain import Domain
rng = np.random.default_rng(0)
table = pl.DataFrame({{
    "word": rng.choice([f"w{{i}}" for i in range(90)], 500), "number": rng.normal(size=500),
    "kind": pl.Series(rng.choice(["a", "b"], 500), dtype=pl.Categorical), "day": pl.Series(range(500)).cast(pl.Date),
}})
domain, codes = Domain.learn(table)
record, arrays = domain.to_storage()
decoded = Domain.from_storage(json.loads(json.dumps(record)), arrays).decode(codes, rng=np.random.default_rng(1))
assert decoded.schema == table.schema
stored = json.dumps(record).encode() + b"".join(arrays[key].tobytes() for key in arrays)
print(hashlib.sha256(decoded.write_csv().encode() + codes.tobytes() + stored).hexdigest())
"""


def run_script(*, hash_seed, block_pandas):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(block_pandas=block_pandas)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_decoding_does_not_depend_on_the_hash_seed_nor_on_pandas_and_pyarrow_being_there():
    shown = {run_script(hash_seed="1", block_pandas=True), run_script(hash_seed="2", block_pandas=False)}
    assert len(shown) == 1


# ---------------------------------------------------------------- what is inferred


def test_kinds_follow_the_dtypes(table):
    kinds = {attribute.name: attribute.kind for attribute in Domain.infer(table).attributes}
    assert kinds == {
        **dict.fromkeys(("age", "gain", "hours", "height", "few"), "numeric"),
        **dict.fromkeys(("sex", "city", "group", "same"), "categorical"),
        **dict.fromkeys(("member", "paid"), "boolean"),
        **dict.fromkeys(("born", "when"), "date"),
        "rank": "ordered",
    }


def test_levels_of_small_columns(table):
    domain = Domain.infer(table)
    assert domain.attribute("few").labels == ("0", "1", "2", "3", "missing")
    assert domain.attribute("rank").labels == ("low", "mid", "high", "missing")
    assert domain.attribute("group").labels == ("missing", "x", "y", "missing (2)")
    assert domain.attribute("group").missing == 3
    assert domain.attribute("member").labels == ("False", "True")
    assert domain.attribute("member").missing is None
    assert domain.attribute("born").labels[0] == "2000-01-01"


def test_truth_values_with_gaps_in_a_pandas_object_column_are_boolean():
    attribute = Domain.infer(pd.DataFrame({"x": pd.Series([True, None, False], dtype=object)})).attribute("x")
    assert attribute.kind == "boolean"
    assert np.array_equal(attribute.scores(), [0, 1, np.nan], equal_nan=True)


def test_a_value_as_heavy_as_a_bin_is_alone_in_its_bin(table):
    gain = Domain.infer(table).attribute("gain")
    assert gain.labels[0] == "0"
    assert gain.labels[1].startswith("(0, ")
    assert gain.level_starts[1] == 1
    assert gain.level(0) == 0
    assert gain.level(1e-9) == 1
    assert gain.level(-5) == 0
    assert gain.level(10**9) == gain.size - 1


def test_bins_have_about_equal_weight_whatever_stands_alone():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(10_000) < 0.4, 0.0, rng.normal(size=10_000))
    domain, codes = Domain.learn(pl.DataFrame({"x": numbers}), bins=10)
    counts = np.bincount(codes[:, 0])
    (zero,) = np.flatnonzero(counts > 2_000)
    assert domain.attributes[0].labels[zero] == "0"
    others = np.delete(counts, zero)
    assert len(others) in (9, 10)
    assert others.max() < 1.3 * others.min()


def test_a_number_with_few_values_has_one_level_per_value_and_refuses_new_ones():
    domain = Domain.infer(pd.DataFrame({"x": [1, 2, 3]}))
    assert domain.attribute("x").labels == ("1", "2", "3")
    with pytest.raises(LevelError, match=r"column 'x' holds 9"):
        domain.encode(pd.DataFrame({"x": [1, 9]}))


def test_edges_are_honoured_and_values_outside_join_the_outermost_bins():
    table = pl.DataFrame({"age": [17, 18, 40, 64, 65, 99]})
    domain, codes = Domain.learn(table, bins={"age": [18, 30, 65, 90]})
    assert domain.attribute("age").labels == ("[18, 30)", "[30, 65)", "[65, 90]")
    assert codes[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert domain.notes == ()


def test_a_bin_without_values_is_joined_to_its_neighbour_with_a_note():
    domain, codes = Domain.learn(pl.DataFrame({"age": [20, 70]}), bins={"age": [0, 10, 30, 50, 90]})
    assert domain.attribute("age").labels == ("[0, 50)", "[50, 90]")
    assert codes[:, 0].tolist() == [0, 1]
    assert "2 of its bins held no value" in domain.notes[0]


def test_date_edges_may_be_dates():
    days = [dt.date(2020, 1, 1), dt.date(2020, 6, 1)]
    edges = [dt.date(2020, 1, 1), dt.date(2020, 3, 1), dt.date(2021, 1, 1)]
    domain, codes = Domain.learn(pl.DataFrame({"d": days}), bins={"d": edges})
    assert codes[:, 0].tolist() == [0, 1]
    assert domain.attribute("d").labels == ("[2020-01-01, 2020-03-01)", "[2020-03-01, 2021-01-01]")


def test_rare_values_are_lumped_by_frequency_then_canonical_order_with_a_note():
    words = ["d"] * 3 + ["c"] * 2 + ["b"] * 2 + ["a", "e"]
    domain = Domain.infer(pl.DataFrame({"w": words}), max_levels=3)
    attribute = domain.attribute("w")
    assert attribute.labels == ("b", "d", "other")
    assert domain.notes == (
        "column 'w' has 5 values: the 2 most frequent stay, the other 3 (44.4% of the rows) are one level 'other'",
    )
    assert attribute.level("e") == attribute.level("other") == 2
    drawn = domain.decode(np.full((6_000, 1), 2, dtype=np.uint8), rng=generator())["w"].to_list()
    assert [drawn.count(word) / 6_000 for word in "cae"] == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


def test_ties_among_many_rare_values_are_broken_by_canonical_order():
    words = [f"w{i:03}" for i in range(200)]
    domain = Domain.infer(pl.DataFrame({"w": words[::-1]}), max_levels=100)
    assert domain.attribute("w").labels == (*words[:99], "other")


def test_integers_may_be_read_as_categories_and_are_lumped_too():
    numbers = pl.DataFrame({"code": [*range(100), *range(10)]})
    domain = Domain.infer(numbers, kinds={"code": "categorical"}, max_levels=11)
    assert domain.attribute("code").labels == (*map(str, range(10)), "other")
    assert domain.attribute("code").level(77) == 10


def test_a_declared_order_fixes_the_levels():
    table = pd.DataFrame({"size": ["S", "L", "M", None]})
    domain, codes = Domain.learn(table, order={"size": ["S", "M", "L"]})
    assert domain.attribute("size").kind == "ordered"
    assert domain.attribute("size").labels == ("S", "M", "L", "missing")
    assert codes[:, 0].tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (["S", "M"], "holds 'L', which its order does not name"),
        (["S", "M", "L", "XL"], "order names 'XL', not in column 'size'"),
        (["S", "M", "L", "L"], "names a value twice"),
    ],
)
def test_an_order_that_does_not_fit_the_column_is_refused(order, words):
    with pytest.raises(LevelError, match=words):
        Domain.infer(pd.DataFrame({"size": ["S", "L", "M"]}), order={"size": order})


def test_notes_name_constant_and_identifier_like_columns(table):
    notes = Domain.infer(table).notes
    assert "column 'same' is constant ('one'): it tells nothing about the rows" in notes
    assert any("column 'city' has 90 values" in note for note in notes)
    assert not any("identifier" in note for note in notes)
    people = pl.DataFrame({"id": range(200), "key": [f"k{i}" for i in range(200)], "x": np.linspace(0, 1, 200)})
    found = [note for note in Domain.infer(people).notes if "identifier" in note]
    assert ["'id'" in note or "'key'" in note for note in found] == [True, True]


def test_a_column_of_missing_values_only_has_one_level():
    domain, codes = Domain.learn(pl.DataFrame({"x": [None, None], "y": pl.Series([None, None], dtype=pl.Int64)}))
    assert [attribute.labels for attribute in domain.attributes] == [("missing",), ("missing",)]
    assert domain.decode(codes, rng=generator())["x"].to_list() == [None, None]


def test_design_weights_count_in_bins_lumping_and_draws():
    table = pl.DataFrame({"w": ["a", "b", "c", "d"], "n": [1.0, 2.0, 3.0, 4.0]})
    weight = np.array([1.0, 1.0, 5.0, 3.0])
    domain = Domain.infer(table, max_levels=2, bins=2, weight=weight)
    assert domain.attribute("w").labels == ("c", "other")
    assert domain.attribute("n").labels == ("[1, 3)", "3", "4")
    assert Domain.infer(table, bins=2).attribute("n").labels == ("[1, 3)", "[3, 4]")
    drawn = domain.decode(np.full((5_000, 2), 1), rng=generator())["w"].to_list()
    assert drawn.count("d") / 5_000 == pytest.approx(0.6, abs=0.03)


def test_a_level_without_weight_can_still_be_decoded():
    domain, codes = Domain.learn(pl.DataFrame({"w": ["a", "b", "c"]}), max_levels=2, weight=np.array([1.0, 0.0, 0.0]))
    assert codes[:, 0].tolist() == [0, 1, 1]
    drawn = domain.decode(np.ones((1_000, 1), dtype=np.uint8), rng=generator())["w"].to_list()
    assert drawn.count("b") / 1_000 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("weight", "words"), [([1.0], "shape"), ([1.0, -1.0], "row 1"), ([1.0, np.nan], "row 1"), ([0.0, 0.0], "zero")]
)
def test_weights_that_make_no_sense_are_refused(weight, words):
    with pytest.raises(WeightError, match=words):
        Domain.infer(pl.DataFrame({"x": [1, 2]}), weight=np.array(weight))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kinds": {"wrd": "categorical"}}, ColumnError, "did you mean 'word'"),
        ({"bins": {"nmber": 3}}, ColumnError, "did you mean 'number'"),
        ({"kinds": {"word": "catgorical"}}, InputError, "did you mean 'categorical'"),
        ({"kinds": {"word": "numeric"}}, InputError, "cannot be numeric, only categorical"),
        ({"kinds": {"word": "ordered"}}, InputError, r"order=\{'word'"),
        ({"kinds": {"number": "boolean"}}, InputError, "cannot be boolean"),
        ({"kinds": {"number": "date"}}, InputError, "cannot be date"),
        ({"bins": {"word": 3}}, InputError, "has no bins"),
        ({"bins": {"number": [3, 2]}}, InputError, "ascending"),
        ({"bins": {"number": ["a", "b"]}}, InputError, "ascending"),
        ({"bins": 0}, InputError, "at least 1"),
        ({"max_levels": 1}, InputError, "at least 2"),
        ({"features": {"word": "moment"}}, InputError, "has no moment"),
        ({"features": "momnt"}, InputError, "did you mean 'moment'"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_the_door(options, error, words):
    table = pl.DataFrame({"word": ["a", "b", "c"], "number": [0.5, 1.0, 2.0]})
    with pytest.raises(error, match=words):
        Domain.infer(table, **options)


def test_infinite_numbers_are_refused_by_column():
    with pytest.raises(InputError, match="column 'x' holds an infinite number"):
        Domain.infer(pl.DataFrame({"x": [1.0, float("inf")]}))


def test_kinds_may_be_forced_where_it_makes_sense():
    table = pl.DataFrame({"flag": [0, 1, 1], "truth": [True, False, True], "year": [2001, 2003, 2002]})
    domain = Domain.infer(table, kinds={"flag": "boolean", "truth": "numeric", "year": "ordered"})
    assert [attribute.kind for attribute in domain.attributes] == ["boolean", "numeric", "ordered"]
    assert domain.attribute("year").labels == ("2001", "2002", "2003")


def test_one_word_for_all_features_means_numbers_and_dates(table):
    features = {a.name: a.features for a in Domain.infer(table, features="moment").attributes}
    assert [name for name, choice in features.items() if choice == "moment"] == [
        *("age", "gain", "hours", "height", "few", "born", "when")
    ]
    chosen = Domain.infer(table, features={"age": "moment"})
    assert [a.name for a in chosen.attributes if a.features == "moment"] == ["age"]


# ---------------------------------------------------------------- levels, scores, columns


def test_true_one_and_their_texts_are_not_confused():
    table = pd.DataFrame(
        {"mixed": pd.Series([True, 1, "1", "True"], dtype=object), "int": [0, 1, 0, 1], "text": ["0", "1", "0", "1"]}
    )
    domain = Domain.infer(table)
    mixed = domain.attribute("mixed")
    assert mixed.size == len({mixed.level(value) for value in (True, 1, "1", "True")}) == 4
    assert domain.attribute("int").level("1") == domain.attribute("int").level(np.int8(1)) == 1
    for name, value in (("int", True), ("text", 1), ("text", True)):
        with pytest.raises(LevelError, match=f"column '{name}' has no level"):
            domain.attribute(name).level(value)


def test_levels_are_found_by_value_bin_label_and_none(table):
    domain = Domain.infer(table)
    age = domain.attribute("age")
    assert age.level(40) == age.level(40.0) == age.level(np.float32(40))
    assert age.level(age.labels[3]) == 3
    assert domain.attribute("few").level(None) == domain.attribute("few").level(float("nan")) == 4
    when = domain.attribute("when")
    assert when.level(dt.datetime(1900, 1, 1)) == 0
    assert when.level(np.datetime64("2100-01-01")) == when.size - 2
    assert domain.attribute("born").level(dt.date(2000, 1, 3)) == 2


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
    domain, codes = Domain.learn(table)
    ages, levels = np.array(raw_columns()["age"]), codes[:, domain.index("age")]
    expected = [ages[levels == level].mean() for level in range(domain.attribute("age").size)]
    assert domain.attribute("age").scores() == pytest.approx(expected)
    assert np.array_equal(domain.attribute("paid").scores(), [0, 1, np.nan], equal_nan=True)
    assert domain.attribute("born").scores()[0] == dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp()
    with pytest.raises(InputError, match="column 'sex' is categorical"):
        domain.attribute("sex").scores()


def test_decoding_a_bin_draws_its_values_as_often_as_they_were_seen():
    domain = Domain.infer(pl.DataFrame({"x": [1, 1, 1, 2, 5, 6]}), bins={"x": [0, 5, 9]})
    drawn = domain.decode(np.zeros((8_000, 1), dtype=np.uint8), rng=generator())["x"].to_numpy()
    assert set(drawn) == {1, 2}
    assert np.mean(drawn == 1) == pytest.approx(0.75, abs=0.02)


def test_draws_are_one_array_per_column_that_needs_them():
    table = pl.DataFrame({"value": ["a", "b"] * 50, "bin": range(100)})
    domain, codes = Domain.learn(table)
    rng, twin = generator(), generator()
    domain.decode(codes, rng=rng)
    twin.random(100)
    assert rng.random() == twin.random()


def test_column_of_shows_values_or_labels(table):
    domain = Domain.infer(table)
    assert domain.column_of("rank", np.array([2, 0])).to_list() == ["high", "low"]
    shown = domain.column_of("age", np.array([0, 1], dtype=np.uint8))
    assert shown.to_list() == list(domain.attribute("age").labels[:2])
    assert shown.name == "age"


def test_sizes_and_positions(table):
    domain = Domain.infer(table)
    assert domain.names == tuple(raw_columns())
    assert domain.sizes == tuple(attribute.size for attribute in domain.attributes)
    assert domain.size == np.prod(np.array(domain.sizes, dtype=object))
    assert domain.index("sex") == 5
    with pytest.raises(ColumnError, match="did you mean 'height'"):
        domain.index("hight")


# ---------------------------------------------------------------- what encode and decode refuse


def test_encode_refuses_what_was_not_learned():
    domain = Domain.infer(pl.DataFrame({"word": ["apple", "pear"], "number": [1, 2]}), bins={"number": [0, 2, 3]})
    with pytest.raises(ColumnError, match="no column 'number'"):
        domain.encode(pl.DataFrame({"word": ["apple"]}))
    with pytest.raises(LevelError, match=r"column 'word' holds 'aple'.*did you mean 'apple'.*replace it"):
        domain.encode(pl.DataFrame({"word": ["aple"], "number": [1]}))
    with pytest.raises(LevelError, match="column 'word' had no missing values"):
        domain.encode(pl.DataFrame({"word": [None, "pear"], "number": [1, 2]}))
    with pytest.raises(LevelError, match="column 'number' was learned as numeric but now is String"):
        domain.encode(pl.DataFrame({"word": ["pear"], "number": ["1"]}))
    extra = domain.encode(pl.DataFrame({"extra": [0], "number": [99], "word": ["pear"]}))
    assert extra.tolist() == [[1, 1]]


@pytest.mark.parametrize("codes", [np.zeros(2, int), np.zeros((2, 3), int), np.zeros((2, 1))])
def test_decode_refuses_codes_of_the_wrong_shape(codes):
    with pytest.raises(InputError, match="codes must be integers"):
        Domain.infer(pl.DataFrame({"x": ["a"]})).decode(codes, rng=generator())


@pytest.mark.parametrize("code", [-1, 2])
def test_decode_refuses_codes_out_of_range(code):
    with pytest.raises(LevelError, match="column 'x' must lie in 0 … 1"):
        Domain.infer(pl.DataFrame({"x": ["a", "b"]})).decode(np.array([[code]]), rng=generator())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kinds": ["x"]}, "kinds is"), ({"bins": 2.5}, "bins is 2.5"), ({"max_levels": "3"}, "max_levels is '3'")],
)
def test_options_of_the_wrong_type_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Domain.infer(pd.DataFrame({"x": [1, 2]}), **options)
