"""The numbers of a bias audit: who was selected, or scored above the median.

They are counted on the rows of a table of decisions, as the rules of New York City ask
(6 RCNY § 5-301): a row is a person, and nothing is binned, weighted or fitted.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import Any
from urllib.parse import parse_qs, urlencode

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import listed, read_columns
from fairmaxent.data.table import Mask, Reals
from fairmaxent.document import Table
from fairmaxent.document.words import percent, rounded
from fairmaxent.engines import lazy_frame
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.fairness.compare import Compare
from fairmaxent.files.content import file_sha256
from fairmaxent.fit.refused import EVALUATION
from fairmaxent.gate.checking import opened
from fairmaxent.metrics.rates import group_text
from fairmaxent.metrics.rows import (
    MISSING,
    Columns,
    code_of,
    favourable_codes,
    groups_of,
    levels_of,
)
from fairmaxent.options import documented, like, option, refusals

_SMALL = 0.02  # of the people in a table; a category below it may be left out
_NONE = "–"


@documented
@dataclass(frozen=True)
class AuditRequest:
    """What an audit of a table of decisions counts."""

    HEADING = "An audit of a table (ll144)"
    REFUSED = (
        EVALUATION[0],
        refusals.Refused(
            "outcome",
            "favourable",
            "it says who was selected",
            beside=refusals.MISSING,
        ),
    )

    outcome: str | None = option(
        None,
        metavar="COLUMN",
        help="The column of decisions, e.g. hired: selection rates are counted.",
    )
    protected: str | Sequence[str] = like(
        Compare,
        "protected",
        (),
        main=False,
        help="Columns of categories, and of their intersections: sex,race.",
    )
    _: KW_ONLY
    favourable: object = like(
        Compare,
        "favourable",
        help="The decisions that select a person; repeatable.",
        doc="",
    )
    score: str | None = option(
        None,
        metavar="COLUMN",
        help="The column of scores: who is above the median of all people is counted.",
    )

    def __post_init__(self) -> None:
        names = read_columns("protected", self.protected or ())
        object.__setattr__(self, "protected", names)
        if self.favourable is not None:
            texts = [*map(value_text, listed(self.favourable))]
            object.__setattr__(self, "favourable", texts)
        refusals.refuse(self)
        if self.outcome is None and self.score is None:
            raise ColumnError(
                "name the column of decisions with ",
                Option("outcome"),
                ", or that of scores with ",
                Option("score"),
            )
        if len(names) < 2:
            raise ColumnError(
                Option("protected"),
                f" is {names}; name sex and race or ethnicity, because an audit is also"
                " by their intersections (6 RCNY § 5-301)",
            )

    @property
    def stated(self) -> str:
        """Its options on a line, from which they can be read again."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return urlencode(given, doseq=True)

    @classmethod
    def of_statement(cls, text: str) -> "AuditRequest":
        """Read what a document states."""
        stated = parse_qs(text)
        asked: dict[str, Any] = {one.name: stated.get(one.name) for one in fields(cls)}
        for name in ("outcome", "score"):
            if asked[name] is not None:
                asked[name] = asked[name][0]
        return cls(**asked)


@dataclass(frozen=True, eq=False)
class Choice:
    """Who was chosen, among the people about whom that is known."""

    known: Mask
    chosen: Mask
    what: str  # of the people, is unknown if it is not known
    heads: tuple[str, str]  # of those chosen, and of their rate
    sentence: str


@dataclass(frozen=True, eq=False)
class Counts:
    """The people of each known category, and how many of them were chosen."""

    names: list[str]
    people: Reals
    chosen: Reals

    @property
    def is_small(self) -> Mask:
        """Whether a category has fewer than 2 % of the people."""
        return self.people < _SMALL * self.people.sum()

    @property
    def rates(self) -> Reals:
        """The share of each category that was chosen."""
        return self.chosen / self.people

    def impacts(self, compared: Mask) -> list[str]:
        """Rates over the highest of those compared, as texts."""
        highest = self.rates.max(initial=0.0, where=compared)
        if highest == 0:
            return [_NONE] * len(self.names)
        return [f"{rounded(float(rate / highest), 3):.3f}" for rate in self.rates]


