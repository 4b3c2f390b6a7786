"""identifiers.py: which columns name people or rows, and which only differ a lot."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairmaxent.data.domain import Domain

ROWS = 200
RNG = np.random.default_rng(3)
FIRST = [
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Elif",
    "Fatima",
    "George",
    "Hana",
    "Ivan",
    "Julia",
]
LAST = [
    "Smith",
    "Müller",
    "García",
    "Nguyen",
    "O'Neil",
    "Rossi-Bianchi",
    "Silva",
    "Ito",
]


def some(number, low, high):
    return RNG.integers(low, high, number).tolist()


def visits(people):
    """Two or three rows for each person."""
    return [people[row % len(people)] for row in range(ROWS)]


IDENTIFIERS = {
    "texts that differ": [f"p{row}" for row in range(ROWS)],
    "texts that differ in the rows that have one": [
        *(f"p{row}" for row in range(100)),
        *[None] * 100,
    ],
    "names of a small table": [
        f"{first} {last}" for first in FIRST[:5] for last in LAST[:6]
    ],
    "row numbers": list(range(ROWS)),
    "row numbers with gaps": [float(row) if row % 7 else None for row in range(ROWS)],
    "keys from a range": sorted(RNG.permutation(1500)[:ROWS].tolist()),
    "national numbers": [1_234_567_890 + 7_919_113 * row for row in range(ROWS)],
    "e-mail addresses in texts": visits(
        ["Ann <a.b@mail.org>", "please write to c@d.example soon", "e_f@g.co.uk"]
    ),
    "phone numbers": visits([f"+49 30 {number}" for number in some(40, 10**6, 10**7)]),
    "phone numbers without a country": visits(
        [f"(030) 555-{number}" for number in some(40, 1000, 9999)]
    ),
    "social security numbers": visits(
        [f"{n}-{n % 90 + 10}-{n + 1000}" for n in some(50, 100, 999)]
    ),
    "national insurance numbers": visits(
        [f"QQ {n} C" for n in some(80, 100_000, 999_999)]
    ),
    "people who come again": visits(
        [f"{first} {last}" for first in FIRST for last in LAST]
    ),
    "names in capitals": visits(
        [f"{last.upper()} {first.upper()}" for first in FIRST for last in LAST]
    ),
    "names without capitals": visits(
        [
            f"{first}{last}"
            for first in "王李张刘陈杨赵"
            for last in "伟芳敏静丽强磊军洋"
        ]
    ),
    "phone numbers in pairs": visits(
        [f"0{n} {n + 10} {n + 20} {n + 30} {n + 40}" for n in range(1, 10)]
    ),
    "national numbers with letters": visits(
        [f"RSSMRA{n}A01H501{c}" for n in range(10, 19) for c in "ABC"]
    ),
    "hashes": visits([f"{n:032x}" for n in some(12, 10**17, 10**18)]),
    "machines": visits([f"10.0.{n}.{n}" for n in range(9)]),
    "homes": visits([f"52.5{n}012, 13.4{n}345" for n in range(10, 20)]),
    "pages": visits(
        [f"https://example.org/u/{first}{last}" for first in FIRST for last in LAST]
    ),
    "user names that stand thrice": [
        f"{FIRST[n % 10]}.smith{n % 70}" for n in range(ROWS)
    ],
    "keys with a number for none": [
        *[-1] * 20,
        *(49_000_000 + 7_919 * row for row in range(180)),
    ],
    "long keys that repeat": visits(
        [40_000_000 + 7_919 * person for person in range(80)]
    ),
    "notes": [
        f"reports {what} since {days} days, came alone, will be seen again"
        for what, days in zip(
            visits(["pain", "fever", "cough"]), some(ROWS, 1, 60), strict=True
        )
    ],
}
OTHERS = {
    "texts that repeat": [f"p{row % 60}" for row in range(ROWS)],
    "few rows": [f"p{row}" for row in range(15)],
    "measured numbers": [row / 7 for row in range(ROWS)],
    "incomes": RNG.lognormal(10, 0.5, ROWS).round(2).tolist(),
    "whole incomes": RNG.lognormal(10, 0.5, ROWS).astype(int).tolist(),
    "ages": some(ROWS, 18, 90),
    "many more rows than values": some(20_000, 0, 100),
    "dates": [
        pd.Timestamp("2020-01-01") + pd.Timedelta(days=row) for row in range(ROWS)
    ],
    "dates as texts": visits(
        [f"2020-{month:02}-{day:02}" for month in range(1, 9) for day in range(1, 25)][
            :120
        ]
    ),
    "dates as numbers": [
        20_200_000 + 100 * (row % 12 + 1) + row % 28 + 1 for row in range(ROWS)
    ],
    "towns": visits(["New York", "San José", "Los Angeles", "Bad Homburg", "Berlin"]),
    "long answers": visits(
        [
            "I agree with this statement to a large extent",
            "I do not agree with it at all, a bit",
        ]
    ),
    "postcodes": visits([str(number) for number in some(50, 10_000, 99_999)]),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("surname", True),
        ("patientId", True),
        ("PATIENT_ID", True),
        ("e-mail", True),
        ("town", False),
        ("paid", False),
    ],
)
def test_the_name_of_a_column_counts_if_it_has_many_values(name, expected):
    many, few = (
        [f"v{row % 50}" for row in range(ROWS)],
        [f"v{row % 10}" for row in range(ROWS)],
    )
    assert Domain.infer(pd.DataFrame({name: many})).identifiers == (
        (name,) if expected else ()
    )
    assert Domain.infer(pd.DataFrame({name: few})).identifiers == ()


@pytest.mark.parametrize(
    "name",
    [
        "first_name",
        "Vorname",
        "prénom",
        "Apellidos",
        "имя",
        "氏名",
        "Straße",
        "user name",
    ],
)
def test_texts_that_tell_people_apart_are_identifiers_however_often_each_stands(name):
    texts = [f"v{row % 25}" for row in range(2000)]
    assert Domain.infer(pd.DataFrame({name: texts})).identifiers == (name,)
    assert (
        Domain.infer(
            pd.DataFrame({f"{name} count": [row % 25 for row in range(2000)]})
        ).identifiers
        == ()
    )


def test_a_column_called_name_holds_people_or_something_else():
    people = [f"{FIRST[row % 10]} {LAST[row % 7]}" for row in range(2000)]
    schools = [
        f"{FIRST[row % 10]} School {LAST[row % 7].title()}" for row in range(2000)
    ]
    assert Domain.infer(
        pd.DataFrame({"Name": people, "name of school": schools})
    ).identifiers == ("Name",)
    assert (
        Domain.infer(
            pd.DataFrame({"Name": [f"p{row % 70}" for row in range(2000)]})
        ).identifiers
        == ()
    )
    assert Domain.infer(
        pd.DataFrame({"name": people[:12], "note": people[:12]})
    ).identifiers == ("name",)
    parts = [f"v{row % 50}" for row in range(ROWS)]
    assert Domain.infer(
        pd.DataFrame({"last": parts, "2": parts, "User": parts})
    ).identifiers == ("last", "User")


def test_exact_coordinates_are_identifiers_and_rounded_ones_are_not():
    exact = RNG.normal(50, 1, ROWS)
    frame = pd.DataFrame({"home_lat": exact, "latitude": exact.round(1), "flat": exact})
    assert Domain.infer(frame).identifiers == ("home_lat",)


PHONES = [4_915_112_345_678 + 7_919 * person for person in range(6)]
NUMBERED = {
    "phone": PHONES,
    "mobilePhone": [float(number) for number in PHONES],
    "TEL": [str(number) for number in PHONES],
    "home_phone": ["030 1234567", "(0221) 765 43 21", "01511/2345678"],
    "card_no": [4_111_111_111_111_111, 5_500_005_555_555_559],
    "cardnumber": ["4111 1111 1111 1111", "5500 0055 5555 5559"],
    "ssn": [123_456_789, 987_654_321, 111_223_333],
    "passport": ["C01234567", "K98765432"],
    "nin": ["QQ123456C", "AB 654321 D"],
}
NOT_NUMBERED = {
    "has_phone": [0, 1],
    "phone": ["yes", "no"],
    "card_type": ["visa", "mastercard", "amex 2020"],
    "card": [1, 2, 3],
    "phone_calls": list(range(15)),
    "phone_model": ["SM-G991B", "iPhone 14 Pro", "Pixel 7"],
    "mobile_minutes": [row * 37.5 for row in range(30)],
    "card_expires": [20_251_231, 20_260_630],
    "card_valid_until": ["2025-12-31", "2026-06-30"],
    "tel_area": [30, 40, 221, 89],
    "cell_size": [10_000, 25_000, 30_000],
    "visits": [1_000_000, 2_000_000, 3_000_000],
}


CASES = [
    (name, "x", values, name in IDENTIFIERS)
    for name, values in (IDENTIFIERS | OTHERS).items()
]
CASES += [
    (f"{name} 1", name, visits(values), True) for name, values in NUMBERED.items()
]
CASES += [
    (f"{name} 0", name, visits(values), False) for name, values in NOT_NUMBERED.items()
]


@pytest.mark.parametrize(
    ("case", "name", "values", "expected"), CASES, ids=[case for case, *_ in CASES]
)
def test_what_names_people_or_rows_is_an_identifier_and_what_describes_them_is_none(
    case, name, values, expected
):
    frame = (
        pd.DataFrame({name: values})
        if case in OTHERS
        else pl.DataFrame({name: values}, strict=False)
    )
    assert Domain.infer(frame).identifiers == ((name,) if expected else ())
