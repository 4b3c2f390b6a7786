"""Shares before and after: of every level, and how strongly columns go together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from fairmaxent.data.table import Names, Reals, cramers_v
from fairmaxent.distribution import Distribution
from fairmaxent.document import Blocks, Heading, Paragraph, Table
from fairmaxent.document.words import counted, more, percent, short_name
from fairmaxent.errors import BASE_SHARE
from fairmaxent.facts.groups import GroupChange
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import Changes
from fairmaxent.report.delivered import unless_nan
from fairmaxent.report.source import FrontDoor

_RATES = attrgetter("rate_before", "rate_after", "rate_before_low", "rate_before_high")
# shown one by one in a page; the JSON report has all
_COLUMNS = 40
_LEVELS = 16
_GROUPS = 24
LARGEST_MAP = 25  # columns of which all pairs are compared
# of a column that is compared with others: a table of each pair is made
MOST_LEVELS = 1000
_SHIFTS = 10
_ABOUT_PAIRS = (
    (
        "How strongly two columns are related, measured by Cramér's V: 0 means"
        " independent, 1 means that one determines the other. The larger "
    ),
    BASE_SHARE,
    (
        " is, the more the weak relations fade: the base 'tree' keeps only the"
        " strongest, the others none."
    ),
)
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Shift:
    """A share of the data and of p*."""

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class Marginal:
    """One column: the share of each level; the distance is ½ Σ |after − before|."""

    name: str
    kind: str
    role: str  # outcome, protected or other
    distance: float
    shifts: tuple[Shift, ...]


def marginals(fit: Certified) -> tuple[Marginal, ...]:
    """Every column: outcome and protected ones first, then those that changed most."""
    data = fit.distribution_of_data
    roles = fit.recorded
    columns = []
    for index, attribute in enumerate(fit.domain.attributes):
        before = data.joint([index])
        after = fit.distribution.joint([index])
        role = "other"
        if index in (roles.outcome, *roles.others):
            role = "outcome"
        elif index in roles.protected:
            role = "protected"
        shifts = tuple(map(Shift, attribute.labels, before.tolist(), after.tolist()))
        distance = float(np.abs(after - before).sum() / 2)
        columns.append(Marginal(attribute.name, attribute.kind, role, distance, shifts))
    others = [column for column in columns if column.role == "other"]
    return (
        *(columns[index] for index in roles.root),
        *sorted(others, key=lambda column: -column.distance),
    )


@dataclass(frozen=True)
class AssociationShift:
    """Cramér's V of two columns, and what it is by chance if they are unrelated."""

    first: str
    second: str
    before: float
    after: float
    chance: float  # before or after, whichever is more


@dataclass(frozen=True)
class Associations:
    """Cramér's V of each pair of columns in the data and in p*, one on the diagonal."""

    names: Names
    left_out: int  # columns that are not compared
    before: Matrix
    after: Matrix
    shifts: tuple[AssociationShift, ...]  # that are more than chance


def associations(fit: Certified) -> Associations:
    """Compare the pairs; of many columns, those most related to outcome and groups."""
    sizes = fit.domain.sizes
    data = fit.distribution_of_data
    chosen = _chosen(fit, data)
    names = tuple(fit.domain.names[index] for index in chosen)
    before = np.eye(len(chosen))
    after = np.eye(len(chosen))
    for row, first in enumerate(chosen):
        for column, second in enumerate(chosen[:row]):
            old = cramers_v(data.joint([first, second]))
            new = cramers_v(fit.distribution.joint([first, second]))
            before[row, column] = before[column, row] = old
            after[row, column] = after[column, row] = new
    chance = _chance(fit, chosen, data)
    change = np.abs(after - before)
    rows, columns = np.nonzero(np.triu(change > chance, 1))
    order = np.argsort(-np.round(change[rows, columns], 12), kind="stable")[:_SHIFTS]
    return Associations(
        names=names,
        left_out=len(sizes) - len(chosen),
        before=tuple(map(tuple, before.tolist())),
        after=tuple(map(tuple, after.tolist())),
        shifts=tuple(
            AssociationShift(
                first=names[i],
                second=names[j],
                before=float(before[i, j]),
                after=float(after[i, j]),
                chance=float(chance[i, j]),
            )
            for i, j in zip(rows[order], columns[order], strict=True)
        ),
    )


