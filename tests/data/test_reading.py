"""A table in memory becomes a reading: weights, levels, identifiers, codes."""

import numpy as np
import polars as pl
import pytest

from fairmaxent import Domain
from fairmaxent.data import frames
from fairmaxent.data.reading import (
    InMemory,
    ReadingRequest,
    Shareable,
    encode_table,
    read,
)
from fairmaxent.errors import InputError

ROWS = 40
PEOPLE = pl.DataFrame(
    {
        "email": [f"person{row}@example.org" for row in range(ROWS)],
        "sex": ["f", "m"] * (ROWS // 2),
        "hired": ["no", "no", "yes", "yes"] * (ROWS // 4),
        "age": [20 + row // 2 for row in range(ROWS)],
        "weight": [1.0, 3.0] * (ROWS // 2),
    }
)


def request(**options):
    return ReadingRequest("hired", ["sex"], keep=["sex", "hired"], **options)


def read_frame(frame, asked):
    return read(InMemory(frame), asked)


def test_what_a_reading_holds():
    reading = read_frame(PEOPLE, request(weight="weight"))
    assert reading.columns == ("sex", "hired", "age", "weight")
    assert reading.left_out == ("email",)
    assert reading.roles.names == ("hired", "sex")
    assert reading.weight_scale == 2.0
    assert reading.design.tolist() == [0.5, 1.5] * (ROWS // 2)
    assert reading.weight_column.to_list() == [1.0]
    assert reading.table.total == ROWS
    assert reading.redrawn is None


def test_without_weights_every_row_counts_once():
    reading = read_frame(PEOPLE.drop("weight"), request())
    assert reading.design is None
    assert reading.weight_column is None
    assert reading.weight_scale == 1.0
    assert reading.table.total == ROWS


def test_the_positions_are_those_of_the_raw_values():
    reading = read_frame(PEOPLE, request(weight="weight"))
    age = reading.roles.domain.index("age")
    values = reading.roles.domain.attributes[age].values
    assert (
        frames.take(values, reading.positions[age]).to_list() == PEOPLE["age"].to_list()
    )


def test_bins_keep_no_raw_values():
    reading = read_frame(PEOPLE, request(weight="weight", detail="bins"))
    assert reading.positions is None
    assert reading.redrawn.columns == ("age",)
    assert reading.redrawn.reason is None


def test_rows_that_a_domain_does_not_know_exactly_are_refused_if_asked_for():
    others = PEOPLE.with_columns(pl.col("age") * 1.5)
    domain = Domain.infer(others.drop("weight", "email"))
    asked = request(domain=domain, detail="rows")
    with pytest.raises(InputError, match="not available: column 'age' holds 20"):
        read_frame(PEOPLE.drop("weight", "email").cast({"age": pl.Float64}), asked)


def test_a_domain_that_is_given_encodes_as_the_one_that_is_learned():
    frame = frames.open_frame(PEOPLE)
    learned = encode_table(frame, None, weight="weight", keep=[])
    whole = Domain.infer(PEOPLE.drop("weight"))
    given = encode_table(frame, whole, weight="weight", keep=[])
    assert given.left_out == learned.left_out == ("email",)
    assert given.domain.names == learned.domain.names
    assert np.array_equal(given.codes, learned.codes)


def test_identifiers_stay_unless_somebody_says_what_to_keep():
    encoded = encode_table(frames.open_frame(PEOPLE), None, weight="weight")
    assert encoded.left_out == ()
    assert "email" in encoded.domain.names


def test_a_table_of_weights_alone_has_no_columns():
    frame = frames.open_frame(PEOPLE.select("weight"))
    with pytest.raises(InputError, match="no columns"):
        encode_table(frame, None, weight="weight")


def test_rows_to_share_are_read_without_identifiers_and_rare_values():
    reading = read(Shareable(PEOPLE), request(weight="weight"))
    assert reading.left_out == ("email",)
    assert reading.columns == ("sex", "hired", "age", "weight")
    age = reading.roles.domain.attribute("age")
    assert len(age.counts) < PEOPLE["age"].n_unique()
