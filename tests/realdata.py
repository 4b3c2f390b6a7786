"""The paper's data, prepared from the files in the folder ``shared/data`` beside the
checkout.
"""

import csv
from pathlib import Path

import narwhals as nw
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def _path(name: str) -> Path:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"needs {name} in the folder shared/data beside the checkout")
    return path


def compas_small():
    """5278 rows: sex, race, age_cat, priors, charge degree and the label
    two_year_recid.
    """
    import pandas as pd

    with _path("compas-scores-two-years.csv").open(newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        # the first of the repeated columns
        place = {name: header.index(name) for name in header}
        rows = [{name: row[i] for name, i in place.items()} for row in reader]
    kept = [row for row in rows if _kept(row)]
    columns = {
        "sex": [row["sex"] for row in kept],
        "race": [row["race"] for row in kept],
    }
    columns["age_cat"] = [row["age_cat"] for row in kept]
    columns["priors"] = [_priors(int(row["priors_count"])) for row in kept]
    columns["charge"] = [row["c_charge_degree"] for row in kept]
    return pd.DataFrame(
        columns | {"recid": [int(row["two_year_recid"]) for row in kept]}
    )


def _kept(row: dict[str, str]) -> bool:
    days = row["days_b_screening_arrest"]
    return (
        days != ""
        and -30 <= int(days) <= 30
        and row["is_recid"] != "-1"
        and row["c_charge_degree"] != "O"
        and row["score_text"] != "N/A"
        and row["race"] in ("African-American", "Caucasian")
    )


def _priors(count: int) -> str:
    return "0" if count == 0 else "1-3" if count <= 3 else ">3"


ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
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


def adult():
    """48842 rows, all columns; "?" is missing."""
    import pandas as pd

    parts = [
        pd.read_csv(
            _path(name),
            names=ADULT_COLUMNS,
            skipinitialspace=True,
            na_values="?",
            comment="|",
        )
        for name in ("adult.data", "adult.test")
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")
    return frame


def adult_small():
    """48842 rows: race, sex, age by decade, education years, and the label income."""
    import pandas as pd

    full = adult()
    columns = {"race": (full["race"] == "White").astype(int)}
    columns["sex"] = (full["sex"] == "Male").astype(int)
    columns["age"] = (full["age"] // 10).clip(upper=7)
    columns["education"] = full["education_num"].clip(lower=5, upper=13)
    return pd.DataFrame(columns | {"income": (full["income"] == ">50K").astype(int)})


def german():
    """1000 rows of the German credit data; columns by number, the last is the
    outcome.
    """
    import pandas as pd

    frame = pd.read_csv(_path("german.data"), sep=" ", header=None)
    frame.columns = [f"a{number}" for number in range(1, 21)] + ["credit"]
    return frame


def lists(frame):
    """Return every column as a list of numbers and texts, with None for what each
    library holds to be missing.
    """
    opened = nw.from_native(frame, eager_only=True)
    return {
        name: [
            value if isinstance(value, int | str) else None
            for value in opened[name].to_list()
        ]
        for name in opened.columns
    }
