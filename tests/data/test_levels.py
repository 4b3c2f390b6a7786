"""levels.py and what is learned about columns: kinds, bins, rare values, orders."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent.data.domain import Domain
from fairmaxent.data.levels import _equal_weight_bins
from fairmaxent.errors import ColumnError, InputError, LevelError, WeightError
from mixed import generator, infer_and_encode


def test_kinds_follow_the_dtypes(table):
    kinds = {
        attribute.name: attribute.kind for attribute in Domain.infer(table).attributes
    }
    assert kinds == {
        **dict.fromkeys(("age", "gain", "hours", "height", "few"), "numeric"),
        **dict.fromkeys(("sex", "city", "group", "same"), "categorical"),
        **dict.fromkeys(("member", "paid"), "boolean"),
        **dict.fromkeys(("born", "when"), "date"),
        "rank": "ordered",
    }


def test_a_value_as_heavy_as_a_bin_is_alone_in_its_bin(table):
    gain = Domain.infer(table).attribute("gain")
    assert (gain.labels[0], gain.labels[1][:4], gain.level_starts[1]) == (
        "0",
        "(0, ",
        1,
    )
    assert [gain.level(number) for number in (0, 1e-9, -5, 10**9)] == [
        0,
        1,
        0,
        gain.size - 1,
    ]


@pytest.mark.parametrize("least", [0.0, 5e-324, 1e-310])
def test_values_next_to_no_weight_share_the_bins_between_those_that_have_some(least):
    """As in `evaluate`, where numbers of new rows that no real row has weigh
    nothing.
    """
    weights = np.full(41, least)
    weights[::10] = 1.0
    begins, alone = _equal_weight_bins(weights, 16)
    assert np.flatnonzero(alone).tolist() == [0, 10, 20, 30, 40]
    assert begins == [0, 1, 10, 11, 20, 21, 30, 31, 40]


def test_bins_have_about_equal_weight_whatever_stands_alone():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(10_000) < 0.4, 0.0, rng.normal(size=10_000))
    domain, codes = infer_and_encode(pl.DataFrame({"x": numbers}), bins=10)
    counts = np.bincount(codes[:, 0])
    (zero,) = np.flatnonzero(counts > 2_000)
    assert domain.attributes[0].labels[zero] == "0"
    others = np.delete(counts, zero)
    assert len(others) in (9, 10)
    assert others.max() < 1.3 * others.min()


def test_edges_are_honoured_and_values_outside_join_the_outermost_bins():
    domain, codes = infer_and_encode(
        pl.DataFrame({"age": [17, 18, 40, 64, 65, 99]}), bins={"age": [18, 30, 65, 90]}
    )
    assert codes[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert (
        domain.attribute("age").level(5) == domain.attribute("age").level("< 30") == 0
    )
    assert domain.notes == (
        (
            "column 'age': 2 rows outside the edges 18 … 90 are counted in the"
            " outermost bins, as their labels show"
        ),
    )


@pytest.mark.parametrize(
    ("ages", "edges", "labels"),
    [
        ([18, 90], [18, 40, 90], ("[18, 40)", "[40, 90]")),
        ([17, 90], [18, 40, 90], ("< 40", "[40, 90]")),
        ([18, 91], [18, 40, 90], ("[18, 40)", "≥ 40")),
        ([18, 90], [18, 90], ("[18, 90]",)),
        ([17, 90], [18, 90], ("≤ 90",)),
        ([18, 91], [18, 90], ("≥ 18",)),
        ([17, 91], [18, 90], ("all values",)),
    ],
)
def test_the_label_of_a_bin_holds_for_every_value_in_it(ages, edges, labels):
    domain = Domain.infer(
        pl.DataFrame({"age": ages, "x": ["a", "b"]}), bins={"age": edges}
    )
    assert domain.attribute("age").labels == labels
    assert any("outside the edges" in note for note in domain.notes) == (
        min(ages) < 18 or max(ages) > 90
    )


def test_a_bin_without_values_is_joined_to_its_neighbour_with_a_note():
    domain, codes = infer_and_encode(
        pl.DataFrame({"age": [20, 70]}), bins={"age": [0, 10, 30, 50, 90]}
    )
    assert domain.attribute("age").labels == ("[0, 50)", "[50, 90]")
    assert codes[:, 0].tolist() == [0, 1]
    assert (
        "2 of its bins had no values and were merged with a neighbour"
        in domain.notes[0]
    )


def test_rare_values_are_lumped_by_frequency_then_canonical_order_with_a_note():
    words = ["d"] * 3 + ["c"] * 2 + ["b"] * 2 + ["a", "e"]
    domain = Domain.infer(pl.DataFrame({"w": words}), max_levels=3)
    attribute = domain.attribute("w")
    assert attribute.labels == ("b", "d", "other")
    assert domain.notes == (
        (
            "column 'w' has 5 values: the 2 most frequent stay, "
            "and the other 3 (44.4% of the rows) become one level, 'other'"
        ),
    )
    assert attribute.level("e") == attribute.level("other") == 2
    drawn = domain.decode(np.full((6_000, 1), 2, dtype=np.uint8), rng=generator())[
        "w"
    ].to_list()
    assert [drawn.count(word) / 6_000 for word in "cae"] == pytest.approx(
        [0.5, 0.25, 0.25], abs=0.03
    )


def test_a_declared_order_fixes_the_levels():
    table = pd.DataFrame({"size": ["S", "L", "M", None]})
    domain, codes = infer_and_encode(table, order={"size": ["S", "M", "L"]})
    assert domain.attribute("size").kind == "ordered"
    assert domain.attribute("size").labels == ("S", "M", "L", "missing")
    assert codes[:, 0].tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (["S", "M"], "holds 'L', which is not in its order"),
        (["S", "M", "L", "XL"], "order names 'XL', which is not in column 'size'"),
        (["S", "M", "L", "L"], "names a value twice"),
    ],
)
def test_an_order_that_does_not_fit_the_column_is_refused(order, words):
    with pytest.raises(LevelError, match=words):
        Domain.infer(pd.DataFrame({"size": ["S", "L", "M"]}), order={"size": order})


def test_constant_and_identifier_like_columns_are_named(table):
    domain = Domain.infer(table)
    assert (
        "column 'same' is constant ('one') and carries no information" in domain.notes
    )
    assert domain.identifiers == ()
    people = pl.DataFrame(
        {
            "id": range(200),
            "key": [f"k{i}" for i in range(200)],
            "x": np.linspace(0, 1, 200),
        }
    )
    assert Domain.infer(people).identifiers == ("id", "key")
    assert "column 'key' looks like an identifier" in repr(Domain.infer(people))


def test_a_column_of_missing_values_only_has_one_level():
    domain, codes = infer_and_encode(
        pl.DataFrame({"x": [None, None], "y": pl.Series([None, None], dtype=pl.Int64)})
    )
    assert [attribute.labels for attribute in domain.attributes] == [
        ("missing",),
        ("missing",),
    ]
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
    frame = pl.DataFrame({"w": ["a", "b", "c"]})
    domain, codes = infer_and_encode(
        frame, max_levels=2, weight=np.array([1.0, 0.0, 0.0])
    )
    assert codes[:, 0].tolist() == [0, 1, 1]
    drawn = domain.decode(np.ones((1_000, 1), dtype=np.uint8), rng=generator())[
        "w"
    ].to_list()
    assert drawn.count("b") / 1_000 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0], "shape"),
        ([1.0, -1.0], "row 1"),
        ([1.0, np.nan], "row 1"),
        ([0.0, 0.0], "zero"),
    ],
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
        (
            {"kinds": {"word": "numeric"}},
            InputError,
            "cannot be numeric, only categorical",
        ),
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
        ({"kinds": ["x"]}, InputError, "kinds is"),
        (
            {"bins": 2.5},
            InputError,
            r"Domain.infer\(bins=…\) is 2.5; give a whole number, or bins by column",
        ),
        (
            {"max_levels": "3"},
            InputError,
            r"Domain.infer\(max_levels=…\) is '3'; give a whole number",
        ),
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
    table = pl.DataFrame(
        {"flag": [0, 1, 1], "truth": [True, False, True], "year": [2001, 2003, 2002]}
    )
    domain = Domain.infer(
        table, kinds={"flag": "boolean", "truth": "numeric", "year": "ordered"}
    )
    assert [attribute.kind for attribute in domain.attributes] == [
        "boolean",
        "numeric",
        "ordered",
    ]
    assert domain.attribute("year").labels == ("2001", "2002", "2003")


def test_one_word_for_all_features_means_numbers_and_dates(table):
    features = {
        a.name: a.features for a in Domain.infer(table, features="moment").attributes
    }
    assert [name for name, choice in features.items() if choice == "moment"] == [
        *("age", "gain", "hours", "height", "few", "born", "when")
    ]
    chosen = Domain.infer(table, features={"age": "moment"})
    assert [a.name for a in chosen.attributes if a.features == "moment"] == ["age"]
