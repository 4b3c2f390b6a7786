"""The data sets as they are used: UCI's and ProPublica's as shipped, and those that the
paper prepares from them.
"""

import datetime
from bisect import bisect_left
from collections.abc import Mapping

from fairmaxent.datasets.dataset import (
    Columns,
    DataFile,
    Dataset,
    Library,
    build_frame,
    facts,
    read_files,
    read_table,
)

SCORES = DataFile(
    name="compas-scores.csv",
    sha256="c9864c9e48c0a9e32ab23f7ad05a454d7624a4625c2a54d4447921de544fd8a2",
    address=(
        "https://raw.githubusercontent.com/propublica/compas-analysis/"
        "a4198bf9d28333aa5e66b2755671839605451c43/compas-scores.csv"
    ),
)
CHARGES = DataFile(
    name="compas-charge-features.txt",
    sha256="3e596159ec8e5987c347aeaa8d1153f2c3e98302e8618ea7e5717b9141a6a892",
    address=(
        "https://raw.githubusercontent.com/vijaykeswani/Fair-Max-Entropy-Distributions/"
        "77e5186c66cda92c36f99c513ed6ae34e4914c97/criminals_classification/charges_features.txt"
    ),
)

# In the order of the table of charges; "violent" and "drug" are degrees, the others yes
# or no.
_OFFENCES = (
    "violent",
    "drug",
    "firearm",
    "minor",
    "road_safety",
    "sex_offence",
    "fraud",
    "petty",
)

# Bounds of the authors' published code; a class is the number of bounds that a value
# exceeds.
_AGES = (25, 65)
_PRIORS = (0, 10, 20, 30, 40)
_MONTHS = (0, 3, 6, 12, 24, 48, 60)
_DAYS_OF_A_MONTH = 12  # as in the authors' code

# As a number, the charge degree depends on the order of its levels, which in the
# authors' code is that of a Python set and so differs from run to run. Of the three
# orders (up to direction) this one gives their known dual values.
_DEGREES = {"F": 0, "O": 1, "M": 2}


def load_prepared(name: str, library: Library) -> Dataset:
    """Return a data set by its name; only "compas-large" is not shipped."""
    if name == "compas-large":
        columns = _large_compas()
    elif name == "adult-small":
        columns = _small_adult(read_table("adult"))
    else:
        if name == "compas-small":
            columns = _small_compas(read_table("compas"))
        else:
            columns = read_table(name)
    return Dataset(name=name, frame=build_frame(columns, library), **facts(name))


def _small_adult(columns: Columns) -> Columns:
    return {
        "race": [
            "White" if race == "White" else "Non-White" for race in columns["race"]
        ],
        "sex": columns["sex"],
        "age": [min(age // 10 * 10, 70) for age in columns["age"]],
        "education_num": [min(max(years, 5), 13) for years in columns["education_num"]],
        "income": columns["income"],
    }


def _small_compas(columns: Columns) -> Columns:
    """Select the paper's rows. Its other conditions (a known score and charge) hold for
    every row of this file.
    """
    days = columns["days_b_screening_arrest"]
    races = columns["race"]
    kept = [
        row
        for row, (day, race) in enumerate(zip(days, races, strict=True))
        if day is not None
        and -30 <= day <= 30
        and race in ("African-American", "Caucasian")
    ]
    names = (
        "sex",
        "race",
        "age_cat",
        "priors_count",
        "c_charge_degree",
        "two_year_recid",
    )
    small = {name: [columns[name][row] for row in kept] for name in names}
    priors = [
        "0" if count == 0 else "1-3" if count <= 3 else ">3"
        for count in small["priors_count"]
    ]
    return small | {"priors_count": priors}


def _large_compas() -> Columns:
    """8723 records in 19 columns, all numbers; 4524 of them are distinct, among 4.8e10
    points.
    """
    scores, charges = (content.decode() for content in read_files((SCORES, CHARGES)))
    offences = {}  # the kinds of offence that each charge text stands for
    for line in charges.splitlines()[1:]:
        charge, *degrees = line.split(",")
        offences[charge] = {
            name: int(degree) for name, degree in zip(_OFFENCES, degrees, strict=True)
        }
    header, *lines = (line.split(",") for line in scores.splitlines())
    # The authors split lines at every comma and drop those that become longer, i.e.
    # with a comma inside a cell.
    records = [
        dict(zip(header, fields, strict=True))
        for fields in lines
        if len(fields) == len(header)
    ]
    # Those whose charge, time in jail and score are known.
    rows = [
        _row(record, offences[record["c_charge_desc"]])
        for record in records
        if record["c_charge_desc"] in offences
        and record["c_jail_in"]
        and record["c_jail_out"]
        if int(record["decile_score"]) > 0
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(record: Mapping[str, str], offences: Mapping[str, int]) -> dict[str, int]:
    begin, end = (
        datetime.datetime.fromisoformat(record[name])
        for name in ("c_jail_in", "c_jail_out")
    )
    # begun, as the authors count: a negative difference is rounded away from zero
    days = abs((begin - end).days)
    return {
        "sex": int(record["sex"] == "Female"),
        "age": bisect_left(_AGES, int(record["age"])),
        "race": int(record["race"] == "Caucasian"),
        "juv_fel_count": int(record["juv_fel_count"]),
        "decile_score": int(record["decile_score"]),
        "juv_misd_count": int(record["juv_misd_count"]),
        "juv_other_count": int(record["juv_other_count"]),
        "priors_count": bisect_left(_PRIORS, int(record["priors_count"])),
        "jail_class": bisect_left(_MONTHS, days / _DAYS_OF_A_MONTH),
        "c_charge_degree": _DEGREES[record["c_charge_degree"]],
        **offences,
        "is_recid": int(record["is_recid"]),
    }
