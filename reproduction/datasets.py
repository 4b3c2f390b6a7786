"""The data sets as the paper prepares them, from the shipped tables and from files.

COMPAS large needs two files that are not shipped. They are read from a folder of the
user or downloaded, and verified by their checksum.
"""

import datetime
import hashlib
import os
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal
from urllib.request import urlopen

from fairmaxent.datasets import Columns, Dataset, Library, read_table
from fairmaxent.errors import StorageError, check_choice

DatasetName = Literal["adult-small", "compas-small", "compas-large"]
FACTS = Path(__file__).with_name("facts.toml")
FOLDER_VARIABLE = "FAIRMAXENT_DATA"
_PATIENCE = 30  # seconds without an answer


@dataclass(frozen=True)
class DataFile:
    """A file with the checksum of its content and the address to download it from."""

    name: str
    sha256: str
    address: str


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


def load(name: DatasetName, *, library: Library = "pandas") -> Dataset:
    """Return a data set as the paper prepares it, with its roles and its origin.

    "compas-large" needs two files, which are read from the folder in the environment
    variable FAIRMAXENT_DATA or, if that is not set, downloaded.
    """
    check_choice("name", name, DatasetName)
    if name == "adult-small":
        columns = _small_adult(read_table("adult"))
    elif name == "compas-small":
        columns = _small_compas(read_table("compas"))
    else:
        columns = _large_compas()
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    return Dataset.build(name, columns, library, facts[name])


def read_files(files: Sequence[DataFile]) -> list[bytes]:
    """Return the contents, verified; an error says which files to save where."""
    folder = os.environ.get(FOLDER_VARIABLE)
    listed = ", ".join(
        f"{file.name} (SHA-256 {file.sha256}, from {file.address})" for file in files
    )
    advice = (
        "save these files in one folder and set the environment variable"
        f" {FOLDER_VARIABLE} to it: {listed}"
    )
    return [_checked(file, folder, advice=advice) for file in files]


def _checked(file: DataFile, folder: str | None, *, advice: str) -> bytes:
    source = str(Path(folder, file.name)) if folder else file.address
    try:
        content = Path(source).read_bytes() if folder else _fetch(source)
    except OSError as error:
        raise StorageError(f"cannot read {source}: {error}; {advice}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file.sha256:
        raise StorageError(
            f"{source} is damaged or a different file: its SHA-256 is {checksum}"
            f" instead of {file.sha256}; {advice}"
        )
    return content


def _fetch(address: str) -> bytes:
    """Download a file; every failure is an OSError."""
    try:
        with urlopen(address, timeout=_PATIENCE) as answer:
            content: bytes = answer.read()
    except HTTPException as error:
        raise OSError(f"the download broke off ({error})") from error
    return content


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
    """Select the paper's rows.

    Its other conditions (a known score and charge) hold for every row of this file.
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
    small["priors_count"] = [_priors(count) for count in small["priors_count"]]
    return small


def _priors(count: int) -> str:
    if count == 0:
        return "0"
    return "1-3" if count <= 3 else ">3"


def _large_compas() -> Columns:
    """8723 records in 19 columns, all numbers.

    4524 of them are distinct, among 4.8e10 points.
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
    begin = datetime.datetime.fromisoformat(record["c_jail_in"])
    end = datetime.datetime.fromisoformat(record["c_jail_out"])
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
