"""Hints: what to look at in a table before anything is done to it.

Proxies, gaps, doubtful levels, leaks.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any, Literal

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.identifiers import is_total, words_for, words_in
from fairmaxent.data.roles import ColumnNames, Roles
from fairmaxent.data.table import Codes, NameList, Names, Reals, effective_rows, tally
from fairmaxent.document.words import counted
from fairmaxent.errors import KEEP_COLUMNS, Option, shown, spelled
from fairmaxent.inspection.proposals import groups_of_words, halves, known_levels, plain
from fairmaxent.maxent.logspace import entropy
from fairmaxent.plain_text import visible

# A column that predicts at least this share of a protected one is worth naming.
NOTABLE = 0.01
HintKind = Literal[
    "identifier",
    "missing",
    "similar levels",
    "total",
    "leak",
    "many outcomes",
    "weights",
    "probabilities",
]
# a column that predicts so much of another's entropy says it nearly always
LEAKS = 0.75
_SHOWN = 5  # of a list
_MANY_OUTCOMES = 5
_SLACK = 1e-3  # how far from 1 probabilities may add up to, written with few digits
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d])[-_./' ]+(?=[^\W\d])")


@dataclass(frozen=True)
class Proxy:
    """How well a column predicts a protected one.

    0 is no better than chance, 1 is perfect.
    """

    column: str
    protected: str
    strength: float


def proxies(roles: Roles, codes: Codes, design: Reals | None) -> list[Proxy]:
    """How well columns predict the protected ones, the strongest first.

    Every column but the outcome and identifiers.
    """
    names = roles.domain.names
    each = (
        Proxy(names[other], names[group], strength)
        for group in roles.protected
        for other, strength in predictors(roles, group, codes, design)
        if other != roles.outcome and names[other] not in roles.domain.identifiers
    )
    return sorted(each, key=lambda proxy: -proxy.strength)


def predictors(
    roles: Roles,
    wanted: int,
    codes: Codes,
    design: Reals | None,
) -> Iterator[tuple[int, float]]:
    """How well each other column predicts one, by their numbers."""
    sizes = roles.domain.sizes
    rows = float(len(codes))
    if design is not None:
        rows = float(effective_rows(design.sum(), (design**2).sum()))
    for other in range(len(sizes)):
        if other == wanted:
            continue
        pairs = codes[:, wanted].astype(int) * sizes[other] + codes[:, other]
        table = tally(pairs, design, sizes[wanted] * sizes[other])
        joint = table.reshape(sizes[wanted], sizes[other])
        yield other, predicted_share(joint, rows)


def predicted_share(table: Reals, rows: float) -> float:
    """Share of the entropy of a table's rows that its columns predict.

    Less what chance alone would predict.

    >>> predicted_share(np.array([[50.0, 0.0], [0.0, 50.0]]), 100)
    1.0
    >>> predicted_share(np.array([[25.0, 25.0], [25.0, 25.0]]), 100)
    0.0
    """
    joint = table / table.sum()
    first = joint.sum(axis=1)
    second = joint.sum(axis=0)
    total = entropy(first)
    chance = (np.count_nonzero(first) - 1) * (np.count_nonzero(second) - 1) / (2 * rows)
    if total <= chance:
        return 0.0
    predicted = total + entropy(second) - entropy(joint.ravel())
    return float(np.clip((predicted - chance) / (total - chance), 0.0, 1.0))


@dataclass(frozen=True)
class Hint:
    """Something to look at; the options that it mentions are kept as data."""

    kind: HintKind
    columns: Names
    parts: tuple[object, ...]

    def __str__(self) -> str:
        return visible(spelled(self.parts, str))

    @property
    def option(self) -> Any:
        """The first option that it names."""
        return next(part for part in self.parts if isinstance(part, Option))


def _hint(kind: HintKind, columns: ColumnNames, *parts: object) -> Hint:
    if isinstance(columns, str):
        columns = (columns,)
    return Hint(kind, tuple(columns), parts)


def column_hints(
    frame: frames.Frame,
    domain: Domain,
    roles: NameList,
    weight: str | None,
) -> Iterator[Hint]:
    """What can be said about columns by themselves.

    ``roles`` are those that are compared.
    """
    identifiers = tuple(name for name in domain.identifiers if name not in roles)
    if identifiers:
        look = "look like identifiers"
        if len(identifiers) == 1:
            look = "looks like an identifier"
        yield _hint(
            "identifier",
            identifiers,
            f"{listed(map(shown, identifiers), 'column')} {look}: left out of the fair"
            " table unless you add ",
            replace(KEEP_COLUMNS, value=list(identifiers)),
        )
    for attribute in domain.attributes:
        if attribute.name not in identifiers:
            yield from _gaps(attribute, len(frame), has_role=attribute.name in roles)
            yield from _similar_levels(attribute, has_role=attribute.name in roles)
    yield from _totals(frame, domain)
    yield from _probabilities(frame, roles)
    if weight is not None:
        yield _hint(
            "weights",
            weight,
            f"shares, rates and percentages count each row by its {shown(weight)}",
        )
        return
    for attribute in domain.attributes:
        named = words_for("weights").intersection(words_in(attribute.name))
        if named and attribute.kind == "numeric" and attribute.name not in roles:
            yield _hint(
                "weights",
                attribute.name,
                f"if {attribute.name!r} says how many people a row stands for, use ",
                Option("weight", attribute.name),
            )


def role_hints(roles: Roles, codes: Codes, design: Reals | None) -> Iterator[Hint]:
    """What can be said once the outcome and the protected columns are known."""
    outcome = roles.domain.attributes[roles.outcome]
    levels = len(known_levels(outcome))
    edges = None
    if levels > _MANY_OUTCOMES:
        edges = halves(outcome)
    if edges is not None:
        yield _hint(
            "many outcomes",
            outcome.name,
            f"the outcome {outcome.name!r} has {levels} levels, each compared on its"
            " own; to cut it in two, use ",
            Option("bins", {outcome.name: [*edges]}),
        )
    yield from leak_hints(roles, codes, design)


def leak_hints(roles: Roles, codes: Codes, design: Reals | None) -> Iterator[Hint]:
    """Columns that all but say the outcome.

    A model that may use them looks better than it is.
    """
    names = roles.domain.names
    found = predictors(roles, roles.outcome, codes, design)
    strong = (names[other] for other, strength in found if strength >= LEAKS)
    leaks = [name for name in strong if name not in roles.domain.identifiers]
    if leaks:
        verb, them = ("predicts", "it") if len(leaks) == 1 else ("predict", "them")
        yield _hint(
            "leak",
            leaks,
            f"{listed(map(shown, leaks), 'column')} {verb} the outcome nearly"
            " perfectly; if that is only known afterwards, or is the outcome in other"
            f" words, leave {them} out with ",
            Option("drop", leaks),
        )


def _gaps(attribute: Attribute, rows: int, *, has_role: bool) -> Iterator[Hint]:
    """Missing values that matter.

    In a column that is compared, or in most rows of another one.
    """
    if attribute.missing is None:
        return
    share = float(attribute.level_counts()[attribute.missing] / attribute.counts.sum())
    if has_role:
        yield _hint(
            "missing",
            attribute.name,
            f"{attribute.name!r} is missing for {share:.1%} of the rows, which are not"
            " compared, and keep their share unless you choose another one; to compare"
            " them as a group, use ",
            Option("compare_missing", value=True),
        )
    elif share > 0.5:
        yield _hint(
            "missing",
            attribute.name,
            f"{attribute.name!r} is missing for {share:.0%} of the rows",
        )


def _similar_levels(attribute: Attribute, *, has_role: bool) -> Iterator[Hint]:
    """Levels that are probably one.

    They differ in case, spaces or marks, or are short and long forms.
    """
    if attribute.kind not in ("categorical", "ordered"):
        return
    alike: dict[str, list[str]] = {}
    counts = dict(zip(attribute.labels, attribute.level_counts(), strict=True))
    for level in sorted(known_levels(attribute), key=lambda level: -counts[level]):
        alike.setdefault(_same_as(level), []).append(level)
    groups = [levels for levels in alike.values() if len(levels) > 1]
    if groups:
        named = "; ".join(
            " and ".join(map(shown, levels[:4])) for levels in groups[:_SHOWN]
        )
        why = ", because they are compared as different groups" if has_role else ""
        # the most common way to write it
        names = {other: levels[0] for levels in groups for other in levels[1:]}
        yield _hint(
            "similar levels",
            attribute.name,
            f"in {attribute.name!r}, these levels may be the same: {named}; if so, make"
            f" them one first{why}: ",
            Option("levels", {attribute.name: names}),
        )


def _same_as(level: str) -> str:
    """A key that levels share if they are probably the same.

    In small letters, without marks between letters.
    """
    text = plain(level)
    for number, words in enumerate(groups_of_words("men_and_women")):
        if text.rstrip(".") in words:
            return f"\0{number}"
    return _BETWEEN_LETTERS.sub("", text).rstrip(".,;:") or level


def _totals(frame: frames.Frame, domain: Domain) -> Iterator[Hint]:
    """A level called total, or a last row that is one: a sum is no person."""
    last = dict(zip(frame.columns, frame.row(len(frame) - 1), strict=True))
    for attribute in domain.attributes:
        if attribute.kind not in ("categorical", "ordered"):
            continue
        texts = []
        if attribute.name not in domain.identifiers:
            texts += known_levels(attribute)
        end = last.get(attribute.name)
        if isinstance(end, str):
            texts.append(end)
        total = next(filter(is_total, texts), None)
        if total is not None:
            what = (
                f"{attribute.name!r} has the value {shown(total)}; if that marks sums,"
                " remove those rows first"
            )
            yield _hint("total", attribute.name, what)


def _probabilities(frame: frames.Frame, roles: NameList) -> Iterator[Hint]:
    """Columns side by side that add up to 1 in every row, as probabilities do.

    Those of 0 and 1 alone are not meant: they are more often levels of a column that
    were taken apart for a model.
    """
    schema = frame.schema
    names = [
        name for name in frame.columns if schema[name].is_float() and name not in roles
    ]
    numbers = [frames.to_numbers(frame.get_column(name)) for name in names]
    end = 0
    for start in range(len(names)):
        if start < end:  # it is one of those found already
            continue
        end = _end_of_shares(numbers, start)
        if end == start:
            continue
        found = names[start:end]
        # what they begin with alike is no part of the groups' names
        alike = len(commonprefix(found))  # noqa: RUF071 (letter by letter is meant)
        groups = {name[alike:].strip("_") or name: name for name in found}
        yield _hint(
            "probabilities",
            found,
            f"{listed(map(shown, found), 'column')} add up to 1 in every row, as"
            " probabilities of groups do; if they are, compare these groups with ",
            Option("likely", {"group": groups}),
            " and say what tells them: ",
            Option("told_by", "names"),
            ", or the columns that decide",
        )


def _end_of_shares(numbers: Sequence[Reals], start: int) -> int:
    """Where columns end that add up to 1; at their start, if there are none.

    Rows in which all are missing add up to nothing, and do not matter.
    """
    total = np.zeros(len(numbers[start]))
    are_parted = False  # some are neither 0 nor 1
    for end, column in enumerate(numbers[start:], start + 1):
        part = np.nan_to_num(column)
        if part.min(initial=0.0) < 0:
            break
        total = total + part
        are_parted |= bool(((part > 0) & (part < 1)).any())
        known = total[total > 0]
        if known.max(initial=0.0) > 1 + _SLACK:
            break
        if are_parted and end > start + 1 and known.min() >= 1 - _SLACK:
            return end
    return start


def listed(items: Iterable[str], noun: str) -> str:
    """Write a list in words, with a number of further things if it is long."""
    texts = list(items)
    if len(texts) > _SHOWN:
        texts[_SHOWN:] = [counted(len(texts) - _SHOWN, f"more {noun}")]
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