def _chosen(fit: Certified, data: Distribution) -> list[int]:
    """Outcome and protected columns, then those most strongly related to them."""
    root = list(fit.recorded.root)[:LARGEST_MAP]
    small = [
        index for index, size in enumerate(fit.domain.sizes) if size <= MOST_LEVELS
    ]
    others = [index for index in small if index not in fit.recorded.root]
    room = LARGEST_MAP - len(root)
    if len(others) > room:
        strength = [
            max(cramers_v(data.joint([index, column])) for column in root)
            for index in others
        ]
        strongest = np.argsort(-np.round(strength, 12), kind="stable")[:room]
        others = sorted(others[index] for index in strongest)
    return [*root, *others]


def _chance(fit: Certified, chosen: Sequence[int], data: Distribution) -> Reals:
    """What chance makes of V for each pair, in the data or in the rows of p*."""
    levels = np.array([np.count_nonzero(data.joint([index])) for index in chosen])
    # Without a relation, χ² is (r − 1)(c − 1) on average, so V is about √((max(r, c) −
    # 1) / n) for n effective rows.
    degrees = np.maximum(np.maximum.outer(levels, levels) - 1, 0)
    share = fit.certificate.copied_share
    if fit.provenance.is_noisy:
        share = 1.0
    before, after = (
        np.sqrt(degrees / rows)
        for rows in (fit.table.worth, fit.certificate.effective_rows)
    )
    return np.minimum(np.maximum(before, share * after), 1.0)


def by_outcome(
    changes: Changes,
) -> dict[tuple[str, str], list[GroupChange]]:
    """Groups by their column and outcome."""
    found: dict[tuple[str, str], list[GroupChange]] = {}
    for change in changes:
        found.setdefault((change.column, change.about), []).append(change)
    return found


def units_of(changes: Changes) -> list[list[GroupChange]]:
    """The groups of a column and an outcome as they are shown or left out together.

    Those of a stratum are, the clearest gap before the others. Where there are no
    strata, each group is alone, the largest first.
    """
    if not changes[0].stratum:
        return [[one] for one in sorted(changes, key=lambda change: -change.rows)]
    strata: dict[str, list[GroupChange]] = {}
    for change in changes:
        strata.setdefault(change.stratum, []).append(change)
    return sorted(strata.values(), key=_nearness)


def _nearness(groups: Changes) -> float:
    """How near the rates of groups may be: below 0 if their ranges lie apart.

    Without ranges, how near they are, after all that have some.
    """
    low = [group.rate_before_low for group in groups]
    high = [group.rate_before_high for group in groups]
    if np.isnan(low).all():
        rates = np.nan_to_num([group.rate_before for group in groups])
        return 2.0 - float(np.ptp(rates))
    return float(np.nanmin(high) - np.nanmax(low))


def with_room(units: Iterable[Changes], room: int) -> list[GroupChange]:
    """The first units for which there is room, and always the first of all."""
    kept: list[GroupChange] = []
    for unit in units:
        if not kept or len(kept) + len(unit) <= room:
            kept += unit
    return kept


def group_blocks(changes: Changes) -> Blocks:
    """How often each group has each outcome; of many, the largest, or whole strata."""
    yield Paragraph(
        "Before: in the data, and where the rate among all such people lies, if they"
        " are independent of each other. After: in what was delivered."
    )
    for (column, about), own in by_outcome(changes).items():
        kept = with_room(units_of(own), _GROUPS)
        hidden = "".join(more(len(own), len(kept), "group", " in the JSON report"))
        if own[0].stratum and hidden:
            hidden = f"The strata with the clearest gaps; {hidden}"
        outcome = about.removesuffix(f" = {own[0].outcome}")
        label = f"{about}, by {column.removeprefix(f'{outcome} by ')}"
        yield outcome_table(label, [change for change in own if change in kept], hidden)