@dataclass(frozen=True, eq=False)
class Audit:
    """A table of decisions, and what is counted in it."""

    request: AuditRequest
    frame: frames.Frame
    sha256: str | None  # of the file that the table is from

    @classmethod
    def of(cls, data: Any, request: AuditRequest) -> "Audit":
        """Open a table, or the file of one."""
        sha256 = None
        if isinstance(data, str | os.PathLike):
            sha256 = file_sha256(data)
        table = opened(data)
        roles = [request.outcome, request.score, *request.protected]
        names = [name for name in dict.fromkeys(roles) if name is not None]
        for name in names:
            lazy_frame.check_column(table, name)
        frame = table.select(*names)
        if isinstance(frame, nw.LazyFrame):
            frame = lazy_frame.collect(frame)
        return cls(request, frames.open_frame(frame), sha256)

    @property
    def groupings(self) -> list[Columns]:
        """Each column, each pair of them, and all together."""
        names = self.request.protected
        sizes = sorted({1, 2, len(names)})
        return [columns for size in sizes for columns in combinations(names, size)]

    @cached_property
    def choices(self) -> list[Choice]:
        """By decisions, by scores, or by both."""
        found = []
        if self.request.outcome is not None:
            found.append(self._selection(self.request.outcome))
        if self.request.score is not None:
            found.append(self._scoring(self.request.score))
        return found

    def counts(self, choice: Choice, columns: Columns) -> "Counts":
        """Count the people of each category, and those chosen."""
        group, labels = groups_of(self.frame, columns, None)
        people = np.bincount(group[choice.known], minlength=len(labels))
        chosen = np.bincount(group[choice.chosen], minlength=len(labels))
        known = [
            code
            for code, label in enumerate(labels)
            if MISSING not in label and people[code]
        ]
        return Counts(
            names=[group_text(labels[code]) for code in known],
            people=people[known].astype(float),
            chosen=chosen[known].astype(float),
        )

    def _selection(self, outcome: str) -> Choice:
        codes, levels = levels_of(frames.column(self.frame, outcome), None)
        selecting = favourable_codes(levels, self.request.favourable)
        known = codes != code_of(levels, MISSING)
        chosen = known & np.isin(codes, selecting)
        names = " or ".join(value_text(levels[code]) for code in selecting)
        return Choice(
            known=known,
            chosen=chosen,
            what="decision",
            heads=("Selected", "Selection rate"),
            sentence=(
                f"Selected are those with {outcome} = {names}: {chosen.sum():,} of the"
                f" {known.sum():,} people with a decision."
            ),
        )

    def _scoring(self, score: str) -> Choice:
        numbers = frames.to_numbers(frames.column(self.frame, score))
        known = ~np.isnan(numbers)
        if not known.any():
            raise InputError(f"no row has a {score}; name another column of scores")
        median = float(np.median(numbers[known]))
        chosen = known & (numbers > median)
        return Choice(
            known=known,
            chosen=chosen,
            what="score",
            heads=("Above the median", "Scoring rate"),
            sentence=(
                f"The median of {score} is {median:.15g}, counted on the numbers"
                f" of all {known.sum():,} people with a score; {chosen.sum():,} of them"
                f" are above it. The {np.sum(numbers == median):,} who have exactly the"
                " median count as not above it."
            ),
        )


# ---------------------------------------------------------------- facts


def people(audit: Audit) -> Iterator[str]:
    """Who is counted, and who was selected or scored above the median."""
    yield (
        f"The table has {len(audit.frame):,} rows; each counts as one person, and"
        " nothing is weighted or binned."
    )
    for choice in audit.choices:
        yield choice.sentence


def ratios(audit: Audit) -> Iterator[Table]:
    """Rates and impact ratios, with and without small categories."""
    for choice in audit.choices:
        for columns in audit.groupings:
            counts = audit.counts(choice, columns)
            name = " × ".join(columns)
            yield Table(
                label=f"Impact ratios by {name}",
                heads=(
                    name,
                    "People",
                    *choice.heads,
                    "Impact ratio",
                    "Impact ratio without categories under 2 %",
                ),
                rows=tuple(_rows(counts)),
            )


def _rows(counts: Counts) -> Iterator[tuple[str, ...]]:
    is_small = counts.is_small
    impacts = counts.impacts(counts.people > 0)
    of_large = counts.impacts(~is_small)
    for number, name in enumerate(counts.names):
        yield (
            name,
            f"{counts.people[number]:,.0f}",
            f"{counts.chosen[number]:,.0f}",
            percent(float(counts.rates[number])),
            impacts[number],
            "under 2 %" if is_small[number] else of_large[number],
        )


def unknown(audit: Audit) -> Iterator[Table]:
    """How many people are in no rate, and why."""
    for choice in audit.choices:
        rows = []
        for columns in audit.groupings:
            group, labels = groups_of(audit.frame, columns, None)
            is_named = np.array([MISSING not in label for label in labels])[group]
            counted = (is_named & choice.known, ~is_named, is_named & ~choice.known)
            rows.append((" × ".join(columns), *(f"{who.sum():,}" for who in counted)))
        yield Table(
            f"Unknown {choice.what}s",
            (
                "Categories",
                "People in the rates",
                "Category unknown",
                f"Only the {choice.what} unknown",
            ),
            tuple(rows),
        )