def outcome_table(label: str, changes: Changes, about: str) -> Table:
    """How often groups have an outcome, before, with its range, and after."""
    numbers = [tuple(map(unless_nan, _RATES(change))) for change in changes]
    rows = []
    for change, (before, after, low, high) in zip(changes, numbers, strict=True):
        span = "–" if low is None else f"{percent(low)} – {percent(high)}"
        name = short_name(change.group if " × " in change.column else change.name)
        rows.append((name, f"{change.rows:,}", percent(before), span, percent(after)))
    heads = ("Group", "Rows", "Before", "95% range", "After")
    shares = tuple(four[:2] for four in numbers)
    ranges = tuple(four[2:] for four in numbers)
    return Table(
        label,
        heads,
        tuple(rows),
        shares=shares,
        ranges=ranges,
        about=about,
    )


def column_blocks(columns: Sequence[Marginal]) -> Blocks:
    """The share of each level of every column."""
    yield Paragraph(
        "Share of the rows at each level, in the data (before) and in the fair"
        " distribution (after). Outcome and protected columns come first, then the"
        " columns that changed most. Columns that nobody asked about change because"
        " they are related to the groups and the outcome. The distance is the share of"
        " the rows that would have to change their level."
    )
    for column in columns[:_COLUMNS]:
        yield _column_table(column)
    others = columns[_COLUMNS:]
    if others:
        label = counted(len(others), "more column")
        yield Heading(label)
        lines = tuple(
            (one.name, one.kind, f"{len(one.shifts)}", percent(one.distance))
            for one in others
        )
        yield Table(label, ("Column", "Kind", "Levels", "Distance"), lines)


def _column_table(column: Marginal) -> Table:
    """The share of each level; small ones are added up if there are many."""
    kept = list(column.shifts)
    if len(kept) > _LEVELS + 1:  # one more takes no more room than to say so
        by_size = sorted(kept, key=lambda shift: -max(shift.before, shift.after))
        hidden = set(by_size[_LEVELS:])
        before = sum(shift.before for shift in kept if shift in hidden)
        after = sum(shift.after for shift in kept if shift in hidden)
        kept = [shift for shift in kept if shift not in hidden]
        kept.append(Shift(counted(len(hidden), "more level"), before, after))
    about = (
        f"{column.kind}, {len(column.shifts)} levels, distance"
        f" {percent(column.distance)}"
    )
    if column.role != "other":
        about = f"{column.role}, {about}"
    rows = tuple(
        (shift.label, percent(shift.before), percent(shift.after)) for shift in kept
    )
    heads = ("Level", "Before", "After")
    shares = tuple((shift.before, shift.after) for shift in kept)
    return Table(
        column.name,
        heads,
        rows,
        shares=shares,
        about=about,
    )


def pair_blocks(pairs: Associations, door: FrontDoor) -> Blocks:
    """How strongly columns are related, before and after."""
    about = door.text_of(_ABOUT_PAIRS)
    if pairs.left_out:
        about += (
            f" {pairs.left_out} columns that are least related to the outcome and the"
            " groups, or that have more than 1,000 levels, are left out."
        )
    yield Paragraph(about)
    none = "" if pairs.shifts else " No pair changed by more than that."
    yield Paragraph(
        "The JSON report has all pairs. Those are listed here whose Cramér's V changed"
        " by more than chance alone can explain. By chance: about how related such"
        " columns would seem to be if they were not, because many levels share few"
        f" rows, or because few rows count often.{none}"
    )
    if pairs.shifts:
        rows = tuple(
            (
                f"{pair.first}, {pair.second}",
                f"{pair.before:.3f}",
                f"{pair.after:.3f}",
                f"{pair.chance:.3f}",
            )
            for pair in pairs.shifts
        )
        heads = ("Columns", "Cramér's V before", "After", "By chance")
        yield Table("Pairs that changed most", heads, rows)
